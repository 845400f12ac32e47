"""The journal of a managed session keeps every written line at its place, even after a crash."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from claude_wire.testing import Recording
from claude_wire_kit.supervisor.disk import journal as journals
from claude_wire_kit.supervisor.disk import parts as files_of_parts
from claude_wire_kit.supervisor.disk.files import open_private, private_folder, write_whole
from claude_wire_kit.supervisor.disk.journal import GoneError, Journal, Place
from claude_wire_kit.supervisor.disk.parts import BLOCK_BYTES, STRIDE
from claude_wire_kit.supervisor.disk.review import review
from long_tests import LONG


def begun(folder: Path, **options: int) -> Journal:
    journal = Journal(os.fspath(folder), **options)
    journal.begin(["claude", "--print"], began=0.0)
    return journal


def add(journal: Journal, data: bytes) -> None:
    journal.add_output(data)
    journal.add_order()


def line_at(journal: Journal, number: int) -> bytes:
    place = journal.place_of(number)
    part = journal.open_part(place.part)
    try:
        data = os.pread(part.output.descriptor, part.output.end - place.offset, place.offset)
    finally:
        journal.release_part(place.part)
    return data[: data.index(b"\n") + 1]


def folders(journal_folder: Path) -> list[Path]:
    return sorted((journal_folder / "parts").iterdir())


def test_each_line_is_found_by_its_number(tmp_path: Path) -> None:
    lines = [b'{"n":%d}\n' % n for n in range(STRIDE * 3)]
    journal = begun(tmp_path)
    for line in lines:
        journal.add_output(line)
    assert [line_at(journal, n + 1) for n in range(len(lines))] == lines
    journal.close()
    again = Journal(os.fspath(tmp_path))
    assert [line_at(again, n + 1) for n in range(len(lines))] == lines
    with pytest.raises(LookupError, match="ends with line 768"):
        again.place_of(len(lines) + 2)
    again.close()


def test_a_part_is_a_recording(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    journal.add_input(b'{"prompt":1}\n')
    journal.add_output(b'{"a":1}\n{"b"')
    journal.add_output(b":2}\n")
    journal.last.end_process(3)
    journal.close()
    recording = Recording.load(folders(tmp_path)[0])
    assert [(step.direction, step.data) for step in recording.steps] == [
        ("in", b'{"prompt":1}\n'),
        ("out", b'{"a":1}\n'),
        ("out", b'{"b":2}\n'),
    ]
    assert recording.argv == ("--print",)
    assert recording.exit_code == 3


def test_line_numbers_go_on_over_processes(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    journal.add_output(b"{}\n{}\n{torn")
    journal.last.end_process(None)
    assert journal.next == 4, "what a process left unfinished is a line"
    journal.begin(["claude", "--resume"], began=1.0)
    journal.add_output(b'{"second":1}\n')
    assert line_at(journal, 3) == b"{torn\n"
    assert line_at(journal, 4) == b'{"second":1}\n'
    journal.close()


def test_above_its_budget_the_oldest_parts_go(tmp_path: Path) -> None:
    journal = begun(tmp_path, budget=8000)
    sizes = []
    for n in range(1000):
        add(journal, b'{"n":%d}\n' % n)
        sizes.append(journal.size)
    assert max(sizes) <= 8000 * 9 / 8 + 100, "the part that is written comes on top"
    assert journal.first > 1
    assert line_at(journal, journal.first) == b'{"n":%d}\n' % (journal.first - 1)
    assert line_at(journal, 1000) == b'{"n":999}\n'
    with pytest.raises(GoneError) as gone:
        journal.place_of(journal.first - 1)
    assert gone.value.first == journal.first
    journal.close()


def test_a_part_that_is_read_stays(tmp_path: Path) -> None:
    journal = begun(tmp_path, budget=800)
    add(journal, b'{"n":0}\n')
    place = journal.place_of(1)
    part = journal.open_part(place.part)
    for n in range(1, 400):
        add(journal, b'{"n":%d}\n' % n)
    assert journal.first == 1
    assert journal.held_by_readers
    assert os.pread(part.output.descriptor, 8, 0) == b'{"n":0}\n'
    assert journal.line_at(Place(place.part, 0)) == 1
    assert journal.line_at(Place(place.part, 8)) == 2
    journal.release_part(place.part)
    while journal.first == 1:
        add(journal, b'{"n":400}\n')
    assert not journal.held_by_readers
    journal.close()


def large(tmp_path: Path) -> None:
    """Write the journal of a session that has ended: at least three parts, with output and input."""
    journal = begun(tmp_path, budget=8 * 400_000)
    for n in range(30_000):
        journal.add_output(b'{"n":%d,"text":"%s"}\n' % (n, b"x" * 10))
        journal.add_order()
        if n % 100 == 0:
            journal.add_input(b'{"in":%d}\n' % n)
    journal.last.end_process(0)
    journal.close()
    assert len(os.listdir(tmp_path / "parts")) >= 3


def test_a_session_that_has_ended_is_opened_without_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large(tmp_path)
    read, pread = [0], os.pread

    def counting(*arguments: Any) -> bytes:
        data = pread(*arguments)
        read[0] += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting)
    journal = Journal(os.fspath(tmp_path), budget=8 * 400_000)
    assert read == [0]
    assert [journal.next, journal.next_input] == [30_001, 301]
    for line in (1, 7_000, 15_000, 29_999):
        assert line_at(journal, line).startswith(b'{"n":%d,' % (line - 1))
    assert read[0] < 4 * 2 * BLOCK_BYTES
    journal.begin(["cli"], began=1.0)
    journal.add_output(b'{"n":30000}\n')
    journal.add_order()
    assert line_at(journal, 30_001) == b'{"n":30000}\n'
    journal.close()


@pytest.mark.parametrize("what", ["boot", "grown", "changed", "damaged", "absent"])
def test_what_was_counted_of_another_state_of_a_file_is_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    large(tmp_path)
    last = tmp_path / "parts" / sorted(os.listdir(tmp_path / "parts"))[-1]
    output, noted = last / "stdout.ndjson", last / "counted.json"
    lines = 30_000
    if what == "boot":
        monkeypatch.setattr("claude_wire_kit.supervisor.disk.line_index.boot_id", lambda: "another")
        then = output.stat().st_mtime_ns
        output.write_bytes(output.read_bytes().replace(b"\n", b"\0"))  # simulates a loss of power
        os.utime(output, ns=(then, then))
        before = msgspec.json.decode((last / "part.json").read_bytes())["first"]
        lines = before - 1
    elif what == "grown":
        output.write_bytes(output.read_bytes() + b"{}\n")
        lines += 1
    elif what == "changed":
        output.write_bytes(output.read_bytes()[:-1] + b" ")
        os.utime(output, ns=(0, 0))
        lines -= 1
    elif what == "damaged":
        noted.write_bytes(noted.read_bytes()[:-20])
    else:
        noted.unlink()
    journal = Journal(os.fspath(tmp_path), budget=8 * 400_000)
    assert journal.next == lines + 1
    journal.close()


def rows(journal_folder: Path) -> list[Any]:
    """Return the rows of the first part's ``order.jsonl``."""
    data = (folders(journal_folder)[0] / "order.jsonl").read_bytes()
    return [msgspec.json.decode(row) for row in data.splitlines()]


