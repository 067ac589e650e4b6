// "My memory": what is remembered about the caller, from which words, and when it was used.

import { ApiError, answerOf, call, projectPath } from "./api.js";
import { askedOfMemory } from "./asked_of_memory.js";
import { button, confirmed, element, labelled, replace, select } from "./dom.js";
import { invitationsOf } from "./invitations.js";
import { membersOf } from "./members.js";
import { memoryCard } from "./memory_card.js";
import { announce, failure, loading, openPage, pressed } from "./shell.js";
import { date, t } from "./words.js";

const PAGE = 30;
const STATUSES = ["active", "superseded", "archived", "all"];
const TYPES = ["", "semantic", "episodic", "procedural", "reflective"];

openPage({
  page: "memory",
  identifiedBy: (mode) => ({ development: "user", jwt: "token" })[mode] ?? "",
  start: (main, ask) => new Timeline(main, ask).open(),
});

class Timeline {
  constructor(main, ask) {
    this.main = main;
    this.ask = ask;
    this.filter = { status: "active", type: "", query: "" };
    this.asked = 0; // answers to earlier questions are dropped
    this.list = element("div", { id: "list", tabindex: "-1" });
    this.more = element("div", { class: "more" });
    this.summary = element("p", { id: "summary", class: "summary" }, " ");
    this.pausing = button("", () => pressed(this.pausing, () => this.pause()), { hidden: true });
    this.notice = element("p", { class: "notice paused", hidden: true });
    this.shared = null; // the shared project that is shown; null: the caller's own memories
    this.members = element("div", {});
  }

  async open() {
    this.shared = null;
    this.members.replaceChildren();
    try {
      this.caller = await call("GET", "caller");
      this.isBounded = this.caller.projects !== null; // to some projects: calls about the whole user are refused
      this.filter.project = this.caller.projects?.[0] ?? "";
      [{ projects: this.projects }, { invitations: this.invitations }] = await Promise.all([call("GET", "projects"), call("GET", "invitations")]);
    } catch (error) {
      if (error.status === 401) return this.ask(error);
      replace(this.main, element("h1", {}, t("memory.title")), failure(error, () => this.open()));
      return;
    }
    replace(
      this.main,
      element("div", { class: "heading" }, element("div", {}, element("h1", {}, t("memory.title")), this.summary), this.everything()),
      this.notice,
      ...this.invited(),
      this.places(),
      (this.search = this.tools()),
      (this.orders = this.isBounded ? element("div", {}) : askedOfMemory()),
      this.members,
      this.list,
      this.more,
    );
    await this.show();
  }

  everything() {
    const exporting = button(t("export"), () => pressed(exporting, () => this.export()));
    const forgetting = button(t("forget_all"), () => pressed(forgetting, () => this.forgetAll()), { class: "danger quiet" });
    this.own = element("div", { class: "actions" }, !this.isBounded && [this.pausing, exporting, forgetting]);
    return this.own;
  }

  invited() {
    const answered = async () => {
      await this.open();
      this.main.focus();
    };
    return [invitationsOf(this.invitations, answered)].filter(Boolean);
  }

  /** The switch between the caller's own memories and the shared projects, for who has some. */
  places() {
    const options = [["", t("place.own")], ...this.projects.map((one) => [one.project_id, t("project", { name: one.project_id })])];
    return element("div", { class: "tools", hidden: !this.projects.length }, labelled(t("place.label"), select(options, "", (id) => this.go(id))));
  }

  async go(id) {
    this.shared = this.projects.find((one) => one.project_id === id) ?? null;
    this.own.hidden = this.search.hidden = this.orders.hidden = Boolean(this.shared);
    this.notice.hidden = Boolean(this.shared) || !this.isPaused;
    this.summary.textContent = this.shared ? t("project.summary", { role: t(`role.${this.shared.role}`) }) : " ";
    const left = async () => {
      await this.open();
      this.main.focus();
    };
    this.members.replaceChildren(...(this.shared ? [membersOf(this.shared, { caller: this.caller.user_id, left })] : []));
    await this.choose({ query: "" });
  }

