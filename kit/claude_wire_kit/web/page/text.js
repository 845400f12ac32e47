// Text of others as elements of ours. Whatever a text holds, it becomes text nodes and nothing else.
// A text keeps each of its characters: marks of Markdown stay in the document, and the style sheet hides them.

/** Characters of a text that are shown at once, and with each press of its button. */
export const FIRST = 20_000;
export const MORE = 100_000;
/** Above this a text is shown as it is, without a look at its Markdown. */
const PLAIN = 20_000;

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
function cutAt(text, place) {
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
export function fill(element, text, { markdown = false, isExact = false } = {}) {
  element.replaceChildren();
  const written = isExact ? exact : (piece) => piece;
  let shown = cutAt(text, FIRST);
  if (markdown && text.length <= PLAIN) writeMarkdown(element, text);
  else element.append(foreign("div", "plain", written(text.slice(0, shown))));
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

/** Blocks: fenced code, headings, items of lists, and paragraphs. */
function writeMarkdown(element, text) {
  const lines = text.split(/(?<=\n)/);
  let prose = [];
  const flush = () => {
    if (prose.length) element.append(paragraph(prose.join("")));
    prose = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const fence = /^ {0,3}(```+|~~~+)[^`\n]*\n?$/.exec(lines[at]);
    if (fence) {
      flush();
      const code = [];
      let end = at + 1;
      while (end < lines.length && !isEnd(lines[end], fence[1])) code.push(lines[end++]);
      element.append(make("span", "mark", lines[at]));
      const block = make("pre", "code");
      block.tabIndex = 0;
      block.append(foreign("code", "", code.join("")));
      element.append(block);
      if (end < lines.length) element.append(make("span", "mark", lines[end]));
      at = end;
    } else if (/^#{1,6} /.test(lines[at])) {
      flush();
      const marks = lines[at].indexOf(" ") + 1;
      const heading = foreign("p", "heading", "");
      heading.append(make("span", "mark", lines[at].slice(0, marks)));
      writeInline(heading, lines[at].slice(marks));
      element.append(heading);
    } else if (/^ {0,8}([-*+]|\d{1,3}[.)]) /.test(lines[at])) {
      flush();
      const item = foreign("p", "item", "");
      const marks = /^( *)([-*+]|\d+[.)]) /.exec(lines[at]);
      item.append(make("span", /\d/.test(marks[2]) ? "bullet" : "bullet dot", marks[0]));
      writeInline(item, lines[at].slice(marks[0].length));
      element.append(item);
    } else if (lines[at].trim() === "") {
      flush();
      element.append(make("span", "mark", lines[at]));
    } else {
      prose.push(lines[at]);
    }
  }
  flush();
}

function isEnd(line, fence) {
  const bare = line.trim();
  return bare.length >= fence.length && bare === fence[0].repeat(bare.length);
}

function paragraph(text) {
  const element = foreign("p", "prose", "");
  writeInline(element, text);
  return element;
}

/** Code and bold text within a line. */
function writeInline(element, text) {
  const pattern = /`([^`\n]{1,500})`|\*\*([^*\n]{1,500})\*\*/g;
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    element.append(text.slice(from, found.index));
    const mark = found[1] === undefined ? "**" : "`";
    element.append(make("span", "mark", mark));
    element.append(foreign(found[1] === undefined ? "strong" : "code", "", found[1] ?? found[2]));
    element.append(make("span", "mark", mark));
    from = found.index + found[0].length;
  }
  element.append(text.slice(from));
}
