"""Write to the input of a CLI. Data waits here while the CLI's pipe is full."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claude_wire_kit.supervisor.child import Child

#: When more than this waits for a CLI that does not read, nothing more is read from its driver.
MAX_WAITING_BYTES = 1024 * 1024


class StdinWriter:
    """The input of one process.

    Args:
        child: the process.
        drained: called when nothing waits any more.
    """

    def __init__(self, child: Child, drained: Callable[[], object]) -> None:
        self._child = child
        self._drained = drained
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        #: True if the input ends after the waiting data.
        self.ends: bool = False

    @property
    def is_behind(self) -> bool:
        """Return True if too much waits for the process, so that nothing more should be read from its driver."""
        return len(self._waiting) > MAX_WAITING_BYTES

    def write(self, line: bytes) -> None:
        """Send a line as soon as there is room. After the end of the input, drop it."""
        begins = not self._waiting
        self._waiting += line
        if begins:
            self._flush()

    def end(self) -> None:
        """End the input after the waiting data. A second call does nothing."""
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
        except BrokenPipeError:  # the CLI reads no more; clients will see its end
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
        """Drop the waiting data, and send nothing more. A second call does nothing."""
        if self._child.stdin is not None:
            self._loop.remove_writer(self._child.stdin)
        self._waiting.clear()
