"""From checked lines to messages: what a line means, without any state of a stream.

Knows JSON and the messages; not where lines come from, nor what the caller wants done with bad ones. A line that is not
one JSON object raises :class:`BadLine`; everything else becomes a message.

The fast way is one ``decode_lines`` over the union of all messages for a block of lines that were checked natively. It
is sound: between ``}`` and ``{`` JSON allows nothing but a value's end, and msgspec rejects raw line feeds within
strings, so if every line begins with ``{`` and ends with ``}`` and the block holds as many objects as lines, each line
is one object. Any exception, and any other number of objects, sends the block on in pieces. The exception's text says
which line to look at first, and nothing else is read from it: it may say "truncated" of a lone surrogate.

Some kinds need a second look. Of ``system`` and ``result`` lines the fast way reads only the subtype, and of top-level
types that no table knows nothing: they decode to a :class:`_Later`, whose making is noticed, and their lines are
decoded again, the former by the Struct of their subtype, the latter to a dict. So a stream with such lines never leaves
the fast way.
"""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import re
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union, cast, get_args

import msgspec

from claude_wire._objects import REFUSED, SURROGATE, BadLine, Objects, decode_dict, decode_dict_lines
from claude_wire.framing import line_starts
from claude_wire.messages._base import Wire
from claude_wire.messages._tolerant import Ambiguous, Findings
from claude_wire.messages.invalid import InvalidKind
from claude_wire.messages.message import (
    BY_TYPE,
    RESULT_BY_SUBTYPE,
    SYSTEM_BY_SUBTYPE,
    TypedMessage,
    build_message,
    message_class,
)
from claude_wire.messages.unknown import UnknownMessage

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "REFUSED",
    "SUBTYPED",
    "Bad",
    "BadLine",
    "Bytes",
    "DictLines",
    "Lines",
    "TypedLines",
    "is_utf8",
    "one_line_decoder",
    "union_decoder",
]

M = TypeVar("M")
Bytes = bytes | memoryview

#: At most this many unknown top-level types are remembered in a process; lines of others take the slow way.
MOST_LEARNED = 32
#: The longest type that is remembered, in characters. The CLI's have at most 23.
LONGEST_LEARNED = 128

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
        self.reason = reason


class Lines(Protocol[M]):
    """Turns lines into messages, and counts the lines that were repaired and those that hold something unknown."""

    repaired: int
    unknown: int
    #: Lines of blocks that are invalid; who reads it sets it back.
    bad: int

    def block(self, data: Bytes, count: int) -> list[M | Bad]:
        """The messages of ``count`` checked lines, in order, and a :class:`Bad` in the place of an invalid one."""
        ...

    def line(self, line: bytes) -> M:
        """The message of one line, checked or not, of valid UTF-8 or not. Raises :class:`BadLine`."""
        ...

    def one_line_decoder(self) -> Callable[[bytes], M] | None:
        """What makes the message of one line of UTF-8, or raises one of :data:`REFUSED`: then it needs :meth:`line`."""
        ...

    def fresh(self) -> Self:
        """Another one that makes the same messages, with counters of its own."""
        ...


# --- lines as messages ------------------------------------------------------------------------------------------------

_later_made = itertools.count()


class _Later(msgspec.Struct, frozen=True, gc=False):
    """Stands for a line that must be decoded again. Making one is noticed through a counter, atomic under the GIL."""

    def __post_init__(self) -> None:
        next(_later_made)


class _System(_Later, tag_field="type", tag="system", frozen=True, gc=False):
    subtype: str


class _Result(_Later, tag_field="type", tag="result", frozen=True, gc=False):
    subtype: str


class _Unlisted(_Later, frozen=True, gc=False):
    """The base of the classes made for top-level types that no table knows."""


#: The stand-ins of the types that have subtypes.
SUBTYPED = frozenset({_System, _Result})


def union_decoder(later: Iterable[type]) -> msgspec.json.Decoder[Any]:
    """msgspec's decoder over all top-level types, of which these are stand-ins."""
    members = (*get_args(TypedMessage), *later)
    return msgspec.json.Decoder(Union[members])


