"""Files and folders are divided into parts that contain each line once. Values that do not fit cause a warning."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from all_sessions import sums, unpack_all, wanted
from arrow_reader import columns, rows
from claude_wire.columns import Range, files, parts, scan


def test_folders_are_their_files_and_files_are_themselves(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "b/1.jsonl", "a/x/3.jsonl", "a/notes.txt", "c.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"{}\n")
    os.mkfifo(tmp_path / "b" / "fifo.jsonl")
    below = [str(tmp_path / name) for name in ("a/x/3.jsonl", "b/1.jsonl", "b/2.jsonl")]
    assert files(tmp_path) == below
    assert files([tmp_path / "c.log", str(tmp_path / "b")]) == [str(tmp_path / "c.log"), *below[1:]]
    with pytest.raises(FileNotFoundError):
        parts(tmp_path / "none")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    with pytest.raises(PermissionError):
        files(tmp_path)


@pytest.mark.parametrize("part_bytes", [1, 30, 1000, 100_000, 10**9])
def test_parts_have_each_line_once_and_no_more_than_is_allowed(part_bytes: int, tmp_path: Path) -> None:
    for number in range(7):
        lines = b"".join(b'{"uuid":"%d-%d"}\n' % (number, line) for line in range(number * 10))
        (tmp_path / f"{number}.jsonl").write_bytes(lines)
    found = parts(tmp_path, part_bytes)
    assert pickle.loads(pickle.dumps(found)) == found
    assert all(sum(one.stop - one.start for one in part) <= part_bytes for part in found)
    # No two adjacent parts fit into one.
    sizes = [sum(one.stop - one.start for one in part) for part in found]
    firsts = [part[0].stop - part[0].start for part in found[1:]]
    assert all(before + first > part_bytes for before, first in zip(sizes, firsts, strict=False))
    read = [uuid for part in found for uuid in columns(scan(part, "messages", ["uuid"]))["uuid"]]
    assert read == columns(scan(files(tmp_path), "messages", ["uuid"]))["uuid"]
    assert len(read) == 210


def test_without_a_line_there_is_one_empty_part(tmp_path: Path) -> None:
    assert parts(tmp_path) == [[]]
    assert rows(scan([], "messages")) == []


def test_the_sums_of_parts_are_those_of_the_api(tmp_path: Path) -> None:
    found = parts(unpack_all(tmp_path), 100_000)
    assert len(found) > 50
    assert sums(scan(part, "usage") for part in found) == wanted()


def test_what_does_not_fit_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"uuid":"a"}\n{"uuid":7,"message":{"content":"\\ud83d"}}\n{"uuid":8}\n{"torn\n')
    found = scan([Range(str(path), 0, 1000)], "messages")
    assert found.report.warning == ""  # nothing has been read yet
    columns(found)
    assert found.report.warning == (
        "1 lone surrogates in text, 2 values that do not fit uuid, 1 lines that gave no row. "
        f"The first is at {path}, line 2"
    )
