"""Write to a CLI's input, and keep the data in memory while the CLI's pipe is full."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claude_wire_kit.supervisor.child import Child

#: While more than this many bytes are waiting for a CLI, the supervisor does not read from the session's driver.
MAX_WAITING_BYTES = 1024 * 1024


class StdinWriter:
    """Writes to one CLI's input.

    Args:
        child: the CLI.
        drained: called once all waiting data is written.
    """

    def __init__(self, child: Child, drained: Callable[[], object]) -> None:
        self._child = child
        self._drained = drained
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        #: True once :meth:`end` was called: the writer closes the input after the waiting data.
        self.ends: bool = False

    @property
    def is_behind(self) -> bool:
        """True if more than :data:`MAX_WAITING_BYTES` are waiting. Do not read from the driver then."""
        return len(self._waiting) > MAX_WAITING_BYTES

    def write(self, line: bytes) -> None:
        """Write a line as soon as the pipe has room. Drop the line if the input is closed."""
        begins = not self._waiting
        self._waiting += line
        if begins:
            self._flush()

    def end(self) -> None:
        """Close the input once the waiting data is written. A second call does nothing."""
        self.ends = True
        if not self._waiting:
            self._flush()

    def _flush(self) -> None:
        stdin = self._child.stdin
        if stdin is None:
            self._waiting.clear()
            return
        try:
            sent = os.write(stdin, self._waiting) if self._waiting else 0
        except BlockingIOError:
            sent = 0
        except BrokenPipeError:  # the CLI exited or closed its input, so drop the data
            sent = len(self._waiting)
        del self._waiting[:sent]
        if self._waiting:
            self._loop.add_writer(stdin, self._flush)
            return
        self._loop.remove_writer(stdin)
        if self.ends:
            self._child.end_input()
        self._drained()

    def close(self) -> None:
        """Drop the waiting data, and stop writing. A second call does nothing."""
        if self._child.stdin is not None:
            self._loop.remove_writer(self._child.stdin)
        self._waiting.clear()