@cache
def one_line_decoder() -> Callable[[Bytes | bytearray | str], Any]:
    """The decoder of single lines. It refuses the types that have subtypes, which saves a look at what it returns."""
    return union_decoder(()).decode


class UnionDecoder:
    """The decoder over all top-level types, those learned included. Shared by all streams of the process."""

    __slots__ = ("_learned", "_learning", "decode", "decode_lines", "later")

    decode: Callable[[Bytes | bytearray | str], Any]
    decode_lines: Callable[[Bytes], list[Any]]

    def __init__(self) -> None:
        self._learning = threading.Lock()
        self._learned: set[str] = set()
        #: The classes whose instances must not get out.
        self.later: set[type] = set(SUBTYPED)
        # Building takes tens of milliseconds, which an import should not.
        self.decode = lambda line: self._build().decode(line)
        self.decode_lines = lambda lines: self._build().decode_lines(lines)

    def _build(self) -> Self:
        decoder = union_decoder(self.later)
        self.decode_lines = decoder.decode_lines
        self.decode = decoder.decode
        return self

    def learn(self, tag: str) -> None:
        """From now on a line of this unknown type does not make its block fail."""
        if len(tag) > LONGEST_LEARNED or SURROGATE.search(tag):
            return  # the latter is no tag of a Struct
        # Not worth waiting for: another thread is at it, or was when this process was forked.
        if not self._learning.acquire(blocking=False):
            return
        try:
            if tag not in self._learned and tag not in BY_TYPE and len(self._learned) < MOST_LEARNED:
                made = msgspec.defstruct(
                    "_Unlisted", [], bases=(_Unlisted,), tag_field="type", tag=tag, frozen=True, gc=False
                )
                self._learned.add(tag)
                self.later.add(made)
                self._build()
        finally:
            self._learning.release()


_union = UnionDecoder()


@cache
def _decoder_of(cls: type[Wire]) -> Callable[[Bytes], Any]:
    return msgspec.json.Decoder(cls).decode


class _Blocks(Objects, ABC):
    """Decodes blocks of lines at once, and where one of them is odd, the others at once and that one alone."""

    #: What :meth:`_several` raises for lines that it does not take.
    _refusals: tuple[type[Exception], ...] = REFUSED

    def __init__(self, surrogates: str) -> None:
        super().__init__(surrogates)
        self.bad = 0
        # Blocks that are still to be decoded in runs.
        self._wary = 0

    @abstractmethod
    def _several(self, data: Bytes, count: int) -> list[Any]:
        """The messages of ``count`` checked lines, all at once. Raises one of ``_refusals``, if some line is odd."""

    @abstractmethod
    def line(self, line: bytes) -> Any:
        """See :class:`Lines`."""

    def _refused(self, line: bytes) -> Any:
        """As :meth:`line`, of a line that :meth:`_several` has refused."""
        return self.line(line)

    def block(self, data: Bytes, count: int) -> list[Any]:
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
            line = bytes(data[starts[odd] : starts[odd + 1] - 1]).removesuffix(b"\r")
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


