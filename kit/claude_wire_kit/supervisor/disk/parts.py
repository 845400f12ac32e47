"""One part of a journal: a folder that records one CLI while it runs.

A part writes output and input immediately. It writes the rows of ``order.jsonl`` in batches, and with each input.
So a crash can leave lines without a row, or an unfinished line, but no other damage.
"""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from math import inf

import msgspec

from claude_wire_kit.supervisor.disk.files import open_private, private_folder, write_whole
from claude_wire_kit.supervisor.disk.line_index import LineIndex, load, save

#: A file's index in memory has the offset of at most one line in this many. Each entry takes 16 bytes.
STRIDE = 256
#: Maximum bytes in one read from a file.
BLOCK_BYTES = 256 * 1024

_LINE_FEED = 10
_OUTPUT, _INPUT, _ORDER, _STDERR = "stdout.ndjson", "stdin.ndjson", "order.jsonl", "stderr.txt"
#: Maximum bytes of standard error in a part. The part drops the rest.
STDERR_BYTES = 1024 * 1024


class PartInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of ``part.json``: the position of a part in its journal, and its CLI.

    Attributes:
        first: the number of the part's first line of output; 1 for the first part of a session.
        first_input: the number of the part's first line of input.
        began: when the CLI was started, in seconds since 1970.
        pid: the CLI's process id; None if the CLI could not be started.
        pid_began: the start time of the process, from :func:`~claude_wire_kit.supervisor.child.began_at`.
        mark: the mark in the CLI's environment; see :mod:`claude_wire_kit.supervisor.child`.
    """

    first: int
    first_input: int
    began: float
    pid: int | None = None
    pid_began: int | None = None
    mark: str = ""


def blocks(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start`` to ``end``, in blocks of at most :data:`BLOCK_BYTES`."""
    while start < end and (data := os.pread(descriptor, min(BLOCK_BYTES, end - start), start)):
        yield data
        start += len(data)


