// One use of a memory: the chat that it was used in, and the receipt that says why.

import { ApiError, call } from "./api.js";
import { outcomeTexts } from "./asked_of_memory.js";
import { button, element, replace } from "./dom.js";
import { failure, loading } from "./shell.js";
import { dateTime, named, number, t } from "./words.js";

let views = 0;

/** A line of a list of receipts, with a control that opens its answer below. `memoryId`: whose use it is. */
export function useLine(receipt, memoryId) {
  const place = element("div", { id: `answer-${(views += 1)}`, class: "answer", hidden: true });
  const question = element("span", { id: `${place.id}-question`, dir: "auto" }, receipt.query || t("uses.without_question"));
  const opener = button(t("answer.show"), () => toggle(opener, place, () => show(place, receipt.id, memoryId)), {
    class: "quiet",
    "aria-expanded": "false",
    "aria-controls": place.id,
    "aria-describedby": question.id,
  });
  const about = element("span", { class: "hint" }, dateTime(receipt.created_at), element("code", {}, receipt.id));
  return element("li", {}, question, about, element("div", { class: "actions" }, opener), place);
}

function toggle(opener, place, open) {
  place.hidden = !place.hidden;
  opener.setAttribute("aria-expanded", String(!place.hidden));
  opener.textContent = t(place.hidden ? "answer.show" : "answer.hide");
  if (!place.hidden) open();
}

async function show(place, receiptId, memoryId) {
  replace(place, loading());
  const path = `receipts/${encodeURIComponent(receiptId)}`;
  try {
    const [messages, receipt] = await Promise.all([messagesOf(path), call("GET", path)]);
    replace(place, chat(messages), explained(receipt, memoryId));
  } catch (error) {
    replace(place, failure(error, () => show(place, receiptId, memoryId)));
  }
}

/** Null where the record does not hold the chat: it may be deleted, or older than the record is kept. */
async function messagesOf(path) {
  try {
    return (await call("GET", `${path}/messages`)).messages;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

function chat(messages) {
  if (messages === null) return part("answer.chat", element("p", { class: "hint" }, t("answer.gone")));
  const lines = messages.map((one) =>
    element("li", {}, element("span", { class: "hint" }, named("role", one.type === "input" ? "user" : "assistant")), element("blockquote", { dir: "auto" }, one.content)),
  );
  const isOpen = !messages.some((one) => one.type === "output");
  return part("answer.chat", element("ol", { class: "quotes" }, lines), isOpen && element("p", { class: "hint" }, t("answer.none")));
}

function explained(receipt, memoryId) {
  const line = (one, about) =>
    element("li", { class: one.id === memoryId ? "this" : "" }, element("span", { dir: "auto" }, one.content ?? t("receipt.forgotten")), element("span", { class: "hint" }, about));
  const given = receipt.notes.flatMap((note) => note.memories.map((one) => line(one, t(note.is_new ? "receipt.new" : "receipt.again"))));
  const inNotes = new Set(receipt.injected);
  const others = receipt.candidates.filter((one) => !inNotes.has(one.id));
  const asked = outcomeTexts(receipt.outcome);
  const rows = [
    [t("receipt.status"), named("recall", receipt.status)],
    [t("receipt.reason"), named("reason", receipt.reason)],
    [t("receipt.tokens"), number(receipt.tokens)],
    [t("receipt.took"), t("receipt.ms", { ms: number(Math.round(Object.values(receipt.timings_ms).reduce((sum, ms) => sum + ms, 0))) })],
    ...(asked.length ? [[t("asked.title"), asked.join(" · ")]] : []),
  ];
  return part(
    "receipt.title",
    element("dl", {}, rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    element("h5", {}, t("receipt.given")),
    given.length ? element("ol", { class: "lines" }, given) : element("p", { class: "hint" }, t("none")),
    others.length > 0 && [
      element("h5", {}, t("receipt.others")),
      element("ol", { class: "lines" }, others.map((one) => line(one, `${named("verdict", one.verdict)} · ${number(one.score, { maximumFractionDigits: 2 })}`))),
    ],
    receipt.candidates_left_out > 0 && element("p", { class: "hint" }, t("receipt.left_out", { count: receipt.candidates_left_out })),
  );
}

const part = (title, ...content) => element("div", { class: "part-of-answer" }, element("h4", {}, t(title)), content.flat());
