"""Undo encodings that can hide a secret in text: escapes of several languages, terminal colours, invisible characters.

:func:`unescape` undoes one layer of each.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{3}|.)", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " ", "/": "/", '"': '"', "'": "'", "\\": "\\", "\n": ""}
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});")
_QUOTED_PRINTABLE = re.compile(r"=([2-7][0-9A-F])(?=[\w=+/.~-])|=\r?\n")
#: Terminal escape sequences, such as colours, and a character that a backspace removes.
_TERMINAL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|.\x08|[\0-\x07\x0e-\x1f\x7f]"
)
#: Invisible characters.
_UNSEEN = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
#: The text between the two parts of a token that is split over two lines or two string literals (``"abc" + "def"``).
_SEAM = re.compile(
    r"(?<=[\w+/=~.-])\\?\r?\n[ \t]*(?=[\w+/=~.-])|(?<=[\w+/=~.-])[\"']\s{0,20}[+.]?\s{0,20}[\"'](?=[\w+/=~.-])"
)
_SQUEEZE = dict.fromkeys(map(ord, "\\\r\n\t \"'+."))
#: Characters that begin an escape or may be invisible. Text without any of them needs no decoding.
_TRIGGER = re.compile(r"[^\n\r\t -$'-<>-\[\]-~]")


def unescape(text: str) -> str:
    """Undo one layer of escapes."""
    if "\x1b" in text or not text.isprintable():
        text = _TERMINAL.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    if "\\" in text:
        text = _ESCAPE.sub(_unescape_one, text)
    if "%" in text:
        text = unquote(text)
    if "&" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    return text


def is_quoted_printable(text: str) -> bool:
    """Return True if the text may be quoted-printable. Also return True for a URL such as ``?v=20``."""
    return "=" in text and _QUOTED_PRINTABLE.search(text) is not None


def unescape_printable(text: str) -> str:
    """Undo quoted-printable, and then one layer of the escapes that :func:`unescape` knows."""
    return unescape(_QUOTED_PRINTABLE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "", text))


def changed_parts(text: str) -> Iterator[str]:
    """Yield the parts of the text that :func:`unescape_printable` changes: consecutive lines, with one line before and
    after them.
    """
    if not _TRIGGER.search(text):
        return
    lines = text.splitlines(keepends=True)
    changed = [
        number for number, line in enumerate(lines) if _TRIGGER.search(line) and unescape_printable(line) != line
    ]
    begin = end = -1
    for number in changed:
        if number > end + 1:
            if end >= 0:
                yield "".join(lines[max(begin - 1, 0) : end + 2])
            begin = number
        end = number
    if end >= 0:
        yield "".join(lines[max(begin - 1, 0) : end + 2])


def has_seams(text: str) -> bool:
    """Return True if :func:`join_tokens` may change the text."""
    return "\n" in text or '"' in text or "'" in text


def remove_seams(text: str) -> str:
    """Return the text in lower case, without all characters that may be between two parts of a token."""
    return text.lower().translate(_SQUEEZE)


def join_tokens(text: str) -> str:
    """Join the parts of tokens that are split by a line end or ``" + "``."""
    return _SEAM.sub("", text)


def _unescape_one(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "uUx" and len(escape) > 1:
        code = int(escape[1:].strip("{}"), 16)
        return chr(code) if code <= 0x10FFFF else ""
    if len(escape) == 3:
        return chr(int(escape, 8))
    return _ESCAPES.get(escape, f" {escape}")
