// "Operator": health, queue, dead letters and requests of all users. It shows ids, counts and times, never a text.

import { call } from "./api.js";
import { button, confirmed, element, isAsking, replace } from "./dom.js";
import { announce, failure, failureText, loading, openPage, pressed } from "./shell.js";
import { clock, dateTime, duration, named, number, t } from "./words.js";

const EVERY_MS = 5_000;
const REQUESTS = 25;

openPage({
  page: "operator",
  identifiedBy: (mode) => (mode === "development" ? "" : "operator"),
  start: (main, ask) => new Operator(main, ask).open(),
});

class Operator {
  constructor(main, ask) {
    this.main = main;
    this.ask = ask;
    this.isLive = true;
    this.parts = {
      health: { load: () => call("GET", "operator/health"), draw: drawnHealth },
      queue: { load: () => call("GET", "operator/queue"), draw: drawnQueue },
      letters: { load: () => call("GET", "operator/dead-letters"), draw: (found) => this.letters(found.dead_letters) },
      reports: { load: () => call("GET", "operator/reports"), draw: (found) => this.reports(found) },
      requests: { load: () => call("GET", "operator/requests", { parameters: { limit: REQUESTS } }), draw: (found) => this.requests(found) },
    };
    for (const [name, part] of Object.entries(this.parts)) {
      Object.assign(part, { asked: 0, drawn: 0, changed: Infinity });
      part.place = element("div", { class: "place", tabindex: "-1" }, loading());
      part.section = element("section", { class: `part ${name}`, "aria-labelledby": `part-${name}` }, element("h2", { id: `part-${name}` }, t(`part.${name}`)), part.place);
    }
  }

  async open() {
    const { health, queue, letters, reports, requests } = this.parts;
    this.live = button(t("live.pause"), () => {
      this.setLive(!this.isLive);
      announce(t(this.isLive ? "live.resumed" : "live.paused"));
    });
    this.main.replaceChildren(
      element("div", { class: "heading" }, element("div", {}, element("h1", {}, t("operator.title")), element("p", { class: "summary" }, t("operator.summary"))), element("div", { class: "actions" }, this.live)),
      element("div", { class: "columns" }, health.section, queue.section),
      letters.section,
      requests.section,
      reports.section,
    );
    await this.refresh();
    setInterval(() => this.isLive && !document.hidden && this.refresh(), EVERY_MS);
  }

  setLive(isLive) {
    this.isLive = isLive;
    this.live.textContent = t(isLive ? "live.pause" : "live.resume");
  }

  refresh() {
    return Promise.all(Object.keys(this.parts).map((name) => this.show(name)));
  }

  /**
   * Draws a part again if its content has changed, but not under a reader's hand or behind a dialog, unless the reader
   * has changed it: `changed` is the number of the first call after that. What comes later than the answer to a later
   * call is dropped.
   */
  async show(name) {
    const part = this.parts[name];
    const number = (part.asked += 1);
    let found;
    try {
      found = await part.load();
    } catch (error) {
      if (error.status === 401 || error.status === 403) return this.refused(error);
      if (number > part.drawn && !(mayWait(part, number) && isAsking())) this.fail(part, name, error);
      return;
    }
    const content = JSON.stringify(found);
    const at = document.activeElement;
    const isRead = isAsking() || (at !== part.place && part.place.contains(at));
    const isOld = part.content === content;
    if (number < part.drawn || (!isOld && isRead && mayWait(part, number))) return;
    if (number >= part.changed) part.changed = Infinity;
    Object.assign(part, { content, drawn: number, failed: "" });
    if (!isOld) replace(part.place, part.draw(found));
  }

  /** A failure is told once, not every five seconds. */
  fail(part, name, error) {
    const text = failureText(error);
    if (part.failed === text) return;
    Object.assign(part, { content: undefined, failed: text });
    const retry = () => {
      part.failed = "";
      return this.show(name);
    };
    replace(part.place, failure(error, retry));
  }

  /** Each part is refused by itself; what comes late must not replace what another token shows by then. */
  refused(error) {
    this.isLive = false;
    if (!this.parts.health.section.isConnected) return;
    this.ask(error);
  }

