"""``claude-wire export`` writes sessions as Parquet or CSV files with each row once. It writes all files or none."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from all_sessions import needed, sums, unpack_all, wanted
from arrow_reader import rows
from claude_wire.columns import columns_of, files, scan
from claude_wire_kit.commands.app import cli
from shown import RUNNER

pyarrow = needed("pyarrow")

from pyarrow import dataset, parquet  # noqa: E402 - where it is installed

from claude_wire_kit.commands import table_files as module  # noqa: E402 - imports pyarrow

export = module.export


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_all(tmp_path_factory.mktemp("all"))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 500_000)
    monkeypatch.setattr(module, "PART_ROWS", 100)


def read(folder: Path, by_day: bool = False) -> Any:
    """Read all rows of a folder of Parquet files, in the order of the parts."""
    if by_day:
        return dataset.dataset(folder, partitioning="hive").to_table()
    return pyarrow.concat_tables([parquet.read_table(path) for path in sorted(folder.iterdir())])


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("table", ["messages", "blocks", "usage", "results"])
def test_files_of_parquet_have_all_rows_in_order(table: Any, jobs: int, folder: Path, tmp_path: Path) -> None:
    done = export(folder, str(tmp_path / "out"), table, jobs=jobs)
    written = read(tmp_path / "out")
    whole = pyarrow.table(scan(files(folder), table))
    assert written.equals(whole)
    assert (done.rows, done.report.rows, done.files) == (len(whole), len(whole), len(os.listdir(tmp_path / "out")))
    assert done.files > (1 if table == "results" else 10)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati"])
def test_by_day_each_row_is_in_the_folder_of_its_day(zone: str, folder: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    times = ["2024-02-29T23:59:59.999999Z", "2024-03-01T00:00:00Z", "1969-12-31T12:00:00Z", "2024-02-29T09:59:59Z"]
    more.write_text("".join(f'{{"timestamp":"{time}"}}\n' for time in [*times, times[0]]))
    out = tmp_path / "out"
    export([folder, more], str(out), by_day=True, zone=zone, jobs=2)
    days = {path.name: dataset.dataset(path).to_table() for path in out.iterdir()}
    assert sum(map(len, days.values())) == len(rows(scan(files([folder, more]), "messages", ["uuid"])))
    named = {name: table.column_names for name, table in days.items()}
    assert named == {name: list(columns_of("messages")) for name in days}
    counts = {name.removeprefix("day="): len(table) for name, table in days.items()}
    assert counts.pop("__HIVE_DEFAULT_PARTITION__") == days["day=__HIVE_DEFAULT_PARTITION__"]["timestamp"].null_count
    utc = {"2024-02-29": 3, "2024-03-01": 1, "1969-12-31": 1}
    kiritimati = {"2024-03-01": 3, "1969-12-31": 1, "2024-02-29": 1}  # the time zone is UTC+14
    expected = utc if zone == "UTC" else kiritimati
    assert {day: count for day, count in counts.items() if not day.startswith("2026")} == expected
    assert "day" in dataset.dataset(out, partitioning="hive").to_table().column_names


def test_answers_are_those_of_the_api(folder: Path, tmp_path: Path) -> None:
    done = export(folder, str(tmp_path / "out"), "answers", jobs=2)
    written = read(tmp_path / "out")
    assert sums(written) == wanted()
    assert len(written) == done.rows == len(rows(written))
    many = tmp_path / "many.jsonl"
    line = '{"type":"assistant","requestId":"r","message":{"id":"%d","usage":{}}}\n'
    many.write_text("".join(line % (number % 40_000) for number in range(50_000)))
    done = export(many, str(tmp_path / "many"), "answers", jobs=2)
    assert (done.rows, done.report.rows) == (40_000, 50_000)
    assert done.files == len(os.listdir(tmp_path / "many")) > 1
    by_day = export(folder, str(tmp_path / "days"), "answers", by_day=True)
    assert by_day.rows == len(written)
    assert sums(read(tmp_path / "days", by_day=True).drop_columns("day")) == wanted()


def test_csv_has_a_heading_and_the_same_values(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    text = 'a "quoted",\nsecond line é'
    lines = [{"uuid": "u", "isSidechain": True, "message": {"content": text}}, {"uuid": ""}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = export(path, str(tmp_path / "out"), "messages", "csv")
    assert (done.rows, done.files) == (2, 1)
    with open(tmp_path / "out" / "part-00000.csv", newline="") as file:
        first, second = csv.DictReader(file)
    assert list(first) == list(columns_of("messages"))
    assert (first["uuid"], first["is_sidechain"]) == ("u", "true")
    assert first["text"] == text
    assert (second["uuid"], second["text"]) == ("", "")


def test_what_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        (tmp_path / "in" / f"{number}.jsonl").parent.mkdir(exist_ok=True)
        (tmp_path / "in" / f"{number}.jsonl").write_bytes(b"{}\n" * 200_000)
    out, written = str(tmp_path / "out"), threading.Event()
    write_table = parquet.write_table

    def fails(table: Any, file: Any) -> None:
        if written.is_set():
            raise OSError(28, "No space left on device")
        write_table(table, file)
        written.set()

    monkeypatch.setattr(parquet, "write_table", fails)
    with pytest.raises(OSError, match="No space left"):
        export(tmp_path / "in", out, jobs=2)
    assert written.is_set()
    assert os.listdir(tmp_path) == ["in"]
    monkeypatch.setattr(parquet, "write_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(tmp_path / "in", out, jobs=2)
    assert os.listdir(tmp_path) == ["in"]
    (tmp_path / "in" / "time.jsonl").write_text('{"timestamp":"2024-03-01T00:00:00Z"}\n')
    with pytest.raises(ValueError, match="Nowhere"):
        export(tmp_path / "in", out, by_day=True, zone="Nowhere/Else")
    assert os.listdir(tmp_path) == ["in"]


def interrupted(table: Any, file: Any) -> None:
    raise KeyboardInterrupt


def test_what_fails_leaves_no_folder_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{}\n")
    (tmp_path / "empty").mkdir()

    def fails(table: Any, file: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "write_table", fails)
    for out in ("new/newer/out", "empty/new/out"):
        with pytest.raises(OSError, match="No space left"):
            export(tmp_path / "x.jsonl", str(tmp_path / out))
    assert sorted(os.listdir(tmp_path)) == ["empty", "x.jsonl"]
    assert os.listdir(tmp_path / "empty") == []


@pytest.mark.parametrize("name", [os.fsdecode(b"o\xff"), "\x1b[2J\n", "n" * 255, "ü" * 127, "s3:"], ids=ascii)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_folder_may_have_any_name(name: str, form: Any, tmp_path: Path) -> None:
    source = tmp_path / f"{os.fsdecode(bytes([255]))}.jsonl"
    source.write_bytes(b"{}\n")
    out = tmp_path / name
    assert export(source, str(out), format=form, by_day=True).rows == 1
    day = out / "day=__HIVE_DEFAULT_PARTITION__"
    assert os.listdir(day) == [f"part-00000.{form}"]
    assert sorted(os.listdir(tmp_path)) == sorted([name, source.name])


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{}\n")
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new"):
        link = tmp_path / f"link to {name}"
        link.symlink_to(tmp_path / name)
        export(tmp_path / "x.jsonl", str(link))
        assert link.is_symlink()
        assert os.listdir(tmp_path / name) == ["part-00000.parquet"]


def test_a_folder_that_cannot_be_replaced_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{}\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"kept")
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setattr(module, "parts", None)  # an attempt to read would raise
    source = tmp_path / "x.jsonl"
    for out, says in (
        (".", "choose a new folder inside it"),
        (str(tmp_path / "empty"), "choose a new folder inside it"),
        ("", "no name"),
        ("../file", "is not a folder"),
    ):
        with pytest.raises((FileExistsError, ValueError), match=says):
            export(source, out)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: path == str(mounted))
    with pytest.raises(FileExistsError, match="choose a new folder inside it"):
        export(source, str(mounted))
    assert (tmp_path / "file").read_bytes() == b"kept"
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "mounted", "x.jsonl"]


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    """A limit on the file size (RLIMIT_FSIZE) simulates the full disk."""
    with open(tmp_path / "x.jsonl", "wb") as file:
        for number in range(2000):
            file.write(b'{"uuid":"%064d"}\n' % (number * 7919**17))
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))"
    program = f"{limited}; from claude_wire_kit.commands import main; main()"
    command = [sys.executable, "-c", program, "export", str(tmp_path), "-o", str(tmp_path / "out")]
    for form in ("parquet", "csv"):
        done = subprocess.run([*command, "--format", form], capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: nothing was exported: ")
        assert "File too large" in done.stderr
        assert "Traceback" not in done.stderr
        assert os.listdir(tmp_path) == ["x.jsonl"]


def test_a_folder_with_something_in_it_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{}\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "kept").touch()
    with pytest.raises(FileExistsError, match="is not empty"):
        export(tmp_path / "x.jsonl", str(out))
    assert os.listdir(out) == ["kept"]
    empty = tmp_path / "a" / "b"
    empty.mkdir(parents=True)
    assert export(tmp_path / "x.jsonl", str(empty)).rows == 1
    assert os.listdir(empty) == ["part-00000.parquet"]
    assert os.listdir(tmp_path / "a") == ["b"]


def invoke(*arguments: str) -> Any:
    return RUNNER.invoke(cli, ["export", *arguments])


def test_the_command_says_what_it_wrote_and_what_did_not_fit(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = invoke(str(folder), "-o", str(out), "--by", "day", "--table", "answers", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert sums(read(out, by_day=True).drop_columns("day")) == wanted()
    assert result.stdout == f"{len(read(out, by_day=True)):,} rows of answers in 1 files below {out}\n"
    assert "note: 1 lines that gave no row. The first is at" in result.stderr
    again = invoke(str(folder), "-o", str(out))
    assert again.exit_code == 2
    assert "nothing was exported" in again.stderr
    assert "folder is not empty" in again.stderr
    assert invoke(str(tmp_path / "none"), "-o", str(tmp_path / "new")).exit_code == 2
    nowhere = invoke(str(folder), "-o", str(tmp_path / "new"), "--by", "day", "--tz", "Nowhere/Else")
    assert nowhere.exit_code == 2
    assert not (tmp_path / "new").exists()


def test_days_and_a_project_narrow_what_is_written(tmp_path: Path) -> None:
    for name, days in (("one", ["01", "03"]), ("two", ["05"])):
        project = f"/home/{name}"
        session = tmp_path / "projects" / project.replace("/", "-") / f"{name}.jsonl"
        for number, path in enumerate((session, session.with_suffix("") / "subagents" / "agent-1.jsonl")):
            path.parent.mkdir(parents=True, exist_ok=True)
            records = [
                {
                    "type": "assistant",
                    "sessionId": name,
                    "uuid": f"{name}{number}{day}",
                    "cwd": project,
                    "timestamp": f"2026-05-{day}T23:30:00Z",
                    "message": {"id": f"{name}{number}{day}", "role": "assistant", "content": [], "usage": {}},
                }
                for day in days
            ]
            path.write_text("".join(map(line_of, [*records, {"type": "summary", "sessionId": name}])))
    for number, (arguments, count, of_messages) in enumerate(
        (
            ([], 6, 10),
            (["--since", "2026-05-02"], 4, 4),
            (["--until", "2026-05-03"], 4, 4),
            (["--until", "2026-05-03", "--tz", "Europe/Berlin"], 2, 2),
            (["--since", "2026-05-03", "--until", "2026-05-04", "--project", "/home/one"], 2, 2),
            (["--project", "/home/two"], 2, 4),
            (["--project", "/home/nobody"], 0, 0),
        )
    ):
        for table, expected in (("answers", count), ("messages", of_messages)):
            out = tmp_path / f"{table}{number}"
            done = invoke(str(tmp_path / "projects"), "-o", str(out), "--table", table, *arguments)
            assert done.exit_code == 0, done
            assert f"{expected} rows of {table} " in done.stdout
            assert done.stderr == ("" if expected else f"note: no {table} found in {tmp_path / 'projects'}\n")
            assert sum(len(parquet.read_table(path)) for path in out.iterdir()) == expected


def line_of(record: dict[str, Any]) -> str:
    return json.dumps(record) + "\n"


def test_a_killed_export_leaves_no_folder(tmp_path: Path) -> None:
    from children import in_own_process

    (tmp_path / "x.jsonl").write_bytes(b"{}\n")
    with pytest.raises(AssertionError):
        in_own_process(killed, str(tmp_path))
    assert not (tmp_path / "out").exists()


def killed(folder: str) -> None:
    def kill(*_: object) -> None:
        write_table(*_)
        os.kill(os.getpid(), 9)

    write_table, parquet.write_table = parquet.write_table, kill
    export(f"{folder}/x.jsonl", f"{folder}/out")
