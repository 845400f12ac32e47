"""The command ``claude-wire`` and its subcommands, one module for each.

``start`` runs the command, ``app`` finds the subcommand, and ``shared`` has what several subcommands use. The
subcommands of ``claude-wire supervisor`` are in the folder ``supervisor``.
"""

from claude_wire_kit.commands.start import main

__all__ = ["main"]
