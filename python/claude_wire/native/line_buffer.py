"""Split a stream of bytes into lines: chunks cut anywhere go in, blocks of complete lines come out.

The decoder uses :class:`LineBuffer`. The native library finds and checks the lines, and copies only lines that a chunk
cuts.

The native library keeps the position in the stream, an offset and a line number. So the native reader may take chunks
by itself, where nothing else is to be done with their lines (see :mod:`claude_wire.codec.engines`).

The rules of a line: it ends with 0x0A and nothing else (U+2028, U+0085 and a lone CR are ordinary bytes of
JSON text); a UTF-8 byte order mark at the very start of a stream is not part of it; a line above ``max_line_bytes``
is dropped while it arrives, with its length and its first 1,024 bytes kept.

Costs (CPython 3.11, two cores, lines of 279 bytes, one run): a chunk that is one whole line 0.92 µs, of which
0.38 are the one call into the library; a chunk of 64 KiB about 4 µs, of which 2.4 are the check of its lines. That
is one call, too, though it gives two blocks, the line that the chunk completes and everything else; two calls
took 0.4 µs more.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from claude_wire.limits import BLOCK_BYTES, DEFAULT_MAX_LINE_BYTES
from claude_wire.native.block import Block, LongLine, byte_view
from claude_wire.native.library import STEP, checked, ffi, lib
from claude_wire.native.library import error as library_error
from claude_wire.support.arguments import require_int
from claude_wire.support.errors import HandleError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

#: A carried line up to this length is copied, which takes less time than making a view.
COPY_BYTES = lib.CW_LINE_BYTES


_KEEP_BOM = lib.CW_KEEP_BOM
_ONLY = lib.CW_FILTER_ONLY
_COALESCE = lib.CW_FILTER_COALESCE
_PLAIN = lib.CW_FILTER_PLAIN
_CARRY = lib.CW_CARRY
_BODY = lib.CW_BODY
_TOO_LONG = lib.CW_TOO_LONG
_FILTERED = lib.CW_FILTERED
_next = lib.cw_buffer_next
_unpack_from = STEP.unpack_from
_SIZE = STEP.size
#: Where the native result has its first step, and the copy of a short line, after two steps.
_FIRST = 8
_LINE = _FIRST + 2 * _SIZE
#: The indexes of the steps in a result, by their number.
_STEPS = ((), (0,), (0, 1))
_buffer = ffi.buffer
# The constructor of a NamedTuple takes three times as long.
_new = cast(
    "Callable[[type[Block], tuple[Any, ...]], Block]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]  # of a tuple of anything
)


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

    __slots__ = ("__weakref__", "_busy", "_counts", "_out", "_owned", "_steps", "handle", "max_line_bytes")

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
        # The native library itself refuses concurrent calls. But also between two calls, while the caller reads memory
        # that the first one lent, nobody else may make the second.
        self._busy = False
        # Where the native library writes what it finds. The native reader needs none, so this is made on first use.
        self._out: Any = None
        self._steps: Any = None
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

    def feed(self, data: bytes | bytearray | memoryview, handle: Callable[[Block | LongLine], None]) -> None:
        """Take the next bytes of the stream, and call ``handle`` with each block or too long line that they complete.

        ``data`` must not change meanwhile; a bytearray cannot be resized. All of it is taken, also when ``handle``
        raises, or a ``KeyboardInterrupt`` comes: then lines are lost.

        Raises:
            TypeError: ``data`` is a str, or has no bytes.
            ValueError: ``data`` is a view with gaps.
            MemoryError: no memory for the head of an unfinished line, or for the filter.
        """
        source: bytes | memoryview
        if type(data) is bytes:
            source = chunk = data
        else:
            source = byte_view(data)
            chunk = ffi.from_buffer("uint8_t[]", source)
        if self._busy:
            raise self.refusal()
        out: Any = None
        at = 0
        try:
            self._busy = True
            out = self._result()
            steps = self._steps
            length = len(source)
            huge = False
            while True:
                count = _next(self.handle, chunk, length, out)
                if count < 0:
                    raise library_error(count)
                for step in _STEPS[count]:
                    _, kind, size, end, lines, defects, extra, offset, number = _unpack_from(
                        steps, _FIRST + step * _SIZE
                    )
                    if kind == _BODY:
                        part = source if size == length else memoryview(source)[at : at + size]
                        handle(_new(Block, (part, lines, not defects, offset, number, True, False)))
                    elif kind == _TOO_LONG:
                        head = bytes(_buffer(out.steps[step].lent, size))
                        handle(LongLine(head, extra, offset, number))
                    elif kind:
                        place = lines, not defects, offset, number, True, kind == _FILTERED
                        if size <= COPY_BYTES and not step:
                            handle(_new(Block, (steps[_LINE : _LINE + size], *place)))
                        else:
                            with _lent(out.steps[step].lent, size) as view:
                                handle(_new(Block, (view, *place)))
                            huge = huge or size > BLOCK_BYTES // 4  # its memory may be twice as large
                    at = end
                if at == length:
                    break
            if huge:
                source = b""  # all of it is taken
                self._release()
        except BaseException as error:
            if not isinstance(error, HandleError):
                # What was not taken yet is dropped, and counted.
                if out is None:
                    out = ffi.new("CwSteps *")
                lib.cw_buffer_drop(self.handle, ffi.from_buffer("uint8_t[]", source), len(source), out)
            part = source = chunk = b""  # the traceback of an exception must not refer to the caller's memory
            raise
        finally:
            self._busy = False

    def close(self, handle: Callable[[Block | LongLine], None]) -> None:
        """End the stream, and call ``handle`` with its last line if that has no line feed. A new stream begins."""
        if self._busy:
            raise self.refusal()
        try:
            self._busy = True
            out = self._result()
            checked(lib.cw_buffer_close(self.handle, out.steps))
            _, kind, size, _, _, defects, length, offset, number = _unpack_from(self._steps, _FIRST)
            if kind == _CARRY:
                with _lent(out.steps[0].lent, size) as line:
                    handle(Block(line, 1, not defects, offset, number, False))
            elif kind == _TOO_LONG:
                handle(LongLine(bytes(_buffer(out.steps[0].lent, size)), length, offset, number))
            self._release()
        finally:
            self._busy = False

    def _result(self) -> Any:
        """Return the place for what a chunk gives, of which nothing is taken yet. ``_steps`` has its bytes."""
        if self._out is None:
            self._out = ffi.new("CwSteps *")
            self._steps = ffi.buffer(self._out)
        self._out.at = 0
        return self._out

    def _release(self) -> None:
        """Give lent memory back."""
        _next(self.handle, b"", 0, self._result())

    def places(self, block: Block) -> list[tuple[int, int]]:
        """Return the offset and line number of each line of a filtered block. Valid while the block is handled."""
        out = ffi.new("uint64_t[]", 2 * block.lines)
        checked(lib.cw_buffer_places(self.handle, out, block.lines))
        numbers = ffi.unpack(out, 2 * block.lines)
        return [
            (block.offset + offset, block.line_number + lines)
            for offset, lines in zip(numbers[::2], numbers[1::2], strict=True)
        ]

    def unfinished(self) -> bytes | None:
        """Return a copy of the unfinished line so far. None if it exceeds the limit and is being dropped."""
        if self._busy:
            raise self.refusal()
        out = self._result()
        checked(lib.cw_buffer_unfinished(self.handle, out.steps))
        _, kind, size, *_ = _unpack_from(self._steps, _FIRST)
        return None if kind == _TOO_LONG else _buffer(out.steps[0].lent, size)[:]

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


@contextmanager
def _lent(pointer: Any, size: int) -> Generator[memoryview, None, None]:
    """Make a view of native memory, for as long as the memory is lent."""
    view = memoryview(_buffer(pointer, size))
    try:
        yield view
    finally:
        with suppress(BufferError):  # the traceback of an exception may still refer to a part of it, which nobody reads
            view.release()