def test_each_line_keeps_its_own_time_though_the_order_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begun(tmp_path)
    for seconds, data in enumerate((b"{}\n", b'{"torn"', b":1}\n{}\n", b"[", b"]\n")):
        monkeypatch.setattr("time.time", lambda now=float(seconds): now)
        journal.add_output(data)
    assert journal.last.unordered_since == 0.0
    assert rows(tmp_path) == []
    monkeypatch.setattr("time.time", lambda: 9.0)
    journal.add_input(b'{"prompt":1}\n')
    assert journal.last.unordered_since == inf
    assert rows(tmp_path) == [[0, "out", 2], [2, "out", 10], [2, "out", 2], [4, "out", 2], [9, "in", 12]]
    journal.add_output(b"{}\n")
    journal.last.end_process(0)
    assert rows(tmp_path)[5:] == [[9, "out", 2]]
    journal.close()


def test_lines_without_an_order_after_a_crash_came_when_their_file_was_written_last(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    journal.add_output(b"{}\n")
    journal.add_order()
    journal.add_output(b"[]\n[]\n")
    journal.close()
    os.utime(folders(tmp_path)[0] / "stdout.ndjson", (5.0, 5.0))
    Journal(os.fspath(tmp_path)).close()
    assert rows(tmp_path)[1:] == [[5, "out", 2], [5, "out", 2]]


def test_a_part_that_is_full_of_output_without_an_order_is_followed_by_another(tmp_path: Path) -> None:
    journal = begun(tmp_path, budget=800)
    for n in range(30):
        journal.add_output(b'{"n":%d}\n' % n)
    journal.close()
    first, *others = folders(tmp_path)
    assert others
    assert 100 <= (first / "stdout.ndjson").stat().st_size < 110
    assert len(rows(tmp_path)) == len((first / "stdout.ndjson").read_bytes().splitlines())


def test_a_process_that_is_told_much_before_its_first_line_has_its_input_in_the_part_of_that_line(
    tmp_path: Path,
) -> None:
    journal = begun(tmp_path, budget=800)
    prompt = b'{"type":"user","uuid":"p","message":{"role":"user","content":"%s"}}\n' % (b"x" * 200)
    journal.add_input(prompt)
    journal.add_order()
    for _ in range(2):
        journal.add_output(b"{}\n")
    assert len(folders(tmp_path)) == 2
    assert review(journal, journal.process_line)[0].owed == ["p"]
    journal.close()


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = begun(tmp_path)
    write, room = os.write, [10]

    def full(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = min(room[0], len(data))
        room[0] -= count
        return write(descriptor, data[:count])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        journal.add_output(b'{"a":1}\n{"b":2}\n')
    assert journal.is_blocked
    with pytest.raises(OSError, match="No space"):
        journal.add_input(b'{"prompt":1}\n')
    assert journal.next_input == 1
    room[0] = 10
    journal.add_output(b"")
    assert not journal.is_blocked
    with pytest.raises(OSError, match="No space"):
        journal.add_order()
    assert journal.is_blocked
    room[0] = 10_000
    journal.add_output(b"")
    journal.add_order()
    assert not journal.is_blocked
    journal.add_input(b'{"prompt":1}\n')
    journal.close()
    steps = Recording.load(folders(tmp_path)[0]).steps
    assert [step.data for step in steps] == [b'{"a":1}\n', b'{"b":2}\n', b'{"prompt":1}\n']


def test_a_link_a_pipe_and_an_open_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=name):
            open_private(os.fspath(tmp_path / name), os.O_RDONLY)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(OSError, match="other users may change"):
        private_folder(os.fspath(tmp_path / "open"))
    (tmp_path / "linked").symlink_to(tmp_path)
    with pytest.raises(OSError, match="a link"):
        private_folder(os.fspath(tmp_path / "linked"))


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.fspath(tmp_path / "x.json")
    write_whole(path, b"old")

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="full"):
            write_whole(path, b"new")
    assert os.listdir(tmp_path) == ["x.json"]
    assert Path(path).read_bytes() == b"old"
    assert os.stat(path).st_mode & 0o777 == 0o600


