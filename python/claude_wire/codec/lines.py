"""From checked lines to messages: what a line means, without any state of a stream.

Knows JSON and the messages; not where lines come from, nor what the caller wants done with bad ones. A line that is not
one JSON object raises :class:`BadLine`; everything else becomes a message.

The fast way is one ``decode_lines`` over the union of all messages for a block of lines that were checked natively. It
is sound: between ``}`` and ``{`` JSON allows nothing but a value's end, and msgspec rejects raw line feeds within
strings, so if every line begins with ``{`` and ends with ``}`` and the block holds as many objects as lines, each line
is one object. Any exception, and any other number of objects, sends the block on in pieces. The exception's text says
which line to look at first, and nothing else is read from it: it may say "truncated" of a lone surrogate.
"""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from claude_wire.codec.objects import REFUSED, BadLine, Objects
from claude_wire.messages.invalid import InvalidKind
from claude_wire.native.block import bare_line, line_starts

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Bad", "Bytes", "Lines", "is_utf8"]

Bytes = bytes | memoryview

#: Lines that are decoded at once where a line of their block is odd. With one unknown delta in 200 a line takes 1.25
#: times the instructions that it takes without.
RUN_LINES = 32
#: Blocks that are decoded in such runs after an odd line was met.
WARY_BLOCKS = 4

#: How msgspec says what it refuses: a value by the index of its line, malformed JSON by the byte of the block.
#: Not compiled, which takes longer than the import of most modules; `re` keeps it compiled once it was used.
_PLACE = r"`\$\[(\d{1,9})\]|\(byte (\d{1,9})\)$"


class Bad:
    """Stands in a block for a line that is not one JSON object, and says why as :class:`InvalidLine` does."""

    __slots__ = ("kind", "reason")

    def __init__(self, kind: InvalidKind, reason: str) -> None:
        self.kind: InvalidKind = kind
        self.reason: str = reason


class Lines(Objects, ABC):
    """Turns lines into messages, and counts those that were repaired, and that hold something unknown.

    A block of lines is decoded at once; where one of them is odd, the others at once and that one alone.
    """

    #: What :meth:`_several` raises for lines that it does not take.
    _refusals: tuple[type[Exception], ...] = REFUSED

    def __init__(self, surrogates: str) -> None:
        super().__init__(surrogates)
        #: Lines of blocks that are invalid; who reads it sets it back.
        self.bad: int = 0
        # Blocks that are still to be decoded in runs.
        self._wary = 0

    @abstractmethod
    def _several(self, data: Bytes, count: int) -> list[Any]:
        """The messages of ``count`` checked lines, all at once. Raises one of ``_refusals``, if some line is odd."""

    @abstractmethod
    def line(self, line: bytes) -> Any:
        """The message of one line, checked or not, of valid UTF-8 or not. Raises :class:`BadLine`."""

    @abstractmethod
    def one_line_decoder(self) -> Callable[[bytes], Any] | None:
        """What makes the message of one line of UTF-8, or raises one of :data:`REFUSED`: then it needs :meth:`line`."""

    @abstractmethod
    def fresh(self) -> Self:
        """Another one that makes the same messages, with counters of its own."""

    def _refused(self, line: bytes) -> Any:
        """As :meth:`line`, of a line that :meth:`_several` has refused."""
        return self.line(line)

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
        """The messages of lines of which some are odd; ``refusal`` is what was said of all of them, if they were tried.

        msgspec says which line it refuses. Those before it are decoded once more, at once, then that line alone. What
        is said is a hint and no more: if it is wrong, that takes time only. Where one odd line is, there are often
        more: then the next blocks begin with a few lines.
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
                except self._refusals:  # it is another one
                    odd = first
            line = bare_line(bytes(data[starts[odd] : starts[odd + 1]]))
            try:
                # Whether that line was refused is certain only if it was alone.
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
    """What msgspec says; nothing of others, who may say anything, and fail at it."""
    return str(error) if isinstance(error, msgspec.MsgspecError) else ""


def _line_of(refusal: str, starts: list[int], first: int, last: int) -> int:
    """Which line of a run msgspec refused, by what it says of it; the first if it does not say."""
    found = re.search(_PLACE, refusal)
    if found is None:
        return first
    index, byte = found.groups()
    line = first + int(index) if index else bisect_right(starts, starts[first] + int(byte)) - 1
    return min(max(line, first), last - 1)


def is_utf8(line: Bytes | bytearray | str) -> bool:
    """Whether bytes are UTF-8; false for a str. msgspec does not look at the bytes of fields that it skips."""
    try:
        str(line, "utf-8")  # type: ignore[arg-type]  # a TypeError for a str, which costs less than asking before
    except (UnicodeDecodeError, TypeError):
        return False
    return True