  tools() {
    const query = (this.query = element("input", { type: "search", autocomplete: "off", maxlength: "2000", placeholder: t("search.example") }));
    const stop = () => {
      this.choose({ query: "" });
      query.focus();
    };
    const clear = (this.clear = button(t("search.clear"), stop, { class: "quiet", hidden: true }));
    const choose = (name) => (value) => this.choose({ query: "", [name]: value });
    return element(
      "form",
      {
        class: "tools",
        role: "search",
        onsubmit: (event) => {
          event.preventDefault();
          this.choose({ query: query.value.trim() });
        },
      },
      labelled(t("search.label"), query, { class: "field wide" }),
      element("div", { class: "actions" }, element("button", { type: "submit", class: "primary" }, t("search.go")), clear),
      labelled(t("status.label"), select(STATUSES.map((one) => [one, t(`status.${one}`)]), "active", choose("status"))),
      this.caller.projects?.length > 1 &&
        labelled(t("project.label"), select(this.caller.projects.map((one) => [one, one]), this.filter.project, choose("project"))),
      labelled(t("type.label"), select(TYPES.map((one) => [one, t(`type.${one || "any"}`)]), "", choose("type"))),
    );
  }

  choose(changed) {
    Object.assign(this.filter, changed);
    this.query.value = this.filter.query;
    this.clear.hidden = !this.filter.query;
    return this.show({ isTold: true });
  }

  /** `isTold`: the number of memories is announced, as the reader has asked for others. */
  async show({ isTold = false } = {}) {
    const number = (this.asked += 1);
    replace(this.list, loading());
    this.more.replaceChildren();
    this.list.setAttribute("aria-busy", "true");
    try {
      const [found] = await Promise.all([this.load(), this.count()]);
      if (number !== this.asked) return;
      replace(this.list);
      this.day = null;
      this.append(found);
      if (isTold) announce(t(this.filter.query ? "search.found" : "shown", { count: found.memories.length }));
    } catch (error) {
      if (number !== this.asked) return;
      replace(this.list, failure(error, () => this.show({ isTold: true })));
    } finally {
      if (number === this.asked) this.list.removeAttribute("aria-busy");
    }
  }

  load(cursor = "") {
    const { status, type, query, project } = this.filter;
    if (this.shared) return call("GET", projectPath(this.shared.project_id, "/memories"), { parameters: { limit: PAGE, cursor } });
    const within = project ? { project_id: project } : {};
    if (query) return call("POST", "search", { body: { query, limit: PAGE, ...within } });
    return call("GET", "", { parameters: { status, memory_type: type, limit: PAGE, cursor, ...within } });
  }

  async count() {
    if (this.isBounded || this.shared) return;
    const { memories, turns, opted_out: isPaused, opted_out_since: since } = await call("GET", "stats");
    if (this.shared) return; // chosen meanwhile
    if (isPaused !== undefined) this.showPause(isPaused, since);
    const parts = [t("count.active", { count: memories.active })];
    if (memories.superseded) parts.push(t("count.superseded", { count: memories.superseded }));
    if (memories.archived) parts.push(t("count.archived", { count: memories.archived }));
    if (turns.pending) parts.push(t("count.pending", { count: turns.pending }));
    this.summary.textContent = parts.join(" · ");
  }

  /** After a change: if that cannot be counted, no number is shown, and the change is not announced as a failure. */
  async countAgain() {
    try {
      await this.count();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (!this.shared) this.summary.textContent = " ";
    }
  }

  append(found) {
    const isSearch = Boolean(this.filter.query);
    for (const facts of bySentence(found.memories)) {
      const day = isSearch ? null : date(facts[0].said_at);
      if (day !== this.day || !this.items?.isConnected) {
        this.day = day;
        this.items = element("ol", { class: "memories" });
        const title = isSearch ? t("search.results") : day;
        this.list.append(element("section", { class: "day" }, element("h2", {}, title), this.items));
      }
      const items = facts.map((memory) => element("li", {}, memoryCard(memory, this.cardOptions(memory))));
      this.items.append(...(items.length > 1 ? [sentenceOf(facts[0], items)] : items));
    }
    if (!this.list.children.length) this.list.append(this.nothing());
    this.next(found.next_cursor);
    this.items = found.next_cursor ? this.items : null;
  }

  cardOptions(memory) {
    const after = { forgotten: (item) => this.forgotten(item), restored: () => this.countAgain() };
    if (!this.shared) return { ...after, hasReceipts: !this.isBounded };
    const { role } = this.shared;
    const isOwn = memory.user_id === this.caller.shown_as;
    const mayChange = role === "owner" || role === "admin" || (role === "editor" && isOwn);
    return { ...after, hasReceipts: false, author: isOwn ? "" : memory.user_id, mayChange };
  }

