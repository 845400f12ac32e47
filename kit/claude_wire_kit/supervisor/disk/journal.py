"""One session's journal. It stores all input, output and standard error of the CLIs before a client gets them.

A journal is a folder of parts. A new part begins when a CLI starts or a part reaches an eighth of the byte budget.
Output lines are numbered from 1, across all CLIs of the session.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import msgspec

from claude_wire_kit.supervisor.disk.files import open_private, private_folder, remove_tree, write_whole
from claude_wire_kit.supervisor.disk.parts import Part, PartInfo

#: The default maximum size of a journal in bytes. Above this size, the journal removes its oldest parts, but keeps
#: parts that a client is reading.
JOURNAL_BYTES = 256 * 1024 * 1024
#: A part may use an eighth of the journal's budget, so removing the oldest part frees an eighth of a full journal.
PARTS = 8


class GoneError(LookupError):
    """The journal removed the requested lines because of its byte budget.

    Attributes:
        first: the number of the first line that is still in the journal.
    """

    def __init__(self, first: int) -> None:
        super().__init__(f"the journal begins with line {first}")
        self.first: int = first


class Place(NamedTuple):
    """A position in a journal: the number of a part, and an offset in bytes in the output of that part."""

    part: int
    offset: int


class _Closed(NamedTuple):
    """The number of a closed part's first line, its size in bytes, and the start time of its CLI."""

    first: int
    size: int
    began: float


def _remove(path: str) -> None:
    """Remove the folder of a part, ``part.json`` first. After a crash, :class:`Journal` removes folders without this
    file.
    """
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(path, "part.json"))
    remove_tree(path)


