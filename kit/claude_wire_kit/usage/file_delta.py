"""Read what was added to a session's file since the last time, and remember where to go on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import blake2b

from claude_wire.codec import Decoder
from claude_wire.columns import Range, scan
from claude_wire.transcripts import CostStateRecord, Record
from claude_wire.transcripts.files import open_regular, read_small
from claude_wire_kit.usage.rows import COLUMNS, Row, answers_in

#: If this many bytes before the old end are unchanged, the file has grown and was not replaced.
TAIL_BYTES = 256

#: The size of a block in the search from the end, and of the largest ``cost-state`` that is found.
BLOCK_BYTES, MAX_COST_BYTES = 1 << 20, 1 << 16

#: A ``.meta.json`` above this size is not read.
MAX_META_BYTES = 1 << 20


class FileDelta:
    """The part of a file that is new since it was read last.

    Args:
        path: the file of a session, or of a subagent.
        inode: the file's inode then. ``offset``: how many of its bytes were read. ``tail``: a digest of the last
            of these bytes. If the file was replaced since, all of it is new.

    Attributes:
        start: where the new part begins.
        state: size, time, inode, offset and tail, for the next time. The offset is after the last complete line; 0 if
            an unfinished last line counts, because more bytes may change what the line is.
        cost: the last ``cost-state`` in the new part, as JSON: the total and those of the models, or None.
        session: the session of ``cost``.
        bytes_read: bytes that this object has read.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: str, inode: int = -1, offset: int = 0, tail: bytes = b"") -> None:
        self._path = path
        self.bytes_read: int = 0
        self.cost: str | None = None
        self.session: str | None = None
        with open_regular(path) as self._file:
            status = os.fstat(self._file.fileno())
            self._size: int = status.st_size
            goes_on = inode == status.st_ino and offset <= self._size and self._tail(offset) == tail
            self.start: int = offset if goes_on else 0
            end = self._end()
            self._find_cost(end)
            is_open = end < self._size and any(answers_in(scan(Range(path, end, self._size), "usage", COLUMNS), path))
            offset = 0 if is_open else end
            self.state: tuple[int, int, int, int, bytes] = (
                *(status.st_size, status.st_mtime_ns, status.st_ino),
                *(offset, self._tail(offset)),
            )

    def answers(self) -> Iterator[Row]:
        """Yield the new answers, also those of an unfinished last line. Raises the errors of :func:`answers_in`."""
        if self._size > self.start:
            source = scan(Range(self._path, self.start, self._size), "usage", COLUMNS)
            yield from answers_in(source, self._path)
            self.bytes_read += source.report.bytes

    @property
    def agent(self) -> str:
        """Return the type of the subagent whose file this is, from the ``.meta.json`` beside it."""
        try:
            meta = json.loads(read_small(self._path.removesuffix(".jsonl") + ".meta.json", MAX_META_BYTES))
            return str(meta["agentType"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return "subagent"

    def _bytes(self, start: int, stop: int) -> bytes:
        self._file.seek(start)
        data = self._file.read(stop - start)
        self.bytes_read += len(data)
        return data

    def _tail(self, offset: int) -> bytes:
        return blake2b(self._bytes(max(offset - TAIL_BYTES, 0), offset), digest_size=8).digest()

    def _blocks(self, stop: int, more: int) -> Iterator[tuple[int, bytes]]:
        """Yield the new part in blocks, the last one first, each with ``more`` of the bytes after it."""
        while stop > self.start:
            begin = max(stop - BLOCK_BYTES, self.start)
            yield begin, self._bytes(begin, min(stop + more, self._size))
            stop = begin

    def _end(self) -> int:
        if self._size > self.start and self._bytes(self._size - 1, self._size) == b"\n":
            return self._size
        ends = (begin + data.rfind(b"\n") + 1 for begin, data in self._blocks(self._size, 0) if b"\n" in data)
        return next(ends, self.start)

    def _find_cost(self, end: int) -> None:
        for _, data in self._blocks(end, MAX_COST_BYTES):
            at = len(data)
            # Within a JSON string the quote would be escaped, so this is a value or a key.
            while (at := data.rfind(b'"cost-state"', 0, at)) >= 0:
                begin = data.rfind(b"\n", 0, at) + 1
                for record in Decoder(Record).feed(data[begin : data.find(b"\n", at) + 1]):
                    if isinstance(record, CostStateRecord) and record.totalCostUSD is not None:
                        models = {name: usage.costUSD or 0.0 for name, usage in (record.modelUsage or {}).items()}
                        self.cost, self.session = json.dumps([record.totalCostUSD, models]), record.sessionId
                        return
                at = begin
