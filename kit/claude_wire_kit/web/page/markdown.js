// Markdown of others as elements: CommonMark and GFM, with highlighted code. No text of it makes an element of its own:
// HTML stays text, links lead to the web or nowhere, and what the parser makes goes through a sanitizer.
// html/markdown.py makes the same elements in Python.

import hljs from "./vendor/highlight.js";
import MarkdownIt from "./vendor/markdown-it.js";
import DOMPurify from "./vendor/purify.js";
import { copier, make } from "./text.js";

/** Code with more characters is not highlighted. */
const MAX_HIGHLIGHTED = 20_000;
/** Milliseconds between two looks at a text that is being written. */
const LOOK = 40;
/** A block that is being written is set anew with each look up to this many characters; above it, when it has grown by an eighth. */
const SMALL = 4_000;

const SANITIZER = {
  ALLOWED_TAGS: [
    ...["p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "hr", "br", "div", "span", "a"],
    ...["strong", "em", "s", "table", "thead", "tbody", "tr", "th", "td", "input"],
  ],
  ALLOWED_ATTR: ["class", "href", "title", "target", "rel", "start", "tabindex", "type", "checked", "disabled"],
  RETURN_DOM_FRAGMENT: true,
};
const WEB = /^(https?|mailto):/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;
const BLOCKS = "p, ul, ol, blockquote, h3, h4, h5, h6, th, td";
const TASK = /^\[([ xX])\] /;

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true, highlight });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
parser.validateLink = (url) => WEB.test(url) || !SCHEME.test(url);
parser.core.ruler.push("ours", ({ tokens, Token }) => {
  tokens.forEach((token, at) => {
    if (token.tag === "th" || token.tag === "td") align(token);
    if (token.type.startsWith("heading_")) token.tag = `h${Math.min(6, Number(token.tag[1]) + 2)}`;
    if (token.type !== "inline") return;
    links(token.children);
    if (tokens[at - 2]?.type === "list_item_open") task(tokens[at - 2], token, Token);
  });
});
parser.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
parser.renderer.rules.table_close = () => "</table></div>\n";
/** A picture is named: the page loads nothing from elsewhere. */
parser.renderer.rules.image = (tokens, at) => {
  const { escapeHtml } = parser.utils;
  const [url, words] = [tokens[at].attrGet("src"), tokens[at].content];
  return `<span class="image" title="${escapeHtml(url)}">${escapeHtml(words || url)}</span>`;
};

