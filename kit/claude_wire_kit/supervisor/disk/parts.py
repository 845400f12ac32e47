"""One part of a journal: a recording that grows, of one process of the CLI.

Knows files, lines and offsets; not sessions, nor what lines mean.

The output and the input of the CLI are written as they come; the order of their lines is written behind them. So a
crash can leave an order that is short, or a line without its end, and nothing else.

Each line of a CLI goes this way, and most come alone. From the read to the order of a line that one client follows, the
interpreter takes 27,000 instructions, and a turn of asyncio's loop 19,000 beside.
"""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain, groupby

import msgspec

from claude_wire_kit.supervisor.disk.files import open_private, private_folder, write_whole
from claude_wire_kit.supervisor.disk.line_index import LineIndex, load, save

#: The offset of a line is remembered after at least so many lines: 16 bytes for each such line.
STRIDE = 256
#: Bytes that are read at once where lines are counted.
BLOCK_BYTES = 256 * 1024

_LINE_FEED = 10
_OUTPUT, _INPUT, _ORDER, _STDERR = "stdout.ndjson", "stdin.ndjson", "order.jsonl", "stderr.txt"
#: Most bytes of standard error in a part. What comes behind them is dropped.
STDERR_BYTES = 1024 * 1024


class PartInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What ``part.json`` says: where a part stands in its journal, and which process it is of.

    Attributes:
        first: number of the first line of output in it; 1 for the first of a session.
        first_input: the same for its input.
        began: when the process was started, in seconds since 1970.
        pid: of the process; None if it was not started.
        pid_began: what tells it from a later process with the same pid: field 22 of ``/proc/PID/stat``.
        mark: what all processes have in their environment that it has started.
    """

    first: int
    first_input: int
    began: float
    pid: int | None = None
    pid_began: int | None = None
    mark: str = ""


def blocks(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """What a file has from one offset to another, in blocks of :data:`BLOCK_BYTES` at most."""
    while start < end and (data := os.pread(descriptor, min(BLOCK_BYTES, end - start), start)):
        yield data
        start += len(data)


class Lines:
    """A file to which lines are appended, and how many there are.

    Attributes:
        descriptor: of the open file, which can be read at any offset.
        count: how many lines are complete.
        end: the offset in bytes behind the last of them.
        size: the bytes of the file, of a line that is not complete, too.
    """

    __slots__ = ("_marks", "_next_mark", "_offsets", "count", "descriptor", "end", "ordered", "ordered_end", "size")

    def __init__(self, path: str, known: LineIndex | None = None) -> None:
        self.descriptor: int = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            self.count: int = 0
            self.end: int = 0
            self.size: int = 0
            #: Lines whose order is written, and their bytes: so those without an order are found without a search.
            self.ordered: int = 0
            self.ordered_end: int = 0
            # Numbers of some lines, counted from 0, and their offsets: each is the first behind those of a write. To
            # look for every 256th line takes 80 µs more for a block of 64 KiB, which takes 130 without.
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
        """What there is, for one who opens the file again."""
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
        """Write ``data`` behind the file's end, all of it.

        Raises:
            OSError: a part of it could not be written. What was written is counted; ``size`` says how much.
        """
        while data:
            written = os.write(self.descriptor, data)
            if written == len(data):  # as always, but on a full disk
                self._counted(data)
                return
            self._counted(data[:written])
            data = data[written:]

    def append_rows(self, rows: bytes, count: int) -> None:
        """As :meth:`append`, for so many whole lines, which nobody counts again."""
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
        """The offset of a line, counted from 0; of the end of all lines if it is the next one."""
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
        """The line, counted from 0, that the byte at an offset belongs to."""
        mark = bisect_right(self._offsets, offset) - 1
        start = self._offsets[mark]
        return self._marks[mark] + sum(data.count(b"\n") for data in blocks(self.descriptor, start, offset))

    def rows(self, seconds: float, direction: str) -> bytes:
        """The order of the lines that have none: since the process was started, so many seconds have passed."""
        if self.count == self.ordered + 1:
            return f'[{seconds:.6f},"{direction}",{self.end - self.ordered_end - 1}]\n'.encode()
        begin = f'[{seconds:.6f},"{direction}",'
        # One join writes the rows of a block in 0.4 of the time of a formatted row for each line.
        return (begin + f"]\n{begin}".join(map(str, self._sizes())) + "]\n").encode()

    def _sizes(self) -> list[int]:
        """The sizes of the lines without an order, without their line feeds."""
        sizes: list[int] = []
        size = 0
        for data in blocks(self.descriptor, self.ordered_end, self.end):
            found = [len(piece) for piece in data.split(b"\n")]
            found[0] += size
            size = found.pop()
            sizes += found
        return sizes

    def has_order(self, count: int) -> None:
        """The order of the first ``count`` lines is written."""
        self.ordered_end = self.offset_of(count)
        self.ordered = count

    def each(self) -> Iterator[bytes]:
        """All complete lines, without their line feeds."""
        rest = b""
        for data in blocks(self.descriptor, 0, self.end):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines

    def read(self) -> bytes:
        """All complete lines."""
        return b"".join(blocks(self.descriptor, 0, self.end))

    def keep(self, count: int, end: int) -> None:
        """Drop what stands behind the first ``count`` lines, which end at ``end``."""
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
        path: its folder, which is made if need be.
        info: what it is a part of, for a new one; None opens one that is there, and repairs what a crash has left.

    Raises:
        OSError: a file cannot be opened.
        ValueError: ``part.json`` is not what it should be.
    """

    __slots__ = ("_closing", "_input", "_noted", "_order", "info", "output", "path")

    def __init__(self, path: str, info: PartInfo | None = None) -> None:
        self.path: str = path
        if info is None:
            with open(open_private(os.path.join(path, "part.json"), os.O_RDONLY), "rb") as file:
                info = msgspec.json.decode(file.read(), type=PartInfo)
        else:
            private_folder(path)
            write_whole(os.path.join(path, "part.json"), msgspec.json.encode(info))
        self.info: PartInfo = info
        self._closing: list[Lines] = []
        try:
            #: What the CLI wrote. :meth:`add_order` is called behind what is appended.
            self.output: Lines
            known = load(path, 3)
            self.output, self._input, self._order = map(self._open, (_OUTPUT, _INPUT, _ORDER), known)
            # What was counted when that was noted last.
            self._noted: list[LineIndex] | list[None] = known
            if self._input.size > self._input.end:  # a line whose writing was cut by a crash never counted
                self._input.keep(self._input.count, self._input.end)
            if self._order.count != self.output.ordered + self._input.ordered:
                self._read_order()
            self.add_order()
        except BaseException:
            self.close()
            raise

    def _read_order(self) -> None:
        """Count the lines that have their order, up to the first row of a line that a loss of power has taken."""
        rows = self._order.read()
        inputs = rows.count(b'"in"')
        outputs = self._order.count - inputs
        if inputs > self._input.count or outputs > self.output.count:
            inputs = outputs = 0
            for row in rows.splitlines():
                is_input = b'"in"' in row
                if inputs + is_input > self._input.count or outputs + (not is_input) > self.output.count:
                    break
                inputs, outputs = inputs + is_input, outputs + (not is_input)
        self._input.has_order(inputs)
        self.output.has_order(outputs)

    def _open(self, name: str, known: LineIndex | None) -> Lines:
        lines = Lines(os.path.join(self.path, name), known)
        self._closing.append(lines)
        return lines

    # --- what was written

    @property
    def inputs(self) -> int:
        """How many lines of input there are."""
        return self._input.count

    @property
    def size(self) -> int:
        """The bytes of all files that grow without bound."""
        return self.output.size + self._input.size + self._order.size

    def offset_of(self, line: int) -> int:
        """The offset in bytes of a line of output, by its number in the session; of the end if it is the next one."""
        return self.output.offset_of(line - self.info.first)

    def input_blocks(self) -> Iterator[bytes]:
        """The lines of input, in blocks cut anywhere."""
        return blocks(self._input.descriptor, 0, self._input.end)

    def in_order(self, line: int) -> Iterator[tuple[bool, bytes]]:
        """The lines of output from one on, by its number in the session, and those of input, in their order.

        Gives blocks cut anywhere, and whether each is of the input.
        """
        begin, ends = self.offset_of(line), [0, 0]
        files = (self.output, self._input)
        runs = groupby(self._order.each(), lambda row: b'"in"' in row)
        rows = ((is_input, sum(int(row[row.rindex(b",") + 1 : -1]) + 1 for row in run)) for is_input, run in runs)
        rest = ((is_input, file.end) for is_input, file in enumerate(files))  # an order that a loss of power has taken
        for is_input, size in chain(rows, rest):
            file, start = files[is_input], ends[is_input]
            ends[is_input] = min(start + size, file.end)
            for block in blocks(file.descriptor, start if is_input else max(start, begin), ends[is_input]):
                yield bool(is_input), block

    def line_at(self, offset: int) -> int:
        """The number in the session of the line of output that the byte at an offset belongs to."""
        return self.output.line_at(offset) + self.info.first

    # --- writing

    def add_input(self, data: bytes, *, syncs: bool = False) -> None:
        """Append whole lines that are sent to the CLI.

        Args:
            syncs: whether they are on the disk when this returns.

        Raises:
            OSError: they could not be written. None of them is there then.
        """
        count, end = self._input.count, self._input.end
        try:
            self._input.append(data)
            self.add_order()
            if syncs:
                self.sync()
        except OSError:
            self._input.keep(count, end)
            raise

    def add_stderr(self, data: bytes) -> None:
        """Append what the CLI wrote to its standard error, as far as there is room for it.

        Raises:
            OSError: it could not be written.
        """
        descriptor = open_private(os.path.join(self.path, _STDERR), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            room = STDERR_BYTES - os.fstat(descriptor).st_size
            if room > 0:
                os.write(descriptor, data[:room])
        finally:
            os.close(descriptor)

    def add_order(self) -> None:
        """Write the order of the lines that have none, those of the output first: input is written with its order.

        Raises:
            OSError: not all could be written. No line counts as one that has its order, then.
        """
        output, inputs, order = self.output, self._input, self._order
        kept = output.ordered + inputs.ordered
        news = output.count + inputs.count - kept
        if not news:
            return
        if order.size != order.end or order.count != kept:  # rows that a call wrote which then failed
            order.keep(kept, order.offset_of(kept))
        seconds = time.time() - self.info.began
        rows = output.rows(seconds, "out") if output.count > output.ordered else b""
        if inputs.count > inputs.ordered:
            rows += inputs.rows(seconds, "in")
        order.append_rows(rows, news)
        output.ordered, output.ordered_end = output.count, output.end
        inputs.ordered, inputs.ordered_end = inputs.count, inputs.end

    def end_process(self, exit_code: int | None) -> None:
        """The process of this part has ended: what it had not finished is a line, and its exit code is written.

        Raises:
            OSError: it could not be written.
        """
        if self.output.size > self.output.end:
            self.output.append(b"\n")
        self.add_order()
        if exit_code is not None:
            write_whole(os.path.join(self.path, "exit.json"), msgspec.json.encode({"rc": exit_code}))
        self.done()

    def done(self) -> None:
        """Nothing is added any more: what was counted is noted, so that the part is opened without being read."""
        counted = [lines.counted() for lines in self._closing]
        if counted != self._noted:
            self._noted = counted
            save(self.path, counted)

    def sync(self) -> None:
        """Return when all that was written is on the disk, also after a loss of power."""
        for lines in self._closing:
            os.fdatasync(lines.descriptor)

    def close(self) -> None:
        """Close the files. May be called again."""
        while self._closing:
            self._closing.pop().close()
