"""Write lines to a child's standard input, one sender at a time."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, cast

from anyio import to_thread

from claude_wire.errors import ProcessInputError
from claude_wire.streams.sources import Slices
from claude_wire.support.errors import describe_exit
from claude_wire.support.waiting import Lock, Readiness, move_on_after

if TYPE_CHECKING:
    import io
    import subprocess
    from collections.abc import Callable

#: Maximum seconds to wait for a last step: to write the rest of a line, to read the rest of stderr, or to terminate a
#: process at interpreter exit.
LAST_SECONDS = 1.0


class Stdin:
    """A child's standard input. Several senders' lines never mix, even if a sender is cancelled."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._pipe = cast("io.FileIO", popen.stdin)
        # On Windows an event loop cannot wait for a pipe, so each write runs in a thread.
        self._blocking = os.name == "nt"
        os.set_blocking(self._pipe.fileno(), self._blocking)
        self._room = Readiness(self._pipe.fileno(), writable=True)
        self._lock = Lock()
        self._slices = Slices()
        # The rest of a line whose sender was cancelled, or empty.
        self._unsent = b""

    async def write(self, lines: bytes, begun: Callable[[], object] | None, is_answer: bool) -> None:
        # Nearly every answer fits into the pipe. Writing it without the lock makes a permission request a fifth faster.
        if is_answer and self.write_now(lines):
            if begun is not None:
                begun()
            return
        async with self._lock:
            if self._unsent:
                await self._write(self._unsent)
                self._unsent = b""
            await self._write(lines, begun, is_answer)

    def write_now(self, line: bytes) -> bool:
        # On Windows the pipe is blocking, so writing could block the caller.
        if self._blocking or self._unsent or self._pipe.closed or self._lock.locked() or len(line) > select.PIPE_BUF:
            return False
        try:
            return os.write(self._pipe.fileno(), line) == len(line)  # a write of at most PIPE_BUF bytes is not cut
        except OSError:  # the pipe is full, or the process closed its end
            return False

    async def end(self) -> None:
        async with self._lock:
            if self._unsent:
                try:
                    with move_on_after(LAST_SECONDS):
                        await self._write(self._unsent)
                except ProcessInputError:
                    pass  # the process has exited
            self.close()

    def close(self) -> None:
        if not self._pipe.closed:
            self._room.close()
            self._pipe.close()

    async def _write(self, lines: bytes, begun: Callable[[], object] | None = None, is_answer: bool = False) -> None:
        view = memoryview(lines)
        written = 0
        try:
            while written < len(view):
                if written or not is_answer:
                    await self._slices.pause()
                if self._pipe.closed:
                    raise ProcessInputError("the input of the process has already been ended")
                if self._popen.poll() is not None:
                    raise self._gone()
                before = written
                try:
                    if self._blocking:
                        written += await to_thread.run_sync(self._pipe.write, view[written:]) or 0
                    else:
                        written += os.write(self._pipe.fileno(), view[written:])
                    if not before and written and begun is not None:
                        begun()
                except BlockingIOError:
                    # Call poll() again every second, because the process's exit does not wake this wait while
                    # another process holds the pipe open.
                    with move_on_after(LAST_SECONDS):
                        await self._room.wait()
        except BrokenPipeError as error:
            raise (error if isinstance(error, ProcessInputError) else self._gone()) from None
        finally:
            if 0 < written < len(view) or lines is self._unsent:
                self._unsent = bytes(view[written:])

    def _gone(self) -> ProcessInputError:
        code = self._popen.poll()
        return ProcessInputError(
            "the process has closed its input" if code is None else f"the process {describe_exit(code)}"
        )
