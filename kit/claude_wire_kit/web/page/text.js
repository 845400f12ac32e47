// Make elements with text from the model, tools and users. Such text becomes text nodes only, so it cannot become HTML.

/** How many characters of long text to show first. */
export const FIRST = 20_000;
/** How many more characters one press of "Show more" adds. */
const MORE = 100_000;

/** Return a new element with a class and text from the page itself. */
export function make(tag, className = "", text = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

/** Return a new button. `press()` is called when a person presses it. */
export function makeButton(className, text, press) {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", press);
  return button;
}

/** Return a button that alternately shows more and less of an element: it sets and removes the class "unfolded". */
export function toggler(element, more, less) {
  const button = makeButton("more", more, () => {
    const isOpen = element.classList.toggle("unfolded");
    button.textContent = isOpen ? less : more;
    button.setAttribute("aria-expanded", String(isOpen));
  });
  button.setAttribute("aria-expanded", "false");
  return button;
}

/** Return a button for a list of sessions. */
export function sessionButton(name, life, folder, press) {
  const button = makeButton("session", null, press);
  const path = make("span", "path");
  path.append(foreign("span", "", folder));
  button.append(foreign("span", "name", name), make("span", "life", life), path);
  return button;
}

/** Return a new element with text from outside. CSS and dir="auto" keep its writing direction from affecting its surroundings. */
export function foreign(tag, className, text) {
  const element = make(tag, `foreign ${className}`, text);
  element.dir = "auto";
  return element;
}

/** Return `text` with a capital first letter. */
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Return where to cut `text` near `place`, but not between the two halves of a surrogate pair. */
export function cutAt(text, place) {
  if (place >= text.length) return text.length;
  const code = text.charCodeAt(place - 1);
  return code >= 0xd800 && code < 0xdc00 ? place - 1 : place;
}

/**
 * Characters that look like nothing or like a blank: Unicode's controls, separators, unassigned and default-ignorable characters,
 * and some that Unicode does not list as such, like the empty Braille pattern. support/text.py has the same rule.
 */
const UNSEEN = /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}]/gu;

/** Write invisible characters, and characters that reorder text, as escapes such as \u202e, so a person sees all of the text. */
export function exact(text) {
  return text.replace(UNSEEN, (one) => {
    const code = one.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

/** Fill an element with text. For long text, show the first characters and a button for more. */
export function fill(element, text, { isExact = false } = {}) {
  const written = isExact ? exact : (piece) => piece;
  const shown = cutAt(text, FIRST);
  element.replaceChildren(foreign("div", "plain", written(text.slice(0, shown))));
  unfolder(element, text, shown, written);
}

/** Append a button that shows more of `text`, unless all of it is shown. The first `from` characters are already shown. */
export function unfolder(element, text, from, written = (piece) => piece) {
  let shown = from;
  if (shown === text.length) return;
  const say = () => {
    button.textContent = `Show more: ${(text.length - shown).toLocaleString("en")} characters are left`;
  };
  const button = makeButton("more", null, () => {
    const next = cutAt(text, shown + MORE);
    button.before(foreign("div", "plain", written(text.slice(shown, next))));
    shown = next;
    if (shown === text.length) button.remove();
    else say();
  });
  say();
  element.append(button);
}

/** Return a button that copies the text from `give()`. */
export function copier(label, give) {
  const name = (words) => {
    button.title = words;
    button.setAttribute("aria-label", words);
  };
  const button = makeButton("copy", null, async () => {
    const isCopied = await copy(give());
    button.classList.toggle("copied", isCopied);
    name(isCopied ? "Copied" : "This browser does not let the page copy");
    setTimeout(() => {
      button.classList.remove("copied");
      name(label);
    }, 2_000);
  });
  name(label);
  return button;
}

/** Copy text; return true on success. navigator.clipboard needs TLS or localhost; without it, try execCommand. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const place = make("textarea", "hidden");
    const had = document.activeElement;
    place.value = text;
    document.body.append(place);
    place.select();
    const isCopied = document.execCommand("copy");
    place.remove();
    had?.focus();
    return isCopied;
  }
}
