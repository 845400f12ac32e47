"""Decode lines to typed messages, of a stream or of another vocabulary (such as transcripts).

Mostly the native reader decodes a block: see :mod:`~claude_wire.codec.engines`. This module decodes the lines that it
leaves, single lines, and everything where there is no such reader.

msgspec decodes a block of lines as a union of all top-level types. Two kinds of lines must be decoded a second time:
those whose type has subtypes, such as ``system``, by the Struct of their subtype; and those of unknown types, to a
dict. In the first pass they become a :class:`_Later`, a placeholder that counts how often it is made. So blocks with
such lines stay on the fast way.
"""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Union, cast

import msgspec

from claude_wire.codec.lines import Bytes, Lines, is_utf8
from claude_wire.codec.objects import REFUSED, SURROGATE, BadLine, decode_dict
from claude_wire.messages.base import Wire
from claude_wire.messages.tolerant import Ambiguous, Findings
from claude_wire.messages.union import MESSAGES
from claude_wire.messages.unknown import UnknownMessage
from claude_wire.messages.vocabulary import Vocabulary
from claude_wire.native.block import line_starts

if TYPE_CHECKING:
    from typing_extensions import Self

#: Most unknown top-level types that a process remembers; lines of further types take the slow way.
MAX_LEARNED = 32
#: The longest type that is remembered, in characters. The CLI's have at most 23.
LONGEST_LEARNED = 128

_later_made = itertools.count()


class _Later(msgspec.Struct, frozen=True, gc=False):
    """Placeholder for a line that must be decoded again. A counter, atomic under the GIL, shows that one was made."""

    def __post_init__(self) -> None:
        next(_later_made)


class _Subtyped(_Later, frozen=True, gc=False):
    """The base of the placeholders for types with subtypes."""

    subtype: str


class _Unlisted(_Later, frozen=True, gc=False):
    """The base of the placeholders for unknown top-level types."""


def _stand_in(base: type[_Later], tag: str) -> type[_Later]:
    made = msgspec.defstruct(base.__name__, [], bases=(base,), tag_field="type", tag=tag, frozen=True, gc=False)
    return cast("type[_Later]", made)


def _union_type(later: Iterable[type], vocabulary: Vocabulary) -> Any:
    members = (*vocabulary.by_type.values(), *later)
    return Union[members]


def union_decoder(later: Iterable[type], vocabulary: Vocabulary = MESSAGES) -> msgspec.json.Decoder[Any]:
    """msgspec's decoder for all top-level types of a vocabulary, and for the placeholders ``later``."""
    return msgspec.json.Decoder(_union_type(later, vocabulary))


@cache
def one_line_decoder(vocabulary: Vocabulary) -> Callable[[Bytes | bytearray | str], Any]:
    """The decoder of single lines. It refuses types with subtypes, so the caller need not check the result."""
    return union_decoder((), vocabulary).decode


class UnionDecoder:
    """The decoder for all top-level types of a vocabulary, learned ones included. All streams share it."""

    __slots__ = (
        "_learned",
        "_learning",
        "decode",
        "decode_lines",
        "later",
        "subtyped",
        "vocabulary",
    )

    decode: Callable[[Bytes | bytearray | str], Any]
    decode_lines: Callable[[Bytes], list[Any]]

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._learning = threading.Lock()
        self._learned: set[str] = set()
        self.vocabulary: Vocabulary = vocabulary
        #: Placeholder of a type -> subtype -> class.
        self.subtyped: dict[type, Mapping[str, type[Wire]]] = {
            _stand_in(_Subtyped, tag): classes for tag, classes in vocabulary.by_subtype.items()
        }
        #: All placeholder classes. No user may get an instance.
        self.later: set[type] = set(self.subtyped)
        # Built on first use, not at import: building takes tens of milliseconds.
        self.decode = lambda line: self._build().decode(line)
        self.decode_lines = lambda lines: self._build().decode_lines(lines)

    def _build(self) -> Self:
        decoder = union_decoder(self.later, self.vocabulary)
        self.decode_lines = decoder.decode_lines
        self.decode = decoder.decode
        return self

    def learn(self, tag: str) -> None:
        """Add an unknown type, so that its lines no longer make their blocks fail."""
        if len(tag) > LONGEST_LEARNED or SURROGATE.search(tag):
            return  # a Struct's tag cannot have surrogates
        # Do not wait: another thread is learning; or was when this process was forked, and then never releases it.
        if not self._learning.acquire(blocking=False):
            return
        try:
            if (
                tag not in self._learned
                and tag not in self.vocabulary.by_type
                and tag not in self.vocabulary.by_subtype
                and len(self._learned) < MAX_LEARNED
            ):
                self._learned.add(tag)
                self.later.add(_stand_in(_Unlisted, tag))
                self._build()
        finally:
            self._learning.release()