class TypedLines(_Blocks):
    """Lines as the messages of :mod:`claude_wire.messages`."""

    def one_line_decoder(self) -> Callable[[bytes], Any]:
        return one_line_decoder()

    def fresh(self) -> TypedLines:
        return TypedLines("keep" if self.keep else "replace")

    def _several(self, data: Bytes, count: int) -> list[Any]:
        before = next(_later_made)
        messages = _union.decode_lines(data)
        if len(messages) != count:
            raise msgspec.DecodeError("not one object on each line")
        if next(_later_made) != before + 1:  # here, or in another thread: then the search finds none
            later = _union.later
            indexes = [index for index, cls in enumerate(map(type, messages)) if cls in later]
            starts = line_starts(data, count)
            for index in indexes:
                try:
                    messages[index] = self._again(messages[index], data[starts[index] : starts[index + 1]])
                except BadLine as bad:
                    messages[index] = self._noted(bad)
        return messages

    def _again(self, later: _Later, line: Bytes) -> Any:
        """Decode a line that the union has already read once, so its JSON is sound and its ``type`` has one value."""
        if type(later) is _System:
            cls = SYSTEM_BY_SUBTYPE.get(later.subtype)
        elif type(later) is _Result:
            cls = RESULT_BY_SUBTYPE.get(later.subtype)
        else:
            return self._unlisted(bytes(line))
        if cls is not None and not cls.keeps_extra:  # msgspec knows no keys but those of fields
            try:
                return _decoder_of(cls)(line)
            except REFUSED:
                pass
        return self._piecewise(bytes(line))

    def _unlisted(self, line: bytes) -> UnknownMessage:
        try:
            value = decode_dict(line)
        except REFUSED:
            value = self.object(line)
        self.unknown += 1
        return UnknownMessage.because(value, "unknown type")

    def line(self, line: bytes) -> Any:
        if line.lstrip().startswith(b"{") and (line.isascii() or is_utf8(line)):
            try:
                message = _union.decode(line)
            except REFUSED:
                pass
            else:
                return self._again(message, line) if type(message) in _union.later else message
        return self._piecewise(line)

    def _refused(self, line: bytes) -> Any:
        return self._piecewise(line)

    def _piecewise(self, line: bytes) -> Any:
        """A line that msgspec refuses: something in it is unknown or does not fit, or it is no JSON object at all."""
        findings = Findings()
        repaired = self.repaired
        value, findings.ambiguous = self.noted_object(line)
        try:
            if self.repaired != repaired and not findings.ambiguous:
                cls = message_class(value, findings)
                if not isinstance(cls, str) and not cls.keeps_extra:
                    try:
                        return msgspec.convert(value, cls)  # perhaps the surrogates are all that is odd
                    except (*REFUSED, UnicodeEncodeError):
                        pass
            message = build_message(value, findings)
        except Ambiguous as ambiguous:
            raise BadLine("tags", f"{ambiguous.key!r} has two values") from None
        if findings.unknown:
            self.unknown += 1
            if isinstance(message, UnknownMessage) and message.reason == "unknown type" and message.type is not None:
                _union.learn(message.type)
        return message


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


# --- lines as dicts ---------------------------------------------------------------------------------------------------


class DictLines(_Blocks):
    """Lines as plain dicts, by msgspec or by the caller's ``loads``."""

    def __init__(self, surrogates: str, loads: Callable[[bytes], Any] | None) -> None:
        super().__init__(surrogates)
        self._loads = loads
        if loads is not None:
            self._refusals = (Exception,)  # whatever it is: no line may be lost for it

    def one_line_decoder(self) -> Callable[[bytes], dict[str, Any]] | None:
        return decode_dict if self._loads is None else None

    def fresh(self) -> DictLines:
        return DictLines("keep" if self.keep else "replace", self._loads)

    def _several(self, data: Bytes, count: int) -> list[dict[str, Any]]:
        objects = decode_dict_lines(data) if self._loads is None else self._loaded(bytes(data))
        if len(objects) != count:
            raise msgspec.DecodeError("not one object on each line")
        return objects

    def line(self, line: bytes) -> dict[str, Any]:
        if self._loads is not None and is_utf8(line):
            try:
                return self._loaded(line)[0]
            except self._refusals:
                pass
        return self.object(line)

    def _loaded(self, data: bytes) -> list[dict[str, Any]]:
        """Lines by ``loads``. Raises ValueError for what that refuses or may read otherwise than is asked."""
        if not self.keep and b"\\u" in data:
            raise ValueError("surrogates, perhaps, which are to be replaced")
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        values = list(map(cast("Callable[[bytes], Any]", self._loads), lines))
        if not all(issubclass(cls, dict) for cls in set(map(type, values))):
            raise ValueError("not an object")
        return values
