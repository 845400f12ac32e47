"""A child that logs the end of its input and SIGTERM, and a check around the tests with such children."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import patience
from children import GRACE, LADDER, exists, nothing_left, python, wait_until
from claude_wire import Decoder, Process, open_process

__all__ = ["Boom", "Ladder", "eventually_gone", "watched"]


@contextmanager
def watched() -> Iterator[None]:
    """Delay signals until the child has logged, and check that the block leaves nothing behind."""
    patience.begin()
    try:
        with nothing_left():
            yield
    finally:
        patience.end()


class Ladder:
    """A child that logs the end of its input and SIGTERM."""

    def __init__(self, path: Path, ends_at: str = "kill", grace: float = GRACE) -> None:
        self.path = path
        self.ends_at = ends_at
        self.grace = grace
        self.pid = 0
        #: A time on the monotonic clock before any step that could end the child.
        self.since = 0.0

    def process(self) -> Process[Any]:
        return open_process(python(LADDER, self.path, self.ends_at), Decoder(dict), grace=self.grace)

    async def ready(self, process: Process[Any]) -> None:
        """Wait until the child has installed its signal handler."""
        self.since = time.monotonic()
        self.pid = (await process.__anext__())["pid"]
        assert self.pid == process.pid

    def met(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def check(self) -> None:
        """Check that the child logged the right events in order and is gone, and that no signal was sent too early."""
        assert self.pid
        assert not exists(self.pid)
        assert self.met() == (["eof"] if self.ends_at == "eof" else ["eof", "term"])
        # This holds on a slow machine too: the clock was read before the grace period began.
        since = self.since
        for sent in patience.sent.get(self.pid, []):
            assert sent.decided - since >= self.grace - 1e-6
            since = sent.done


class Boom(Exception):
    pass


def eventually_gone(ladder: Ladder) -> None:
    assert ladder.pid
    wait_until(lambda: not exists(ladder.pid))
