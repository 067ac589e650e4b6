// The words of the page in the reader's language, and dates and numbers as that language writes them.

const LOCALES = { en: "en-GB", zh: "zh-CN" };
let strings = {};

export const language = () => document.documentElement.lang;

export async function loadWords() {
  const answer = await fetch(new URL(`words.${language()}.json`, import.meta.url));
  strings = await answer.json();
}

/** The text of that key, with `{name}` replaced. Counts choose between `key.one` and `key.other`. */
export function t(key, values = {}) {
  const plural = "count" in values ? `.${new Intl.PluralRules(LOCALES[language()]).select(values.count)}` : "";
  const text = strings[key + plural] ?? strings[`${key}.other`] ?? strings[key];
  if (text === undefined) throw new Error(`no words for ${key}`);
  return text.replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
}

/** The text for a value that the API may extend: the value itself if there are no words for it yet. */
export const named = (group, value) => strings[`${group}.${value}`] ?? String(value).replaceAll("_", " ");

const shown = (value) => (typeof value === "number" ? number(value) : String(value));

export const number = (value, options) => new Intl.NumberFormat(LOCALES[language()], options).format(value);

const day = { year: "numeric", month: "long", day: "numeric" };
export const date = (text) => new Intl.DateTimeFormat(LOCALES[language()], day).format(new Date(text));
export const dateTime = (text) =>
  new Intl.DateTimeFormat(LOCALES[language()], { dateStyle: "medium", timeStyle: "short" }).format(new Date(text));
export const clock = (text) =>
  new Intl.DateTimeFormat(LOCALES[language()], { month: "short", day: "numeric", timeStyle: undefined, hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(new Date(text));

/** Seconds as the largest unit that is above one. */
export function duration(seconds) {
  const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]].find(([, one]) => seconds >= one) ?? ["second", 1];
  return number(Math.round(seconds / size), { style: "unit", unit, unitDisplay: "long" });
}

export function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // storage is switched off: the choice holds until the page is left
  }
}
