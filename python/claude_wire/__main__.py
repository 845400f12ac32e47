"""``python -m claude_wire`` prints the library's version, and where to find the command ``claude-wire``."""

import sys

from claude_wire import PROTOCOL_VERSION, __version__

COMMAND = "The command claude-wire is in the package claude-wire-kit. In a clone of claude_wire: pip install . ./kit"

if __name__ == "__main__":
    print(f"claude-wire {__version__} (protocol of CLI {PROTOCOL_VERSION})")
    print(COMMAND, file=sys.stderr)
    sys.exit(sys.argv[1:] != ["--version"])