  next(cursor) {
    this.more.replaceChildren();
    if (!cursor) return;
    const control = button(t("load_more"), () =>
      pressed(control, async () => {
        const number = this.asked;
        const found = await this.load(cursor);
        if (number !== this.asked) return;
        const last = this.shown().at(-1);
        this.append(found);
        const shown = this.shown();
        this.goTo(shown[shown.indexOf(last) + 1] ?? last); // the control may be gone: reading goes on where it ended
        announce(t("loaded", { count: found.memories.length }));
      }),
    );
    this.more.append(control);
  }

  /** The items of the list, as they are read. */
  shown() {
    return [...this.list.querySelectorAll("li:has(> .memory)")];
  }

  /** Moves the focus to an item; to the list if there is none. */
  goTo(item) {
    (item?.querySelector("button") ?? this.list).focus();
  }

  nothing() {
    const { status, type, query } = this.filter;
    const kind = this.shared ? "project" : query ? "search" : status === "active" && !type ? "all" : "filter";
    return element("div", { class: "notice" }, element("p", {}, t(`empty.${kind}`)), element("p", { class: "hint" }, t(`empty.${kind}.hint`)));
  }

  /**
   * Takes an item out, whose memory is forgotten. Reading goes on at the next one, or at the last that is left; where
   * the reader is by now, if another list was chosen meanwhile.
   */
  async forgotten(item) {
    const shown = this.shown();
    const at = shown.indexOf(item);
    if (at < 0) {
      announce(t("forgotten"));
      return this.countAgain();
    }
    const sentence = item.closest(".sentence");
    item.remove();
    if (sentence) dissolve(sentence);
    for (const day of this.list.querySelectorAll(".day")) if (!day.querySelector("li")) day.remove();
    const isEmpty = !this.list.children.length;
    if (isEmpty) this.list.append(this.nothing());
    this.goTo(shown[at + 1] ?? shown[at - 1]);
    announce(t("forgotten"));
    await (isEmpty && this.more.children.length ? this.show() : this.countAgain());
  }

  /** An API without opt-outs says nothing about them; then there is nothing to press. */
  showPause(isPaused, since) {
    this.isPaused = isPaused;
    this.pausing.textContent = isPaused ? t("resume") : t("pause");
    this.pausing.hidden = false;
    this.notice.hidden = !isPaused;
    this.notice.textContent = isPaused ? t("paused", { date: date(since) }) : "";
  }

  async pause() {
    const found = await call(this.isPaused ? "DELETE" : "PUT", "opt-out");
    this.showPause(found.opted_out, found.opted_out_since);
    announce(found.opted_out ? t("pause.done") : t("resume.done"));
  }

  async export() {
    const content = await (await answerOf("GET", "export")).blob();
    const address = URL.createObjectURL(content);
    element("a", { href: address, download: `memories-${new Date().toISOString().slice(0, 10)}.jsonl` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    announce(t("exported"));
  }

  async forgetAll() {
    const isSure = await confirmed({
      title: t("forget_all.title"),
      text: t("forget_all.text"),
      action: t("forget_all.action"),
      cancel: t("cancel"),
      word: t("forget_all.word"),
      wordLabel: t("forget_all.type", { word: t("forget_all.word") }),
    });
    if (!isSure) return;
    const { deleted } = await call("DELETE", "", { parameters: { user_id: this.caller.user_id } });
    this.orders.open = false; // its receipts are gone as well
    await this.choose({ query: "" });
    announce(t("forgotten_all", { count: deleted }));
  }
}

let sentences = 0;

/** Facts of one sentence, which the API gives next to one another, and every other memory alone. */
function bySentence(memories) {
  const found = [];
  for (const memory of memories) {
    const before = found.at(-1);
    if (memory.sentence_id && memory.sentence_id === before?.[0].sentence_id) before.push(memory);
    else found.push([memory]);
  }
  return found;
}

/** An item with the sentence, and the items of its facts below. */
function sentenceOf({ evidence }, items) {
  const id = `sentence-${(sentences += 1)}`;
  return element("li", { class: "sentence" }, element("blockquote", { id, dir: "auto" }, evidence[0].quote), element("ol", { "aria-labelledby": id }, items));
}

/** Of a sentence of which a fact is forgotten the other facts keep their own words alone, here as in the store. */
function dissolve(sentence) {
  const items = [...sentence.querySelectorAll("li:has(> .memory)")];
  sentence.replaceWith(...items);
  for (const item of items) item.firstChild.dispatchEvent(new Event("narrowed"));
}
