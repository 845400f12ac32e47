"""The command ``claude-wire``: ``run`` the CLI and watch it, ``view``, ``check`` and ``replay`` what was recorded, add
up its ``stats``, and ``demo`` without an account; the ``usage`` of the ``sessions`` on disk, and ``search`` in them.

``start`` knows how the command starts and ends, ``app`` its subcommands. Each subcommand has a module of its name with
its arguments and what it does with them; ``supervisor`` has a folder. ``shared`` has what several of them use.
"""

from claude_wire_kit.commands.start import main

__all__ = ["main"]
