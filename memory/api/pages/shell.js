// What both pages share: the header, who is calling, the live region, and how failures are told.

import { ApiError, identity, identityMode, setIdentity } from "./api.js";
import { button, element, labelled, select } from "./dom.js";
import { language, loadWords, remember, setLanguage, t } from "./words.js";

const THEMES = ["auto", "light", "dark"];
let live;

/** Says a result to those who do not see it, and shows it for a while to those who do. */
export function announce(text) {
  live.textContent = text;
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => (live.textContent = ""), 8000);
}

/** What to tell the reader about a failed call. */
export function failureText(error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 0) return t("error.unreachable");
  if (error.code === "opted_out") return t("error.opted_out");
  if (error.status === 503) return t("error.unavailable");
  if (error.status === 401) return t("error.unauthenticated");
  if (error.status === 409) return t("error.conflict");
  if (error.status === 404) return t("error.not_found");
  if (error.status === 412) return t("error.changed");
  return error.status >= 500 ? t("error.internal") : t("error.refused", { reason: error.message });
}

export const failure = (error, retry) =>
  element(
    "div",
    { class: "notice failure", role: "alert" },
    element("p", {}, failureText(error)),
    retry && button(t("retry"), retry),
  );

export const loading = () => element("p", { class: "loading", role: "status" }, t("loading"));

/** Runs `work` with the button switched off; failures are announced. The button keeps the focus if nothing takes it. */
export async function pressed(control, work) {
  const isFocused = document.activeElement === control;
  control.disabled = true;
  try {
    await work();
  } catch (error) {
    announce(failureText(error));
  } finally {
    control.disabled = false;
    if (isFocused && document.activeElement === document.body) control.focus();
  }
}

/**
 * Builds the page around `start(main, askAgain)`. `identifiedBy(mode)`: what the page sends to say who calls, "" where
 * a proxy says it. In development it is asked for at once; elsewhere a proxy may add it, and `askAgain` asks for it.
 */
export async function openPage({ page, identifiedBy, start }) {
  await loadWords();
  const mode = await identityMode();
  document.title = t(`${page}.title`);
  const main = element("main", { id: "main", tabindex: "-1" });
  live = element("p", { id: "live", role: "status", "aria-live": "polite" });
  const kind = identifiedBy(mode);
  const signOut = () => {
    setIdentity({ user: "", token: "", operator: "" });
    location.reload();
  };
  const ask = () => main.replaceChildren(signIn(kind, show));
  const show = () => {
    const isKnown = Boolean(identity()[kind]);
    main.replaceChildren();
    document.querySelector("body > header").replaceWith(banner(page, isKnown ? signOut : null));
    if (mode === "development" && kind && !isKnown) ask();
    else start(main, ask);
  };
  document.getElementById("shell").replaceWith(
    element("a", { href: "#main", class: "skip" }, t("skip")), element("header"), main, live,
  );
  show();
}

function banner(page, signOut) {
  const tab = (name, href) =>
    element("a", { href, "aria-current": name === page ? "page" : null }, t(`${name}.tab`));
  const theme = document.documentElement.dataset.theme ?? "auto";
  const chooseTheme = (chosen) => {
    remember("memory.theme", chosen);
    if (chosen === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
  };
  const who = identity().user;
  return element(
    "header",
    {},
    element(
      "div",
      { class: "bar" },
      element("nav", { "aria-label": t("pages") }, tab("memory", "./"), tab("operator", "operator.html")),
      element(
        "div",
        { class: "preferences" },
        labelled(t("language"), select([["en", "English"], ["zh", "中文"]], language(), setLanguage), { class: "field small" }),
        labelled(t("theme"), select(THEMES.map((one) => [one, t(`theme.${one}`)]), theme, chooseTheme), { class: "field small" }),
        signOut &&
          element(
            "div",
            { class: "who" },
            who && element("span", { class: "user" }, who),
            button(t("sign_out"), signOut, { class: "quiet" }),
          ),
      ),
    ),
  );
}

/** The form that asks who is calling. `kind`: what is missing, "" where the proxy alone can say it. */
function signIn(kind, done) {
  if (!kind) {
    return element("section", { class: "panel" }, element("h1", {}, t("sign_in.title")), element("p", {}, t("sign_in.proxy")));
  }
  const input = element("input", {
    type: kind === "user" ? "text" : "password",
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    required: true,
    "aria-describedby": "sign-in-hint",
  });
  return element(
    "section",
    { class: "panel" },
    element("h1", {}, t("sign_in.title")),
    element(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          const given = input.value.trim();
          if (!given) return;
          setIdentity({ [kind]: given });
          done();
          document.getElementById("main").focus();
        },
      },
      labelled(t(`sign_in.${kind}`), input),
      element("p", { id: "sign-in-hint", class: "hint" }, t(`sign_in.${kind}.hint`)),
      element("div", { class: "actions" }, element("button", { type: "submit", class: "primary" }, t("sign_in.go"))),
    ),
  );
}
