"""From checked lines to messages: what a line means, without any state of a stream.

Knows JSON and the messages; not where lines come from, nor what the caller wants done with bad ones. A line that is not
one JSON object raises :class:`BadLine`; everything else becomes a message.

The fast way is one ``decode_lines`` over the union of all messages for a block of lines that were checked natively. It
is sound: between ``}`` and ``{`` JSON allows nothing but a value's end, and msgspec rejects raw line feeds within
strings, so if every line begins with ``{`` and ends with ``}`` and the block holds as many objects as lines, each line
is one object. Any exception, and any other number of objects, sends the block line by line. The exception's text is
never read: it may say "truncated" of a lone surrogate.

Some kinds need a second look. Of ``system`` and ``result`` lines the fast way reads only the subtype, and of top-level
types that no table knows nothing: they decode to a :class:`_Later`, whose making is noticed, and their lines are
decoded again, the former by the Struct of their subtype, the latter to a dict. So a stream with such lines never leaves
the fast way.
"""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union, get_args

import msgspec

from claude_wire.framing import line_starts
from claude_wire.messages._base import Wire
from claude_wire.messages._tolerant import Ambiguities, Ambiguous, Findings
from claude_wire.messages.message import (
    BY_TYPE,
    RESULT_BY_SUBTYPE,
    SYSTEM_BY_SUBTYPE,
    TypedMessage,
    build_message,
)
from claude_wire.messages.unknown import UnknownMessage

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["REFUSED", "SUBTYPED", "BadLine", "Bytes", "DictLines", "Lines", "TypedLines", "union_decoder"]

M = TypeVar("M")
Bytes = bytes | memoryview

#: What msgspec raises for input it does not take; MsgspecError covers DecodeError and ValidationError.
REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

#: At most this many unknown top-level types are remembered in a process; lines of others take the slow way.
MOST_LEARNED = 32


class BadLine(Exception):
    """A line that is not one JSON object; ``reason`` says why, without any of its content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Lines(Protocol[M]):
    """Turns lines into messages, and counts the lines that were repaired and those that hold something unknown."""

    repaired: int
    unknown: int

    def block(self, data: Bytes, count: int) -> list[M] | None:
        """The messages of ``count`` checked lines, in order, or None if some line needs :meth:`line`."""
        ...

    def line(self, line: bytes) -> M:
        """The message of one line, checked or not, of valid UTF-8 or not. Raises :class:`BadLine`."""
        ...

    def one_line_decoder(self) -> Callable[[bytes], M] | None:
        """What makes the message of one line of ASCII, or raises one of :data:`REFUSED`: then it needs :meth:`line`."""
        ...

    def fresh(self) -> Self:
        """Another one that makes the same messages, with counters of its own."""
        ...


# --- JSON objects, strictly, with surrogates --------------------------------------------------------------------------

_decode_any = msgspec.json.Decoder().decode
_KINDS = {
    list: "an array",
    str: "a string",
    bool: "true or false",
    type(None): "null",
    int: "a number",
    float: "a number",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse_constant(name: str) -> Any:
    raise BadLine(f"not JSON: {name} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise BadLine("a number is out of range")
    return number


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # sys.get_int_max_str_digits
        raise BadLine("a number is out of range") from None


def _noting(ambiguous: Ambiguities) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """A hook for :mod:`json` that makes dicts as usual, and notes the keys that had two different values."""

    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            ambiguous[id(made)] = made, {key for key, value in pairs if value != made[key]}
        return made

    return make


_NUMBERS: dict[str, Any] = {"parse_constant": _refuse_constant, "parse_float": _finite, "parse_int": _whole}
_strict = json.JSONDecoder(**_NUMBERS)


def _without_surrogates(value: Any) -> Any:
    """The value with each lone surrogate replaced; lists and dicts are changed in place, for they are known by id."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        value[:] = [_without_surrogates(item) for item in value]
    elif isinstance(value, dict):
        items = [(_without_surrogates(key), _without_surrogates(item)) for key, item in value.items()]
        value.clear()
        value.update(items)
    return value


class _Objects:
    """Reads JSON objects as plain dicts, with lone surrogates kept or replaced; the base of both kinds of lines."""

    def __init__(self, surrogates: str) -> None:
        if surrogates not in ("keep", "replace"):
            raise ValueError(f"surrogates must be 'keep' or 'replace', not {surrogates!r}")
        self.keep = surrogates == "keep"
        self.repaired = 0
        self.unknown = 0

    def _object(self, line: bytes, decoder: json.JSONDecoder | None = None) -> dict[str, Any]:
        """The JSON object of a line. With a ``decoder`` msgspec is not tried first. Raises :class:`BadLine`."""
        try:
            text = str(line, "utf-8")
        except UnicodeDecodeError as error:
            raise BadLine(f"not UTF-8 at byte {error.start} of the line") from None
        value: Any
        try:
            if decoder is None:
                try:
                    value = _decode_any(text)
                except msgspec.MsgspecError:
                    value = self._surrogate_object(text, _strict)
            else:
                value = self._surrogate_object(text, decoder)
        except RecursionError:
            raise BadLine("nested too deeply") from None
        if type(value) is not dict:
            raise BadLine(f"not an object but {_KINDS[type(value)]}")
        return value

    def _surrogate_object(self, text: str, decoder: json.JSONDecoder) -> Any:
        """What json reads and msgspec may not have: a lone surrogate is the one thing it takes and msgspec refuses."""
        try:
            value = decoder.decode(text.strip(" \t\r\n"))
        except json.JSONDecodeError as error:
            problem = error.msg.removesuffix(" at")
            raise BadLine(f"not JSON: {problem} at character {error.pos} of the line") from None
        if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            self.repaired += 1
            if not self.keep:
                value = _without_surrogates(value)
        return value


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
        if _SURROGATE.search(tag):
            return  # no tag of a Struct
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


