"""The command ``claude-wire``: ``run`` the CLI and watch it, ``view``, ``check`` and ``replay`` what was recorded, add
up its ``stats``, and ``demo`` without an account.

It needs the extra: ``pip install "claude-wire[cli]"``. This module knows how a command starts and ends (the extra that
may be missing, signals, exit codes); ``app`` knows the commands.

Which module holds what: ``run`` is a command; ``hosting`` runs its session, ``asking`` asks at the terminal, ``record``
writes it all down. ``view`` is a command; ``live`` shows messages on a ``page``, as ``run`` and ``demo`` do, too, and
``notices``, ``questions`` and ``excerpts`` say what is shown of each. ``stats`` is a command, ``tally`` adds up.
``check`` is a command, ``survey`` what it counts, ``fields`` how it finds what no class knows, and ``report`` how that
is written down. ``replay`` is a command, what it starts is in ``claude_wire.testing``. ``demo`` is a command,
``data/session`` the recording it plays, ``race`` what is measured then.

``sources`` opens what the user names, ``kinds`` says what messages are called, ``printable`` makes foreign text safe to
print, ``output`` prints it, ``failure`` ends a command that cannot do what it was told to.
"""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]

#: What a shell reports for a process that SIGINT ended.
INTERRUPTED = 128 + 2


def main() -> None:
    """Run the command with the arguments of the process, and exit.

    The exit code is the command's own, 2 for wrong usage, a missing extra or output that cannot be written, 130 after
    Ctrl-C. When nobody reads its output any more it ends by SIGPIPE, as other filters do.
    """
    try:
        code = _run()
    except KeyboardInterrupt:  # also while it starts
        code = INTERRUPTED
    sys.exit(code)


def _run() -> int:
    try:
        from claude_wire.cli.app import invoke
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("click", "rich"):
            raise
        print(f'claude-wire needs {missing}: pip install "claude-wire[cli]"', file=sys.stderr)
        return 2
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # the terminal's encoding may lack what a model says
    return invoke()