  letters(letters) {
    this.ids = letters.map((one) => one.id); // of the rows
    if (!letters.length) return element("p", { class: "hint" }, t("letters.none"));
    const all = button(t("replay_all", { count: letters.length }), () => pressed(all, () => this.replay(letters)));
    const near = (row) => [...letters.slice(row + 1), ...letters.slice(0, row).reverse()].map((one) => one.id);
    const rows = letters.map((one, row) => {
      const control = button(t("replay"), () => pressed(control, () => this.replay([one], near(row))), { class: "quiet", "aria-label": t("replay.one", { id: one.id }) });
      return [
        element("time", { datetime: one.buried_at }, dateTime(one.buried_at)),
        element("code", {}, one.user_id),
        element("span", { class: "reason" }, one.reason),
        number(one.turns),
        number(one.attempts),
        element("div", { class: "actions" }, control, this.dropping(one, near(row))),
      ];
    });
    return element("div", {}, table("letters", ["time", "user", "reason", "turns:number", "attempts:number", "action"], rows), element("div", { class: "actions" }, all));
  }

  async replay(letters, near = []) {
    if (letters.length > 1) {
      const isSure = await confirmed({ title: t("replay.title"), text: t("replay.text", { count: letters.length }), action: t("replay.action"), cancel: t("cancel") });
      if (!isSure) return;
    }
    const { replayed } = await call("POST", "operator/dead-letters/replay", { body: { ids: letters.map((one) => one.id) } });
    await this.redrawLetters(near, 0);
    announce(t("replayed", { count: replayed }));
  }

  dropping(letter, near) {
    const control = button(t("drop"), () => pressed(control, () => this.drop(letter, near)), { class: "quiet", "aria-label": t("drop.one", { id: letter.id }) });
    return control;
  }

  async drop(letter, near) {
    const isSure = await confirmed({ title: t("drop.title"), text: t("drop.text", { count: letter.turns }), action: t("drop.action"), cancel: t("cancel") });
    if (!isSure) return;
    const { dropped } = await call("POST", "operator/dead-letters/drop", { body: { ids: [letter.id] } });
    await this.redrawLetters(near, 1);
    announce(t("dropped", { count: dropped }));
  }

  /** After a letter is gone. The focus goes to the same control of the nearest that is left. `near`: ids, nearest first. */
  async redrawLetters(near, control) {
    const part = this.parts.letters;
    part.changed = part.asked + 1;
    await Promise.all([this.show("letters"), this.show("queue")]);
    const rows = part.place.querySelectorAll("tbody tr");
    const row = this.ids.indexOf(near.find((id) => this.ids.includes(id)));
    const next = rows[Math.max(row, 0)]?.querySelectorAll("button")[control];
    (next ?? part.place).focus();
  }

  reports(found) {
    if (!found.reports.length) return element("p", { class: "hint" }, t("reports.none"));
    const place = element("div", {}, reportTable(found.reports));
    return element("div", {}, place, this.olderReports(found.next_cursor, place));
  }

  olderReports(cursor, place) {
    const holder = element("div", { class: "more" });
    if (!cursor) return holder;
    const control = button(t("load_older_reports"), () =>
      pressed(control, async () => {
        const found = await call("GET", "operator/reports", { parameters: { cursor } });
        const added = reportTable(found.reports, true);
        place.append(added);
        added.focus(); // the control goes
        holder.replaceWith(this.olderReports(found.next_cursor, place));
        announce(t("loaded_reports", { count: found.reports.length }));
      }),
    );
    holder.append(control);
    return holder;
  }

  requests(found) {
    if (!found.requests.length) return element("p", { class: "hint" }, t("requests.none"));
    const place = element("div", {}, requestTable(found.requests));
    return element("div", {}, place, this.older(found.next_cursor, place));
  }

  older(cursor, place) {
    const holder = element("div", { class: "more" });
    if (!cursor) return holder;
    const control = button(t("load_older"), () =>
      pressed(control, async () => {
        this.setLive(false);
        const found = await call("GET", "operator/requests", { parameters: { limit: REQUESTS, cursor } });
        const added = requestTable(found.requests, true);
        place.append(added);
        added.focus(); // the control goes
        holder.replaceWith(this.older(found.next_cursor, place));
        announce(t("loaded_requests", { count: found.requests.length }));
      }),
    );
    holder.append(control);
    return holder;
  }
}

/** Whether nobody waits for what this call finds. */
const mayWait = (part, number) => part.content !== undefined && number < part.changed;

