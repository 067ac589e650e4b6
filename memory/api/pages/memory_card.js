// One memory: its content, what can be done with it, and on demand where it comes from and when it was used.

import { useLine } from "./answer_view.js";
import { answerOf, call, memoryPath } from "./api.js";
import { button, confirmed, element, labelled, replace } from "./dom.js";
import { announce, failure, failureText, loading, pressed } from "./shell.js";
import { date, dateTime, named, number, t } from "./words.js";

const RECEIPTS = 10;
const READ = ["content", "status", "category", "memory_type"]; // what a reader goes by; uses are counted at any time
const TRIES = 3; // of a change, while chats use the memory
let cards = 0;

/**
 * The card. `forgotten(item)` has to take its list item out, `restored()` is called when its memory is current again;
 * `hasReceipts`: the caller may list them.
 * In a shared project, `author` is named if it is somebody else, and `mayChange` what the caller's role permits.
 */
export function memoryCard(memory, options) {
  return new Card(memory, options).root;
}

class Card {
  constructor(memory, { forgotten, restored, hasReceipts, author = "", mayChange = true }) {
    this.forgotten = forgotten;
    this.restored = restored;
    this.hasReceipts = hasReceipts;
    this.author = author;
    this.mayChange = mayChange;
    this.id = `memory-${(cards += 1)}`;
    this.root = element("article", { class: "memory", "aria-labelledby": `${this.id}-content` });
    this.details = element("div", { id: `${this.id}-details`, class: "details", hidden: true });
    this.body = element("div", { class: "body" });
    this.root.addEventListener("narrowed", () => this.details.hidden || this.explain());
    this.draw(memory);
  }

  draw(memory) {
    this.memory = memory;
    this.content = element("p", { id: `${this.id}-content`, class: "content", dir: "auto" }, memory.content);
    this.body.replaceChildren(this.content, this.marks(), this.actions());
    this.root.replaceChildren(this.body, this.details);
    this.root.dataset.status = memory.status;
  }

  marks() {
    const { memory } = this;
    const marks = [
      memory.status !== "active" && element("span", { class: "mark status" }, t(`status.${memory.status}`)),
      element("span", { class: "mark" }, named("category", memory.category)),
      memory.project_id && element("span", { class: "mark" }, t("project", { name: memory.project_id })),
      this.author && element("span", { class: "mark" }, t("author", { user: this.author })),
      memory.access_count > 0 && element("span", { class: "mark" }, t("used", { count: memory.access_count })),
    ];
    return element("p", { class: "marks" }, marks);
  }

  actions() {
    const { memory } = this;
    const about = `${this.id}-content`;
    this.opener = button(t("details"), () => this.toggle(), {
      class: "quiet",
      "aria-expanded": String(!this.details.hidden),
      "aria-controls": this.details.id,
      "aria-describedby": about,
    });
    this.correcting = button(t("correct"), () => this.edit(), { class: "quiet", "aria-describedby": about });
    const restore = button(t("restore"), () => pressed(restore, () => this.restore()), { class: "quiet", "aria-describedby": about });
    const forget = button(t("forget"), () => pressed(forget, () => this.forget()), { class: "quiet danger", "aria-describedby": about });
    const changes = [memory.status === "active" && this.correcting, memory.status === "archived" && restore, forget];
    return element("div", { class: "actions" }, this.opener, this.mayChange && changes);
  }

  toggle() {
    this.details.hidden = !this.details.hidden;
    this.opener.setAttribute("aria-expanded", String(!this.details.hidden));
    if (!this.details.hidden) this.explain();
  }

  async explain() {
    const { memory } = this;
    replace(this.details, loading());
    try {
      const [used, history] = await Promise.all([
        this.hasReceipts && call("GET", "receipts", { parameters: { memory_id: memory.id, limit: RECEIPTS } }),
        call("GET", memoryPath(memory.id, "/history")),
      ]);
      replace(this.details, ...(this.author ? [] : [evidence(history.memories.find((one) => one.id === memory.id))]), ...(used ? [uses(used, memory.id)] : []), this.history(history.earlier), this.facts());
    } catch (error) {
      replace(this.details, failure(error, () => this.explain()));
    }
  }

  history(earlier) {
    const lines = earlier.map((one) => {
      const about = [t("history.times", { since: date(one.since), until: date(one.until) }), named("corrected_by", one.corrected_by)];
      return element("li", {}, element("span", { dir: "auto" }, one.content), about.map((text) => element("span", { class: "hint" }, text)));
    });
    return section("history", lines.length ? element("ol", { class: "lines" }, lines) : element("p", { class: "hint" }, t("history.none")));
  }

