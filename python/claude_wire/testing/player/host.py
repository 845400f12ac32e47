"""Match the live host's lines with the recorded host's lines."""

from __future__ import annotations

import os
import threading
import time
from queue import Empty, SimpleQueue

from .lines import Line
from .pipes import BLOCK_BYTES, STDIN

TYPE_CHECKING = False  # do not import typing, which is slow
if TYPE_CHECKING:
    from collections.abc import Callable


class Expected(Line):
    """A line of the recorded host. Its state is ``waiting``, ``here`` (the live host sent its match) or ``skipped``."""

    __slots__ = ("live_hooks", "live_identity", "state")

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.live_identity: str = self.identity
        #: Recorded hook id -> id of the live host's hook at the same position in ``initialize``.
        self.live_hooks: dict[str, str] = {}
        self.state: str = "waiting"


class Host:
    """Reads the live host's lines, and matches each with a line of the recorded host.

    Prompts and requests match in order. Responses match by id, because the player's requests have the recorded ids. The
    live host may differ from the recorded host:

    * It sends a prompt instead of a request: the player does not wait for the request or play its recorded answer.
    * It sends a request that is not the next recorded line: ``Host`` calls ``answer``. If a request of this subtype was
      recorded later, the player does not wait for that request.
    * It sends a line that is not JSON: ``Host`` calls ``refuse``, unless the recording also has such a line.
    * It sends more prompts or responses than were recorded, or a line that the CLI ignores, such as ``keep_alive``:
      ``Host`` drops the line.
    """

    def __init__(
        self, expected: list[Expected], answer: Callable[[Line], None], refuse: Callable[[bytes], None]
    ) -> None:
        self.ended: bool = False
        self.closed: bool = False  # True once standard input has ended, even if lines are still queued
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._ordered = [each for each in expected if each.kind != "response"]
        self._responses = {each.identity: each for each in expected if each.kind == "response"}
        self._answer = answer
        self._refuse = refuse

    def start(self) -> None:
        """Start a reader thread. The host can then keep sending while a full pipe blocks the player."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        carry: list[bytes] = []
        while True:
            try:
                data = os.read(STDIN, BLOCK_BYTES)
            except OSError:  # the player was started without a standard input
                data = b""
            if not data:
                break
            *lines, rest = data.split(b"\n")
            for line in lines:
                carry.append(line)
                self._lines.put(b"".join(carry))
                carry.clear()
            carry.append(rest)
        self.closed = True
        self._lines.put(b"".join(carry))  # the CLI also accepts a last line without a line feed
        self._lines.put(None)

    def look(self) -> None:
        """Handle the lines that have arrived, without waiting."""
        while not self._lines.empty():
            self._take(self._lines.get())

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a line and handle it. Return False if the input has ended or no line arrives within ``seconds``."""
        if self.ended:
            time.sleep(seconds or 0.0)
            return False
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            return False
        self._take(line)
        return True

    def wait_for(self, expected: Expected) -> None:
        """Wait until the live host sends the match of a recorded line, or until the input ends."""
        while expected.state == "waiting" and self.wait():
            pass

    def _take(self, data: bytes | None) -> None:
        if data is None:
            self.ended = True
            return
        line = Line(data)
        if line.kind == "response":
            expected = self._responses.get(line.identity)
            if expected is not None:
                expected.state = "here"
        elif line.kind == "request":
            self._take_request(line)
        elif line.kind in ("user", "garbage"):
            self._take_prompt(line, data)

    def _take_prompt(self, line: Line, data: bytes) -> None:
        index = next((index for index, each in enumerate(self._ordered) if each.kind == line.kind), None)
        if index is None:
            if line.kind == "garbage":
                self._refuse(data)
            return
        for passed in self._ordered[:index]:
            passed.state = "skipped"
        self._ordered[index].state = "here"
        del self._ordered[: index + 1]

    def _take_request(self, line: Line) -> None:
        same = (
            index for index, each in enumerate(self._ordered) if (each.kind, each.subtype) == ("request", line.subtype)
        )
        index = next(same, None)
        if index == 0:
            self._ordered[0].live_identity = line.identity
            self._ordered[0].live_hooks = {
                id: line.hooks[place] for place, id in self._ordered[0].hooks.items() if place in line.hooks
            }
            self._ordered[0].state = "here"
        else:
            self._answer(line)
            if index is not None:
                self._ordered[index].state = "skipped"
        if index is not None:
            del self._ordered[index]
