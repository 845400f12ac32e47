"""Start and end the command: its standard streams and its exit codes."""

from __future__ import annotations

import os
import sys

#: The exit code of a shell for a process that SIGINT ended.
INTERRUPTED = 128 + 2


def main() -> None:
    """Run the command with the arguments of the process, and exit.

    The exit code is the command's own, 2 for wrong usage or output that cannot be written, 130 after Ctrl-C. When
    nobody reads its output any more it ends by SIGPIPE, as other programs do.
    """
    _open_streams()
    try:
        code = _run()
    except KeyboardInterrupt:  # also during the imports
        code = INTERRUPTED
    sys.exit(code)


def _open_streams() -> None:
    """Open closed standard streams on the null device. Otherwise the first opened files would get their numbers.

    Then anything that writes to standard error by its number, such as a child, would write into such a file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # open() returns the lowest free number, which is this stream's.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            if number:  # a closed standard input stays None, so that reading it is an error
                setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - open until exit


def _run() -> int:
    # Imported inside the try block, because Ctrl-C may come during the import.
    from claude_wire_kit.commands.app import invoke
    from claude_wire_kit.commands.shared import signals

    signals.set_before_command()
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # the terminal's encoding may lack characters that a model writes
    return invoke()
