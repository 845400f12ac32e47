"""Wrappers of the native library: they split bytes into lines, and read pipes while the reader is busy."""