class Lines:
    """An open file of lines, for appending and reading, and its line count. Line numbers in this class are 0-based.

    Attributes:
        descriptor: the descriptor of the open file.
        count: the number of complete lines.
        end: the offset after the last complete line, in bytes.
        size: the size of the file, including an unfinished line.
    """

    __slots__ = ("_marks", "_next_mark", "_offsets", "count", "descriptor", "end", "ordered", "ordered_end", "size")

    def __init__(self, path: str, known: LineIndex | None = None) -> None:
        self.descriptor: int = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            self.count: int = 0
            self.end: int = 0
            self.size: int = 0
            #: The number of lines with a row in ``order.jsonl``, and the offset after these lines.
            self.ordered: int = 0
            self.ordered_end: int = 0
            # Numbers of some lines, and their offsets. Each is the first line after an append. Finding every 256th line
            # inside a block of 64 KiB would add 80 µs to the 130 µs that the block takes.
            self._marks, self._offsets = array("Q", [0]), array("Q", [0])
            self._next_mark = STRIDE
            if known is not None and known.is_of(self.descriptor):
                self.count, self.end, self.size = known.count, known.end, known.size
                self.ordered, self.ordered_end = known.ordered, known.ordered_end
                self._marks, self._offsets = array("Q", known.marks), array("Q", known.offsets)
                self._next_mark = known.marks[-1] + STRIDE
            while data := os.pread(self.descriptor, BLOCK_BYTES, self.size):
                self._counted(data)
        except BaseException:
            os.close(self.descriptor)
            raise

    def counted(self) -> LineIndex:
        """Return the file's index. With it, the next :class:`Lines` does not need to read the file."""
        return LineIndex(
            size=self.size,
            modified=os.fstat(self.descriptor).st_mtime_ns,
            count=self.count,
            end=self.end,
            ordered=self.ordered,
            ordered_end=self.ordered_end,
            marks=self._marks.tolist(),
            offsets=self._offsets.tolist(),
        )

    def append(self, data: bytes) -> None:
        """Append all of ``data``.

        Raises:
            OSError: some bytes could not be written. ``size`` includes the bytes that were written.
        """
        while data:
            written = os.write(self.descriptor, data)
            if written == len(data):  # always, unless the disk is full
                self._counted(data)
                return
            self._counted(data[:written])
            data = data[written:]

    def append_rows(self, rows: bytes, count: int) -> None:
        """Append ``rows``, a block of ``count`` whole lines, without counting its line feeds."""
        written = os.write(self.descriptor, rows)
        if written < len(rows):
            self._counted(rows[:written])
            self.append(rows[written:])
            return
        self.size += written
        self.end = self.size
        self.count += count

    def _counted(self, data: bytes) -> None:
        self.size = size = self.size + len(data)
        lines = data.count(b"\n")
        if lines:
            self.end = size if data[-1] == _LINE_FEED else size - len(data) + data.rindex(b"\n") + 1
            self.count = count = self.count + lines
            if count >= self._next_mark:
                self._marks.append(count)
                self._offsets.append(self.end)
                self._next_mark = count + STRIDE

    def offset_of(self, line: int) -> int:
        """Return the offset of a line. For the line after the last one, return the end of the last line."""
        if line == self.count:
            return self.end
        mark = bisect_right(self._marks, line) - 1
        offset, left = self._offsets[mark], line - self._marks[mark]
        while left and (data := os.pread(self.descriptor, BLOCK_BYTES, offset)):
            place = 0
            while left and (next_place := data.find(b"\n", place) + 1) > 0:
                place, left = next_place, left - 1
            offset += place if not left else len(data)
        return offset

    def line_at(self, offset: int) -> int:
        """Return the number of the line that contains the byte at this offset."""
        mark = bisect_right(self._offsets, offset) - 1
        start = self._offsets[mark]
        return self._marks[mark] + sum(data.count(b"\n") for data in blocks(self.descriptor, start, offset))

    def rows(self, direction: str, times: Iterable[tuple[int, float]], began: float) -> bytes:
        """Return the rows of ``order.jsonl`` for all lines without one, such as ``[0.125000,"out",80]``.

        Args:
            direction: ``out`` or ``in``.
            times: pairs of a line count and the time when the file had that many lines, in seconds since 1970.
            began: when the CLI was started, in seconds since 1970. The times in the rows are relative to ``began``.
        """
        rows, sizes, at, ordered = "", self._sizes(), 0, self.ordered
        for count, seconds in times:
            end = count - ordered
            if end > at:
                begin = f'[{seconds - began:.6f},"{direction}",'
                # For many lines, one join takes 0.4 of the time of formatting each row.
                rows += f"{begin}{sizes[at]}" if end == at + 1 else begin + f"]\n{begin}".join(map(str, sizes[at:end]))
                rows += "]\n"
                at = end
        return rows.encode()

    def _sizes(self) -> list[int]:
        """Return the sizes of the lines without a row, without their line feeds."""
        sizes: list[int] = []
        size = 0
        for data in blocks(self.descriptor, self.ordered_end, self.end):
            found = [len(piece) for piece in data.split(b"\n")]
            found[0] += size
            size = found.pop()
            sizes += found
        return sizes

    def has_order(self, count: int) -> None:
        """Record that the first ``count`` lines have rows in ``order.jsonl``."""
        self.ordered_end = self.offset_of(count)
        self.ordered = count

    def each(self) -> Iterator[bytes]:
        """Yield all complete lines, without their line feeds."""
        rest = b""
        for data in self.blocks():
            *lines, rest = (rest + data).split(b"\n")
            yield from lines

    def blocks(self) -> Iterator[bytes]:
        """Yield all complete lines, in blocks that are cut anywhere."""
        return blocks(self.descriptor, 0, self.end)

    def keep(self, count: int, end: int) -> None:
        """Truncate the file after its first ``count`` lines, which end at the offset ``end``."""
        os.ftruncate(self.descriptor, end)
        self.count, self.end, self.size = count, end, end
        known = bisect_right(self._marks, count)
        del self._marks[known:], self._offsets[known:]
        self._next_mark = self._marks[-1] + STRIDE
        self.has_order(min(self.ordered, count))

    def close(self) -> None:
        os.close(self.descriptor)


