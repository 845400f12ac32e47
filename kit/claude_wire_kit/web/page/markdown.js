// Turn Markdown (CommonMark and GFM) from the model into elements, with highlighted code. The Markdown is not trusted: HTML in
// it stays text, a link may only lead to http, https or mailto, and a sanitizer checks the parser's HTML.
// html/markdown.py makes the same elements in Python.

import hljs from "./vendor/highlight.js";
import MarkdownIt from "./vendor/markdown-it.js";
import DOMPurify from "./vendor/purify.js";
import { copier, make } from "./text.js";

/** The page does not highlight code with more characters. */
const MAX_HIGHLIGHTED = 20_000;
/** Milliseconds between two updates of unfinished text. */
const LOOK = 40;
/** Parse an unfinished block of at most this many characters again at each update; a larger block only after it grew by 1/8. */
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
/** Show the name of a picture instead of the picture, because the page loads nothing from other hosts. */
parser.renderer.rules.image = (tokens, at) => {
  const { escapeHtml } = parser.utils;
  const [url, words] = [tokens[at].attrGet("src"), tokens[at].content];
  return `<span class="image" title="${escapeHtml(url)}">${escapeHtml(words || url)}</span>`;
};

function highlight(code, language) {
  if (code.length > MAX_HIGHLIGHTED || !hljs.getLanguage(language)) return "";
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

/** Replace a table cell's style with a class, because the Content-Security-Policy forbids inline styles. */
function align(token) {
  const style = token.attrGet("style");
  if (style === null) return;
  token.attrs = token.attrs.filter(([name]) => name !== "style");
  token.attrSet("class", style.replace("text-align:", ""));
}

/** Open web links in a new tab. Turn a link to a file into a span with the path as its title: the page cannot open files. */
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
  // Set dir only now, because while parsing HTML, dir="auto" makes the browser search the whole block again for each new child.
  for (const block of drawn.querySelectorAll(BLOCKS)) block.dir = "auto";
  for (const code of drawn.querySelectorAll("pre")) {
    code.tabIndex = 0;
    const box = make("div", "code");
    code.replaceWith(box);
    box.append(code, copier("Copy the code", () => code.textContent));
  }
  return drawn;
}

/** Return Markdown as elements. */
export function markdown(text) {
  return draw(parser.parse(text, {}));
}

/**
 * Shows Markdown that arrives in pieces. Draws finished blocks once, and only the last block again. So a piece takes the same
 * time at the beginning and at the end of long text.
 */
export class Writer {
  /** @param {HTMLElement} element the parent of the blocks. */
  constructor(element) {
    this.element = element;
    /** The unfinished block as last drawn, and the text that has arrived since then. */
    this.open = make("div", "open");
    this.tail = document.createTextNode("");
    this.block = make("div", "open");
    this.open.append(this.block, this.tail);
    element.append(this.open);
    this.finished = [];
    /** The text after the last finished block, and the number of its drawn characters. */
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

  /** Add a piece. The next update shows it, together with other pieces. */
  add(piece) {
    let text = this.isReturn ? `\r${piece}` : piece;
    this.isReturn = text.endsWith("\r");
    if (this.isReturn) text = text.slice(0, -1);
    this.rest += text.replace(/\r\n?/g, "\n");
    this.timer ??= setTimeout(() => this.show(), LOOK);
  }

  /** Show the waiting pieces now, before the next update. */
  flush() {
    if (this.timer !== null) this.show();
  }

  /** Show all pieces so far. */
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
    // The last line may be incomplete. So a block is finished only if a later block has a complete line.
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

  /** If the last block is an unfinished code block, append new text without highlighting it, until the block ends. */
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

  /** Show more text of the code block. Return true if the block ended. */
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
    // Hold back an incomplete line while it may become the closing fence.
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

  /** Draw the rest: the text is complete. */
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

/** Return the 0-based number of the last complete line that is not blank; -1 if there is none. */
function lastLine(text) {
  const complete = text.slice(0, text.lastIndexOf("\n") + 1).trimEnd();
  return complete === "" ? -1 : complete.split("\n").length - 1;
}

/** Return the offset at which a line begins. */
function startOf(text, line) {
  let from = 0;
  for (let count = 0; count < line; count++) from = text.indexOf("\n", from) + 1;
  return from;
}
