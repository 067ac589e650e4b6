// The members of a shared project: who they are, and what the caller may change about them.

import { call, projectPath } from "./api.js";
import { button, confirmed, element, labelled, replace, select } from "./dom.js";
import { announce, failure, failureText, loading, pressed } from "./shell.js";
import { date, t } from "./words.js";

const GIVEN = { owner: ["viewer", "editor", "admin"], admin: ["viewer", "editor"] }; // the roles that a role may give

/** The section. `project`: as the API lists it, with the role of `caller`. `left()` is called after the caller left it. */
export function membersOf(project, options) {
  return new Members(project, options).root;
}

class Members {
  constructor(project, { caller, left }) {
    this.project = project;
    this.caller = caller;
    this.left = left;
    this.given = GIVEN[project.role] ?? [];
    this.place = element("div", {});
    this.root = element("section", { class: "members", "aria-labelledby": "members" }, element("h2", { id: "members" }, t("members.title")), this.place);
    this.show();
  }

  path(user) {
    return projectPath(this.project.project_id, user === undefined ? "/members" : `/members/${encodeURIComponent(user)}`);
  }

  async show() {
    if (!this.place.children.length) this.place.replaceChildren(loading());
    try {
      const { members, invited } = await call("GET", this.path());
      this.users = new Set([...members, ...invited].map((one) => one.user_id));
      const lines = [...members, ...invited].map((one) => this.line(one));
      replace(this.place, element("ul", { class: "people" }, lines), ...(this.given.length ? [this.adding()] : []));
    } catch (error) {
      replace(this.place, failure(error, () => this.show()));
    }
  }

  /** Of a member, or of somebody who is invited. */
  line({ user_id: user, role, joined_at: joined, invited_at: invited }) {
    const isSelf = user === this.caller;
    const leave = isSelf && role !== "owner" && button(t("project.leave"), () => pressed(leave, () => this.leave(user)), { class: "quiet" });
    const remove =
      !isSelf &&
      this.given.includes(role) &&
      button(t("member.remove"), () => pressed(remove, () => this.remove(user)), { class: "quiet danger", "aria-label": t("member.remove.one", { user }) });
    const since = joined ? t("member.joined", { date: date(joined) }) : t("member.invited", { date: date(invited) });
    const about = `${t(`role.${role}`)} · ${since}`;
    return element("li", {}, element("span", { dir: "auto" }, user), element("span", { class: "hint" }, about), leave, remove);
  }

  adding() {
    const name = element("input", { type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", required: true });
    const roles = select(this.given.map((one) => [one, t(`role.${one}`)]), "viewer", () => {});
    const save = element("button", { type: "submit", class: "primary" }, t("save"));
    const problem = element("p", { class: "problem", role: "alert" });
    const submitted = (event) => {
      event.preventDefault();
      pressed(save, () => this.give(name.value.trim(), roles.value, problem));
    };
    return element(
      "form",
      { class: "tools", onsubmit: submitted },
      labelled(t("member.user"), name),
      labelled(t("member.role"), roles),
      element("div", { class: "actions" }, save),
      problem,
    );
  }

  async give(user, role, problem) {
    if (!user || !(this.users.has(user) || (await this.mayJoin(user, role)))) return;
    let joined;
    try {
      ({ joined_at: joined } = await call("PUT", this.path(user), { body: { role } }));
    } catch (error) {
      problem.textContent = failureText(error);
      return;
    }
    await this.show();
    this.root.querySelector("input")?.focus();
    announce(t(joined ? "member.saved" : "member.invited.done", { user, role: t(`role.${role}`) }));
  }

  /** A wrong id would let a stranger read the project. */
  mayJoin(user, role) {
    const title = t("member.add.title", { user, role: t(`role.${role}`) });
    return confirmed({ title, text: t("member.add.text"), action: t("member.add"), cancel: t("cancel") });
  }

  async remove(user) {
    const isSure = await confirmed({ title: t("member.remove.title", { user }), text: t("member.remove.text"), action: t("member.remove"), cancel: t("cancel") });
    if (!isSure) return;
    await call("DELETE", this.path(user));
    await this.show();
    this.root.querySelector("input")?.focus();
    announce(t("member.removed", { user }));
  }

  async leave(user) {
    const isSure = await confirmed({ title: t("project.leave.title"), text: t("project.leave.text"), action: t("project.leave"), cancel: t("cancel") });
    if (!isSure) return;
    await call("DELETE", this.path(user));
    announce(t("project.left"));
    await this.left();
  }
}