@cache
def _union_of(vocabulary: Vocabulary) -> UnionDecoder:
    return UnionDecoder(vocabulary)


_union = _union_of(MESSAGES)

#: The placeholders of the message types with subtypes.
SUBTYPED = frozenset(_union.subtyped)


@cache
def _decoder_of(cls: type[Wire]) -> Callable[[Bytes], Any]:
    return msgspec.json.Decoder(cls).decode


class TypedLines(Lines):
    """Lines as typed messages; of a stream if no other vocabulary is given."""

    def __init__(self, surrogates: str, vocabulary: Vocabulary = MESSAGES) -> None:
        super().__init__(surrogates, vocabulary)
        self._vocabulary = vocabulary
        self._union = _union_of(vocabulary)

    def fresh(self) -> Self:
        return type(self)("keep" if self.keep else "replace", self._vocabulary)

    def block(self, data: Bytes, count: int) -> list[Any]:
        read = self.engine.read(data)
        if read is None:
            self.engine.stop_if_broken()
            return super().block(data, count)
        messages, unknown, fallen = read
        self.unknown += unknown
        self.bad: int = 0
        if fallen is not None:
            for index, start, end, wanted in fallen:
                try:
                    messages[index] = self.fallen(bytes(data[start:end]), wanted)
                except BadLine as bad:
                    messages[index] = self._noted(bad)
        return messages

    def _several(self, data: Bytes, count: int) -> list[Any]:
        before = next(_later_made)
        messages = self._union.decode_lines(data)
        if len(messages) != count:
            raise msgspec.DecodeError("not one object on each line")
        if next(_later_made) != before + 1:  # a placeholder was made; if by another thread, the search finds none
            later = self._union.later
            indexes = [index for index, cls in enumerate(map(type, messages)) if cls in later]
            starts = line_starts(data, count)
            for index in indexes:
                try:
                    messages[index] = self._again(messages[index], data[starts[index] : starts[index + 1]])
                except BadLine as bad:
                    messages[index] = self._noted(bad)
        return messages

    def _again(self, later: _Later, line: Bytes) -> Any:
        """Decode a line for which the union gave a placeholder: its JSON is valid, and ``type`` has one value."""
        if not isinstance(later, _Subtyped):
            return self._unlisted(bytes(line))
        cls = self._union.subtyped[type(later)].get(later.subtype)
        if cls is not None:
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
                message = self._union.decode(line)
            except REFUSED:
                pass
            else:
                return self._again(message, line) if type(message) in self._union.later else message
        return self._piecewise(line)

    def _refused(self, line: bytes) -> Any:
        return self._piecewise(line)

    def _piecewise(self, line: bytes) -> Any:
        """Decode a line that msgspec refuses: something is unknown or does not fit, or it is not a JSON object."""
        findings = Findings()
        repaired = self.repaired
        try:
            value, findings.ambiguous = self.noted_object(line)
            if self.repaired != repaired and not findings.ambiguous:
                cls = self._vocabulary.class_of(value, findings)
                if not isinstance(cls, str):
                    try:
                        return msgspec.convert(value, cls)  # perhaps only the surrogates were refused
                    except (*REFUSED, UnicodeEncodeError):
                        pass
            message = self._vocabulary.build(value, findings)
        except Ambiguous as ambiguous:
            raise BadLine("tags", f"{ambiguous.key!r} has two values") from None
        finally:
            self.forget_ambiguous()
        if findings.unknown:
            self.unknown += 1
            if isinstance(message, UnknownMessage) and message.reason == "unknown type" and message.type is not None:
                self._union.learn(message.type)
        return message
