"""Hooks: the input that a hook receives, and the output that it returns."""
