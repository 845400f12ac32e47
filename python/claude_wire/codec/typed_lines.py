"""Lines as the messages of :mod:`claude_wire.messages`.

Some kinds need a second look. Of ``system`` and ``result`` lines the fast way reads only the subtype, and of top-level
types that no table knows nothing: they decode to a :class:`_Later`, whose making is noticed, and their lines are
decoded again, the former by the Struct of their subtype, the latter to a dict. So a stream with such lines never leaves
the fast way.
"""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Union, get_args

import msgspec

from claude_wire.codec.lines import Bytes, Lines, is_utf8
from claude_wire.codec.objects import REFUSED, SURROGATE, BadLine, decode_dict
from claude_wire.messages.base import Wire
from claude_wire.messages.tolerant import Ambiguous, Findings
from claude_wire.messages.union import (
    BY_TYPE,
    RESULT_BY_SUBTYPE,
    SYSTEM_BY_SUBTYPE,
    TypedMessage,
    build_message,
    message_class,
)
from claude_wire.messages.unknown import UnknownMessage
from claude_wire.native.block import line_starts

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["SUBTYPED", "TypedLines", "one_line_decoder", "union_decoder"]

#: At most this many unknown top-level types are remembered in a process; lines of others take the slow way.
MOST_LEARNED = 32
#: The longest type that is remembered, in characters. The CLI's have at most 23.
LONGEST_LEARNED = 128

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


class TypedLines(Lines):
    """Lines as the messages of :mod:`claude_wire.messages`."""

    def one_line_decoder(self) -> Callable[[bytes], Any]:
        return one_line_decoder()

    def fresh(self) -> Self:
        return type(self)("keep" if self.keep else "replace")

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
        try:
            value, findings.ambiguous = self.noted_object(line)
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
        finally:
            self.forget_ambiguous()
        if findings.unknown:
            self.unknown += 1
            if isinstance(message, UnknownMessage) and message.reason == "unknown type" and message.type is not None:
                _union.learn(message.type)
        return message
