// Runs before the first paint, so that a chosen theme or language never flashes another.
"use strict";
{
  const stored = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // storage is switched off: what the browser prefers is used
    }
  };
  const theme = stored("memory.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  const language = stored("memory.language") || navigator.language;
  document.documentElement.lang = language.toLowerCase().startsWith("zh") ? "zh" : "en";
}
