"""The arguments that a scan accepts and rejects, its reports, and its limits."""

from __future__ import annotations

import copy
import ctypes
import gc
import json
import os
import pickle
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from all_sessions import sums, unpack_all, wanted
from arrow_reader import Array, columns, opened, rows
from children import in_own_process, linux_only
from claude_wire import Kind
from claude_wire.columns import Problem, Range, columns_of, files, parts, plan, scan
from claude_wire.columns.tables import TableName


def line(**keys: Any) -> bytes:
    return json.dumps(keys).encode() + b"\n"


def user(content: Any, **keys: Any) -> bytes:
    return line(type="user", message={"role": "user", "content": content}, **keys)


def test_columns_come_in_the_order_asked_for() -> None:
    found = scan(user("a", uuid="u"), "messages", ["text", "uuid"])
    assert columns(found) == {"text": ["a"], "uuid": ["u"]}
    assert (found.columns, found.table) == (("text", "uuid"), "messages")
    assert repr(found) == "<Scan of messages: 1 source, 2 columns>"
    assert scan([], "usage").columns == columns_of("usage")
    assert columns(scan([], "usage", ["offset"])) == {"offset": []}


def test_only_the_kinds_that_are_wanted() -> None:
    data = user("a") + line(type="attachment") + line(type="system", subtype="init") + b"{}\nno\n"
    found = scan(data, "messages", ["type"], only={"user", Kind("attachment")})
    assert columns(found) == {"type": ["user", "attachment", None]}
    assert (found.report.skipped, found.report.lines, found.report.invalid) == (1, 5, 1)
    assert rows(scan(data, "messages", ["type"], only={"system/init"})) == [{"type": "system"}, {"type": None}]
    assert rows(scan(data, "messages", ["type"], only=set())) == [{"type": None}]


def test_arguments_are_refused_with_what_to_write(tmp_path: Path) -> None:
    for arguments, error, text in [
        ({"table": "message"}, ValueError, "did you mean 'messages'"),
        ({"table": 3}, TypeError, "one of 'messages'"),
        ({"columns": "text"}, TypeError, r"columns=\['text'\]"),
        ({"columns": ["txt"]}, ValueError, "no column 'txt' .did you mean 'text'"),
        ({"columns": []}, ValueError, "at least one"),
        ({"columns": ["text", "text"]}, ValueError, "no name twice"),
        ({"only": {"usr"}}, ValueError, "no kind 'usr'"),
        ({"max_line_bytes": 2**31}, ValueError, "at most 536870912"),
        ({"max_line_bytes": 0}, ValueError, "max_line_bytes"),
        ({"strict": 1}, TypeError, "strict must be"),
    ]:
        with pytest.raises(error, match=text):
            scan(b"", **arguments)
    with pytest.raises(FileNotFoundError):
        scan(tmp_path / "none")
    with pytest.raises(IsADirectoryError, match="a directory"):
        scan([tmp_path])
    for source in (5, [5], [None]):
        with pytest.raises(TypeError, match="paths, Ranges or bytes, not"):
            scan(source)
    with pytest.raises(ValueError, match="start"):
        scan(Range(str(tmp_path), -1, 5))
    with pytest.raises(ValueError, match="target_bytes"):
        plan(tmp_path, 0)