class Part:
    """A part of a journal, open for appending and reading.

    Args:
        path: the part's folder, which is created if it is missing.
        info: the contents of ``part.json`` for a new part. None opens an existing part, and repairs it after a crash.

    Raises:
        OSError: a file cannot be opened.
        ValueError: ``part.json`` is invalid.
    """

    __slots__ = ("_closing", "_noted", "_order", "_times", "info", "input", "output", "path")

    def __init__(self, path: str, info: PartInfo | None = None) -> None:
        self.path: str = path
        if info is None:
            with open(os.path.join(path, "part.json"), "rb", opener=open_private) as file:
                info = msgspec.json.decode(file.read(), type=PartInfo)
        else:
            private_folder(path)
            write_whole(os.path.join(path, "part.json"), msgspec.json.encode(info))
        self.info: PartInfo = info
        self._closing: list[Lines] = []
        # For the output lines without a row, in turn: a line count, and the time when the file reached that count. A
        # tuple for each pair would be one more object for the garbage collector.
        self._times: list[float] = []
        try:
            self.output: Lines
            self.input: Lines
            known = load(path, 3)
            self.output, self.input, self._order = map(self._open, (_OUTPUT, _INPUT, _ORDER), known)
            # The indexes that were stored last.
            self._noted: list[LineIndex] | list[None] = known
            if self.input.size > self.input.end:  # a crash cut the last input line, so the CLI never got it
                self.input.keep(self.input.count, self.input.end)
            if self._order.count != self.output.ordered + self.input.ordered:
                self._read_order()
            if self.output.count > self.output.ordered:
                # After a crash, take the file's mtime as the time of its last lines.
                self._times += self.output.count, os.fstat(self.output.descriptor).st_mtime
            self.add_order()
        except BaseException:
            self.close()
            raise

    def _read_order(self) -> None:
        """Count the lines that have a row. Stop at the first row whose line was lost in a power failure."""
        rows = b"".join(self._order.blocks())
        inputs = rows.count(b'"in"')
        outputs = self._order.count - inputs
        if inputs > self.input.count or outputs > self.output.count:
            inputs = outputs = 0
            for row in rows.splitlines():
                is_input = b'"in"' in row
                if inputs + is_input > self.input.count or outputs + (not is_input) > self.output.count:
                    break
                inputs, outputs = inputs + is_input, outputs + (not is_input)
        self.input.has_order(inputs)
        self.output.has_order(outputs)

    def _open(self, name: str, known: LineIndex | None) -> Lines:
        lines = Lines(os.path.join(self.path, name), known)
        self._closing.append(lines)
        return lines

    # --- reading

    @property
    def size(self) -> int:
        """The size of the output, the input and their order, in bytes."""
        return self.output.size + self.input.size + self._order.size

    def offset_of(self, line: int) -> int:
        """Return the offset of the output line with this number in the session. For the next line, return the end."""
        return self.output.offset_of(line - self.info.first)

    def in_order(self, line: int) -> Iterator[tuple[bool, bytes]]:
        """Yield the output at or after ``line``, and all input, in the order of ``order.jsonl``.

        Each item is a pair: True for input, and a block of bytes that is cut anywhere.

        Args:
            line: the number of a line in the session.
        """
        begin, ends = self.offset_of(line), [0, 0]
        files = (self.output, self.input)
        runs = groupby(self._order.each(), lambda row: b'"in"' in row)
        rows = ((is_input, sum(int(row[row.rindex(b",") + 1 : -1]) + 1 for row in run)) for is_input, run in runs)
        rest = ((is_input, file.end) for is_input, file in enumerate(files))  # lines without a row
        for is_input, size in chain(rows, rest):
            file, start = files[is_input], ends[is_input]
            ends[is_input] = min(start + size, file.end)
            for block in blocks(file.descriptor, start if is_input else max(start, begin), ends[is_input]):
                yield bool(is_input), block

    def line_at(self, offset: int) -> int:
        """Return the session's number for the output line that contains the byte at this offset."""
        return self.output.line_at(offset) + self.info.first

    # --- writing

    def add_output(self, data: bytes) -> None:
        """Append output of the CLI, cut anywhere.

        Raises:
            OSError: some bytes could not be written. The part keeps the others.
        """
        output = self.output
        end = output.end
        try:
            output.append(data)
        finally:
            if output.end != end:
                self._times += output.count, time.time()

    def add_input(self, data: bytes, *, syncs: bool = False) -> None:
        """Append whole lines for the CLI.

        Args:
            syncs: flush the lines to the disk before returning.

        Raises:
            OSError: the lines cannot be written. The part then has none of them.
        """
        count, end = self.input.count, self.input.end
        try:
            self.input.append(data)
            self.add_order()
            if syncs:
                self.sync()
        except OSError:
            self.input.keep(count, end)
            raise

    def add_stderr(self, data: bytes) -> None:
        """Append to ``stderr.txt`` until the file has :data:`STDERR_BYTES`.

        Raises:
            OSError: the file cannot be written.
        """
        descriptor = open_private(os.path.join(self.path, _STDERR), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            room = STDERR_BYTES - os.fstat(descriptor).st_size
            if room > 0:
                os.write(descriptor, data[:room])
        finally:
            os.close(descriptor)

    @property
    def unordered_since(self) -> float:
        """The time of the first output line without a row in ``order.jsonl``, in seconds since 1970. Infinity if there
        is none.
        """
        return self._times[1] if self._times else inf

    def add_order(self) -> None:
        """Write a row to ``order.jsonl`` for each line without one, output first: :meth:`add_input` writes the rows of
        input immediately, so all other lines without a row are older than the input.

        Raises:
            OSError: a write failed. The next call writes all of these rows again.
        """
        output, inputs, order = self.output, self.input, self._order
        kept = output.ordered + inputs.ordered
        news = output.count + inputs.count - kept
        if not news:
            return
        if order.size != order.end or order.count != kept:  # rows that an earlier call wrote before it failed
            order.keep(kept, order.offset_of(kept))
        began = self.info.began
        times = zip(map(int, self._times[::2]), self._times[1::2], strict=True)
        rows = output.rows("out", times, began) + inputs.rows("in", [(inputs.count, time.time())], began)
        order.append_rows(rows, news)
        self._times.clear()
        output.ordered, output.ordered_end = output.count, output.end
        inputs.ordered, inputs.ordered_end = inputs.count, inputs.end

    def end_process(self, exit_code: int | None) -> None:
        """Handle the CLI's exit: end an unfinished line, and write the exit code to ``exit.json``.

        Raises:
            OSError: a file cannot be written.
        """
        if self.output.size > self.output.end:
            self.add_output(b"\n")
        self.add_order()
        if exit_code is not None:
            write_whole(os.path.join(self.path, "exit.json"), msgspec.json.encode({"rc": exit_code}))
        self.done()

    def done(self) -> None:
        """Store the line counts of the complete part, so the next open does not read its files."""
        counted = [lines.counted() for lines in self._closing]
        if counted != self._noted:
            self._noted = counted
            save(self.path, counted)

    def sync(self) -> None:
        """Flush output, input and order to the disk."""
        for lines in self._closing:
            os.fdatasync(lines.descriptor)

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        while self._closing:
            self._closing.pop().close()
