"""StderrLines: how it splits a standard error into lines, and how long it waits for the end, in virtual time."""

from __future__ import annotations

from typing import Any, cast

import anyio

from claude_wire.process.stderr import StderrLines
from virtual_time import VirtualBackend, every_virtual_backend


class Chunks:
    """A source that returns a line every ``every`` seconds, and then ends or stays silent."""

    def __init__(self, lines: int, every: float, *, ends: bool = True) -> None:
        self.left = lines
        self._every = every
        self._ends = ends

    async def receive(self) -> bytes:
        await anyio.sleep(self._every)
        if self.left:
            self.left -= 1
            return b"line\n"
        if not self._ends:
            await anyio.sleep_forever()
        return b""


def waited(virtual: VirtualBackend, chunks: Chunks) -> tuple[int, float]:
    """Wait for at most one second. Return the number of lines and the seconds that passed."""

    async def main() -> tuple[int, float]:
        got: list[str] = []
        lines = StderrLines(cast("Any", chunks), got.append)
        begun = anyio.current_time()
        await lines.wait(1.0)
        passed = anyio.current_time() - begun
        lines._task.cancel()
        return len(got), round(passed, 3)

    return virtual.run(main)


@every_virtual_backend
def test_the_end_is_waited_for_as_long_as_bytes_come(virtual: VirtualBackend) -> None:
    assert waited(virtual, Chunks(5, every=0.75)) == (5, 4.5)


@every_virtual_backend
def test_it_is_not_waited_for_when_nothing_comes(virtual: VirtualBackend) -> None:
    assert waited(virtual, Chunks(2, every=0.75, ends=False)) == (2, 3.0)


@every_virtual_backend
def test_it_is_not_waited_for_without_end_though_bytes_come(virtual: VirtualBackend) -> None:
    assert waited(virtual, Chunks(1000, every=0.75)) == (13, 10.0)
