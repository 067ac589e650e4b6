// What became of what the caller asked of memory in chats: how many, and never what.

import { call } from "./api.js";
import { element, replace } from "./dom.js";
import { failure, loading } from "./shell.js";
import { dateTime, named, t } from "./words.js";

const RECEIPTS = 20;

/** The part of the page; it asks for the receipts whenever it is opened. */
export function askedOfMemory() {
  const place = element("div", {});
  const ontoggle = () => part.open && show(place);
  const part = element("details", { class: "part", ontoggle }, element("summary", {}, t("asked.title")), place);
  return part;
}

async function show(place) {
  replace(place, loading());
  try {
    const { receipts, next_cursor: next } = await call("GET", "receipts", { parameters: { asked: true, limit: RECEIPTS } });
    const hint = receipts.length ? next && t("asked.more") : t("asked.none");
    replace(place, element("ol", { class: "lines" }, receipts.map(line)), ...(hint ? [element("p", { class: "hint" }, hint)] : []));
  } catch (error) {
    replace(place, failure(error, () => show(place)));
  }
}

const line = (receipt) =>
  element("li", {}, outcomeTexts(receipt.outcome).map((text) => element("span", {}, text)), element("span", { class: "hint" }, dateTime(receipt.created_at)));

/** The outcome of a receipt in words. */
export function outcomeTexts({ kept, count, similar, withheld, refused = {} }) {
  return [
    kept && t("asked.kept", { count: kept }),
    count && t("asked.deleted", { count }),
    count === 0 && t("asked.nothing"),
    similar && t("asked.similar", { count: similar.length }),
    withheld && t("asked.withheld"),
    ...Object.entries(refused).map(([reason, count]) => t("asked.refused", { count, reason: named("refused", reason) })),
  ].filter(Boolean);
}
