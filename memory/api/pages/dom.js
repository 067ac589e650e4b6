// Builds elements. Text always becomes a text node: nothing that a user or a model wrote is ever parsed as HTML.

/** An element. `attributes`: `on…` are listeners, true and false set or leave out, others are set as text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child != null && child !== false));
  return made;
}

export function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, label);
}

/** Replaces what a place shows. A focus in it moves to the place: lost, it would start again at the top of the page. */
export function replace(place, ...children) {
  const isFocused = place.contains(document.activeElement);
  place.replaceChildren(...children);
  if (isFocused) focusPlace(place);
}

function focusPlace(place) {
  if (!place.hasAttribute("tabindex")) place.tabIndex = -1;
  place.focus();
}

/** How to move the focus back to where it is now; if that was replaced meanwhile, to the place that it stood in. */
function wayBack() {
  const before = document.activeElement;
  const around = [];
  for (let place = before.parentElement; place; place = place.parentElement) around.push(place);
  return () => (before.isConnected ? before.focus() : focusPlace(around.find((place) => place.isConnected)));
}

/** A label with its field, which gets an id of its own. */
let fields = 0;
export function labelled(label, field, attributes = {}) {
  field.id = field.id || `field-${(fields += 1)}`;
  return element("div", { class: "field", ...attributes }, element("label", { for: field.id }, label), field);
}

export function select(options, chosen, onchange) {
  const made = element(
    "select",
    { onchange: () => onchange(made.value) },
    options.map(([value, label]) => element("option", { value, selected: value === chosen }, label)),
  );
  return made;
}

/** Whether a dialog waits for an answer. */
export const isAsking = () => Boolean(document.querySelector("dialog[open]"));

/** Shows a dialog; resolves to true if it was confirmed. The focus returns to where it was. */
export function confirmed({ title, text, action, cancel, word = "", wordLabel = "" }) {
  const goBack = wayBack();
  return new Promise((resolve) => {
    const input = word ? element("input", { type: "text", autocomplete: "off", spellcheck: "false" }) : null;
    const accept = element("button", { type: "submit", class: "danger", disabled: Boolean(word) }, action);
    const form = element(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          if (!accept.disabled) close(true);
        },
      },
      element("h2", { id: "dialog-title" }, title),
      element("p", { id: "dialog-text" }, text),
      input && labelled(wordLabel, input),
      element("div", { class: "actions end" }, button(cancel, () => close(false), { class: "quiet" }), accept),
    );
    input?.addEventListener("input", () => (accept.disabled = input.value.trim() !== word));
    const dialog = element(
      "dialog",
      { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text", oncancel: () => close(false) },
      form,
    );
    function close(isConfirmed) {
      dialog.close();
      dialog.remove();
      goBack();
      resolve(isConfirmed);
    }
    document.body.append(dialog);
    dialog.showModal();
    (input ?? dialog.querySelector("button.quiet")).focus();
  });
}
