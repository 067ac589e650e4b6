// "Operator": health, queue, dead letters and requests of all users. It shows ids, counts and times, never a text.

import { call } from "./api.js";
import { button, confirmed, element } from "./dom.js";
import { announce, failure, loading, openPage, pressed } from "./shell.js";
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
      part.place = element("div", { class: "place" }, loading());
      part.section = element("section", { class: `part ${name}`, "aria-labelledby": `part-${name}` }, element("h2", { id: `part-${name}` }, t(`part.${name}`)), part.place);
    }
  }

  async open() {
    const { health, queue, letters, reports, requests } = this.parts;
    const live = button(t("live.pause"), () => {
      this.isLive = !this.isLive;
      live.textContent = t(this.isLive ? "live.pause" : "live.resume");
      announce(t(this.isLive ? "live.resumed" : "live.paused"));
    });
    this.main.replaceChildren(
      element("div", { class: "heading" }, element("div", {}, element("h1", {}, t("operator.title")), element("p", { class: "summary" }, t("operator.summary"))), element("div", { class: "actions" }, live)),
      element("div", { class: "columns" }, health.section, queue.section),
      letters.section,
      requests.section,
      reports.section,
    );
    await this.refresh();
    setInterval(() => this.isLive && !document.hidden && this.refresh(), EVERY_MS);
  }

  refresh() {
    return Promise.all(Object.keys(this.parts).map((name) => this.show(name)));
  }

  /** Draws a part again if its content has changed, so that nothing moves under a reader's hand. */
  async show(name) {
    const part = this.parts[name];
    try {
      const found = await part.load();
      const content = JSON.stringify(found);
      if (part.content === content || part.place.contains(document.activeElement) && part.content !== undefined && !part.isForced) return;
      part.content = content;
      part.isForced = false;
      part.place.replaceChildren(part.draw(found));
    } catch (error) {
      if (error.status === 401 || error.status === 403) return this.refused(error);
      part.content = undefined;
      part.place.replaceChildren(failure(error, () => this.show(name)));
    }
  }

  /** Each part is refused by itself; what comes late must not replace what another token shows by then. */
  refused(error) {
    this.isLive = false;
    if (!this.parts.health.section.isConnected) return;
    this.ask();
    this.main.prepend(failure(error));
  }

  letters(letters) {
    if (!letters.length) return element("p", { class: "hint" }, t("letters.none"));
    const all = button(t("replay_all", { count: letters.length }), () => pressed(all, () => this.replay(letters)));
    const rows = letters.map((one) => {
      const control = button(t("replay"), () => pressed(control, () => this.replay([one])), { class: "quiet", "aria-label": t("replay.one", { id: one.id }) });
      return [
        element("time", { datetime: one.buried_at }, dateTime(one.buried_at)),
        element("code", {}, one.user_id),
        element("span", { class: "reason" }, one.reason),
        number(one.turns),
        number(one.attempts),
        element("div", { class: "actions" }, control, this.dropping(one)),
      ];
    });
    return element("div", {}, table("letters", ["time", "user", "reason", "turns:number", "attempts:number", "action"], rows), element("div", { class: "actions" }, all));
  }

  async replay(letters) {
    if (letters.length > 1) {
      const isSure = await confirmed({ title: t("replay.title"), text: t("replay.text", { count: letters.length }), action: t("replay.action"), cancel: t("cancel") });
      if (!isSure) return;
    }
    const { replayed } = await call("POST", "operator/dead-letters/replay", { body: { ids: letters.map((one) => one.id) } });
    announce(t("replayed", { count: replayed }));
    await this.redrawLetters();
  }

  dropping(letter) {
    const control = button(t("drop"), () => pressed(control, () => this.drop(letter)), { class: "quiet", "aria-label": t("drop.one", { id: letter.id }) });
    return control;
  }

  async drop(letter) {
    const isSure = await confirmed({ title: t("drop.title"), text: t("drop.text", { count: letter.turns }), action: t("drop.action"), cancel: t("cancel") });
    if (!isSure) return;
    const { dropped } = await call("POST", "operator/dead-letters/drop", { body: { ids: [letter.id] } });
    announce(t("dropped", { count: dropped }));
    await this.redrawLetters();
  }

  async redrawLetters() {
    this.parts.letters.isForced = true;
    await Promise.all([this.show("letters"), this.show("queue")]);
    document.getElementById("part-letters").closest("section").querySelector("button")?.focus();
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
        place.append(reportTable(found.reports, true));
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
        this.isLive = false;
        const found = await call("GET", "operator/requests", { parameters: { limit: REQUESTS, cursor } });
        place.append(requestTable(found.requests, true));
        holder.replaceWith(this.older(found.next_cursor, place));
        announce(t("loaded_requests", { count: found.requests.length }));
      }),
    );
    holder.append(control);
    return holder;
  }
}

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
      place.replaceChildren(element("p", {}, element("code", {}, report.name)), ...tables.map((one) => figures(report.name, one)));
    } catch (error) {
      place.replaceChildren(failure(error, load));
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
