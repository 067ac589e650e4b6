// Invitations to shared projects: who asks, for what, and the caller's answer. Without it nothing is shared with them.

import { call } from "./api.js";
import { button, element } from "./dom.js";
import { announce, pressed } from "./shell.js";
import { t } from "./words.js";

/** The section; null if nobody asks. `answered()` is called after an answer. */
export function invitationsOf(invitations, answered) {
  if (!invitations.length) return null;
  const lines = invitations.map((one) => line(one, answered));
  const title = element("h2", { id: "invitations" }, t("invitations.title"));
  return element("section", { class: "members", "aria-labelledby": "invitations" }, title, element("ul", { class: "people" }, lines));
}

function line({ id, project_id: project, role, invited_by: user }, answered) {
  const path = `invitations/${encodeURIComponent(id)}`;
  const answering = (method, rest, said) => async () => {
    await call(method, path + rest);
    await answered();
    announce(t(said, { project }));
  };
  const work = { accept: answering("POST", "/accept", "invitation.accepted"), decline: answering("DELETE", "", "invitation.declined") };
  const accept = button(t("invitation.accept"), () => pressed(accept, work.accept), { "aria-label": t("invitation.accept.one", { project, user }) });
  const decline = button(t("invitation.decline"), () => pressed(decline, work.decline), { class: "quiet", "aria-label": t("invitation.decline.one", { project, user }) });
  return element(
    "li",
    {},
    element("span", { dir: "auto" }, t("invitation.text", { user, project, role: t(`role.${role}`) })),
    element("span", { class: "hint" }, t("invitation.hint")),
    element("div", { class: "actions" }, accept, decline),
  );
}
