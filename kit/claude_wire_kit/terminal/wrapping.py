"""Break long lines between words to fit the terminal, while the text arrives in pieces.

A terminal itself breaks lines in the middle of a word. rich breaks them between words, but needs the whole line.
"""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.console import Console

#: Marks at the beginning of a line. The other rows of a line with a mark are indented by two more columns.
MARKS = frozenset("+=?#!*<>-|")

#: A tab moves to the next multiple of this many columns.
TAB_COLUMNS = 8

#: Chinese, Japanese and Korean characters. A line may be broken between any two of them.
_WIDE = (
    "\u1100-\u115f\u2e80-\u2fff\u3001-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\U00020000-\U0003fffd"
)
_IS_WIDE = re.compile(f"[{_WIDE}]").match
_TOKENS = re.compile(rf"\n|[^\S\n]+|[{_WIDE}]|[^\s{_WIDE}]+")


def width_of(console: Console) -> int | None:
    """Return the terminal's width in columns, or None if the output is not a terminal. Lines are not wrapped then."""
    return console.width if console.is_terminal and console.file.isatty() else None


def wrapped(text: str, width: int | None, bars: str = "") -> str:
    """Break whole lines to ``width`` columns. Each row begins with ``bars``."""
    wrapping = Wrapping(width, bars)
    return bars + wrapping.feed(text) + wrapping.rest()


class Wrapping:
    """Breaks the lines of text that arrives in pieces.

    A word that does not fit moves to a new row, with the indentation of its line. The next piece may continue the last
    word of a piece, so the class holds this word back. The terminal itself breaks a word that is longer than a row, so
    a user can copy the whole word. A Chinese or Japanese character counts as a word.

    Args:
        width: the width in columns. None: do not break lines, and do not hold words back.
        bars: the beginning of each row. The caller writes it for the first row.
    """

    def __init__(self, width: int | None, bars: str = "") -> None:
        self._width = width
        self._bars = bars
        self._begin()

    def _begin(self) -> None:
        self._column = cell_len(self._bars)
        # The indentation of the line's other rows, after the bars.
        self._indent = ""
        # `_begun`: a word of this line was written. `_breakable`: a word that is not a mark was written.
        self._begun = self._breakable = False
        # White space and the word after it, not yet written.
        self._gap = self._word = ""
        # True if the beginning of the current word is already written.
        self._inside = False

    def feed(self, text: str) -> str:
        """Add a piece of text, and return the text to write now."""
        if self._width is None:
            return text.replace("\n", "\n" + self._bars)
        out: list[str] = []
        for token in _TOKENS.findall(text):
            if token == "\n":
                out.append(self.rest() + "\n" + self._bars)
                self._begin()
            elif token.isspace():
                self._end_word(out)
                self._gap += token
            elif _IS_WIDE(token):
                self._end_word(out)
                self._word = token
                self._end_word(out)
            else:
                self._word += token
        if self._inside or not self._breakable:  # this word never moves to a new row, so do not hold it back
            out.append(self._put())
        return "".join(out)

    def rest(self) -> str:
        """Return the text that :meth:`feed` held back."""
        put, gap, self._gap = self._put(), self._gap, ""
        self._column += self._cells(gap)
        # Drop white space that does not fit, because it would begin an empty row.
        return put if self._width is not None and self._column > self._width else put + gap

    def _end_word(self, out: list[str]) -> None:
        out.append(self._put())
        self._inside = False

    def _put(self) -> str:
        """Return the word that was held back, on a new row if it does not fit."""
        if not self._word or self._width is None:
            return ""
        before, start = self._gap, self._column + self._cells(self._gap)
        if self._breakable and not self._inside and start + cell_len(self._word) > self._width:
            row = self._bars + self._indent
            before, start = "\n" + row, cell_len(row)
        if not self._begun:
            self._begun = True
            self._indent = before if len(before) < self._width // 2 else ""
            self._indent += "  " * (self._word in MARKS)
        self._breakable = self._breakable or self._word not in MARKS
        self._column = start + cell_len(self._word)
        self._inside = True
        put, self._gap, self._word = before + self._word, "", ""
        return put

    def _cells(self, gap: str) -> int:
        column = self._column
        for character in gap:
            column += TAB_COLUMNS - column % TAB_COLUMNS if character == "\t" else cell_len(character)
        return column - self._column
