"""Split a stream of bytes into lines: chunks cut anywhere go in, blocks of complete lines come out.

The native library finds the lines, and keeps only the line that a chunk leaves unfinished. It also keeps the position
in the stream, an offset and a line number: the native reader takes chunks without this module (see
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

#: Native memory that is lent up to this size, or for up to this many blocks, is given back with the next chunk.
LENT_BYTES = 8 * 1024
LENT_BLOCKS = 32


class Stats(NamedTuple):
    """Counts of the work of a :class:`LineBuffer` since it was made, and its present memory in bytes."""

    searched: int
    copied: int
    held: int


class Counts(NamedTuple):
    """Counts of what has passed a :class:`LineBuffer`."""

    #: Bytes that were fed, and how many of them came before this stream began.
    fed: int = 0
    start: int = 0
    #: Lines that the filter skipped, and that it merged into an earlier one.
    skipped: int = 0
    merged: int = 0
    #: Lines that the native reader has made messages of, and how many of them had unknown content.
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
        keep_bom: a byte order mark belongs to the first line instead of being skipped.
        only: names of kinds. Lines that are certainly of other kinds are skipped. None for all lines.
        coalesce: whether deltas that follow each other within one chunk are merged; without ``only``, if it saves time.
        plain: use the native filter for processors without vectors, for comparison in tests.

    Raises:
        HandleError: by any method, when two threads use the object at once, when a callback uses it, in a forked child,
            or after :meth:`free`.
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
        #: What the native library knows the buffer by.
        self.handle: int = handle[0]
        self._counts = _NO_COUNTS
        # Frees the buffer when this object dies; None once it is freed. weakref.finalize would take 1 µs and 500 bytes.
        self._owned: Any = ffi.gc(handle, lib.cw_buffer_free_owned)
        # The native library itself refuses concurrent calls. But while a call copies lent memory, nobody else may make
        # the next call.
        self._busy = False
        # Where the native library says what it lends. The native reader needs none, so this is made on first use.
        self._out: Any = None
        #: The limit for a line, in bytes without its line feed.
        self.max_line_bytes: int = max_line_bytes

    @property
    def fed(self) -> int:
        """The number of bytes that were fed."""
        return self.counts().fed

    @property
    def has_begun(self) -> bool:
        """True if any byte of the stream was fed."""
        counts = self.counts()
        return counts.fed > counts.start

    def feed(self, data: bytes | bytearray | memoryview) -> list[Block]:
        """Take the next bytes of the stream, and return the lines that they complete.

        All of ``data`` is taken, also after a ``KeyboardInterrupt`` or a ``MemoryError``: then lines are lost.

        Raises:
            TypeError: ``data`` is a str, or has no bytes.
            ValueError: ``data`` is a view with gaps.
            MemoryError: no memory for the head of an unfinished line, or for the filter.
        """
        chunk = data if type(data) is bytes else bytes(byte_view(data))
        return self._blocks(_take, chunk, self.handle, chunk, len(chunk))

    def close(self) -> list[Block]:
        """End the stream, and return its last line if that has no line feed. A new stream begins."""
        return self._blocks(lib.cw_buffer_close, b"", self.handle)

    def unfinished(self) -> bytes | None:
        """Return a copy of the unfinished line so far. None if it exceeds the limit and is being dropped."""
        for line, _, _, length in self._blocks(lib.cw_buffer_unfinished, b"", self.handle):
            return bytes(line) if length < 0 else None
        return b""

    def _blocks(self, function: Callable[..., int], chunk: bytes, *arguments: Any) -> list[Block]:
        """Call a native function, and return its blocks; those that it lends as copies."""
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
        """Count the work done, so that a test can see that it is linear."""
        out = self._stats()
        return Stats(out.searched, out.copied, out.held)

    def counts(self) -> Counts:
        """Count what has passed; after :meth:`free` and in a forked child what had when it was last asked."""
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
        """Free the native memory. A second call does nothing; every other method raises from now on."""
        if self._owned is not None:
            if self._busy:
                raise self.refusal()
            self.counts()
            ffi.gc(self._owned, None)
            self._owned = None
            lib.cw_buffer_free(self.handle)

    def refusal(self) -> Exception:
        try:
            self.stats()  # raises in a forked child, where the inherited object may look in use for ever
        except HandleError as error:
            return error
        return library_error(lib.CW_ERROR_IN_USE)
