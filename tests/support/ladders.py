"""A child that notes by what it is told to end, and what watches over tests with such children."""

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
    """Signals wait for the child's notes, and nothing is left at the end of the block."""
    patience.begin()
    try:
        with nothing_left():
            yield
    finally:
        patience.end()


class Ladder:
    """A child that notes by what it is told to end."""

    def __init__(self, path: Path, ends_at: str = "kill", grace: float = GRACE) -> None:
        self.path = path
        self.ends_at = ends_at
        self.grace = grace
        self.pid = 0
        #: When all that could end it was still to come, on the monotonic clock.
        self.since = 0.0

    def process(self) -> Process[Any]:
        return open_process(python(LADDER, self.path, self.ends_at), Decoder(dict), grace=self.grace)

    async def ready(self, process: Process[Any]) -> None:
        """Wait until the child is prepared for all that may come."""
        self.since = time.monotonic()
        self.pid = (await process.__anext__())["pid"]
        assert self.pid == process.pid

    def met(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def check(self) -> None:
        """It has met what is due before its end, in that order, and is gone; no signal was sent too early."""
        assert self.pid
        assert not exists(self.pid)
        assert self.met() == (["eof"] if self.ends_at == "eof" else ["eof", "term"])
        # However slow the machine: what was not yet due when the clock was read came after it.
        since = self.since
        for sent in patience.sent.get(self.pid, []):
            assert sent.decided - since >= self.grace - 1e-6
            since = sent.done


class Boom(Exception):
    pass


def eventually_gone(ladder: Ladder) -> None:
    assert ladder.pid
    wait_until(lambda: not exists(ladder.pid))
