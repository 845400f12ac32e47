"""``python -m claude_wire``: the command ``claude-wire``."""

from claude_wire.cli import main

main()
