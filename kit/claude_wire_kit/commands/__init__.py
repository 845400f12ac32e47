"""The command ``claude-wire``. Each subcommand is a module; the ``claude-wire supervisor`` subcommands have a folder.

``start`` is the entry point, ``app`` finds the subcommand, and ``shared`` has code that several subcommands use.
"""

from claude_wire_kit.commands.start import main

__all__ = ["main"]
