"""Delay signals until a child has logged the event before them.

The child runs :data:`children.LADDER`, which logs the end of its input and SIGTERM. With this module, SIGTERM is sent
only after the child has logged the end of its input, and SIGKILL only after it has logged SIGTERM, or after it has
ended if that event ends it. So the log and the exit do not depend on how soon the system schedules the child. If a log
entry does not appear within :data:`PATIENCE`, the signal is sent anyway, and the log shows the missing event.

Hosts run in other processes and import this module as well, so it imports only the standard library.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["MARK", "PATIENCE", "Sent", "before_sigterm", "begin", "end", "sent"]

#: Seconds to wait for a log entry.
PATIENCE = 30.0

#: The code of every logging child contains this mark. Its first argument is the log file.
MARK = "# takes notes"


class Sent(NamedTuple):
    """A signal that was sent to a logging child."""

    signal: str
    #: Two times on the monotonic clock: when the library called ``terminate`` or ``kill``, and when the signal was
    #: sent.
    decided: float
    done: float


#: Process id -> the signals sent to it.
sent: dict[int, list[Sent]] = {}
#: Functions to call once, right before a child is sent SIGTERM.
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
        if ends_at != note and os.path.exists(path):  # otherwise this event ends it, so wait for its exit
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
    """From now on, delay every signal of this process until the child's log entry."""
    subprocess.Popen.terminate = lambda popen: _after_note(popen, "eof", _terminate)
    subprocess.Popen.kill = lambda popen: _after_note(popen, "term", _kill)


def end() -> None:
    subprocess.Popen.terminate, subprocess.Popen.kill = _terminate, _kill
    sent.clear()
    before_sigterm.clear()
