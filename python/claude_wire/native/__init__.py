"""The native library and its wrappers: split bytes into lines, and empty pipes while their reader is busy."""
