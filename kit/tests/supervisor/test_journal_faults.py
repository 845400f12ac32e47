"""A journal on a full disk, after a loss of power, or with files of a crash never loses a line silently."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from claude_wire.testing import Recording
from claude_wire_kit.supervisor.disk import journal as journals
from claude_wire_kit.supervisor.disk import parts as files_of_parts
from claude_wire_kit.supervisor.disk.journal import GoneError, Journal
from long_tests import LONG

_write = os.write


def begun(folder: Path, **options: int) -> Journal:
    journal = Journal(os.fspath(folder), **options)
    journal.begin(["claude"], began=0.0)
    return journal


def add(journal: Journal, data: bytes) -> None:
    journal.add_output(data)
    journal.add_order()


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
    journal = begun(tmp_path, budget=80)
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
    journal = begun(tmp_path, budget=160)

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
    journal = begun(tmp_path, budget=800)
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
    journal = begun(tmp_path)
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
    journal = begun(tmp_path)
    journal.add_output(b"{}\n")
    journal.begin(["claude"], began=1.0)
    journal.close()
    (tmp_path / "parts" / "000002" / "part.json").write_bytes(b"no JSON")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ValueError, match="malformed"):
        Journal(os.fspath(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before
