"""The flags of the Claude Code CLI. Hosts write them, and agents read them."""
