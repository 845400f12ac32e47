"""Find the part of a transcript that was added since the file was last read."""

from __future__ import annotations

import json
import os
from hashlib import blake2b

from claude_wire.columns import Range
from claude_wire.columns.usage_rows import UsageRows, read_usage
from claude_wire.transcripts.files import open_regular, read_small

#: If this many bytes before the old end are still the same, the file grew and was not replaced.
TAIL_BYTES = 256

#: The end of the last complete line is searched backwards, first in the last ``FIRST_BYTES``, then in blocks of
#: ``BLOCK_BYTES``. The first read is small, because the last line is usually complete.
FIRST_BYTES, BLOCK_BYTES = 1 << 16, 1 << 20

#: A ``.meta.json`` above this size is not read.
MAX_META_BYTES = 1 << 20


class FileDelta:
    """The part of a transcript that was added since the file was last read.

    ``inode``, ``offset`` and ``tail`` are from the previous ``state``. If the file was replaced since then, or never
    read before, all of it is new.

    Args:
        path: a session's or a subagent's file.
        inode: the inode that the file had.
        offset: the number of bytes that were read.
        tail: a digest of the last bytes that were read.

    Attributes:
        start: the offset at which the new part begins. It is 0 if all of the file is new.
        usage: the usage in the new part, with the last line even if it is incomplete.
        state: size, modification time in nanoseconds, inode, offset and tail. The offset is the end of the last
            complete line. It is 0 if an incomplete line follows and has an answer or a cost: the complete line may have
            another one, so the next delta reads the whole file again.
        bytes_read: the number of bytes read.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: str, inode: int = -1, offset: int = 0, tail: bytes = b"") -> None:
        self._path = path
        self.bytes_read: int = 0
        with open_regular(path) as self._file:
            status = os.fstat(self._file.fileno())
            self._size: int = status.st_size
            may_go_on = inode == status.st_ino and offset <= self._size
            # For most files, this one read has the old tail and the end of the last line.
            known = offset - TAIL_BYTES if may_go_on else 0
            begin = max(known, self._size - FIRST_BYTES, 0)
            self._last, self._last_begin = b"", self._size
            self._last, self._last_begin = self._bytes(begin, self._size), begin
            self.start: int = offset if may_go_on and self._tail(offset) == tail else 0
            end = self._end()
            last_line = read_usage(Range(path, end, self._size)) if end < self._size else None
            is_open = last_line is not None and bool(last_line.originals or last_line.copies or last_line.cost)
            self.usage: UsageRows = read_usage(Range(path, self.start, self._size))
            self.bytes_read += self._size - self.start
            offset = 0 if is_open else end
            self.state: tuple[int, int, int, int, bytes] = (
                *(status.st_size, status.st_mtime_ns, status.st_ino),
                *(offset, self._tail(offset)),
            )

    @property
    def agent(self) -> str:
        """Return the type of the subagent that the file belongs to, from the ``.meta.json`` next to the file."""
        try:
            meta = json.loads(read_small(self._path.removesuffix(".jsonl") + ".meta.json", MAX_META_BYTES))
            return str(meta["agentType"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return "subagent"

    def _bytes(self, start: int, stop: int) -> bytes:
        if start >= self._last_begin:
            return self._last[start - self._last_begin : stop - self._last_begin]
        self._file.seek(start)
        data = self._file.read(stop - start)
        self.bytes_read += len(data)
        return data

    def _tail(self, offset: int) -> bytes:
        return blake2b(self._bytes(max(offset - TAIL_BYTES, 0), offset), digest_size=8).digest()

    def _end(self) -> int:
        """Return the end of the last complete line."""
        if self._size > self.start and self._bytes(self._size - 1, self._size) == b"\n":
            return self._size
        stop, size = self._size, FIRST_BYTES
        while stop > self.start:
            begin = max(stop - size, self.start)
            end = self._bytes(begin, stop).rfind(b"\n")
            if end >= 0:
                return begin + end + 1
            stop, size = begin, BLOCK_BYTES
        return self.start
