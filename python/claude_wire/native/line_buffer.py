"""Split a stream of bytes into lines: the buffer takes chunks that end anywhere, and returns blocks of complete lines.

The native library finds the lines, and copies only the line that a chunk leaves unfinished. It also counts the offset
and the line number, because ``Decoder.feed`` feeds the native buffer without this module (see
:mod:`claude_wire.codec.engines`).

A line ends with 0x0A and nothing else (U+2028, U+0085 and a lone CR are ordinary bytes of JSON text). A UTF-8 byte
order mark at the very start of a stream is not part of a line. A line above ``max_line_bytes`` is dropped while it
arrives; its length and its first 1,024 bytes are kept.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.native.block import Block, byte_view
from claude_wire.native.library import BLOCK, checked, ffi, lib
from claude_wire.native.library import error as library_error
from claude_wire.support.arguments import require_int
from claude_wire.support.errors import HandleError

if TYPE_CHECKING:
    from collections.abc import Callable

#: If a call lends more native memory than this, or more blocks, the buffer gives the memory back before the call
#: returns. Otherwise the next call gives it back.
LENT_BYTES = 8 * 1024
LENT_BLOCKS = 32


class Stats(NamedTuple):
    """The work of a :class:`LineBuffer` since its creation, and its memory, in bytes."""

    #: The number of bytes searched for line feeds.
    searched: int
    #: The number of bytes copied into the buffer, or moved when it grew.
    copied: int
    #: The size of the native memory.
    held: int


class Counts(NamedTuple):
    """The bytes and lines of a :class:`LineBuffer` since its creation."""

    #: The number of bytes in all streams, and in the streams that :meth:`LineBuffer.close` ended.
    fed: int = 0
    start: int = 0
    #: The number of lines that the filter skipped, and the number that it merged into an earlier line.
    skipped: int = 0
    merged: int = 0
    #: The number of lines that the native reader decoded, and how many of these messages have unknown content.
    messages: int = 0
    unknown: int = 0


_NO_COUNTS = Counts()

_KEEP_BOM = lib.CW_KEEP_BOM
_ONLY = lib.CW_FILTER_ONLY
_COALESCE = lib.CW_FILTER_COALESCE
_PLAIN = lib.CW_FILTER_PLAIN
_take = lib.cw_buffer_take


class LineBuffer:
    """A native line buffer, and its position in the stream. It belongs to one thread at a time and to its process.

    Args:
        max_line_bytes: the limit for a line, in bytes without its line feed.
        keep_bom: if true, a byte order mark is a part of the first line; if false, it is skipped.
        only: names of kinds. The filter skips a line if its kind is certain and not one of these. None for all lines.
        coalesce: merge successive deltas of one chunk. Without ``only``, merging pauses while it saves no time.
        plain: use the filter without vector instructions. Tests compare both filters.

    Raises:
        HandleError: by any method, if two threads use the object at the same time, in a forked child, or after
            :meth:`free`.
    """

    __slots__ = ("__weakref__", "_busy", "_counts", "_out", "_owned", "handle", "max_line_bytes")

    def __init__(
        self,
        max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
        *,
        keep_bom: bool = False,
        only: frozenset[str] | None = None,
        coalesce: bool = False,
        plain: bool = False,
    ) -> None:
        require_int("max_line_bytes", max_line_bytes, 1)
        handle = ffi.new("uint64_t *")
        names = "\n".join(sorted(only)).encode() if only else b""
        options = _KEEP_BOM if keep_bom else 0
        if only is not None or coalesce:
            options |= _ONLY * (only is not None) | _COALESCE * coalesce | _PLAIN * plain
        checked(lib.cw_buffer_new(min(max_line_bytes, 2**64 - 1), options, names, len(names), handle))
        #: The number that native functions use to find the buffer.
        self.handle: int = handle[0]
        self._counts = _NO_COUNTS
        # Frees the buffer when this object is collected; None after free(). weakref.finalize would take 1 µs and 500
        # bytes.
        self._owned: Any = ffi.gc(handle, lib.cw_buffer_free_owned)
        # True while a call uses the buffer. The native library refuses concurrent calls itself, but a call from another
        # thread would free the lent memory that this call is copying.
        self._busy = False
        # The struct in which the native library returns blocks. Created on first use: the native reader needs none.
        self._out: Any = None
        #: The limit for a line, in bytes without its line feed.
        self.max_line_bytes: int = max_line_bytes

    @property
    def has_begun(self) -> bool:
        """True if any byte of the current stream was fed."""
        counts = self.counts()
        return counts.fed > counts.start

    def feed(self, data: bytes | bytearray | memoryview) -> list[Block]:
        """Take the next bytes of the stream, and return the lines that they complete.

        After a ``KeyboardInterrupt`` or a ``MemoryError``, ``data`` still counts as taken, and its lines are lost.

        Raises:
            TypeError: ``data`` is a str, or has no bytes.
            ValueError: ``data`` is a view with gaps.
            MemoryError: there is no memory for the first bytes of an unfinished line, or for the filter.
        """
        chunk = data if type(data) is bytes else bytes(byte_view(data))
        return self._blocks(_take, chunk, self.handle, chunk, len(chunk))

    def close(self) -> list[Block]:
        """End the stream, and return its last line if that line has no line feed. A new stream begins."""
        return self._blocks(lib.cw_buffer_close, b"", self.handle)

    def unfinished(self) -> bytes | None:
        """Return a copy of the unfinished line so far. None if it exceeds the limit and is being dropped."""
        for line, _, _, length in self._blocks(lib.cw_buffer_unfinished, b"", self.handle):
            return bytes(line) if length < 0 else None
        return b""

    def _blocks(self, function: Callable[..., int], chunk: bytes, *arguments: Any) -> list[Block]:
        """Call a native function, and return its blocks. Copy the blocks that are in native memory."""
        if self._busy:
            raise self.refusal()
        try:
            self._busy = True
            if self._out is None:
                self._out = ffi.new("CwBlocks *")
            out = self._out
            count = checked(function(*arguments, out))
            if not count:
                return []
            blocks: list[Block] = []
            lent_bytes = 0
            view = memoryview(chunk)
            for lent, start, size, *place in BLOCK.iter_unpack(ffi.buffer(out.blocks, count * BLOCK.size)):
                if lent:
                    lent_bytes += size
                    data = ffi.buffer(ffi.cast("uint8_t *", lent), size)[:]
                else:
                    data = chunk if size == len(chunk) else view[start : start + size]
                blocks.append((data, *place))
            if lent_bytes > LENT_BYTES or count > LENT_BLOCKS:
                _take(self.handle, b"", 0, out)
            return blocks
        finally:
            self._busy = False

    def stats(self) -> Stats:
        """Return how much work was done and how much memory is in use. Tests check that the work is linear."""
        out = self._stats()
        return Stats(out.searched, out.copied, out.held)

    def counts(self) -> Counts:
        """Return the counts of bytes and lines. After :meth:`free` and in a forked child, the last known counts."""
        if self._owned is not None:
            with suppress(HandleError):
                out = self._stats()
                self._counts = Counts(out.taken, out.start, out.skipped, out.merged, out.messages, out.unknown)
        return self._counts

    def _stats(self) -> Any:
        out = ffi.new("CwStats *")
        checked(lib.cw_buffer_stats(self.handle, out))
        return out

    def free(self) -> None:
        """Free the native memory. A second call does nothing. From now on, feed() and close() raise HandleError."""
        if self._owned is not None:
            if self._busy:
                raise self.refusal()
            self.counts()
            ffi.gc(self._owned, None)
            self._owned = None
            lib.cw_buffer_free(self.handle)

    def refusal(self) -> Exception:
        """Return the error for a call while another call uses the buffer, or in a forked child."""
        try:
            self.stats()  # raises in a forked child, where the buffer may look as if it were in use
        except HandleError as error:
            return error
        return library_error(lib.CW_ERROR_IN_USE)
