"""How the command starts and ends: its streams, its exit codes."""

from __future__ import annotations

import os
import sys

#: What a shell reports for a process that SIGINT ended.
INTERRUPTED = 128 + 2


def main() -> None:
    """Run the command with the arguments of the process, and exit.

    The exit code is the command's own, 2 for wrong usage or output that cannot be written, 130 after Ctrl-C. When
    nobody reads its output any more it ends by SIGPIPE, as other programs do.
    """
    _open_streams()
    try:
        code = _run()
    except KeyboardInterrupt:  # also while it starts
        code = INTERRUPTED
    sys.exit(code)


def _open_streams() -> None:
    """Open standard streams that were closed, on nothing: else the first files that are opened get their numbers.

    Then whatever writes to standard error by its number, such as a child, writes into the lock or the recording.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            if number:  # a closed standard input stays None, so that whoever reads it is told
                setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - open until exit


def _run() -> int:
    # Not earlier: Ctrl-C may come meanwhile.
    from claude_wire_kit.commands.app import invoke
    from claude_wire_kit.commands.shared import signals

    signals.set_before_command()
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # the terminal's encoding may lack what a model says
    return invoke()
