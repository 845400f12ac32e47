"""Set the signal handling of every command. No other module does this.

A process gets SIGPIPE when it writes to a pipe or a socket that nobody reads any more. Our reaction depends on the
command:

- A filter reads files and prints its findings. SIGPIPE ends a filter silently, like ``cat`` in ``cat FILE | head``.
- Every other command has children or connections, and must survive when one of them goes away. So these commands ignore
  SIGPIPE, and the write fails with BrokenPipeError. If the write to the command's own *output* fails, the command
  closes its children and connections, and then ends by SIGPIPE like a filter.

SIGCHLD gets its default handling. A program that ignores SIGCHLD passes this on to the programs that it starts. Then
the system frees the pid of a child as soon as the child ends, and we might signal a stranger with the same pid.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

#: Commands without children and connections. SIGPIPE ends only these commands.
FILTERS = frozenset(("check", "export", "search", "sessions", "stats", "usage", "view"))


#: True if this process is the command, so that we may set its signals. A program that calls the command as a function,
#: as tests do, keeps its own signal handling.
_is_program = False


def set_before_command() -> None:
    """Set the signals for the time before the command is known: SIGPIPE ends the process, as it ends a filter."""
    global _is_program
    _is_program = True
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def set_for_command(command: str) -> None:
    if _is_program and hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL if command in FILTERS else signal.SIG_IGN)


def announce(line: str) -> None:
    """Print a line of a service. The service survives if nobody reads its output."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Discard the rest of the output. Otherwise the interpreter fails to flush it at exit, and exits with code 120."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def end_by_sigpipe() -> int:
    """End this process by SIGPIPE, because nobody reads its output. Returns an exit code if SIGPIPE cannot end it."""
    if _is_program and hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    return 1
