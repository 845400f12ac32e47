"""Sizes that several folders share. All are in bytes."""

from __future__ import annotations

__all__ = ["BLOCK_BYTES", "DEFAULT_MAX_LINE_BYTES", "DEFAULT_SPILL_BYTES", "JOINED_BYTES"]

#: Default limit on the length of a line, in bytes without its line feed. The longest line in use is a tool result or an
#: image in base64, of tens of megabytes.
DEFAULT_MAX_LINE_BYTES = 128 * 1024 * 1024

#: Most bytes in a block of more than one line. What a pipe of Linux holds, and what stays in the cache meanwhile.
BLOCK_BYTES = 64 * 1024

#: Default of the most bytes in the file of a drain with ``overflow="spill"``.
DEFAULT_SPILL_BYTES = 1024**3

#: Chunks that wait as Python objects are joined up to this size, since each object takes 41 bytes more than its data.
JOINED_BYTES = 4096
