"""The service as a program, for tests whose own thread is the browser's: ``served_program.py FOLDER``.

It writes its URL, and then a line for each line that it has done: ``stop`` and ``start``, the service alone, while the
sessions of its supervisor go on. It ends with its input.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from anyio import to_thread

import served as in_tests

__all__ = ["ServedProgram", "run_service"]


class ServedProgram:
    """A service that runs in another process."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        #: Its address, without a slash at the end.
        self.url: str = self._line()

    def _line(self) -> str:
        assert self._child.stdout is not None
        return self._child.stdout.readline().strip()

    def _do(self, what: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{what}\n")
        self._child.stdin.flush()
        assert self._line() == what

    def stop(self) -> None:
        """Stop the service. Its sessions go on."""
        self._do("stop")

    def start(self) -> None:
        """Start it again, on the port that it had."""
        self._do("start")


@contextmanager
def run_service(folder: Path) -> Iterator[ServedProgram]:
    """A service on a supervisor of its own, for a block."""
    command = [sys.executable, __file__, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield ServedProgram(child)
        finally:
            child.communicate(timeout=60)
    assert child.returncode == 0


async def main(folder: Path) -> None:
    """Run until the input ends."""
    async with in_tests.served(folder) as service:
        print(service.url, flush=True)
        while line := (await to_thread.run_sync(sys.stdin.readline)).strip():
            await (service.stop() if line == "stop" else service.start())
            print(line, flush=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
