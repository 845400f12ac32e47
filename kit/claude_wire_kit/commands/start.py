"""The entry point of the command: open the standard streams, run, and exit."""

from __future__ import annotations

import os
import sys

#: The exit code that shells report for a process that SIGINT terminated.
INTERRUPTED = 128 + 2


def main() -> None:
    """Run the command with the process's arguments, and exit.

    The exit code is the subcommand's, 2 for wrong usage or output that cannot be written, 130 after Ctrl-C. If the
    reader of its output has exited, the command terminates by SIGPIPE, like other programs.
    """
    _open_streams()
    try:
        code = _run()
    except KeyboardInterrupt:  # also during the imports
        code = INTERRUPTED
    sys.exit(code)


def _open_streams() -> None:
    """Open closed standard streams on the null device.

    Otherwise, the first files that the command opens would get the descriptors 0 to 2. Then a child process that writes
    to standard error would write into such a file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # open() uses the lowest free descriptor, which is the closed stream's.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            if number:  # sys.stdin stays None, so reading a closed standard input is an error
                setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - open until exit


def _run() -> int:
    # Imported here, in the try block of main(), because the user may press Ctrl-C during the import.
    from claude_wire_kit.commands.app import invoke
    from claude_wire_kit.commands.shared import signals

    signals.set_before_command()
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # the terminal's encoding may lack characters that a model writes
    return invoke()
