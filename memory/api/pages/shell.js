// What both pages share: the header, who is calling, the live region, and how failures are told.

import { ApiError, identity, identityMode, setIdentity } from "./api.js";
import { button, element, labelled, replace, select } from "./dom.js";
import { language, loadWords, remember, t } from "./words.js";

const THEMES = ["auto", "light", "dark"];
const FOCUS = "memory.focus"; // the id of what gets the focus once the page is loaded again
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
  if (error.code === "project_exists") return t("error.project_exists");
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

/** Runs `work`; until it ends the button does nothing, but keeps the focus. Failures are announced. */
export async function pressed(control, work) {
  if (control.hasAttribute("aria-disabled")) return;
  control.setAttribute("aria-disabled", "true");
  try {
    await work();
  } catch (error) {
    announce(failureText(error));
  } finally {
    control.removeAttribute("aria-disabled");
  }
}

function canStore() {
  try {
    return Boolean(sessionStorage);
  } catch {
    return false; // switched off
  }
}

/** Loads the page again. `id`: of the element that gets the focus then, unless something else has it. */
function reload(id) {
  if (canStore()) sessionStorage.setItem(FOCUS, id);
  location.reload();
}

function restoreFocus() {
  const id = sessionStorage.getItem(FOCUS);
  sessionStorage.removeItem(FOCUS);
  if (id && document.activeElement === document.body) document.getElementById(id)?.focus();
}

/**
 * Builds the page around `start(main, askAgain)`. `identifiedBy(mode)`: what the page sends to say who calls, "" where
 * a proxy says it. In development it is asked for at once; elsewhere a proxy may add it, and `askAgain(refusal)` asks.
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
    reload("main");
  };
  const ask = (refusal) => {
    const isRefused = refusal && (identity()[kind] || refusal.status === 403);
    replace(main, ...(isRefused ? [failure(refusal)] : []), signIn(kind, show));
    const input = main.querySelector("input");
    if (input) input.focus();
    else if (document.activeElement === document.body) main.focus(); // only a proxy can say who calls
  };
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
  if (canStore()) restoreFocus();
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
  const chooseLanguage = (chosen) => {
    remember("memory.language", chosen);
    reload("language");
  };
  const languages = select([["en", "English"], ["zh", "中文"]], language(), chooseLanguage);
  languages.id = "language";
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
        labelled(t("language"), languages, { class: "field small" }),
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