class TypedLines(_Objects):
    """Lines as the messages of :mod:`claude_wire.messages`."""

    def __init__(self, surrogates: str) -> None:
        super().__init__(surrogates)
        # Making a decoder takes as long as decoding a line with it; most streams never need it.
        self._noting_decoder: json.JSONDecoder | None = None
        self._ambiguous: Ambiguities = {}

    def one_line_decoder(self) -> Callable[[bytes], Any]:
        return one_line_decoder()

    def fresh(self) -> TypedLines:
        return TypedLines("keep" if self.keep else "replace")

    def block(self, data: Bytes, count: int) -> list[Any] | None:
        if count == 1:
            try:
                message = _union.decode(data)
                return [self._again(message, data) if type(message) in _union.later else message]
            except (*REFUSED, BadLine):
                return None
        before = next(_later_made)
        try:
            messages = _union.decode_lines(data)
        except REFUSED:
            return None
        if len(messages) != count:
            return None
        if next(_later_made) != before + 1:  # here, or in another thread: then the search finds none
            return self._look_again(messages, data)
        return messages

    def _look_again(self, messages: list[Any], data: Bytes) -> list[Any] | None:
        later = _union.later
        indexes = [index for index, cls in enumerate(map(type, messages)) if cls in later]
        counted = self.unknown, self.repaired
        try:
            starts = line_starts(data, len(messages))
            for index in indexes:
                messages[index] = self._again(messages[index], data[starts[index] : starts[index + 1]])
        except BadLine:
            self.unknown, self.repaired = counted  # all lines will be counted again
            return None
        return messages

    def _again(self, later: _Later, line: Bytes) -> Any:
        """Decode a line that the union has already read once, so its JSON is sound and its ``type`` has one value."""
        if type(later) is _System:
            cls = SYSTEM_BY_SUBTYPE.get(later.subtype)
        elif type(later) is _Result:
            cls = RESULT_BY_SUBTYPE.get(later.subtype)
        else:
            return self._unlisted(bytes(line))
        if cls is not None:
            try:
                return _decoder_of(cls)(line)
            except REFUSED:
                pass
        return self._piecewise(bytes(line))

    def _unlisted(self, line: bytes) -> UnknownMessage:
        try:
            value = _decode_dict(line)
        except REFUSED:
            value = self._object(line)
        self.unknown += 1
        return UnknownMessage.because(value, "unknown type")

    def line(self, line: bytes) -> Any:
        if line.isascii() or _is_utf8(line):
            try:
                message = _union.decode(line)
            except REFUSED:
                pass
            else:
                return self._again(message, line) if type(message) in _union.later else message
        return self._piecewise(line)

    def _piecewise(self, line: bytes) -> Any:
        """A line that msgspec refuses: something in it is unknown or does not fit, or it is no JSON object at all."""
        findings = Findings()
        if self._noting_decoder is None:
            hook = _noting(self._ambiguous)
            self._noting_decoder = json.JSONDecoder(**_NUMBERS, object_pairs_hook=hook)
        self._ambiguous.clear()
        findings.ambiguous = self._ambiguous
        value = self._object(line, self._noting_decoder)
        try:
            message = build_message(value, findings)
        except Ambiguous as ambiguous:
            raise BadLine(f"{ambiguous.key!r} has two values") from None
        if findings.unknown:
            self.unknown += 1
            if isinstance(message, UnknownMessage) and message.reason == "unknown type" and message.type is not None:
                _union.learn(message.type)
        return message


def _is_utf8(line: bytes) -> bool:
    # msgspec does not look at the bytes of fields that it skips.
    try:
        str(line, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


# --- lines as dicts ---------------------------------------------------------------------------------------------------

_dict_decoder = msgspec.json.Decoder(dict[str, Any])
_decode_dict = _dict_decoder.decode
_decode_dict_lines = _dict_decoder.decode_lines


class DictLines(_Objects):
    """Lines as plain dicts, by msgspec or by the caller's ``loads``."""

    def __init__(self, surrogates: str, loads: Callable[[bytes], Any] | None) -> None:
        super().__init__(surrogates)
        self._loads = loads

    def one_line_decoder(self) -> Callable[[bytes], dict[str, Any]] | None:
        return _decode_dict if self._loads is None else None

    def fresh(self) -> DictLines:
        return DictLines("keep" if self.keep else "replace", self._loads)

    def block(self, data: Bytes, count: int) -> list[dict[str, Any]] | None:
        try:
            if self._loads is None:
                objects = _decode_dict_lines(data)
            else:
                lines = bytes(data).split(b"\n")
                lines.pop()
                objects = [self._load(line) for line in lines]
        except Exception:  # loads may raise anything; what is wrong, line() says
            return None
        return objects if len(objects) == count else None

    def line(self, line: bytes) -> dict[str, Any]:
        if self._loads is not None and _is_utf8(line):
            try:
                return self._load(line)
            except Exception:  # whatever it is: no line may be lost for it
                pass
        return self._object(line)

    def _load(self, line: bytes) -> dict[str, Any]:
        """The line by ``loads``. Raises ValueError for what that refuses or may read otherwise than is asked."""
        assert self._loads is not None
        if not self.keep and b"\\u" in line:
            raise ValueError("surrogates, perhaps, which are to be replaced")
        value = self._loads(line)
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return value
