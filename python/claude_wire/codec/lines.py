"""Turn lines into messages, a block of lines at a time.

A line that is not one JSON object raises :class:`BadLine`, or becomes a :class:`Bad` in its block; every other line
becomes a message.

The fast way decodes a whole block with one call of msgspec's ``decode_lines``. Why each line is then one object: the
native library has checked that every line begins with ``{`` and ends with ``}``; msgspec rejects raw line feeds within
strings; and the number of objects equals the number of lines. After an exception, or with another number of objects,
the block is decoded in pieces. The text of the exception only hints which line to try alone; its reason is not used,
since msgspec says "truncated" for a lone surrogate.
"""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import msgspec

from claude_wire.codec.engines import Engine, engine_of
from claude_wire.codec.objects import REFUSED, BadLine, Objects
from claude_wire.messages.invalid import InvalidKind
from claude_wire.messages.vocabulary import Vocabulary
from claude_wire.native.block import bare_line, line_starts

if TYPE_CHECKING:
    from typing_extensions import Self

Bytes = bytes | memoryview

#: Lines that are decoded at once in a block with a line that msgspec refuses. With one unknown delta in 200 lines, a
#: line takes 1.25 times the instructions of a line in a block without.
RUN_LINES = 32
#: Number of blocks that are decoded in such runs after a refused line.
WARY_BLOCKS = 4

#: Finds the place in an error message of msgspec: the index of the line for a wrong value, the byte in the block for
#: malformed JSON. Not compiled at import, which would take longer than importing most modules; `re` caches it.
_PLACE = r"`\$\[(\d{1,9})\]|\(byte (\d{1,9})\)$"


class Bad:
    """Takes the place of a line of a block that is not one JSON object; with a reason as in :class:`InvalidLine`."""

    __slots__ = ("kind", "reason")

    def __init__(self, kind: InvalidKind, reason: str) -> None:
        self.kind: InvalidKind = kind
        self.reason: str = reason


class Lines(Objects, ABC):
    """Turns lines into messages. Counts lines with lone surrogates, and lines with unknown content.

    A block of lines is decoded at once. If one line is refused, it is decoded alone, and the others at once.
    """

    #: Exceptions by which :meth:`_several` refuses lines.
    _refusals: tuple[type[Exception], ...] = REFUSED

    def __init__(self, surrogates: str, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(surrogates)
        #: Reads lines natively.
        self.engine: Engine = engine_of(vocabulary)
        #: Number of invalid lines in the last block. The reader sets it to 0.
        self.bad: int = 0
        # Number of blocks that are still to be decoded in runs.
        self._wary = 0

    @abstractmethod
    def _several(self, data: Bytes, count: int) -> list[Any]:
        """Decode ``count`` checked lines at once. Raises one of ``_refusals`` if any line needs to be decoded alone."""

    @abstractmethod
    def line(self, line: bytes) -> Any:
        """The message of one line, checked or not, of valid UTF-8 or not. Raises :class:`BadLine`."""

    @abstractmethod
    def fresh(self) -> Self:
        """Return a new object that makes the same messages, with its own counters."""

    def _refused(self, line: bytes) -> Any:
        """Decode a line that :meth:`_several` has refused."""
        return self.line(line)

    def fallen(self, line: bytes, wanted: int) -> Any:
        """The message of a line that the native reader left; ``wanted`` is the class to plan, or -1. Raises BadLine."""
        message = self.line(bare_line(line))
        if wanted >= 0:
            self.engine.plan(wanted, line, message)
        return message

    def block(self, data: Bytes, count: int) -> list[Any]:
        """The messages of ``count`` checked lines, in order, and a :class:`Bad` in the place of an invalid one."""
        self.bad = 0
        refusal: str | None = None
        if not self._wary:
            try:
                return self._several(data, count)
            except self._refusals as error:
                refusal = _said(error)
        return self._in_runs(data, count, refusal)

    def _in_runs(self, data: Bytes, count: int, refusal: str | None) -> list[Any]:
        """Decode a block in which msgspec refuses some lines.

        msgspec's error names the refused line. Decode the lines before it again, at once, then that line alone. If the
        hint is wrong, only time is lost. Refused lines often come together, so the next blocks are decoded in runs.

        Args:
            refusal: the error for the whole block; None if it was not tried.
        """
        starts = line_starts(data, count)
        messages: list[Any] = []
        first, size = 0, RUN_LINES if refusal is None else count
        self._wary = max(self._wary - 1, 0)
        while first < count:
            last = min(first + size, count)
            if refusal is None:
                try:
                    messages += self._run(data, starts, first, last)
                    first, size = last, min(2 * size, RUN_LINES)
                    continue
                except self._refusals as error:
                    refusal = _said(error)
                    self._wary = WARY_BLOCKS
            odd = first if last == first + 1 else _line_of(refusal, starts, first, last)
            refusal = None
            if odd > first:
                try:
                    messages += self._run(data, starts, first, odd)
                except self._refusals:  # the hint was wrong: the refused line comes earlier
                    odd = first
            line = bare_line(bytes(data[starts[odd] : starts[odd + 1]]))
            try:
                # Only a line that was tried alone is certainly refused.
                messages.append(self._refused(line) if last == first + 1 else self.line(line))
            except BadLine as bad:
                messages.append(self._noted(bad))
            first, size = odd + 1, min(max(2 * (odd - first), 1), RUN_LINES)
        return messages

    def _run(self, data: Bytes, starts: list[int], first: int, last: int) -> list[Any]:
        # A copy: a view of native memory must not outlive it in the traceback of an exception.
        return self._several(bytes(data[starts[first] : starts[last]]), last - first)

    def _noted(self, bad: BadLine) -> Bad:
        self.bad += 1
        return Bad(bad.kind, bad.reason)


def _said(error: Exception) -> str:
    """The text of an error of msgspec; empty for others: a user's ``loads`` may raise anything, even in ``str()``."""
    return str(error) if isinstance(error, msgspec.MsgspecError) else ""


def _line_of(refusal: str, starts: list[int], first: int, last: int) -> int:
    """The index of the line that msgspec refused, according to its error; the first line if it names none."""
    found = re.search(_PLACE, refusal)
    if found is None:
        return first
    index, byte = found.groups()
    line = first + int(index) if index else bisect_right(starts, starts[first] + int(byte)) - 1
    return min(max(line, first), last - 1)


def is_utf8(line: Bytes | bytearray | str) -> bool:
    """True if bytes are UTF-8; False for a str. msgspec does not check the bytes of fields that it skips."""
    try:
        str(line, "utf-8")  # type: ignore[arg-type]  # raises TypeError for a str, which costs less than a test
    except (UnicodeDecodeError, TypeError):
        return False
    return True
