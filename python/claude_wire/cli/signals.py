"""Which signals end which command. Every command gets its signals here, and nowhere else.

SIGPIPE comes when a pipe or a socket is written to that nobody reads any more. What it does depends on the command:

- A filter reads files and writes what it finds. SIGPIPE ends it without a word, as it ends ``cat`` before ``head``.
- Every other command has children or connections. One of them that goes away must not end the command, so SIGPIPE is
  ignored, and a write to it fails with BrokenPipeError. If the *output* of the command fails like this, the command
  closes what it has, and then ends by SIGPIPE as a filter does.

SIGCHLD gets its default. A program that ignores SIGCHLD hands that down to the programs that it starts. Then the
system forgets children as soon as they end, and their pids may be given to strangers while we still signal them.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

__all__ = ["FILTERS", "announce", "arrange", "begin", "discard_output", "end_by_sigpipe"]

#: Commands without children and connections. A command that is not named here lives on.
FILTERS = frozenset(("check", "export", "search", "sessions", "stats", "usage", "view"))


#: Whether this process is the command, so that its signals are ours to set. A program that calls the command as a
#: function, as tests do, keeps its own.
_is_program = False


def begin() -> None:
    """Set the signals for the time before the command is known: messages and help are written as a filter writes."""
    global _is_program
    _is_program = True
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def arrange(command: str) -> None:
    """Set the signals for a command."""
    if _is_program and hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL if command in FILTERS else signal.SIG_IGN)


def announce(line: str) -> None:
    """Print a line of a service. A service whose output nobody reads lives on."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Send the rest of the output nowhere. It would fail again at the end of the interpreter, which exits with 120."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def end_by_sigpipe() -> int:
    """End this process, whose output nobody reads, by SIGPIPE. Returns an exit code where it cannot."""
    if _is_program and hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    return 1