class _CrashError(BaseException):
    """Raised at a write to simulate that the supervisor was killed there."""


class Crashes(RuleBasedStateMachine):
    """Processes start, write and end. The supervisor is killed in the middle of any write, and restarted."""

    @initialize(budget=st.sampled_from([300, 10_000_000]))
    def start(self, budget: int) -> None:
        import tempfile

        self.folder = tempfile.mkdtemp(prefix="journal-")
        self.budget = budget
        self.write = os.write
        # The journal must contain all acknowledged data. It may also contain the data of the write that was killed.
        self.output = b""
        self.inputs: list[bytes] = []
        self.under_way = b""
        self.given_in: bytes = b""
        self.journal = Journal(self.folder, budget=budget)
        self.journal.begin(["claude"], began=0.0)
        self.journal.open_part(1)  # the journal removes no part while a reader has one open

    def crashing(self, after: int | None) -> None:
        left = after

        def write(descriptor: int, data: bytes) -> int:
            nonlocal left
            if left is None:
                return self.write(descriptor, data)
            if left <= 0:
                raise _CrashError
            count = min(left, len(data))
            left -= count
            return self.write(descriptor, data[:count])

        os.write = write

    @rule(data=st.text("ab\n", max_size=30), after=st.none() | st.integers(0, 80))
    def writes(self, data: str, after: int | None) -> None:
        chunk = data.encode()
        self.crashing(after)
        try:
            self.journal.add_output(chunk)
            self.journal.add_order()
            self.output += chunk
        except _CrashError:
            os.write = self.write
            self.restart(self.output + chunk)
        finally:
            os.write = self.write

    @rule(count=st.integers(1, 3), after=st.none() | st.integers(0, 80))
    def sends(self, count: int, after: int | None) -> None:
        lines = [b"i%d\n" % (len(self.inputs) + n) for n in range(count)]
        self.crashing(after)
        try:
            self.journal.add_input(b"".join(lines))
            self.inputs += lines
        except _CrashError:
            os.write = self.write
            self.inputs += lines
            self.restart(self.output)
        finally:
            os.write = self.write

    def restart(self, most: bytes) -> None:
        """Open a new journal on the files of the old one. The process has ended, like its supervisor."""
        self.journal.close()
        self.journal = Journal(self.folder, budget=self.budget)
        self.journal.open_part(1)
        had = self.all_output()
        assert most.startswith(had), "only what was given, in order"
        assert had.startswith(self.output[: len(had)])
        assert len(had) >= len(self.output) or not self.output.startswith(had) or had == self.output[: len(had)]
        assert len(had) >= len(self.output), "what was acknowledged is there"
        self.output = had
        del self.inputs[self.journal.next_input - 1 :]
        self.ends()

    @rule()
    def ends(self) -> None:
        self.journal.last.end_process(None)
        if self.output and not self.output.endswith(b"\n"):
            self.output += b"\n"
        self.journal.begin(["claude", "--resume"], began=0.0)

    def all_output(self) -> bytes:
        """Return the output of all parts on disk."""
        data = b""
        for folder in sorted(Path(self.folder, "parts").iterdir()):
            data += (folder / "stdout.ndjson").read_bytes()
        return data

    @invariant()
    def each_line_has_its_number(self) -> None:
        lines = self.output.split(b"\n")[:-1]
        assert self.journal.next == len(lines) + 1
        for number in {1, len(lines) // 2, len(lines)} - {0}:
            if number <= len(lines):
                assert line_at(self.journal, number) == lines[number - 1] + b"\n"

    @invariant()
    def each_part_has_its_order(self) -> None:
        outputs = inputs = 0
        for folder in sorted(Path(self.folder, "parts").iterdir()):
            rows = (folder / "order.jsonl").read_bytes().splitlines()
            outputs += sum(b'"out"' in row for row in rows)
            inputs += sum(b'"in"' in row for row in rows)
        assert (outputs, inputs) == (self.journal.next - 1, len(self.inputs))

    def teardown(self) -> None:
        import shutil

        if hasattr(self, "journal"):
            self.journal.close()
            shutil.rmtree(self.folder)


TestCrashes = Crashes.TestCase
TestCrashes.settings = settings(max_examples=60 if LONG else 30, stateful_step_count=30, deadline=None)


# --- A journal on a full disk, after a loss of power, or with files of a crash never loses a line silently ------------


_write = os.write


def begun_on(folder: Path, **options: int) -> Journal:
    journal = Journal(os.fspath(folder), **options)
    journal.begin(["claude"], began=0.0)
    return journal


def parts(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / "parts"))


