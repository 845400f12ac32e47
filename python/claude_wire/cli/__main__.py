"""``python -m claude_wire.cli``: the command where no script is on PATH."""

from claude_wire.cli import main

main()
