"""The flags of the Claude Code CLI. A host writes them, and an agent reads them."""
