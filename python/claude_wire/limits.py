"""Sizes in bytes that several packages of the library share."""

from __future__ import annotations

__all__ = ["BLOCK_BYTES", "DEFAULT_MAX_LINE_BYTES", "DEFAULT_SPILL_BYTES", "JOINED_BYTES"]

#: The default limit for a line, in bytes without its line feed. The longest lines in use are tool results and base64
#: images of tens of megabytes.
DEFAULT_MAX_LINE_BYTES = 128 * 1024 * 1024

#: The size limit of a block with more than one line. It is the size of a pipe on Linux, and fits into the processor's
#: cache.
BLOCK_BYTES = 64 * 1024

#: The default size limit for the temporary file of a drain with ``overflow="spill"``.
DEFAULT_SPILL_BYTES = 1024**3

#: Waiting small chunks are joined to chunks of at most this size, because each bytes object takes 41 bytes more than
#: its data.
JOINED_BYTES = 4096
