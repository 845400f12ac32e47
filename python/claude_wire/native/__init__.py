"""Wrappers for the native library, which splits bytes into lines, and reads pipes while their reader is busy."""
