"""Parse a page that ``claude-wire view --html`` wrote: check every element, and collect the text."""

from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser

__all__ = ["HtmlPage"]

VOID = {"meta", "img", "br", "hr", "input"}
CLASSES = {
    *("agent", "badge", "body", "call", "cut", "denied", "diff", "done", "error", "failed", "hook", "host"),
    *("interrupted", "model", "more", "note", "output", "question", "quiet", "result", "say", "skip", "text"),
    *("thinking", "turn", "user", "warning", "who"),
    *("markdown", "center", "left", "right", "task", "file", "image", "table"),
}
#: The attributes that a link may have. It never leads to a script, and never sends a referrer.
WEB = {"href": r"(#(t\d+|turns))|(https?|mailto):.*", "target": "_blank", "rel": "noopener noreferrer nofollow"}
#: Allowed element -> its allowed attributes, with a pattern for their values.
ELEMENTS: dict[str, dict[str, str]] = {
    **{name: {} for name in ("head", "title", "style", "body", "header", "h1", "dl", "dt", "dd")},
    **{name: {} for name in ("footer", "summary", "b", "bdi", "strong", "small", "ins", "del")},
    **{name: {} for name in ("em", "s", "br", "hr", "table", "thead", "tbody", "tr")},
    **{name: {"dir": "auto"} for name in ("h3", "h4", "h5", "h6", "ul", "blockquote")},
    **{name: {"dir": "auto", "class": "left|center|right"} for name in ("th", "td")},
    "ol": {"dir": "auto", "start": r"\d+"},
    "li": {"class": "task"},
    "code": {"class": r"language-\S+"},
    "input": {"type": "checkbox", "disabled": "", "checked": "", "aria-label": "done|to do"},
    "html": {"lang": "en"},
    "meta": {"charset": "utf-8", "name": "viewport|color-scheme|referrer", "http-equiv": ".*", "content": "[a-z].*"},
    "main": {"id": "turns"},
    "nav": {"aria-label": "Turns"},
    "a": {**WEB, "class": "skip", "title": "(?s).*"},
    "h2": {"id": r"t\d+"},
    "section": {"class": "turn|agent", "aria-labelledby": r"t\d+"},
    "div": {"class": ".*", "dir": "auto", "tabindex": "0"},
    "p": {"class": ".*", "dir": "auto"},
    "pre": {"class": "diff", "dir": "auto"},
    "span": {"class": ".*", "title": "(?s).*"},
    "details": {"class": ".*", "open": "None"},
    "time": {"datetime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"},
    "img": {
        "alt": "A picture of the conversation",
        "src": r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}",
    },
}
ONCE = {"html", "head", "title", "style", "body", "h1", "main"}


class HtmlPage(HTMLParser):
    """A page in which every element and attribute is allowed, and every element is closed in the right place.

    Attributes:
        text: the text of the body.
        count: element name -> number of elements.
        classes: class name -> number of elements.
        deepest: the greatest depth of nested elements.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.count: dict[str, int] = {}
        self.classes: dict[str, int] = {}
        self.deepest = 0
        self._open: list[str] = []
        self._texts: list[str] = []
        page.encode()  # fails on a lone surrogate
        for character in set(page) - {"\n", "\t", "\u200c", "\u200d"}:
            assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), repr(character)
        self.feed(page)
        self.close()
        self.text = "".join(self._texts)
        assert self._open == []
        assert {self.count[name] for name in ONCE} == {1}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        allowed = ELEMENTS[tag]
        for name, value in attrs:
            assert re.fullmatch(allowed[name], str(value)), (tag, name, value)
            if name == "class" and tag != "code":
                assert value is not None
                assert {each for each in value.split() if not each.startswith("hl-")} <= CLASSES
                for each in value.split():
                    self.classes[each] = self.classes.get(each, 0) + 1
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in VOID:
            self._open.append(tag)
            self.deepest = max(self.deepest, len(self._open))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self._texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    unknown_decl = handle_pi = handle_comment

    def handle_decl(self, decl: str) -> None:
        assert decl == "DOCTYPE html"
