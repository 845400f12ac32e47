"""Read a child's standard error in a task: keep the last 64 KiB, and call a function with each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import Event

from claude_wire.limits import BLOCK_BYTES
from claude_wire.streams.tasks import EventLoopRef, Task, set_event
from claude_wire.support.waiting import closing_coroutine, move_on_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_wire.streams.sources import PipeChunks

#: Maximum number of bytes to keep from the end of the standard error.
STDERR_TAIL_BYTES = 64 * 1024


class StderrLines:
    """Keeps the end of the standard error, and calls the callback, if there is one, with each line."""

    def __init__(self, chunks: PipeChunks, callback: Callable[[str], object] | None = None) -> None:
        self._chunks = chunks
        self._callback = callback
        self._tail = bytearray()
        self._bytes = 0
        self._ended = Event()
        self._home = EventLoopRef()
        self._task = Task(self._run, "claude-wire-stderr")

    def tail(self) -> bytes:
        return bytes(self._tail)

    async def wait(self, seconds: float) -> None:
        """Wait until the standard error ends, or until no byte arrives for ``seconds``, and at most 10 times as long.

        The wait has a limit, because a grandchild may hold the pipe open.
        """
        for _ in range(10):
            before = self._bytes
            with move_on_after(seconds):
                await self._ended.wait()
            if self._ended.is_set() or self._bytes == before:
                return

    def close(self) -> None:
        self._chunks.close()

    def abandon(self) -> None:
        """If the loop is not running, drop the task and close the pipe."""
        if not self._home.call_soon(lambda: None):
            self._task.abandon()
            self.close()

    async def _run(self) -> None:
        unfinished = b""
        try:
            while data := await self._chunks.receive():
                self._bytes += len(data)
                self._tail += data
                del self._tail[:-STDERR_TAIL_BYTES]
                *lines, unfinished = (unfinished + data).split(b"\n")
                if len(unfinished) > BLOCK_BYTES:  # pass a long line in pieces
                    lines.append(unfinished)
                    unfinished = b""
                for line in lines:
                    self._emit(line)
        except OSError:
            pass
        finally:
            if unfinished and not closing_coroutine():
                self._emit(unfinished)
            set_event(self._ended)

    def _emit(self, line: bytes) -> None:
        if self._callback is None:
            return
        try:
            self._callback(line.removesuffix(b"\r").decode("utf-8", "replace"))
        except Exception as error:
            import logging

            logging.getLogger("claude_wire").warning("the stderr callback raised %s", type(error).__name__)
