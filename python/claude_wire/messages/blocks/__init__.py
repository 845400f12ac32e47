"""Content blocks: the parts of a message."""