  facts() {
    const { memory } = this;
    const rows = [
      [t("fact.said"), dateTime(memory.said_at)],
      memory.updated_at !== memory.created_at && [t("fact.updated"), dateTime(memory.updated_at)],
      memory.used_at && [t("fact.used"), dateTime(memory.used_at)],
      memory.expires_at && [t("fact.expires"), dateTime(memory.expires_at)],
      [t("fact.type"), named("type", memory.memory_type)],
      [t("fact.source"), named("source", memory.source)],
      [t("fact.confidence"), number(memory.confidence, { style: "percent" })],
    ].filter(Boolean);
    return section("facts", element("dl", {}, rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))));
  }

  /** Reads the memory again, with its ETag. Whether it is another than the one that is shown. */
  async readAgain() {
    const answer = await answerOf("GET", memoryPath(this.memory.id));
    const shown = this.memory;
    this.memory = await answer.json();
    this.tag = answer.headers.get("etag");
    return READ.some((name) => this.memory[name] !== shown[name]);
  }

  /** Whether the memory is still what the reader sees; if not, it is shown as it is now. */
  async isAsShown() {
    if (!(await this.readAgain())) return true;
    this.showChanged();
    return false;
  }

  showChanged() {
    this.draw(this.memory);
    this.opener.focus();
    announce(t("error.changed"));
  }

  /** Changes the memory that was read, and no later state of it: that is read then, and the call rejects with 412. */
  async change(method, body) {
    for (let tried = 1; ; tried += 1) {
      try {
        return await call(method, memoryPath(this.memory.id), { body, ifMatch: this.tag });
      } catch (error) {
        if (error.status !== 412 || (await this.readAgain()) || tried === TRIES) throw error;
      }
    }
  }

  edit() {
    const text = element("textarea", { rows: "3", required: true, maxlength: "8000", dir: "auto" });
    text.value = this.memory.content;
    const problem = element("p", { class: "problem", role: "alert" });
    const save = element("button", { type: "submit", class: "primary" }, t("save"));
    const leave = () => {
      this.draw(this.memory);
      (this.correcting.isConnected ? this.correcting : this.opener).focus(); // it may have been replaced meanwhile
    };
    const form = element(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          pressed(save, () => this.save(text.value.trim(), problem));
        },
        onkeydown: (event) => event.key === "Escape" && leave(),
      },
      labelled(t("correct.label"), text),
      problem,
      element("div", { class: "actions" }, save, button(t("cancel"), leave, { class: "quiet" })),
    );
    this.body.replaceChildren(form);
    text.focus();
    this.look(problem);
  }

  /** Reads the memory while the correction is typed: another state of it is shown before it can be replaced. */
  look(problem) {
    this.looked = this.readAgain();
    const tell = (isOther) => {
      if (!isOther) return;
      this.tellChange(problem);
      this.looked = Promise.resolve(false);
    };
    this.looked.then(tell, () => {}); // a failure is told when the correction is saved
  }

  tellChange(problem) {
    problem.textContent = t("changed.save", { content: this.memory.content });
  }

  async save(content, problem) {
    try {
      if (await this.looked) return;
      this.draw(await this.change("PATCH", { content }));
    } catch (error) {
      if (error.status === 412) return this.tellChange(problem);
      problem.textContent = failureText(error);
      this.look(problem);
      return;
    }
    if (!this.details.hidden) this.explain();
    this.opener.focus();
    announce(t("corrected"));
  }

  async restore() {
    if (!(await this.isAsShown())) return;
    try {
      this.draw(await this.change("PATCH", { status: "active" }));
    } catch (error) {
      if (error.status !== 412) throw error;
      return this.showChanged();
    }
    this.opener.focus();
    announce(t("restored"));
    await this.restored();
  }

  async forget() {
    if (!(await this.isAsShown())) return;
    const isSure = await confirmed({
      title: t("forget.title"),
      text: this.memory.content,
      action: t("forget.action"),
      cancel: t("cancel"),
    });
    if (!isSure) return;
    try {
      await this.change("DELETE");
    } catch (error) {
      if (error.status !== 412) throw error;
      return this.showChanged();
    }
    await this.forgotten(this.root.closest("li"));
  }
}

/** Of the memory as it is by now: with a fact that was forgotten, its words went from the evidence of others. */
function evidence(memory) {
  const quotes = memory.evidence.map((one) =>
    element("li", {}, element("blockquote", { dir: "auto" }, one.quote), element("span", { class: "hint" }, named("role", one.role))),
  );
  return section("evidence", quotes.length ? element("ul", { class: "quotes" }, quotes) : element("p", { class: "hint" }, t("evidence.none")));
}

function section(name, ...content) {
  return element("section", {}, element("h3", {}, t(`${name}.title`)), content);
}

function uses({ receipts, next_cursor: next }, memoryId) {
  if (!receipts.length) return section("uses", element("p", { class: "hint" }, t("uses.none")));
  const lines = receipts.map((one) => useLine(one, memoryId));
  return section("uses", element("ol", { class: "lines" }, lines), next && element("p", { class: "hint" }, t("uses.more")));
}
