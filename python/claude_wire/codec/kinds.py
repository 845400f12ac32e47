"""Find the kind of a line, such as ``system/init``, without decoding it.

The native library scans the line's structure for its tags: the values of keys such as ``type`` and ``subtype``. It
finds a tag at any position among the keys, with any spacing and escapes. It never mistakes a part of a string, or a key
in another nested object, for a tag. The rules are in rust/src/kinds/scan.rs.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from claude_wire.codec.engines import native_function
from claude_wire.native.block import byte_view
from claude_wire.native.library import error as library_error
from claude_wire.native.library import ffi, lib
from claude_wire.support.text import NAME_CHARS, one_line

#: Maximum number of lines in one native call.
LINES = 4096
#: Maximum number of different kinds in one native call.
KINDS = 64
_ABSENT = 2**64 - 1


class Kind(NamedTuple):
    """A line's kind, according to its tags. ``str(kind)`` joins the tags with slashes: ``"system/init"``.

    All three tags are None if the line is not a JSON object, has no ``type``, or has a tag with two different values.
    ``Decoder(only=)`` refuses a Kind with a tag that is empty, has a slash, or follows a tag that is None.
    """

    type: str | None = None
    """The line's ``type``."""
    subtype: str | None = None
    """The line's ``subtype``.

    It is ``event.type`` for a stream event, ``request.subtype`` for a control request, and ``response.subtype`` for a
    control response.
    """
    detail: str | None = None
    """The type of a stream event's part; None for any other line.

    It is ``event.delta.type``, or ``event.content_block.type`` if the event has no delta with a type.
    """

    def __str__(self) -> str:
        return "/".join(part for part in self if part is not None)

    def __repr__(self) -> str:
        named = zip(self._fields, self, strict=True)
        parts = [f"{name}={part[: NAME_CHARS + 1] if isinstance(part, str) else part!r}" for name, part in named]
        return f"Kind({one_line(', '.join(parts))})"


_NONE = Kind(None, None, None)
_BOM = b"\xef\xbb\xbf"
#: Cache: the tags as bytes of the line -> the kind. The native :func:`peek` has its own cache of the same objects.
_known: dict[tuple[bytes | None, ...], Kind] = {}
#: Maximum number of kinds in the cache.
MAX_KNOWN = 1024
#: Maximum total length of a cached kind's three tags, in bytes.
LONGEST_KNOWN = 256


def peek(line: bytes | bytearray | memoryview | str) -> Kind:
    """Return the kind of one line, with or without its line feed. The line is scanned, but not checked or decoded.

    Like :func:`~claude_wire.decode`, skip a byte order mark at the start.

    Raises:
        TypeError: ``line`` is neither bytes nor str.
        ValueError: ``line`` is a view with gaps.
    """
    if isinstance(line, str):
        line = line.encode("utf-8", "backslashreplace")  # a raw surrogate becomes its JSON escape
    kinds = _peek_lines(line, taker="peek()")
    return kinds[0] if len(kinds) == 1 else _NONE


if not TYPE_CHECKING:
    # A call through cffi takes more than ten times as long as scanning a short line.
    peek = native_function("new_peek", peek, "line")


def peek_lines(block: bytes | bytearray | memoryview) -> list[Kind]:
    """Return one kind for each line in a block, even for a blank line.

    A line ends with 0x0A. A last line without a line feed also counts. A byte order mark at the start of the block is
    skipped, as at the start of a stream. Other threads may run during the call, but they must not change ``block``.

    Raises:
        TypeError: ``block`` is not bytes.
        ValueError: ``block`` is a view with gaps.
    """
    return _peek_lines(block)


def _peek_lines(
    data: bytes | bytearray | memoryview, *, taker: str = "peek_lines()", plain: bool = False
) -> list[Kind]:
    """Return the kinds of the lines of ``data``.

    Args:
        taker: the caller's name for error messages.
        plain: use native code without vectors. Tests compare both.
    """
    source: bytes | memoryview
    if type(data) is bytes:
        source = chunk = data
    else:
        source = byte_view(data, taker)
        chunk = ffi.from_buffer("uint8_t[]", source)
    length = len(source)
    kinds: list[Kind] = []
    try:
        results = _results.pop()  # atomic: no other thread gets this object
    except IndexError:
        results = _Results()
    # decode() also skips a byte order mark, and so does a Decoder at the start of its stream.
    at = len(_BOM) if length and source[0] == _BOM[0] and source[: len(_BOM)] == _BOM else 0
    while at < length:
        status = lib.cw_peek_lines(chunk, length, at, plain, results.ids, LINES, results.kinds, KINDS, results.peeked)
        if status < 0:
            raise library_error(status)
        lines, count, at = _PEEKED.unpack(results.peeked_bytes)
        if count == 1:
            kinds += [_kind(source, results.kinds_bytes, 0)] * lines
        else:
            found = [_kind(source, results.kinds_bytes, index) for index in range(count)]
            kinds += map(found.__getitem__, results.ids_bytes[:lines])
    _results.append(results)
    return kinds


class _Results:
    """Memory for a native call's results, kept for reuse because its creation takes longer than scanning a line."""

    __slots__ = ("ids", "ids_bytes", "kinds", "kinds_bytes", "peeked", "peeked_bytes")

    def __init__(self) -> None:
        self.ids = ffi.new("uint8_t[]", LINES)
        self.kinds = ffi.new("CwKind[]", KINDS)
        self.peeked = ffi.new("CwPeeked *")
        self.ids_bytes = ffi.buffer(self.ids)
        self.kinds_bytes = ffi.buffer(self.kinds)
        self.peeked_bytes = ffi.buffer(self.peeked)


#: Result objects that no thread is using.
_results: list[_Results] = []
_PEEKED = struct.Struct("@3Q")
_KIND = struct.Struct("@6Q")


def _kind(source: bytes | memoryview, kinds: Any, index: int) -> Kind:
    type_, subtype, detail, type_bytes, subtype_bytes, detail_bytes = _KIND.unpack_from(kinds, index * _KIND.size)
    tags = (
        None if type_bytes == _ABSENT else bytes(source[type_ : type_ + type_bytes]),
        None if subtype_bytes == _ABSENT else bytes(source[subtype : subtype + subtype_bytes]),
        None if detail_bytes == _ABSENT else bytes(source[detail : detail + detail_bytes]),
    )
    kind = _known.get(tags)
    if kind is None:
        kind = Kind(*(None if tag is None else json.loads(b'"%b"' % tag) for tag in tags))
        if len(_known) < MAX_KNOWN and sum(map(len, filter(None, tags))) <= LONGEST_KNOWN:
            _known[tags] = kind
    return kind
