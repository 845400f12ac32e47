"""Bytes from anywhere, as messages: files, pipes, event loops."""
