"""Set how the command handles SIGPIPE, SIGCHLD, SIGTERM and SIGHUP.

A process gets SIGPIPE when it writes to a pipe or a socket whose reader has exited:

- A filter reads files and prints findings. SIGPIPE terminates a filter silently, like ``cat`` in ``cat FILE | head``.
- All other commands have child processes or connections, and must survive if one of these ends. These commands ignore
  SIGPIPE, so a write fails with BrokenPipeError. If that happens to the command's own output, the command terminates
  its children, closes its connections, and then terminates by SIGPIPE like a filter.

The command resets SIGCHLD to its default handling. It may have inherited an ignored SIGCHLD from the program that
started it. Then the kernel would free the pid of each child when the child exits, and a signal to this pid might hit
another process.

SIGTERM and SIGHUP would terminate Python without running its context managers. A command that starts processes or makes
temporary files runs in the block of :func:`unwound`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

#: The filters: commands without child processes and connections.
FILTERS = frozenset(("check", "export", "search", "sessions", "stats", "usage", "view"))


#: True if this process was started as the command. If another program calls the command as a function, as tests do,
#: that program's signal handling is not changed.
_is_program = False


def set_before_command() -> None:
    """Set the signals until the subcommand is known: SIGPIPE terminates the process."""
    global _is_program
    _is_program = True
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def set_for_command(command: str) -> None:
    if _is_program and hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL if command in FILTERS else signal.SIG_IGN)


@contextmanager
def unwound() -> Generator[None]:
    """Make SIGTERM and SIGHUP raise SystemExit in this block, so its context managers can clean up.

    The exit code is 143. A second signal is ignored. If SIGHUP is ignored at the start, as with ``nohup``, it stays
    ignored.
    """

    def leave(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    def hang_up(number: int, _: object) -> None:
        signal.raise_signal(signal.SIGTERM)  # uvicorn handles SIGTERM, but not SIGHUP

    if not _is_program or not hasattr(signal, "SIGHUP"):  # not on Windows
        yield
        return
    handlers = {signal.SIGTERM: leave}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = hang_up
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def announce(line: str) -> None:
    """Print a line from a service, which keeps running even if the reader of its output has exited."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Discard the rest of the output. Otherwise the interpreter's flush at exit fails, and the exit code is 120."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def end_by_sigpipe() -> int:
    """Terminate this process with SIGPIPE, because the reader of its output exited. If that is impossible, return 1."""
    if _is_program and hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    return 1
