"""The command ``claude-wire``: ``run`` the CLI and watch it, ``view``, ``check`` and ``replay`` what was recorded, add
up its ``stats``, and ``demo`` without an account; the ``usage`` of the ``sessions`` on disk, and ``search`` in them.

It needs the extra ``cli``. ``start`` knows how the command starts and ends, ``app`` its
subcommands, ``sources`` opens what the user names, ``folders`` finds the sessions on disk, and ``failure`` ends a
subcommand that cannot do what it was told.

- ``commands`` has a module for each subcommand but ``serve``, ``supervisor`` and ``tap``: its arguments, and what it
  does with them.
- ``show`` puts messages on a terminal.
- ``count`` adds up what recordings hold.
- ``terminal`` runs a session whose user sits at the terminal, or joins one of a supervisor.
- ``supervisor`` is ``claude-wire supervisor``: a supervisor, and what a person does with its sessions from a shell.
- ``tap`` is run in place of the CLI, and passes on what goes over its streams.
"""

from claude_wire.cli.start import main

__all__ = ["main"]
