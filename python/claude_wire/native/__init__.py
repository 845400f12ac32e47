"""The native library, and all that touches it: lines in a buffer, and pipes that nobody reads."""
