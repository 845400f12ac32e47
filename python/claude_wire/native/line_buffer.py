"""Lines: chunks of bytes cut anywhere go in, complete lines come out.

What this module knows: bytes and lines, and how to talk to the native library.
What it must not know: JSON types and messages.

:class:`LineBuffer` is what the decoder stands on: it gives *blocks* of complete lines, found and checked natively, and
copies only lines that are cut by a chunk's end.

The rules of a line: it ends with 0x0A and nothing else (U+2028, U+0085 and a lone CR are ordinary bytes of
JSON text); a UTF-8 byte order mark at the very start of a stream is not part of it; a line above ``max_line_bytes``
is dropped while it arrives, with its length and its first 1,024 bytes kept.

What it costs (CPython 3.11, two cores, lines of 279 bytes, one run): a chunk that is one whole line 0.92 µs, of which
0.38 are the one call into the library; a chunk of 64 KiB about 4 µs, of which 2.4 are the check of its lines. That
is one call, too, though it gives two blocks, the line that the chunk completes and everything else; two calls
took 0.4 µs more.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from claude_wire.errors import HandleError
from claude_wire.foundation.arguments import require_int
from claude_wire.limits import BLOCK_BYTES, DEFAULT_MAX_LINE_BYTES
from claude_wire.native.block import Block, LongLine, byte_view
from claude_wire.native.library import STEP, ffi, lib
from claude_wire.native.library import error as library_error

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

__all__ = ["LineBuffer", "Stats"]

#: A carried line up to this length is copied, which takes less time than a view of it.
COPY_BYTES = lib.CW_LINE_BYTES


class _Stats(Protocol):
    searched: int
    copied: int
    held: int
    skipped: int
    merged: int
    taken: int


_NOTHING = lib.CW_NOTHING
_CARRY = lib.CW_CARRY
_BODY = lib.CW_BODY
_SIFTED = lib.CW_SIFTED
_next = lib.cw_buffer_next
_next_two = lib.cw_buffer_next_two
#: Where the copy stands in the native result, behind two steps.
_LINE = 2 * STEP.size
_unpack_from = STEP.unpack_from
_buffer = ffi.buffer
# A NamedTuple's own constructor takes three times as long.
_new = cast(
    "Callable[[type[Block], tuple[Any, ...]], Block]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)


class Stats(NamedTuple):
    """Work done by a :class:`LineBuffer` since it was made, and the memory it holds now, in bytes."""

    searched: int
    copied: int
    held: int


class LineBuffer:
    """A native line buffer. Belongs to one thread at a time and to the process that made it.

    Args:
        max_line_bytes: longest line that is kept, without its line feed.
        keep_bom: a byte order mark belongs to the first line instead of being skipped.
        only: names of kinds; lines that are certainly of others are passed over. None for all lines.
        coalesce: whether deltas that follow each other within one chunk are merged; without ``only``, if it saves time.
        plain: whether the native code for processors without vectors sifts, which tests compare with.

    Raises:
        HandleError: by any method, when the object is used by two threads at once, from inside a loop over its own
            blocks, in a forked child, or after :meth:`free`.
    """

    __slots__ = (
        "__weakref__",
        "_at_line_start",
        "_busy",
        "_finalize",
        "_handle",
        "_max_line_bytes",
        "_out",
        "_shown",
        "_sieves",
        "_sifted",
        "_skipped_before",
        "_skipped_bytes",
        "_skipped_lines",
        "_steps",
    )

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
        status = lib.cw_buffer_new(min(max_line_bytes, 2**64 - 1), keep_bom, handle)
        if status < 0:
            raise library_error(status)
        self._handle: int = handle[0]
        self._sieves = only is not None or coalesce
        self._sifted = 0, 0
        self._finalize = weakref.finalize(self, lib.cw_buffer_free, self._handle)
        if self._sieves:
            names = "\n".join(sorted(only)).encode() if only else b""
            options = lib.CW_SIEVE_ONLY * (only is not None) + lib.CW_SIEVE_COALESCE * coalesce
            status = lib.cw_buffer_sieve(self._handle, names, len(names), options + lib.CW_SIEVE_PLAIN * plain)
            if status < 0:
                raise library_error(status)
        # The native library refuses a second call at the same time by itself. But between two calls, too, while the
        # caller reads what the first one lent, nobody else may make the second.
        self._busy = False
        self._out = ffi.new("CwSteps *")
        self._steps = ffi.buffer(self._out)
        # Bytes that the native library was or is to be shown.
        self._shown = 0
        self._max_line_bytes = max_line_bytes
        self._at_line_start = False
        # What the native library has not been shown, of this stream and of those before it.
        self._skipped_bytes = self._skipped_lines = 0
        self._skipped_before = 0, 0

    @property
    def max_line_bytes(self) -> int:
        """Longest line that is kept, in bytes without its line feed."""
        return self._max_line_bytes

    @property
    def at_line_start(self) -> bool:
        """Whether no line is unfinished, and the stream is past its start, where a byte order mark may stand."""
        return self._at_line_start

    def skip(self, lines: int, length: int) -> None:
        """Say how many whole lines, and bytes in them, somebody else has taken, always at the start of a line.

        Both are counted since the buffer was made.
        """
        self._skipped_lines = lines - self._skipped_before[0]
        self._skipped_bytes = length - self._skipped_before[1]

    def blocks(self, data: bytes | bytearray | memoryview) -> Generator[Block | LongLine, None, None]:
        """Yields what ``data``, the next bytes of the stream, completes.

        The iterator must be exhausted: the part of ``data`` that it has not come to is lost otherwise. ``data`` must
        not change meanwhile; a bytearray cannot be resized.

        Raises:
            TypeError: ``data`` is a str, or has no bytes.
            ValueError: ``data`` is a view with gaps.
            MemoryError: no memory for the head of an unfinished line, or for what a sieve keeps.
        """
        yield from self._rest(*self._first(data))

    def take(self, data: bytes | bytearray | memoryview) -> Iterable[Block | LongLine]:
        """As :meth:`blocks`, but when it returns, the first part of ``data`` was taken, and mostly all of it.

        Then what it returns is ready, and lends no native memory: a line that was begun before, not too long, and the
        lines after it; or the few that a sieve let through. That saves a good part of what surrounds the native call.
        """
        source, chunk, first = self._first(data)
        steps = self._steps
        length = len(source)
        status = first
        _, size, at, offset, line_number, lines, defects, _ = _unpack_from(steps)
        skipped_bytes = self._skipped_bytes
        skipped_lines = self._skipped_lines
        start = 0
        carried = None
        if status & 7 == _CARRY and size <= COPY_BYTES:
            line = steps[_LINE : _LINE + size]
            carried = _new(
                Block, (line, 1, not defects, offset + skipped_bytes, line_number + skipped_lines, True, False)
            )
            if status == _CARRY:
                self._at_line_start = at == length
                return (carried,) if at == length else self._rest(source, chunk, first)
            status = (status >> 3) - 1
            start = at
            _, size, at, offset, line_number, lines, defects, _ = _unpack_from(steps, STEP.size)
        if at == length:
            if status == _BODY:
                self._at_line_start = start + size == length
                block = source if size == length else memoryview(source)[start : start + size]
                body = _new(
                    Block,
                    (block, lines, not defects, offset + skipped_bytes, line_number + skipped_lines, True, False),
                )
                return (body,) if carried is None else (carried, body)
            if status == _NOTHING:
                self._at_line_start = self._at_line_start and not length
                return () if carried is None else (carried,)
            if status == _SIFTED and size <= COPY_BYTES:
                self._at_line_start = False  # so that the next line goes through the sieve, even one that comes alone
                lent = steps[_LINE : _LINE + size]
                place = offset + skipped_bytes, line_number + skipped_lines
                return (_new(Block, (lent, lines, not defects, *place, True, True)),)
        return self._rest(source, chunk, first)

    def _first(self, data: bytes | bytearray | memoryview) -> tuple[bytes | memoryview, Any, int]:
        """Takes the first step, or two; what came of it is in the result struct, and its status is returned."""
        source: bytes | memoryview
        if type(data) is bytes:
            source = chunk = data
        else:
            source = byte_view(data)
            chunk = ffi.from_buffer("uint8_t[]", source)
        if self._busy:
            raise self.refusal()
        length = len(source)
        self._shown += length
        status = _next_two(self._handle, chunk, length, 0, self._out)
        if status < 0:
            raise library_error(status)
        return source, chunk, status

    def _rest(self, source: bytes | memoryview, chunk: Any, status: int) -> Generator[Block | LongLine, None, None]:
        """Yields what the steps that were taken gave, takes the others, and yields what they give."""
        length = len(source)
        handle = self._handle
        skipped_bytes = self._skipped_bytes
        skipped_lines = self._skipped_lines
        out, steps = self._out, self._steps
        if self._busy:
            raise self.refusal()
        try:
            self._busy = True
            at = 0
            while True:
                last = 0
                huge = False
                if status & 7 == _CARRY:
                    _, size, at, offset, line_number, _, defects, _ = _unpack_from(steps)
                    offset += skipped_bytes
                    line_number += skipped_lines
                    self._at_line_start = at == length
                    if size <= COPY_BYTES:
                        line = steps[_LINE : _LINE + size]
                        yield _new(Block, (line, 1, not defects, offset, line_number, True, False))
                    else:
                        with _lent(out.steps[0].lent, size) as view:
                            yield _new(Block, (view, 1, not defects, offset, line_number, True, False))
                        huge = size > BLOCK_BYTES // 4  # its memory may be twice that
                    last = 1
                    status = (status >> 3) - 1  # of the step after it, if one was taken
                if status >= 0:
                    start = at
                    _, size, at, offset, line_number, lines, defects, line_length = _unpack_from(
                        steps, last * STEP.size
                    )
                    offset += skipped_bytes
                    line_number += skipped_lines
                    if status == _BODY:
                        self._at_line_start = start + size == length
                        block = source if size == length else memoryview(source)[start : start + size]
                        yield _new(Block, (block, lines, not defects, offset, line_number, True, False))
                    elif status == _NOTHING:
                        self._at_line_start = False
                    elif status == _SIFTED:
                        self._at_line_start = False  # as in take()
                        if size <= COPY_BYTES and not last:
                            copy = steps[_LINE : _LINE + size]
                            yield _new(Block, (copy, lines, not defects, offset, line_number, True, True))
                        else:
                            with _lent(out.steps[last].lent, size) as view:
                                yield _new(Block, (view, lines, not defects, offset, line_number, True, True))
                            huge = size > BLOCK_BYTES // 4
                    else:
                        self._at_line_start = at == length and not self._sieves
                        yield LongLine(bytes(_buffer(out.steps[last].lent, size)), line_length, offset, line_number)
                if at == length:
                    if huge:
                        _next(handle, b"", 0, 0, out.steps)  # takes the memory back
                    return
                status = _next_two(handle, chunk, length, at, out)
                if status < 0:
                    raise library_error(status)
        finally:
            self._busy = False

    def close_blocks(self) -> Generator[Block | LongLine, None, None]:
        """Ends the stream and yields its last line if that has no line feed. The next bytes begin a new stream."""
        out, steps = self._out, self._steps
        if self._busy:
            raise self.refusal()
        try:
            self._busy = True
            status = lib.cw_buffer_close(self._handle, out.steps)
            if status < 0:
                raise library_error(status)
            _, size, _, offset, line_number, _, defects, line_length = _unpack_from(steps)
            offset += self._skipped_bytes
            line_number += self._skipped_lines
            lines_before, bytes_before = self._skipped_before
            self._skipped_before = lines_before + self._skipped_lines, bytes_before + self._skipped_bytes
            self._skipped_bytes = self._skipped_lines = 0
            self._at_line_start = False
            if status == _CARRY:
                with _lent(out.steps[0].lent, size) as line:
                    yield Block(line, 1, not defects, offset, line_number, False)
            elif status > 0:
                yield LongLine(bytes(_buffer(out.steps[0].lent, size)), line_length, offset, line_number)
            _next(self._handle, b"", 0, 0, out.steps)  # takes the memory back
        finally:
            self._busy = False

    @property
    def shown(self) -> int:
        """Bytes that were given to it."""
        return self._shown

    def drop_rest(self, data: bytes | bytearray | memoryview, shown: int) -> None:
        """Take all of ``data`` that was not taken yet, and lose its lines: after an exception that came from outside.

        Such is ``KeyboardInterrupt``, which may come between any two operations. ``shown`` is what :attr:`shown` was
        before ``data``.
        """
        source = byte_view(data)
        self._at_line_start = False
        length = len(source)
        taken = self._stats().taken
        if self._shown == shown:
            self._shown += length
        at = length - (self._shown - taken)
        chunk = ffi.from_buffer("uint8_t[]", source)
        while at < length and _next(self._handle, chunk, length, at, self._out.steps) >= 0:
            at = _unpack_from(self._steps)[2]
        self._shown -= length - at  # what cannot be taken, for want of memory, is never taken

    def places(self, count: int) -> list[tuple[int, int]]:
        """Offset and line number of each of the ``count`` lines of the sifted block that was given last.

        To be called before the iterator that gave it goes on.
        """
        out = ffi.new("uint64_t[]", 2 * count)
        status = lib.cw_buffer_places(self._handle, out, count)
        if status < 0:
            raise library_error(status)
        numbers = ffi.unpack(out, 2 * count)
        offset, line_number = self._skipped_bytes, self._skipped_lines
        return [(numbers[at] + offset, numbers[at + 1] + line_number) for at in range(0, 2 * count, 2)]

    def unfinished(self) -> bytes | None:
        """A copy of the unfinished line as far as it has come; None if it is above the limit and being dropped."""
        if self._busy:
            raise self.refusal()
        status = lib.cw_buffer_unfinished(self._handle, self._out.steps)
        if status < 0:
            raise library_error(status)
        size = _unpack_from(self._steps)[1]
        return None if status == lib.CW_TOO_LONG else _buffer(self._out.steps[0].lent, size)[:]

    def stats(self) -> Stats:
        """Counts the work done, so that a test can see that it is linear."""
        out = self._stats()
        return Stats(out.searched, out.copied, out.held)

    def sifted(self) -> tuple[int, int]:
        """Numbers of the lines that were passed over, and of those that were merged into an earlier one."""
        if self._sieves and self._finalize.alive:
            with suppress(HandleError):  # in a forked child, which knows what was so before
                out = self._stats()
                self._sifted = out.skipped, out.merged
        return self._sifted

    def _stats(self) -> _Stats:
        out: _Stats = ffi.new("CwStats *")
        status = lib.cw_buffer_stats(self._handle, out)
        if status < 0:
            raise library_error(status)
        return out

    def free(self) -> None:
        """Frees the native memory. May be called again; every other method raises from now on."""
        if self._finalize.alive:
            if self._busy:
                raise self.refusal()
            self.sifted()
            self._finalize()
            self._at_line_start = False

    def refusal(self) -> Exception:
        try:
            self.stats()  # raises in a forked child, which inherited the object as it was, in use for ever
        except HandleError as error:
            return error
        return library_error(lib.CW_ERROR_IN_USE)


@contextmanager
def _lent(pointer: Any, size: int) -> Generator[memoryview, None, None]:
    """A view of native memory, as long as that is lent."""
    view = memoryview(_buffer(pointer, size))
    try:
        yield view
    finally:
        with suppress(BufferError):  # the traceback of an exception may still have a part of it, which nobody reads
            view.release()