function drawnHealth({ parts }) {
  const lines = parts.map((one) => {
    const kind = one.ok === null ? "unknown" : one.ok ? "good" : "bad";
    const state = one.ok ? t("health.ok") : named("health", one.reason);
    const isCounted = one.running !== null && one.expected > 1;
    const count = isCounted && element("span", { class: "hint" }, t("health.running", { running: one.running, expected: one.expected }));
    return element("li", { class: kind }, element("span", {}, named("component", one.part), count && " ", count), element("strong", {}, state));
  });
  return element("ul", { class: "health" }, lines);
}

function drawnQueue(queue) {
  const numbers = ["opened", "due", "leased", "retrying", "dead", "shed"];
  const rows = numbers.map((name) => [t(`queue.${name}`), number(queue[name])]);
  rows.push([t("queue.oldest"), queue.oldest_seconds ? duration(queue.oldest_seconds) : t("none")]);
  return element("dl", {}, rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function requestTable(requests, isOlder = false) {
  const rows = requests.map((one) => {
    const total = Object.values(one.timings_ms).reduce((sum, value) => sum + value, 0);
    return [
      element("time", { datetime: one.created_at }, clock(one.created_at)),
      element("code", {}, one.user_id),
      element("span", { class: `mark status-${one.status}` }, named("recall", one.status)),
      element("code", { class: "reason" }, one.reason),
      number(one.memories),
      number(one.tokens),
      number(Math.round(total)),
      details(one),
    ];
  });
  return table(isOlder ? "requests_older" : "requests", ["time", "user", "status", "reason", "memories:number", "tokens:number", "ms:number", "receipt"], rows);
}

function details(request) {
  const verdicts = Object.entries(request.verdicts).map(([verdict, count]) => `${named("verdict", verdict)} ${number(count)}`);
  const timings = Object.entries(request.timings_ms).map(([stage, ms]) => `${stage} ${number(ms, { maximumFractionDigits: 1 })} ms`);
  return element(
    "details",
    {},
    element("summary", { "aria-label": t("receipt.of", { id: request.receipt_id }) }, t("receipt")),
    element("p", {}, element("code", {}, request.receipt_id)),
    element("p", {}, t("receipt.candidates"), " ", verdicts.join(" · ") || t("none")),
    element("p", {}, t("receipt.timings"), " ", timings.join(" · ") || t("none")),
  );
}

function reportTable(reports, isOlder = false) {
  const rows = reports.map((one) => [element("time", { datetime: one.created_at }, dateTime(one.created_at)), element("code", {}, one.evaluation), element("code", {}, one.file), one.version, reportDetails(one)]);
  return table(isOlder ? "reports_older" : "reports", ["time", "evaluation", "file", "version", "figures"], rows);
}

/** The figures are loaded when they are opened for the first time. */
function reportDetails(report) {
  const place = element("div", { class: "figures" }, loading());
  const details = element("details", {}, element("summary", { "aria-label": t("report.of", { name: report.name }) }, t("receipt")), place);
  const load = async () => {
    try {
      const { tables } = await call("GET", `operator/reports/${encodeURIComponent(report.name)}`);
      replace(place, element("p", {}, element("code", {}, report.name)), ...tables.map((one) => figures(report.name, one)));
    } catch (error) {
      replace(place, failure(error, load));
    }
  };
  details.addEventListener("toggle", () => details.open && load(), { once: true });
  return details;
}

function figures(name, { columns, rows }) {
  return element(
    "div",
    { class: "scroll", role: "group", tabindex: "0", "aria-label": t("report.figures", { name }) },
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, columns.map((column, at) => element("th", { scope: "col", class: at ? "number" : "" }, column)))),
      element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell, at) => element("td", { class: at ? "number" : "" }, cell))))),
    ),
  );
}

/** A table that scrolls within itself on narrow screens. A column `name:number` is aligned as numbers are. */
function table(name, columns, rows) {
  const kinds = columns.map((one) => one.split(":"));
  return element(
    "div",
    { class: "scroll", role: "group", tabindex: "0", "aria-label": t(`part.${name}`) },
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, kinds.map(([column, kind]) => element("th", { scope: "col", class: kind }, t(`column.${column}`))))),
      element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell, at) => element("td", { class: kinds[at][1] }, cell))))),
    ),
  );
}