def write_until_a_part_goes(journal: Journal) -> None:
    while journal.first == 1:
        add(journal, b"{}\n")


def no_room(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FullDisk(RuleBasedStateMachine):
    """Write lines of both directions. The disk becomes full at any byte, and later has room again."""

    @initialize(budget=st.sampled_from([600, 10_000_000]))
    def start(self, budget: int) -> None:
        self.folder = tempfile.mkdtemp(prefix="journal-")
        self.budget = budget
        self.journal = Journal(self.folder, budget=budget)
        self.journal.begin(["claude"], began=0.0)
        self.journal.open_part(1)  # the journal removes no part while a reader has one open
        self.given = b""
        self.inputs = 0
        self.room: int | None = None
        os.write = self.limited

    def limited(self, descriptor: int, data: bytes) -> int:
        if self.room is None:
            return _write(descriptor, data)
        if not self.room:
            no_room()
        count = min(self.room, len(data))
        self.room -= count
        return _write(descriptor, data[:count])

    @rule(room=st.none() | st.integers(0, 120))
    def has_room(self, room: int | None) -> None:
        self.room = room

    @rule(text=st.text("ab\n", max_size=30))
    def writes(self, text: str) -> None:
        data = b"" if self.journal.is_blocked else text.encode()
        self.given += data
        try:
            self.journal.add_output(data)
            self.journal.add_order()
        except OSError:
            assert self.journal.is_blocked

    @rule()
    def sends(self) -> None:
        try:
            self.journal.add_input(b"i%d\n" % self.inputs)
            self.inputs += 1
        except OSError:
            assert self.room is not None
        assert self.journal.next_input == self.inputs + 1

    @precondition(lambda self: not self.journal.is_blocked)
    @rule()
    def begins_again(self) -> None:
        self.room = None
        self.journal.last.end_process(0)
        if self.given and not self.given.endswith(b"\n"):
            self.given += b"\n"
        self.journal.begin(["claude"], began=0.0)

    @precondition(lambda self: not self.journal.is_blocked)
    @rule()
    def is_opened_again(self) -> None:
        self.room = None
        self.journal.close()
        self.journal = Journal(self.folder, budget=self.budget)
        self.journal.open_part(1)

    @invariant()
    def the_journal_has_what_was_taken_once_and_in_order(self) -> None:
        written = b"".join((Path(self.folder, "parts", name) / "stdout.ndjson").read_bytes() for name in self.names())
        if self.journal.is_blocked:
            assert self.given.startswith(written)
        else:
            assert written == self.given
        assert self.journal.next == written.count(b"\n") + 1
        sent = b"".join((Path(self.folder, "parts", name) / "stdin.ndjson").read_bytes() for name in self.names())
        assert sent == b"".join(b"i%d\n" % n for n in range(self.inputs))

    def names(self) -> list[str]:
        return sorted(os.listdir(os.path.join(self.folder, "parts")))

    def teardown(self) -> None:
        os.write = _write
        if not hasattr(self, "journal"):
            return
        if self.journal.is_blocked:
            self.journal.add_output(b"")
            self.journal.add_order()
        self.the_journal_has_what_was_taken_once_and_in_order()
        self.journal.close()
        Journal(self.folder, budget=self.budget).close()
        steps = [step for name in self.names() for step in Recording.load(Path(self.folder, "parts", name)).steps]
        lines = [step.data for step in steps if step.direction == "out"]
        assert b"".join(lines) == self.given
        assert sum(step.direction == "in" for step in steps) == self.inputs, "each line has its order once"
        shutil.rmtree(self.folder)


TestFullDisk = FullDisk.TestCase
TestFullDisk.settings = settings(max_examples=100 if LONG else 30, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize(("module", "fails"), [(files_of_parts, "open_private"), (journals, "write_whole")])
def test_a_part_that_could_not_be_begun_is_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, fails: str
) -> None:
    journal = begun_on(tmp_path, budget=80)
    add(journal, b'{"n":"0123456789"}\n')
    with monkeypatch.context() as patch:
        patch.setattr(module, fails, no_room)
        with pytest.raises(OSError, match="No space"):
            journal.add_output(b'{"n":1}\n')
    journal.add_output(b'{"n":2}\n')
    journal.close()
    again = Journal(os.fspath(tmp_path), budget=80)
    assert again.next == 4
    assert again.first == 1
    again.close()


def test_a_part_that_a_crash_has_half_removed_is_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = begun_on(tmp_path, budget=160)

    def crash(path: str) -> None:
        os.unlink(os.path.join(path, "stdout.ndjson"))
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", crash)
    with pytest.raises(KeyboardInterrupt):
        write_until_a_part_goes(journal)
    monkeypatch.undo()
    journal.close()
    again = Journal(os.fspath(tmp_path), budget=160)
    assert again.first > 1
    with pytest.raises(GoneError):
        again.place_of(1)
    again.close()


def test_a_loss_of_power_within_the_journal_leaves_no_gap(tmp_path: Path) -> None:
    journal = begun_on(tmp_path, budget=800)
    for n in range(30):
        add(journal, b'{"n":%d}\n' % n)
    journal.close()
    first, second = parts(tmp_path)[:2]
    output = tmp_path / "parts" / first / "stdout.ndjson"
    output.write_bytes(output.read_bytes()[:-4])
    again = Journal(os.fspath(tmp_path), budget=800)
    assert again.next == 31
    with pytest.raises(GoneError) as gone:
        again.place_of(1)
    output = b"".join(block for is_input, block in again.in_order(gone.value.first) if not is_input)
    assert output.startswith(b'{"n":%d}' % (gone.value.first - 1))
    assert f"{first}.lost" in parts(tmp_path)
    assert second in parts(tmp_path)
    again.close()


def test_an_order_of_lines_that_a_loss_of_power_has_taken_is_dropped(tmp_path: Path) -> None:
    journal = begun_on(tmp_path)
    for n in range(10):
        add(journal, b'{"n":%d}\n' % n)
        journal.add_input(b'{"i":%d}\n' % n)
    journal.close()
    folder = tmp_path / "parts" / "000001"
    for name in ("stdout.ndjson", "stdin.ndjson"):
        (folder / name).write_bytes((folder / name).read_bytes()[: 8 * 4 + 3])
    again = Journal(os.fspath(tmp_path))
    assert (again.next, again.next_input) == (5, 5)
    again.last.end_process(None)
    again.close()
    lines = [step.data for step in Recording.load(folder).steps if step.direction == "out"]
    assert lines == [b'{"n":%d}\n' % n for n in range(4)] + [b'{"n\n']


def test_a_journal_that_cannot_be_opened_holds_no_descriptor(tmp_path: Path) -> None:
    journal = begun_on(tmp_path)
    journal.add_output(b"{}\n")
    journal.begin(["claude"], began=1.0)
    journal.close()
    (tmp_path / "parts" / "000002" / "part.json").write_bytes(b"no JSON")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ValueError, match="malformed"):
        Journal(os.fspath(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before
