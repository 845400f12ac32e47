"""Convert Markdown that others wrote to safe HTML: CommonMark and GFM, with highlighted code.

HTML in the Markdown is shown as text, only links to the web can be followed, and pictures are only named. The module
``page/markdown.js`` of the web page makes the same HTML, so change both together.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

#: Code with more characters is not highlighted.
MAX_HIGHLIGHTED = 20_000

_WEB = re.compile(r"(https?|mailto):", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_LISTS = ("bullet_list_open", "ordered_list_open")
_BLOCKS = frozenset((*_LISTS, "paragraph_open", "heading_open", "blockquote_open", "th_open", "td_open"))
_TASK = re.compile(r"\[([ xX])\] ")


def markdown(text: str) -> str:
    """Convert Markdown to HTML. The caller must first replace characters that must not be on the page."""
    return str(_parser().render(text))


@cache
def _parser() -> MarkdownIt:
    # Imported here, because most programs that import this package make no HTML.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("js-default", {"html": False, "linkify": True, "breaks": True, "highlight": _highlight})
    cast("Any", parser.linkify).set({"fuzzy_link": False, "fuzzy_email": False})
    parser.validateLink = _may_be_a_link  # type: ignore[method-assign]  # as markdown-it documents
    parser.core.ruler.push("ours", _ours)
    parser.add_render_rule("table_open", lambda *_: '<div class="table" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("image", _picture)
    return parser


def _may_be_a_link(url: str) -> bool:
    return _WEB.match(url) is not None or _SCHEME.match(url) is None


def _ours(state: StateCore) -> None:
    tokens = state.tokens
    for at, token in enumerate(tokens):
        if token.type in _BLOCKS:
            token.attrSet("dir", "auto")
        if token.tag in ("th", "td"):
            _align(token)
        if token.type.startswith("heading_"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
        if token.type == "inline" and token.children:
            _links(token.children)
            if at > 1 and tokens[at - 2].type == "list_item_open":
                _task(tokens[at - 2], token.children)


def _align(token: Token) -> None:
    style = token.attrs.pop("style", None)
    if style is not None:
        token.attrSet("class", str(style).removeprefix("text-align:"))


def _links(tokens: list[Token]) -> None:
    """Open links to the web in a new tab. Make other links, such as those to files, text that shows their address."""
    opened: list[Token] = []
    for token in tokens:
        if token.type == "link_open":
            opened.append(token)
            url = str(token.attrGet("href") or "")
            if _WEB.match(url):
                token.attrSet("target", "_blank")
                token.attrSet("rel", "noopener noreferrer nofollow")
            else:
                token.tag, token.attrs = "span", {"class": "file", "title": url}
        elif token.type == "link_close":
            token.tag = opened.pop().tag


def _task(item: Token, children: list[Token]) -> None:
    found = _TASK.match(children[0].content) if children[0].type == "text" else None
    if found is None:
        return
    children[0].content = children[0].content[found.end() :]
    is_done = found[1] != " "
    attrs = {"type": "checkbox", "disabled": "", "aria-label": "done" if is_done else "to do"}
    box = type(item)("checkbox", "input", 0)
    box.attrs = {**attrs, "checked": ""} if is_done else {**attrs}
    children.insert(0, box)
    item.attrSet("class", "task")


def _picture(renderer: object, tokens: Sequence[Token], at: int, *_: object) -> str:
    url, words = str(tokens[at].attrGet("src") or ""), tokens[at].content
    return f'<span class="image" title="{escape(url)}">{escape(words or url)}</span>'


def _highlight(code: str, language: str, attributes: Any) -> str:
    from pygments import formatters, highlight, lexers
    from pygments.util import ClassNotFound

    if not language or len(code) > MAX_HIGHLIGHTED:
        return ""
    try:
        lexer = cast("Any", lexers).get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, cast("Any", formatters).HtmlFormatter(nowrap=True, classprefix="hl-")))
