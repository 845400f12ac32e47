"""``system`` messages: what the CLI tells of itself."""
