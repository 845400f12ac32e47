"""Find the part of a transcript that was added since the file was last read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import blake2b

import msgspec

from claude_wire.codec import Decoder
from claude_wire.columns import Range
from claude_wire.transcripts import CostStateRecord, Record
from claude_wire.transcripts.files import open_regular, read_small
from claude_wire_kit.usage.rows import answers_in

#: If this many bytes before the old end are still the same, the file grew and was not replaced.
TAIL_BYTES = 256

#: The search for a ``cost-state`` begins at the end of a file, and reads blocks. The first block is small, because the
#: last lines usually have one. The search may miss a ``cost-state`` of more than ``MAX_COST_BYTES``.
FIRST_BYTES, BLOCK_BYTES, MAX_COST_BYTES = 1 << 16, 1 << 20, 1 << 16

#: A ``.meta.json`` above this size is not read.
MAX_META_BYTES = 1 << 20


class _ModelCost(msgspec.Struct, gc=False):
    costUSD: int | float | None = None


class _CostState(msgspec.Struct, tag_field="type", tag="cost-state", gc=False):
    """The fields of a ``CostStateRecord`` that are needed. Decoding the whole record takes ten times as long."""

    sessionId: str | None = None
    totalCostUSD: int | float | None = None
    modelUsage: dict[str, _ModelCost] | None = None


_COST_STATE = msgspec.json.Decoder(_CostState)


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
        part: the new part, with the last line even if it is incomplete.
        state: size, modification time in nanoseconds, inode, offset and tail. The offset is the end of the last
            complete line. It is 0 if an incomplete line follows and has an answer: the complete line may have another
            answer, so the next delta reads the whole file again.
        cost: the last ``cost-state`` in the new part, as the JSON ``[total, {model: cost}]``. None if there is none.
        session: the id of the session that ``cost`` belongs to.
        bytes_read: the number of bytes read so far, not counting what the caller reads from ``part``.

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
            may_go_on = inode == status.st_ino and offset <= self._size
            # For most files this is the only read. It returns the old tail and everything new.
            known = offset - TAIL_BYTES if may_go_on else 0
            begin = max(known, self._size - FIRST_BYTES, 0)
            self._last, self._last_begin = b"", self._size
            self._last, self._last_begin = self._bytes(begin, self._size), begin
            self._start: int = offset if may_go_on and self._tail(offset) == tail else 0
            end = self._end()
            self._find_cost(end)
            is_open = end < self._size and bool(answers_in([Range(path, end, self._size)]))
            self.part: Range = Range(path, self._start, self._size)
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

    def _blocks(self, stop: int, more: int) -> Iterator[tuple[int, bytes]]:
        """Yield the new part until ``stop`` as (offset, block), the last block first.

        A block includes ``more`` bytes after it. So a line that begins in a block is complete if it has at most
        ``more`` bytes.
        """
        size = FIRST_BYTES
        while stop > self._start:
            begin = max(stop - size, self._start)
            yield begin, self._bytes(begin, min(stop + more, self._size))
            stop, size = begin, BLOCK_BYTES

    def _end(self) -> int:
        if self._size > self._start and self._bytes(self._size - 1, self._size) == b"\n":
            return self._size
        ends = (begin + data.rfind(b"\n") + 1 for begin, data in self._blocks(self._size, 0) if b"\n" in data)
        return next(ends, self._start)

    def _find_cost(self, end: int) -> None:
        for _, data in self._blocks(end, MAX_COST_BYTES):
            at = len(data)
            # Inside a JSON string the quotes would be escaped, so this is a whole value or key.
            while (at := data.rfind(b'"cost-state"', 0, at)) >= 0:
                begin = data.rfind(b"\n", 0, at) + 1
                state = _cost_state(data[begin : data.find(b"\n", at) + 1])
                if state is not None and state.totalCostUSD is not None:
                    models = {name: usage.costUSD or 0.0 for name, usage in (state.modelUsage or {}).items()}
                    self.cost, self.session = json.dumps([state.totalCostUSD, models]), state.sessionId
                    return
                at = begin


def _cost_state(line: bytes) -> _CostState | CostStateRecord | None:
    try:
        return _COST_STATE.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # This is another type of record, or the line has a value that only the record decoder accepts, such as a lone
        # surrogate.
        records = Decoder(Record).feed(line)
        return next((record for record in records if isinstance(record, CostStateRecord)), None)
