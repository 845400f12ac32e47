"""Size limits in bytes that several of the library's packages share."""

from __future__ import annotations

__all__ = ["BLOCK_BYTES", "DEFAULT_MAX_LINE_BYTES", "DEFAULT_SPILL_BYTES", "JOINED_BYTES"]

#: The default maximum length of a line in bytes, without the line feed. The longest real lines are tool results and
#: base64 images of tens of megabytes.
DEFAULT_MAX_LINE_BYTES = 128 * 1024 * 1024

#: The maximum size of a block with more than one line. A Linux pipe holds as many bytes, and they fit into the
#: processor's cache.
BLOCK_BYTES = 64 * 1024

#: The default maximum size of a drain's temporary file with ``overflow="spill"``.
DEFAULT_SPILL_BYTES = 1024**3

#: Small waiting chunks are joined into chunks of at most this size, because each bytes object needs 41 bytes more
#: than its data.
JOINED_BYTES = 4096