def test_a_report_tells_what_did_not_fit_and_where(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    good = user("good")
    bad = [
        rb'{"type":"user","message":{"content":"half \ud83d and \ude00"},"uuid":5}' + b"\n",
        b'{"torn":\n',
        b"\n",
        b'{"type":"x","uuid":"' + b"x" * 500 + b'"}\n',
        rb'{"type":"user","type":"user","timestamp":"yesterday"}' + b"\n",
    ]
    path.write_bytes(good + b"".join(bad))
    found = scan(path, "messages", ["uuid", "timestamp", "text"], max_line_bytes=300)
    assert found.report.lines == 0
    assert columns(found)["text"] == ["good", "half \ufffd and \ufffd", None]
    report = found.report
    assert report.surrogates == {"text": 2}
    assert report.misfits == {"uuid": 1, "timestamp": 1}
    assert (report.lines, report.rows, report.invalid, report.decoded) == (5, 3, 2, 2)
    assert report.bytes == path.stat().st_size
    starts = [len(good) + sum(map(len, bad[:index])) for index in range(5)]
    assert report.problems == [
        Problem("misfit", "uuid", str(path), starts[0], 2),
        Problem("surrogate", "text", str(path), starts[0], 2),
        Problem("invalid", None, str(path), starts[1], 3),
        Problem("too_long", None, str(path), starts[3], 5),
        Problem("misfit", "timestamp", str(path), starts[4], 6),
    ]
    path.unlink()
    assert found.report.problems[0].line_number is None


def test_lines_of_problems_are_numbered_in_each_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\nno\n{}\nno\n")
    (tmp_path / "b.jsonl").write_bytes(b"no\n\n\nno\n")
    found = scan([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert columns(found)["type"] == [None, None]
    assert [(problem.path, problem.line_number) for problem in found.report.problems] == [
        (str(tmp_path / "a.jsonl"), 2),
        (str(tmp_path / "a.jsonl"), 4),
        (str(tmp_path / "b.jsonl"), 1),
        (str(tmp_path / "b.jsonl"), 4),
    ]


def test_a_fifo_and_a_device_make_nobody_wait(tmp_path: Path) -> None:
    fifo, path = tmp_path / "fifo.jsonl", tmp_path / "a.jsonl"
    os.mkfifo(fifo)
    for other in fifo, Path("/dev/zero"):
        with pytest.raises(OSError, match="not a regular file"):
            scan(other)
    path.write_bytes(b"{}\n")
    found = scan(path)
    path.unlink()
    os.mkfifo(path)  # a named pipe has replaced the file since
    with pytest.raises(OSError, match="not a regular file"):
        columns(found)


def test_the_first_hundred_problems_are_kept() -> None:
    found = scan(b"no\n" * 500)
    assert columns(found)["type"] == []
    assert (found.report.invalid, len(found.report.problems)) == (500, 100)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b'{"type":"user","uuid":7}', "column uuid: a value that does not fit"),
        (rb'{"type":"user","uuid":"\ud83d"}', "column uuid: half of a surrogate pair"),
        (b'{"type":"user"', "line 3: not a JSON object"),
        (b'{"type":"user","x":"' + b"x" * 200 + b'"}', "line 3: longer than max_line_bytes"),
        (b'{"type":"user","message":{"content":[' + b"{}," * 70_000 + b"{}]}}", "line 3: too many content blocks"),
    ],
)
def test_strict_ends_with_file_line_and_column(tmp_path: Path, text: bytes, what: str) -> None:
    table: TableName
    path = tmp_path / "x.jsonl"
    path.write_bytes(user("a") + b"\n" + text + b"\n" + user("b"))
    table, most = ("blocks", 2**20) if b"content" in text else ("messages", 150)
    with pytest.raises(OSError, match=f"x.jsonl, line 3.*{what.partition('line 3')[2] or what}"):
        rows(scan(path, table, strict=True, max_line_bytes=most))
    start = path.read_bytes().index(text)
    with pytest.raises(OSError, match=r"x.jsonl, line 3"):
        rows(scan(Range(str(path), start, start + 5), table, strict=True, max_line_bytes=most))
    assert len(rows(scan(path, table, max_line_bytes=most))) >= 2


def test_too_many_blocks_give_no_row() -> None:
    found = scan(user([{}] * 70_000) + user("x"), "blocks", ["text"])
    assert columns(found) == {"text": ["x"]}
    assert [problem.kind for problem in found.report.problems] == ["too_many_blocks"]
    # The row of each block repeats the line's uuid of 1 MiB.
    found = scan(user([{}] * 100, uuid="x" * 2**20) + user("x"), "blocks", ["uuid"])
    assert columns(found) == {"uuid": [None]}
    assert [problem.kind for problem in found.report.problems] == ["too_many_blocks"]


def test_a_file_that_is_gone_fails_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(user("a"))
    found = scan(path)
    path.unlink()
    with pytest.raises(OSError, match=r"x\.jsonl: "):
        rows(found)


def test_each_pass_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(user("a"))
    found = scan(path, "messages", ["text"])
    assert columns(found) == columns(found) == {"text": ["a"]}
    assert found.report.rows == 1
    path.write_bytes(user("a") + user("b"))
    assert columns(found) == {"text": ["a", "b"]}


def test_ranges_are_pickled(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(user("a") * 10)
    ranges = plan([path], 100)
    assert pickle.loads(pickle.dumps(ranges)) == copy.copy(ranges)
    assert rows(scan(pickle.loads(pickle.dumps(ranges)))) == rows(scan(path))


def test_views_of_bytes() -> None:
    data = user("a")
    for view in (bytearray(data), memoryview(data), memoryview(b"xx" + data)[2:]):
        assert columns(scan(view, "messages", ["text", "path"])) == {"text": ["a"], "path": [None]}
    with pytest.raises(ValueError, match="contiguous"):
        scan(memoryview(data)[::2])


@pytest.mark.skipif(sys.platform == "win32", reason="any bytes are a name")
def test_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    path = bytes(tmp_path) + b"/\xff.jsonl"
    with open(path, "wb") as file:
        file.write(user("a"))
    assert columns(scan(os.fsdecode(path), "messages", ["text", "path"])) == {
        "text": ["a"],
        "path": [f"{tmp_path}/\ufffd.jsonl"],
    }


def growth(folder: str) -> None:
    path = Path(folder) / "big.jsonl"
    block = (user("x" * 2000, uuid="u" * 36) + line(type="attachment", rest="y" * 9000)) * 100
    with open(path, "wb") as file:
        for _ in range(150):
            file.write(block)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stream = opened(scan(path, "messages").__arrow_c_stream__())
    found = 0
    while True:
        array = Array()
        assert stream.get_next(ctypes.byref(stream), ctypes.byref(array)) == 0
        if not array.release:
            break
        found += array.length
        array.release(ctypes.byref(array))
    stream.release(ctypes.byref(stream))
    assert found == 30_000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 32 * 1024, f"{grown} KiB more for a file of {path.stat().st_size >> 20} MiB"


@linux_only
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    in_own_process(growth, str(tmp_path))


# --- Files and folders are divided into parts that contain each line once. Values that do not fit cause a warning -----


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
