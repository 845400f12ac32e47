"""Decode lines to typed messages, of a stream or of another vocabulary (such as transcripts).

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
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Union, cast

import msgspec

from claude_wire.codec.engines import engine_of
from claude_wire.codec.lines import Bytes, Lines, is_utf8
from claude_wire.codec.objects import REFUSED, SURROGATE, BadLine, decode_dict, decode_unambiguous_lines
from claude_wire.codec.sorted_lines import Group, Sorter
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages.base import Wire
from claude_wire.messages.places import Places, put
from claude_wire.messages.tolerant import Ambiguous, Findings
from claude_wire.messages.union import MESSAGES
from claude_wire.messages.unknown import UnknownMessage
from claude_wire.messages.vocabulary import Vocabulary
from claude_wire.native.block import bare_line, line_starts, split_lines

if TYPE_CHECKING:
    from typing_extensions import Self

#: Most unknown top-level types that a process remembers; lines of further types take the slow way.
MAX_LEARNED = 32
#: The longest type that is remembered, in characters. The CLI's have at most 23.
LONGEST_LEARNED = 128

#: Weight of one line with unknown content. `_looked_through` decodes such a line faster, and normal lines more slowly:
#: one such line saves the time that six normal lines lose. So the score `_odd` rises by 6 for it, and falls by 1 for a
#: normal line.
ODD = 6
#: Score from which blocks are decoded by `_looked_through`; and the highest score, which limits the number of normal
#: lines until this ends.
ODD_ENOUGH = 2 * ODD
MAX_ODD = 96
#: Negative score after a block that `_looked_through` refuses. The next 16 lines with unknown content only make up for
#: it; a block without any resets it to 0.
STRICT_LINES = 16 * ODD

#: After this many lines that were decoded twice, blocks are sorted by subtype, up to the first block without such
#: lines. Sorting takes 5% of the time of a block. A session of nothing but deltas has three such lines. In recorded
#: sessions a line takes 0.88 of its time without sorting.
ENOUGH_TWICE = 4
#: Smaller blocks are not sorted: sorting takes as long as decoding a line twice.
FEW_LINES = 4

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
        "_lines",
        "claims",
        "decode",
        "decode_lines",
        "later",
        "subtyped",
        "subtyped_names",
        "vocabulary",
    )

    decode: Callable[[Bytes | bytearray | str], Any]
    decode_lines: Callable[[Bytes], list[Any]]
    _lines: Any

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._learning = threading.Lock()
        self._learned: set[str] = set()
        self.vocabulary: Vocabulary = vocabulary
        #: Placeholder of a type -> subtype -> class.
        self.subtyped: dict[type, Mapping[str, type[Wire]]] = {
            _stand_in(_Subtyped, tag): classes for tag, classes in vocabulary.by_subtype.items()
        }
        #: Type and subtype -> class, for classes that msgspec can decode alone. A class that keeps keys without a field
        #: is not among them.
        self.claims: dict[tuple[bytes, bytes], type[Wire]] = {
            (tag.encode(), subtype.encode()): cls
            for tag, classes in vocabulary.by_subtype.items()
            for subtype, cls in classes.items()
            if not cls.keeps_extra
        }
        self.subtyped_names: bytes = "\n".join(vocabulary.by_subtype).encode()
        #: All placeholder classes. No user may get an instance.
        self.later: set[type] = set(self.subtyped)
        # Built on first use, not at import: building takes tens of milliseconds.
        self.decode = lambda line: self._build().decode(line)
        self.decode_lines = lambda lines: self._build().decode_lines(lines)
        self._lines = None

    def convert(self, values: list[dict[str, Any]]) -> list[Any]:
        """Convert dicts to messages, as decoding their lines would. Raises one of :data:`REFUSED`."""
        if self._lines is None:  # msgspec analyses a union at each call, but the fields of a Struct only once
            line = _union_type(tuple(self.later), self.vocabulary)
            self._lines = msgspec.defstruct("Lines", [("lines", types.GenericAlias(list, line))])
        return cast("list[Any]", msgspec.convert({"lines": values}, self._lines).lines)

    def _build(self) -> Self:
        self._lines = None
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


@cache
def _lines_decoder_of(cls: type[Wire]) -> Callable[[Bytes], list[Any]]:
    return msgspec.json.Decoder(cls).decode_lines


#: Sorters that no thread uses at the moment. There are as many as threads have decoded at once.
_sorters: list[Sorter] = []


class TypedLines(Lines):
    """Lines as typed messages; of a stream if no other vocabulary is given."""

    def __init__(self, surrogates: str, vocabulary: Vocabulary = MESSAGES) -> None:
        super().__init__(surrogates)
        self._vocabulary = vocabulary
        self._union = _union_of(vocabulary)
        self._engine = engine_of(vocabulary)
        self._places = Places()
        # Score: rises with each line with unknown content, and falls with each other line. See ODD.
        self._odd = 0
        # Number of lines that were decoded twice, since sorting a block last found no line to pick.
        self._twice = 0

    def one_line_decoder(self) -> Callable[[bytes], Any]:
        return one_line_decoder(self._vocabulary)

    def fresh(self) -> Self:
        return type(self)("keep" if self.keep else "replace", self._vocabulary)

    def block(self, data: Bytes, count: int) -> list[Any]:
        read = self._engine.read(data)
        if read is None:
            return self._msgspec_block(data, count)
        messages, unknown, fallen = read
        self.unknown += unknown
        self.bad: int = 0
        if fallen is not None:
            for index, start, end, wanted in fallen:
                line = bytes(data[start:end])
                messages[index] = message = self._alone(line)
                if wanted >= 0:
                    self._engine.plan(wanted, line, message)
        return messages

    def _msgspec_block(self, data: Bytes, count: int) -> list[Any]:
        if self._twice < ENOUGH_TWICE or count < FEW_LINES or len(data) > BLOCK_BYTES:
            return super().block(data, count)
        try:
            sorter = _sorters.pop()  # so that no other thread uses the same object
        except IndexError:
            sorter = Sorter()
        if sorter.sort(data, self._union.subtyped_names):
            messages = self._sorted(sorter, count)
        else:
            self._twice = 0
            messages = super().block(data, count)
        _sorters.append(sorter)
        return messages

    def _sorted(self, sorter: Sorter, count: int) -> list[Any]:
        """The messages of the sorted lines of a block, each in its place."""
        self.bad = 0
        rest = count - len(sorter.picked)
        messages = super().block(sorter.rest, rest) if rest else []
        found = [iter(self._claimed(group)) for group in sorter.groups]
        for line, group in sorter.picked:
            messages.insert(line, next(found[group]))
        return messages

    def _claimed(self, group: Group) -> list[Any]:
        """The messages of lines that claim the same type and subtype.

        Decoding by the class checks both tags, wherever they occur in the line. Without a class for the subtype, the
        vocabulary builds the messages from plain dicts.
        """
        claim, data, count = group
        cls = self._union.claims.get(claim)
        try:
            if cls is not None:
                messages = _lines_decoder_of(cls)(data)
                if len(messages) == count:
                    return messages
            else:
                return list(map(self._built, decode_unambiguous_lines(bytes(data), count)))
        except REFUSED:
            pass
        return list(map(self._alone, split_lines(bytes(data))))

    def _built(self, value: dict[str, Any]) -> Any:
        findings = Findings()
        message = self._vocabulary.build(value, findings)
        self.unknown += bool(findings.unknown)
        return message

    def _alone(self, line: bytes) -> Any:
        try:
            return self.line(bare_line(line))
        except BadLine as bad:
            return self._noted(bad)

    def _several(self, data: Bytes, count: int) -> list[Any]:
        before = next(_later_made)
        if self._odd >= ODD_ENOUGH and len(data) <= BLOCK_BYTES:
            messages = self._looked_through(data, count)
        else:
            messages = self._union.decode_lines(data)
            if len(messages) != count:
                raise msgspec.DecodeError("not one object on each line")
            if self._odd:
                self._odd = max(self._odd - count, 0)
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

    def _looked_through(self, data: Bytes, count: int) -> list[Any]:
        """Decode lines of which many have unknown content at known places: take it out, convert, and put it back."""
        try:
            values = decode_unambiguous_lines(bytes(data), count)
        except REFUSED:
            self._odd = -STRICT_LINES
            raise
        taken, odd = self._places.take(values)
        messages = self._union.convert(values)
        put(messages, taken)
        self._odd = min(max(self._odd + ODD * odd - count, 0), MAX_ODD)
        self._wary = 0
        self.unknown += odd
        return messages

    def _again(self, later: _Later, line: Bytes) -> Any:
        """Decode a line for which the union gave a placeholder: its JSON is valid, and ``type`` has one value."""
        if not isinstance(later, _Subtyped):
            return self._unlisted(bytes(line))
        self._twice += 1
        cls = self._union.subtyped[type(later)].get(later.subtype)
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
                if not isinstance(cls, str) and not cls.keeps_extra:
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
            if not isinstance(message, UnknownMessage):
                self._met(value, message, findings)
            elif message.reason == "unknown type" and message.type is not None:
                self._union.learn(message.type)
        return message

    def _met(self, value: dict[str, Any], message: Wire, findings: Findings) -> None:
        """Remember where a message has unknown content. Not for messages of types with subtypes."""
        looking = self._odd >= ODD_ENOUGH
        self._odd = min(self._odd + ODD, MAX_ODD)
        tag = value.get("type")
        if tag in self._vocabulary.by_type and (looking or not self._places.knows(tag)):
            self._places.learn(tag, message, findings.unknown)