class Journal:
    """The journal of one session.

    Args:
        folder: the folder of the session. The journal is its subfolder ``parts``, which is created if it is missing.
        budget: maximum size in bytes of all parts together.
        syncs: flush each write to the disk before it returns, so a power failure loses nothing.

    Raises:
        OSError: the folder or a file cannot be opened.
        ValueError: a ``part.json`` is invalid.
    """

    __slots__ = (
        "_budget",
        "_closed",
        "_folder",
        "_is_full",
        "_last",
        "_read",
        "_syncs",
        "_unwritten",
        "is_blocked",
        "number",
    )

    def __init__(self, folder: str, *, budget: int = JOURNAL_BYTES, syncs: bool = False) -> None:
        self._syncs = syncs
        self._folder = private_folder(os.path.join(folder, "parts"))
        self._budget = budget
        # Number -> complete part, sorted by number.
        self._closed: dict[int, _Closed] = {}
        # Number -> a part that is open for reading, and how many readers it has.
        self._read: dict[int, tuple[Part, int]] = {}
        #: The number of the part being written; 0 before the first part.
        self.number: int = 0
        self._last: Part | None = None
        #: True while the disk is too full for the output or for ``order.jsonl``.
        self.is_blocked: bool = False
        # Output that did not fit on the disk.
        self._unwritten = b""
        # True if output, input and order together fill the part. add_order() sets it; add_output() only checks the
        # size of the output.
        self._is_full = False
        try:
            for number in sorted(int(name) for name in os.listdir(self._folder) if name.isdecimal()):
                self._open(number)
        except BaseException:
            self.close()
            raise

    def _open(self, number: int) -> None:
        """Open an existing part. The caller opens the parts in numerical order."""
        if not os.path.lexists(os.path.join(self._path(number), "part.json")):
            remove_tree(self._path(number))  # the supervisor crashed while it created or removed this part
            return
        part = Part(self._path(number))
        if self._last is not None and part.info.first != self.next:
            # A power failure lost lines before this part. Set the older parts aside, so no client gets lines with a
            # gap between them.
            self._last.close()
            for lost in (*self._closed, self.number):
                os.rename(self._path(lost), f"{self._path(lost)}.lost")
            self._closed.clear()
        else:
            self._close_last()
        self.number, self._last = number, part

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f"{number:06}")

    def _close_last(self) -> None:
        if self._last is not None:
            self._last.done()
            self._closed[self.number] = _Closed(self._last.info.first, self._last.size, self._last.info.began)
            if self.number not in self._read:
                self._last.close()

    # --- contents

    @property
    def first(self) -> int:
        """The number of the journal's first line; if the journal has no lines, the number of the next line."""
        for part in self._closed.values():
            return part.first
        return 1 if self._last is None else self._last.info.first

    @property
    def next(self) -> int:
        """The number that the next line of output will get."""
        return 1 if self._last is None else self._last.info.first + self._last.output.count

    @property
    def next_input(self) -> int:
        """The number that the next line of input will get."""
        return 1 if self._last is None else self._last.info.first_input + self._last.input.count

    @property
    def process_line(self) -> int:
        """The number of the last CLI's oldest line in the journal."""
        last = self.last.info
        return min([part.first for part in self._closed.values() if part.began == last.began], default=last.first)

    @property
    def size(self) -> int:
        return sum(part.size for part in self._closed.values()) + (0 if self._last is None else self._last.size)

    @property
    def last(self) -> Part:
        """The part being written.

        Raises:
            LookupError: the journal has no part yet.
        """
        if self._last is None:
            raise LookupError("the journal is empty")
        return self._last

    # --- writing

    def begin(
        self, argv: list[str], *, began: float, pid: int | None = None, pid_began: int | None = None, mark: str = ""
    ) -> None:
        """Begin a new part for a CLI that was just started.

        Raises:
            OSError: the part cannot be created. The journal is unchanged.
        """
        info = PartInfo(
            first=self.next, first_input=self.next_input, began=began, pid=pid, pid_began=pid_began, mark=mark
        )
        self._begin(info, msgspec.json.encode({"argv": argv}))

    def _begin(self, info: PartInfo, command: bytes) -> None:
        path = self._path(self.number + 1)
        part: Part | None = None
        try:
            part = Part(path, info)
            write_whole(os.path.join(path, "cmd.json"), command)
        except BaseException:
            if part is not None:
                part.close()
            with suppress(OSError):  # the next output goes to the previous part, so no later part may exist
                _remove(path)
            raise
        self._close_last()
        self.number, self._last, self._is_full = self.number + 1, part, False

    def add_output(self, data: bytes) -> None:
        """Append bytes from the CLI, cut anywhere. Begin a new part first if the current one is full.

        Raises:
            OSError: a write failed. The journal keeps the unwritten bytes in memory, and the next call writes them
                first. Call with b"" to try again, and do not read from the CLI until the call succeeds.
        """
        part = self._last
        assert part is not None
        if self.is_blocked:
            data = self._unwritten + data
        size = part.output.size
        try:
            is_full = self._is_full or size * PARTS >= self._budget
            # A part without lines does not get a successor, because both would begin with the same line number.
            if is_full and 0 < size == part.output.end and not self.is_blocked:
                part, size = self._pass_on(part), 0
            part.add_output(data)
            if self._syncs:
                part.sync()
        except BaseException:
            self.is_blocked, self._unwritten = True, data[part.output.size - size :]
            raise
        if self.is_blocked:
            self.is_blocked, self._unwritten = False, b""

    def add_order(self) -> None:
        """Write a row to ``order.jsonl`` for each output line without one. A crash before the write loses their times.

        Raises:
            OSError: the rows were not written. The next call writes them; until then, do not read from the CLI.
        """
        part = self.last
        try:
            part.add_order()
        except BaseException:
            self.is_blocked = True
            raise
        self._is_full = part.size * PARTS >= self._budget

    def give_up(self) -> int:
        """Drop the output that did not fit on the disk, because the CLI has exited. Return its size in bytes."""
        dropped, self._unwritten, self.is_blocked = len(self._unwritten), b"", False
        return dropped

    def add_input(self, data: bytes) -> None:
        """Append whole lines for the CLI.

        Raises:
            OSError: the lines cannot be written. The journal then has none of them.
        """
        self.last.add_input(data, syncs=self._syncs)

    def _pass_on(self, part: Part) -> Part:
        """Begin another part for the same CLI, and remove the oldest parts if the journal exceeds its budget."""
        part.add_order()
        with open(os.path.join(part.path, "cmd.json"), "rb", opener=open_private) as file:
            command = file.read()
        self._begin(msgspec.structs.replace(part.info, first=self.next, first_input=self.next_input), command)
        self._make_room()
        return self.last

    def _make_room(self) -> None:
        """Remove the oldest parts until the journal fits its budget. Stop at a part that a client is reading."""
        for number in list(self._closed):
            if self.size <= self._budget or number in self._read:
                return
            _remove(self._path(number))
            del self._closed[number]

    @property
    def held_by_readers(self) -> bool:
        """True if the journal exceeds twice its budget because a client is still reading the oldest part."""
        return self.size > 2 * self._budget and next(iter(self._closed), None) in self._read

    # --- reading

    def place_of(self, line: int) -> Place:
        """Return the place of the line with this number. For the next line, return the end of the journal.

        Raises:
            GoneError: the line was removed.
            LookupError: the line does not exist yet.
        """
        if line < self.first:
            raise GoneError(self.first)
        if line > self.next:
            raise LookupError(f"the journal ends with line {self.next - 1}")
        number = self.number
        if line < self.last.info.first:
            number = max(key for key, part in self._closed.items() if part.first <= line)
        with self._reading(number) as part:
            return Place(number, part.offset_of(line))

    def tail(self, size: int, end: int) -> int:
        """Return the number of the first line that begins within the ``size`` bytes before line ``end``.

        If no line begins there, return ``end - 1``. If the journal has no line before ``end``, return ``end``.

        Raises:
            GoneError, LookupError: see :meth:`place_of`, for ``end``.
        """
        number, offset = self.place_of(end)
        while offset < size and number - 1 in self._closed:
            number, size = number - 1, size - offset
            with self._reading(number) as part:
                offset = part.output.end
        with self._reading(number) as part:
            # The first line that begins at or after this offset.
            line = part.line_at(offset - size - 1) + 1 if offset > size else part.info.first
        return max(min(line, end - 1), self.first)

    @property
    def is_whole(self) -> bool:
        """False if another program changed the size of the output file being written."""
        output = self.last.output
        return os.fstat(output.descriptor).st_size == output.size

    def in_order(self, line: int) -> Iterator[tuple[bool, bytes]]:
        """Yield the output at or after ``line``, and all input in the same parts, in the order of ``order.jsonl``.

        Each item is a pair: True for input, and a block of bytes that is cut anywhere.

        Raises:
            LookupError: the journal does not have this line.
        """
        for number in range(self.place_of(line).part, self.number + 1):
            with self._reading(number) as part:
                yield from part.in_order(max(line, part.info.first))

    def inputs(self) -> Iterator[bytes]:
        """Yield the input of all parts, in blocks that are cut anywhere."""
        for number in (*self._closed, self.number):
            with self._reading(number) as part:
                yield from part.input.blocks()

    def line_at(self, place: Place) -> int:
        """Return the number of the line that contains the byte at this offset."""
        with self._reading(place.part) as part:
            return part.line_at(place.offset)

    @contextmanager
    def _reading(self, number: int) -> Generator[Part]:
        part = self.open_part(number)
        try:
            yield part
        finally:
            self.release_part(number)

    def open_part(self, number: int) -> Part:
        """Open a part for reading. The journal keeps the part until :meth:`release_part`.

        Raises:
            OSError: the part cannot be opened, or it was truncated.
        """
        known = self.last if number == self.number else None
        part, readers = self._read.get(number) or (known or Part(self._path(number)), 0)
        if not readers and number in self._closed and part.size < self._closed[number].size:
            part.close()
            raise OSError(errno.EIO, "the journal has lost bytes", part.path)
        self._read[number] = part, readers + 1
        return part

    def release_part(self, number: int) -> None:
        """Release a part for one reader. After the last reader, close the part."""
        part, readers = self._read.pop(number)
        if readers > 1:
            self._read[number] = part, readers - 1
        elif part is not self._last:
            part.close()

    def close(self) -> None:
        """Close all files. A second call does nothing."""
        if self._last is not None:
            self._last.close()
        while self._read:
            self._read.popitem()[1][0].close()
