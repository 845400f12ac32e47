"""Match the lines of the live host with the recorded lines."""

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


class Expected:
    """A recorded line of the host, and its state: ``waiting``, ``here`` (it has arrived) or ``skipped``."""

    __slots__ = ("hooks", "identity", "kind", "live_hooks", "live_identity", "state", "subtype")

    def __init__(self, line: Line) -> None:
        self.kind: str = line.kind
        self.subtype: str = line.subtype
        self.identity: str = line.identity
        self.live_identity: str = line.identity
        self.hooks: dict[tuple[str, int, int], str] = line.hooks
        #: Id of a recorded hook -> id of the live host's hook at the same place.
        self.live_hooks: dict[str, str] = {}
        self.state: str = "waiting"


class Host:
    """Reads the lines of a live host, and finds the recorded line that each corresponds to.

    Prompts and requests are matched by their order, responses by their ids (the player's requests have the recorded
    ids). If the live host differs from the recorded host:

    * a prompt instead of a recorded request: the player no longer waits for the request, and does not play its answer;
    * a request instead of another recorded line: ``answer`` is called, and the player no longer waits for a request of
      this subtype that was recorded later;
    * a line that is not JSON: ``refuse`` is called, unless the recording also has such a line;
    * further prompts and responses, and lines that the CLI ignores (``keep_alive``), are dropped.
    """

    def __init__(
        self, expected: list[Expected], answer: Callable[[Line], None], refuse: Callable[[bytes], None]
    ) -> None:
        self.ended: bool = False
        self.closed: bool = False  # True after the end of the input; earlier lines may still be in the queue
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._ordered = [each for each in expected if each.kind != "response"]
        self._responses = {each.identity: each for each in expected if each.kind == "response"}
        self._answer = answer
        self._refuse = refuse

    def start(self) -> None:
        """Start a reader thread, so that the host can keep sending while a full pipe blocks the player."""
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
        self._lines.put(b"".join(carry))  # the CLI accepts a last line without its line feed
        self._lines.put(None)

    def look(self) -> None:
        """Take the lines that have arrived, without waiting."""
        while not self._lines.empty():
            self._take(self._lines.get())

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a line, at most ``seconds`` or until the input ends, and take it. Return False without a line."""
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
        """Wait for the live line that corresponds to a recorded line, or for the end of the input."""
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