function highlight(code, language) {
  if (code.length > MAX_HIGHLIGHTED || !hljs.getLanguage(language)) return "";
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

/** The policy of the page allows no styles within a document. */
function align(token) {
  const style = token.attrGet("style");
  if (style === null) return;
  token.attrs = token.attrs.filter(([name]) => name !== "style");
  token.attrSet("class", style.replace("text-align:", ""));
}

/** A link leads to the web. One to a file has nowhere to lead to, so it only says where the file is. */
function links(tokens) {
  const open = [];
  for (const token of tokens) {
    if (token.type === "link_open") {
      open.push(token);
      const url = token.attrGet("href");
      if (WEB.test(url)) {
        token.attrSet("target", "_blank");
        token.attrSet("rel", "noopener noreferrer nofollow");
      } else {
        token.tag = "span";
        token.attrs = [["class", "file"], ["title", url]];
      }
    } else if (token.type === "link_close") {
      token.tag = open.pop().tag;
    }
  }
}

function task(item, { children }, Token) {
  const found = children[0]?.type === "text" && TASK.exec(children[0].content);
  if (!found) return;
  children[0].content = children[0].content.slice(found[0].length);
  const box = new Token("checkbox", "input", 0);
  const isDone = found[1] !== " ";
  box.attrs = [["type", "checkbox"], ["disabled", ""], ["aria-label", isDone ? "done" : "to do"]];
  if (isDone) box.attrs.push(["checked", ""]);
  children.unshift(box);
  item.attrSet("class", "task");
}

function draw(tokens) {
  const drawn = DOMPurify.sanitize(parser.renderer.render(tokens, parser.options, {}), SANITIZER);
  // Not before: while a document is parsed, each child of such a block would cost a look at all that came before it.
  for (const block of drawn.querySelectorAll(BLOCKS)) block.dir = "auto";
  for (const code of drawn.querySelectorAll("pre")) {
    code.tabIndex = 0;
    const box = make("div", "code");
    code.replaceWith(box);
    box.append(code, copier("Copy the code", () => code.textContent));
  }
  return drawn;
}

/** Markdown as elements. */
export function markdown(text) {
  return draw(parser.parse(text, {}));
}

/**
 * A text as it is written. Blocks that are finished are set once; only the one that is open is set anew, so a piece costs
 * the same wherever in a text it comes.
 */
export class Writer {
  /** @param {HTMLElement} element where the blocks go. */
  constructor(element) {
    this.element = element;
    /** Holds the open block, and behind it what came since that was set. */
    this.open = make("div", "open");
    this.tail = document.createTextNode("");
    this.block = make("div", "open");
    this.open.append(this.block, this.tail);
    element.append(this.open);
    this.finished = [];
    /** What came since the end of the last finished block, and how much of that is set. */
    this.rest = "";
    this.drawn = 0;
    this.code = null;
    this.isReturn = false;
    this.hasReferences = false;
    this.timer = null;
  }

  get text() {
    return this.finished.join("") + this.rest;
  }

  /** Add a piece. It is shown soon: many pieces may come at once. */
  add(piece) {
    let text = this.isReturn ? `\r${piece}` : piece;
    this.isReturn = text.endsWith("\r");
    if (this.isReturn) text = text.slice(0, -1);
    this.rest += text.replace(/\r\n?/g, "\n");
    this.timer ??= setTimeout(() => this.show(), LOOK);
  }

  /** Show at once what waits to be shown. */
  flush() {
    if (this.timer !== null) this.show();
  }

  /** Show all that came. */
  show() {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.code !== null && !this.goOn()) return;
    const left = this.rest.length - this.drawn;
    if (this.drawn > SMALL && left < this.drawn / 8) {
      this.tail.appendData(this.rest.slice(this.drawn + this.tail.length));
      return;
    }
    if (left === 0) return;
    const env = {};
    const tokens = parser.parse(this.rest, env);
    this.hasReferences ||= Object.keys(env.references ?? {}).length > 0;
    const blocks = tokens.map((token, at) => ({ at, token })).filter(({ token }) => token.level === 0 && token.map);
    // The last line may yet become another one. So a block is finished when a complete line stands in a block behind it.
    const line = lastLine(this.rest);
    const last = blocks.findLast(({ token }) => token.map[0] <= line);
    if (last !== undefined && last !== blocks[0]) {
      this.open.before(draw(tokens.slice(0, last.at)));
      const end = startOf(this.rest, last.token.map[0]);
      this.finished.push(this.rest.slice(0, end));
      this.rest = this.rest.slice(end);
    }
    const shown = draw(tokens.slice(last?.at ?? 0));
    this.block.replaceChildren(shown);
    this.tail.data = "";
    this.drawn = this.rest.length;
    if (last !== undefined && last === blocks.at(-1)) this.follow(last.token);
  }

  /** Code that is still being written grows as a text, and is highlighted when it is there. */
  follow(token) {
    const fence = token.type === "fence" && /^ {0,3}(`{3,}|~{3,})[^\n]*\n/.exec(this.rest);
    if (!fence) return;
    const from = fence[0].length;
    const end = new RegExp(`^ {0,3}${fence[1][0]}{${fence[1].length},}[ \\t]*$`);
    if (this.rest.slice(from).split("\n").slice(0, -1).some((line) => end.test(line))) return;
    const text = document.createTextNode("");
    this.block.querySelector("code").replaceChildren(text);
    this.code = { text, end, at: from, line: from, looked: from };
    this.goOn();
  }

  /** Whether the code has ended. */
  goOn() {
    const { text, end } = this.code;
    let shown = "";
    for (let next; (next = this.rest.indexOf("\n", this.code.looked)) >= 0; ) {
      const line = this.rest.slice(this.code.line, next);
      this.code.line = this.code.looked = next + 1;
      if (end.test(line)) {
        this.code = null;
        this.drawn = 0;
        return true;
      }
      shown += this.rest.slice(this.code.at, next + 1);
      this.code.at = next + 1;
    }
    this.code.looked = this.rest.length;
    // The line that is being written may become the end of the code.
    const begun = this.rest.slice(this.code.at);
    if (begun.length > 100 || !/^ {0,3}([`~]|$)/.test(begun)) {
      shown += begun;
      this.code.at = this.rest.length;
    }
    if (shown) text.appendData(shown);
    this.drawn = this.rest.length;
    return false;
  }

  stop() {
    clearTimeout(this.timer);
  }

  /** No more comes. */
  finish() {
    this.stop();
    if (this.isReturn) this.rest += "\n";
    if (this.hasReferences) {
      this.element.replaceChildren(markdown(this.text));
      return;
    }
    const isDrawn = this.drawn === this.rest.length && this.code === null;
    this.open.replaceWith(...(isDrawn ? this.block.childNodes : [markdown(this.rest)]));
  }
}

/** The number of the last line that is complete and not blank; -1 for none. */
function lastLine(text) {
  const complete = text.slice(0, text.lastIndexOf("\n") + 1).trimEnd();
  return complete === "" ? -1 : complete.split("\n").length - 1;
}

/** Where a line begins. */
function startOf(text, line) {
  let from = 0;
  for (let count = 0; count < line; count++) from = text.indexOf("\n", from) + 1;
  return from;
}
