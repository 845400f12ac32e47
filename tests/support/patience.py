"""Signals that wait until a child has written down what came before them.

The child is that of :data:`children.LADDER`, which notes the end of its input and SIGTERM. With this, SIGTERM is sent
when the child has noted the end of its input, and SIGKILL when it has noted SIGTERM; or when it has ended, if that is
what it ends by. So what the child has met, and how it ended, does not depend on how soon the system lets it run. A
signal whose note does not come is sent all the same, after :data:`PATIENCE`; then the notes show what was left out.

Hosts, which have a process of their own, import this as well; so it needs nothing but the standard library.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["MARK", "PATIENCE", "Sent", "before_sigterm", "begin", "end", "sent"]

#: Seconds to wait for a note that should be there.
PATIENCE = 15.0

#: Is in the code of a child that takes notes, in the file of its first argument.
MARK = "# takes notes"


class Sent(NamedTuple):
    """A signal to a child that takes notes."""

    signal: str
    #: When it was decided to send it, and when it was sent, on the monotonic clock.
    decided: float
    done: float


#: What was sent, by process id.
sent: dict[int, list[Sent]] = {}
#: Called, once each, when a child is about to be sent SIGTERM.
before_sigterm: list[Callable[[], object]] = []

_terminate, _kill = subprocess.Popen.terminate, subprocess.Popen.kill


def _after_note(popen: subprocess.Popen[Any], note: str, send: Callable[[subprocess.Popen[Any]], None]) -> None:
    args = popen.args
    if not (isinstance(args, list) and len(args) == 6 and MARK in str(args[3])):
        send(popen)
        return
    decided = time.monotonic()
    path, ends_at = map(str, args[4:])
    while time.monotonic() < decided + PATIENCE and popen.poll() is None:
        if ends_at != note and os.path.exists(path):  # else it ends by what it notes, if it is given the time
            with open(path) as file:
                if note in file.read():
                    break
        time.sleep(0.001)
    if note == "eof":
        while before_sigterm:
            before_sigterm.pop()()
    send(popen)
    sent.setdefault(popen.pid, []).append(Sent(send.__name__, decided, time.monotonic()))


def begin() -> None:
    """Let every signal of this process wait for the note before it."""
    subprocess.Popen.terminate = lambda popen: _after_note(popen, "eof", _terminate)
    subprocess.Popen.kill = lambda popen: _after_note(popen, "term", _kill)


def end() -> None:
    subprocess.Popen.terminate, subprocess.Popen.kill = _terminate, _kill
    sent.clear()
    before_sigterm.clear()
