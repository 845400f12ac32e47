"""Lines as typed messages, of one vocabulary or another.

Some kinds need a second look. Of lines whose type has subtypes, such as ``system``, the fast way reads only the
subtype, and of top-level types that no table knows nothing: they decode to a :class:`_Later`, whose making is noticed,
and their lines are decoded again, the former by the Struct of their subtype, the latter to a dict. So a stream with
such lines never leaves the fast way.
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

__all__ = ["SUBTYPED", "TypedLines", "one_line_decoder", "union_decoder"]

#: At most this many unknown top-level types are remembered in a process; lines of others take the slow way.
MAX_LEARNED = 32
#: The longest type that is remembered, in characters. The CLI's have at most 23.
LONGEST_LEARNED = 128

#: What a line with something unknown counts for: as many good lines as lose by being looked through what it gains.
ODD = 6
#: From here on lines are looked through, and so many good ones at most may follow until they no longer are.
ODD_ENOUGH = 2 * ODD
MAX_ODD = 96
#: Odd lines that count for nothing after one that cannot be looked through.
STRICT_LINES = 16 * ODD

#: Lines that are decoded twice until blocks are sorted, which goes on up to the first block without such lines: sorting
#: takes 5% of the time of a block. A session of nothing but deltas has three such lines. Of recorded sessions a line
#: takes 0.88 of the time that it takes without sorting.
ENOUGH_TWICE = 4
#: Blocks of fewer lines are not sorted: it takes as long as such a line does.
FEW_LINES = 4

_later_made = itertools.count()


class _Later(msgspec.Struct, frozen=True, gc=False):
    """Stands for a line that must be decoded again. Making one is noticed through a counter, atomic under the GIL."""

    def __post_init__(self) -> None:
        next(_later_made)


class _Subtyped(_Later, frozen=True, gc=False):
    """The base of the stand-ins for types that have subtypes."""

    subtype: str


class _Unlisted(_Later, frozen=True, gc=False):
    """The base of the classes made for top-level types that no table knows."""


def _stand_in(base: type[_Later], tag: str) -> type[_Later]:
    made = msgspec.defstruct(base.__name__, [], bases=(base,), tag_field="type", tag=tag, frozen=True, gc=False)
    return cast("type[_Later]", made)


def _union_type(later: Iterable[type], vocabulary: Vocabulary) -> Any:
    members = (*vocabulary.by_type.values(), *later)
    return Union[members]


def union_decoder(later: Iterable[type], vocabulary: Vocabulary = MESSAGES) -> msgspec.json.Decoder[Any]:
    """msgspec's decoder over all top-level types of a vocabulary, of which these are stand-ins."""
    return msgspec.json.Decoder(_union_type(later, vocabulary))


@cache
def one_line_decoder(vocabulary: Vocabulary) -> Callable[[Bytes | bytearray | str], Any]:
    """The decoder of single lines. It refuses the types that have subtypes, which saves a look at what it returns."""
    return union_decoder((), vocabulary).decode


class UnionDecoder:
    """The decoder over all top-level types of a vocabulary, those learned included. All its streams share it."""

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
        #: The classes that a type's stand-in stands for, by their subtypes.
        self.subtyped: dict[type, Mapping[str, type[Wire]]] = {
            _stand_in(_Subtyped, tag): classes for tag, classes in vocabulary.by_subtype.items()
        }
        #: The same by type and subtype, those that msgspec alone can decode, as it knows no keys but those of fields.
        self.claims: dict[tuple[bytes, bytes], type[Wire]] = {
            (tag.encode(), subtype.encode()): cls
            for tag, classes in vocabulary.by_subtype.items()
            for subtype, cls in classes.items()
            if not cls.keeps_extra
        }
        self.subtyped_names: bytes = "\n".join(vocabulary.by_subtype).encode()
        #: The classes whose instances must not get out.
        self.later: set[type] = set(self.subtyped)
        # Building takes tens of milliseconds, which an import should not.
        self.decode = lambda line: self._build().decode(line)
        self.decode_lines = lambda lines: self._build().decode_lines(lines)
        self._lines = None

    def convert(self, values: list[dict[str, Any]]) -> list[Any]:
        """What the lines with these objects decode to. Raises one of :data:`REFUSED`."""
        if self._lines is None:  # what a Struct holds is looked up once, a union each time
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
        """From now on a line of this unknown type does not make its block fail."""
        if len(tag) > LONGEST_LEARNED or SURROGATE.search(tag):
            return  # the latter is no tag of a Struct
        # Not worth waiting for: another thread is at it, or was when this process was forked.
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

#: The stand-ins of the messages' types that have subtypes.
SUBTYPED = frozenset(_union.subtyped)


@cache
def _decoder_of(cls: type[Wire]) -> Callable[[Bytes], Any]:
    return msgspec.json.Decoder(cls).decode


@cache
def _lines_decoder_of(cls: type[Wire]) -> Callable[[Bytes], list[Any]]:
    return msgspec.json.Decoder(cls).decode_lines


#: Those that no block is sorted with now. There are as many as threads decode at once.
_sorters: list[Sorter] = []


class TypedLines(Lines):
    """Lines as typed messages, those of a stream if no other vocabulary is given."""

    def __init__(self, surrogates: str, vocabulary: Vocabulary = MESSAGES) -> None:
        super().__init__(surrogates)
        self._vocabulary = vocabulary
        self._union = _union_of(vocabulary)
        self._places = Places()
        # Rises with each line that has something unknown in it, and falls with each that has not.
        self._odd = 0
        # Lines that were decoded twice since a block was sorted for nothing.
        self._twice = 0

    def one_line_decoder(self) -> Callable[[bytes], Any]:
        return one_line_decoder(self._vocabulary)

    def fresh(self) -> Self:
        return type(self)("keep" if self.keep else "replace", self._vocabulary)

    def block(self, data: Bytes, count: int) -> list[Any]:
        if self._twice < ENOUGH_TWICE or count < FEW_LINES or len(data) > BLOCK_BYTES:
            return super().block(data, count)
        try:
            sorter = _sorters.pop()  # another thread may be here, too, and has taken others
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
        """The messages of lines that claim to be of one type and subtype.

        The class checks both, at each place where they stand in the line. For a subtype that has no class of its own
        it is looked up what the type has.
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
        if next(_later_made) != before + 1:  # here, or in another thread: then the search finds none
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
        """As the union decodes them, lines of which many have something unknown where others had it before."""
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
        """Decode a line that the union has already read once, so its JSON is sound and its ``type`` has one value."""
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
        """A line that msgspec refuses: something in it is unknown or does not fit, or it is no JSON object at all."""
        findings = Findings()
        repaired = self.repaired
        try:
            value, findings.ambiguous = self.noted_object(line)
            if self.repaired != repaired and not findings.ambiguous:
                cls = self._vocabulary.class_of(value, findings)
                if not isinstance(cls, str) and not cls.keeps_extra:
                    try:
                        return msgspec.convert(value, cls)  # perhaps the surrogates are all that is odd
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
        """Remember where a message has something unknown. Messages told apart by their subtype are left out."""
        looking = self._odd >= ODD_ENOUGH
        self._odd = min(self._odd + ODD, MAX_ODD)
        tag = value.get("type")
        if tag in self._vocabulary.by_type and (looking or not self._places.knows(tag)):
            self._places.learn(tag, message, findings.unknown)
