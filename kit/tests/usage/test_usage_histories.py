"""After any changes to transcripts and their index, the sums equal those of a new index and of a full count."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from claude_wire.transcripts import read
from claude_wire_kit.usage import Answers, UsageIndex
from cli_lines import line

Sums = dict[str, tuple[int, int]]
NAMES = st.sampled_from(["a", "b", "c"])
ANSWERS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 99), st.booleans()), min_size=1, max_size=3)

#: A program that refreshes an index, and is killed after as many files as its third argument says.
KILLED = """
import os, signal, sys
from claude_wire_kit.usage import UsageIndex
left = int(sys.argv[3])
def on_file(done, files):
    if done == left:
        os.kill(os.getpid(), signal.SIGKILL)
with UsageIndex(sys.argv[1], sys.argv[2], on_file=on_file) as index:
    index.sums()
"""


def answer(id: int, tokens: int, *, is_copy: bool) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": tokens}
    message = {"id": f"m{id}", "model": "xy"[id % 2], "role": "assistant", "content": [], "usage": usage}
    record: dict[str, Any] = {
        "type": "assistant",
        "uuid": "u",
        "parentUuid": None,
        "sessionId": "s",
        "message": message,
    }
    others = {"requestSessionId": "other"} if is_copy else {}
    return line({**record, "requestId": f"r{id}", "timestamp": "2026-01-02T03:04:05Z", **others})


def lines(answers: list[tuple[int, int, bool]]) -> bytes:
    return b"".join(answer(id, tokens, is_copy=is_copy) for id, tokens, is_copy in answers)


def of_index(folder: Path, file: Path | str) -> Sums:
    with UsageIndex(folder, file) as index:
        models = index.sums().get("", {})
    return {model: (totals.answers, totals.output_tokens) for model, totals in models.items()}


class Histories(RuleBasedStateMachine):
    """Change a folder at random. Its index must count the existing files, and deleted files as it last saw them."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.folder, self.file = self.root / "projects", self.root / "index.sqlite3"
        self.folder.mkdir()
        #: Name of each file -> the contents that the index last read.
        self.seen: dict[str, bytes] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def there(self) -> dict[str, bytes]:
        return {path.stem: path.read_bytes() for path in self.folder.iterdir()}

    # --- the folder ---------------------------------------------------------------------------------------------------

    @rule(name=NAMES, answers=ANSWERS, part=st.floats(0, 1))
    def append(self, name: str, answers: list[tuple[int, int, bool]], part: float) -> None:
        data = lines(answers)
        with self.path(name).open("ab") as file:
            file.write(data[: len(data) if part > 0.5 else round(2 * part * len(data))])

    @rule(name=NAMES, part=st.floats(0, 1))
    def cut(self, name: str, part: float) -> None:
        if self.path(name).exists():
            os.truncate(self.path(name), round(self.path(name).stat().st_size * part))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)

    @rule(name=NAMES, answers=ANSWERS)
    def replace(self, name: str, answers: list[tuple[int, int, bool]]) -> None:
        new = self.root / "new"
        new.write_bytes(lines(answers))
        new.replace(self.path(name))

    @rule(origin=NAMES, name=NAMES)
    def fork(self, origin: str, name: str) -> None:
        if self.path(origin).exists() and origin != name:
            shutil.copyfile(self.path(origin), self.path(name))

    # --- the index ----------------------------------------------------------------------------------------------------

    @rule()
    def prune(self) -> None:
        there = self.there()
        gone = self.seen.keys() - there.keys()
        with UsageIndex(self.folder, self.file) as index:
            assert index.prune() == len(gone)
            assert index.gone == []
        self.seen = there

    @rule(left=st.integers(0, 1))
    @precondition(
        lambda self: self.there() != {name: data for name, data in self.seen.items() if self.path(name).exists()}
    )
    def crash(self, left: int) -> None:
        command = [sys.executable, "-c", KILLED, str(self.folder), str(self.file), str(left)]
        done = subprocess.run(command, timeout=60, check=False)
        assert done.returncode in (0, -signal.SIGKILL)

    @rule(part=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
    @precondition(lambda self: self.file.exists())
    def damage(self, part: float, flip: int) -> None:
        with self.file.open("r+b") as file:
            place = int(self.file.stat().st_size * part)
            file.seek(place)
            (byte,) = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ flip]))
        with UsageIndex(self.folder, self.file) as index:
            index.sums()
            if index.notes:  # the index noticed the damage, and lost its counts of deleted files
                self.seen = self.there()

    @invariant()
    def sums_are_those_of_a_new_index_and_of_the_rule(self) -> None:
        there = self.there()
        gone = {name: data for name, data in self.seen.items() if name not in there}
        found = of_index(self.folder, self.file)
        self.seen = gone | there
        everything = self.root / "everything"
        everything.mkdir()
        for prefix, files in (
            ("0", gone),
            ("1", there),
        ):  # of equal answers, one in an existing file counts; among those, the last one
            for name, data in files.items():
                (everything / f"{prefix}{name}.jsonl").write_bytes(data)
        assert found == of_index(everything, ":memory:")
        answers = Answers()
        for path in sorted(everything.iterdir()):
            for record in read(path):
                answers.add(record)
        assert found == {model: (each.answers, each.output_tokens) for model, each in answers.models.items()}
        shutil.rmtree(everything)


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
def test_a_refreshed_index_has_the_sums_of_a_new_one() -> None:
    Histories.TestCase.settings = settings(
        max_examples=10,
        stateful_step_count=12,
        phases=[Phase.generate],
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    Histories.TestCase().runTest()
