// Text of others as elements of ours. Whatever a text holds, it becomes text nodes and nothing else.

/** Characters of a text that are shown at once, and with each press of its button. */
export const FIRST = 20_000;
export const MORE = 100_000;

/** An element with a class, and text within that is isolated from what stands around it. */
export function make(tag, className = "", text = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

/** The same for text of others. */
export function foreign(tag, className, text) {
  const element = make(tag, `foreign ${className}`, text);
  element.dir = "auto";
  return element;
}

/** Where a text may be cut near a place: not within a pair of surrogates. */
export function cutAt(text, place) {
  if (place >= text.length) return text.length;
  const code = text.charCodeAt(place - 1);
  return code >= 0xd800 && code < 0xdc00 ? place - 1 : place;
}

/**
 * Controls, separators, what nobody assigned, and what Unicode has drawn as nothing; behind that blanks which it does not name.
 * support/text.py has the same rule.
 */
const UNSEEN = /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}]/gu;

/** Characters that are not seen, or that change the order of others, as escapes: for texts that a person decides on. */
export function exact(text) {
  return text.replace(UNSEEN, (one) => {
    const code = one.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

/** Fill an element with a text. A long one is cut, and a button shows more of it. */
export function fill(element, text, { isExact = false } = {}) {
  const written = isExact ? exact : (piece) => piece;
  const shown = cutAt(text, FIRST);
  element.replaceChildren(foreign("div", "plain", written(text.slice(0, shown))));
  unfolder(element, text, shown, written);
}

/** A button behind what is shown of a text that gives more of it, unless all is shown. */
export function unfolder(element, text, from, written = (piece) => piece) {
  let shown = from;
  if (shown === text.length) return;
  const button = make("button", "more");
  button.type = "button";
  const say = () => {
    button.textContent = `Show more: ${(text.length - shown).toLocaleString("en")} characters are left`;
  };
  button.addEventListener("click", () => {
    const next = cutAt(text, shown + MORE);
    button.before(foreign("div", "plain", written(text.slice(shown, next))));
    shown = next;
    if (shown === text.length) button.remove();
    else say();
  });
  say();
  element.append(button);
}

/** A button that copies a text. */
export function copier(label, give) {
  const button = make("button", "copy");
  button.type = "button";
  const name = (words) => {
    button.title = words;
    button.setAttribute("aria-label", words);
  };
  button.addEventListener("click", async () => {
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

/** Whether a text could be copied. Without TLS, and from another machine, browsers only take the old way. */
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
