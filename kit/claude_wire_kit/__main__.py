"""``python -m claude_wire_kit``: the command ``claude-wire``."""

from claude_wire_kit.commands import main

main()
