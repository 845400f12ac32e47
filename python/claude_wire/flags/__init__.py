"""The flags of the Claude Code CLI, which a host writes and an agent reads."""
