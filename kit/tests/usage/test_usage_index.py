"""``claude_wire_kit.usage.index``: the sums of a folder equal a full count, whatever happened to its files."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import date, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from claude_wire.columns import Range
from claude_wire.columns.usage_rows import read_usage
from claude_wire.transcripts import read
from claude_wire_kit.usage import PRICES, Answers, AnswerTotals, OwnCost, Price, Prices, UsageIndex
from claude_wire_kit.usage import file_delta as file_delta_module
from claude_wire_kit.usage import index as index_module
from claude_wire_kit.usage.file_delta import BLOCK_BYTES, TAIL_BYTES
from claude_wire_kit.usage.index import default_file
from cli_lines import line
from sessions import scenarios, transcripts, truth, unpack

KINDS = (
    *("answers", "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_creation_5m"),
    *("cache_creation_1h", "cache_read_input_tokens"),
)
Counts = dict[str, dict[str, int]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "index.sqlite3"


def plain(models: dict[str, AnswerTotals]) -> Counts:
    return {model: {kind: getattr(totals, kind) for kind in KINDS} for model, totals in models.items()}


def looked(folder: Path, file: Path | str) -> tuple[Counts, UsageIndex]:
    """Open the index and refresh it. Return its sums by model for the existing files, and the index."""
    with UsageIndex(folder, file) as index:
        index.prune()
        return plain(index.sums().get("", {})), index


def by_the_rule(folder: Path) -> Counts:
    """Count all records of all files. Return the sums by model."""
    answers = Answers()
    for path in sorted(folder.rglob("*.jsonl"), key=lambda path: os.fsencode(path.relative_to(folder))):
        for record in read(path):
            answers.add(record)
    return dict(sorted(plain(answers.models).items()))


def answer(id: int, tokens: int = 1, **others: Any) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": tokens}
    message = {
        "id": f"m{id}",
        "model": "x",
        "role": "assistant",
        "content": [],
        "usage": usage,
        **others.pop("has", {}),
    }
    record = {"type": "assistant", "uuid": f"u{id}", "parentUuid": None, "sessionId": "s", "requestId": f"r{id}"}
    return line({**record, "timestamp": "2026-01-02T03:04:05Z", "message": message, **others})


def outputs(counts: Counts) -> int:
    return sum(each["output_tokens"] for each in counts.values())


# --- the full count ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", scenarios())
def test_sums_are_those_of_the_api_the_first_time_and_the_second(scenario: str, tmp_path: Path, file: Path) -> None:
    projects = unpack(scenario, tmp_path)
    projects.mkdir(exist_ok=True)
    true = truth(scenario)["sums"]["expected_from_transcripts"]
    for files_read in (len(transcripts(scenario)), 0):
        counts, index = looked(projects, file)
        assert counts == true
        assert (index.files_read, index.notes, index.unreadable) == (files_read, [], [])


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the transcripts of all scenarios."""
    folder = tmp_path_factory.mktemp("everything")
    for scenario in scenarios():
        unpack(scenario, folder)
    return folder / "projects"


def test_sessions_have_their_answers_and_those_of_their_subagents(everything: Path) -> None:
    expected: dict[str, int] = {}
    for scenario in scenarios():
        for each in truth(scenario)["answers"]:
            if each["in_transcript"]:
                expected[each["session_id"]] = expected.get(each["session_id"], 0) + each["usage"]["input_tokens"]
    with UsageIndex(everything, ":memory:") as index:
        sessions = index.sums("session")
        assert {
            name: sum(each.input_tokens for each in models.values()) for name, models in sessions.items()
        } == expected
        agents = {name for name, models in index.sums("subagent").items() if models}
        assert agents == {"main", "general-purpose", "helper", "plug:tester"}
        projects = index.sums("project")
        assert "/home/user/src/two_folders" not in projects
        assert {"/home/user/src/x", "/home/user/src/y", "/home/user/src/subagent"} <= projects.keys()


def test_costs_are_those_of_the_cli_where_it_counts_the_same_answers(everything: Path) -> None:
    with UsageIndex(everything, ":memory:") as index:
        own, sessions = index.own_costs(), index.sums("session")
    states = {
        id: each["cost_state"]
        for name in scenarios()
        for id, each in truth(name)["by_session"].items()
        if each.get("cost_state")
    }
    assert {id: cost.total for id, cost in own.items() if cost.total} == {
        id: pytest.approx(state["totalCostUSD"]) for id, state in states.items()
    }
    same = 0
    for id, cost in own.items():
        assert cost.total == pytest.approx(sum(cost.models.values()))
        reckoned = {model: totals.cost_usd for model, totals in sessions.get(id, {}).items()}
        same += reckoned == pytest.approx(cost.models)
    # ``equals`` says which sums agree with the answers on disk. Sessions without an answer cost nothing.
    counts_the_same = [
        "complete answers of the session that are in the transcript" in state["equals"] for state in states.values()
    ]
    nothing = [id for id, cost in own.items() if not cost.total]
    assert own.keys() - states.keys() == set(nothing)
    assert same == sum(counts_the_same) + len(nothing)
    assert (len(own), len(states), len(nothing)) == (62, 59, 3)


def test_a_day_is_that_of_the_time_zone(tmp_path: Path) -> None:
    stamps = ["2026-03-01T23:44:59Z", "2026-03-01T23:45:00Z", "2026-03-02T04:59:00Z", "soon"]
    (tmp_path / "s.jsonl").write_bytes(b"".join(answer(each, 10**each, timestamp=stamps[each]) for each in range(4)))

    def days(zone: Any, **bounds: Any) -> dict[str, int]:
        with UsageIndex(tmp_path, ":memory:") as index:
            return {day: outputs(plain(models)) for day, models in index.sums("day", zone=zone, **bounds).items()}

    assert days(timezone.utc) == {"": 1000, "2026-03-01": 11, "2026-03-02": 100}
    assert days(ZoneInfo("America/New_York")) == {"": 1000, "2026-03-01": 111}
    assert days(timezone(timedelta(minutes=15))) == {"": 1000, "2026-03-01": 1, "2026-03-02": 110}
    assert days(timezone.utc, since=date(2026, 3, 2)) == {"2026-03-02": 100}
    assert days(timezone.utc, until=date(2026, 3, 1)) == {"": 1000, "2026-03-01": 11}
    assert days(ZoneInfo("America/New_York"), since=date(2026, 3, 2), until=date(2026, 3, 2)) == {}


def test_answers_without_a_session_or_a_time_count(tmp_path: Path, file: Path) -> None:
    nothing = answer(1, sessionId=None, timestamp=None, cwd=None, requestId=None, has={"model": None})
    old = answer(2, timestamp="1812-01-01T00:00:00Z")
    (tmp_path / "s.jsonl").write_bytes(nothing + old)
    for _ in range(2):
        with UsageIndex(tmp_path, file) as index:
            assert {name: list(models) for name, models in index.sums("session").items()} == {"": ["?"], "s": ["x"]}
            for by in ("day", "project"):
                assert {name: list(models) for name, models in index.sums(by).items()} == {"": ["?", "x"]}
            assert index.sums(since=date.min, until=date.max) == index.sums()
            assert index.sums(since=date(2000, 1, 1)) == index.sums(since=date.max) == {}
            assert index.sums(until=date.min, zone=timezone.utc) == {}
            assert index.notes == []


def test_a_model_without_a_price_costs_nothing_that_is_known(tmp_path: Path) -> None:
    long = {"usage": {"input_tokens": 150_000, "output_tokens": 0}, "model": "y"}
    (tmp_path / "s.jsonl").write_bytes(answer(1) + answer(2, has=long) + answer(3, has={"model": "y"}))
    price = Price(1, 0, 0, 0, 0, (100_000, Price(10, 0, 0, 0, 0)))
    with UsageIndex(tmp_path, ":memory:") as index:
        models = index.sums(prices=Prices("of today", {"y": price}))[""]
        assert (models["x"].unpriced, models["x"].cost_usd) == (1, 0)
        assert (models["y"].unpriced, models["y"].answers) == (0, 2)
        assert models["y"].cost_usd == pytest.approx((150_000 * 10 + 1) / 1e6)
        assert index.sums()[""]["y"].unpriced == 2
        with pytest.raises(ValueError, match="did you mean 'day'"):
            index.sums("days")


ODD: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "content null": ({}, {"content": None}, {}),
    "content text": ({}, {"content": "hi"}, {}),
    "cache null": ({}, {}, {"cache_creation": None}),
    "cache new": ({}, {}, {"cache_creation": {"x": 1}, "cache_creation_input_tokens": 5}),
    "cache half": ({}, {}, {"cache_creation": {"ephemeral_5m_input_tokens": 5}, "cache_creation_input_tokens": 5}),
    "whole": ({}, {}, {"output_tokens": 3.0}),
    "fraction": ({}, {}, {"output_tokens": 3.5}),
    "text": ({}, {}, {"output_tokens": "3", "iterations": {"a": 1}}),
    "huge": ({}, {}, {"output_tokens": 2**70, "input_tokens": 2**63 - 1}),
    "uuid gone": ({"uuid": None}, {}, {}),
    "uuid number": ({"uuid": 3}, {}, {}),
    "id number": ({}, {"id": 3}, {}),
    "id empty": ({"requestId": ""}, {"id": ""}, {}),
    "model number": ({}, {"model": 3}, {}),
    "usage list": ({}, {"usage": []}, {}),
    "usage empty": ({}, {"usage": {}}, {}),
    "searches new": ({}, {}, {"server_tool_use": 5}),
    "side new": ({"isSidechain": "x", "requestSessionId": ""}, {}, {}),
}


@pytest.mark.parametrize("name", ODD)
def test_an_answer_whose_line_is_odd_counts_by_columns_as_by_records(name: str, tmp_path: Path) -> None:
    record, message, used = ODD[name]
    counts = {"input_tokens": 1, "output_tokens": 2, **used}
    odd = answer(1, has={"usage": counts, **message}, **record)
    (tmp_path / "s.jsonl").write_bytes(odd + answer(2))
    found = by_the_rule(tmp_path)
    assert looked(tmp_path, ":memory:")[0] == found
    assert sum(each["answers"] for each in found.values()) == (1 if name == "usage list" else 2)


# --- files that change ------------------------------------------------------------------------------------------------


def test_a_second_look_reads_only_the_ends_of_what_has_grown(tmp_path: Path, file: Path) -> None:
    """The index does not open unchanged files. The test overwrites them with noise of the same size and time."""
    folder = tmp_path / "projects"
    folder.mkdir()
    paths = [folder / f"{number}.jsonl" for number in range(1000)]
    for number, path in enumerate(paths):
        path.write_bytes(answer(number) * 3)
    assert outputs(looked(folder, file)[0]) == 1000
    for path in paths:
        status = path.stat()
        with open(path, "r+b") as opened:
            opened.write(b"noise" * (max(status.st_size - TAIL_BYTES, 0) // 5))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    added = 0
    for number, path in enumerate(paths[::100]):
        with open(path, "ab") as opened:
            added += opened.write(answer(1000 + number, 2))
    counts, index = looked(folder, file)
    assert outputs(counts) == 1000 + 10 * 2
    assert index.files_read == 10
    # The index reads new bytes once for answers and once for costs. Per file it also reads two tails, and two bytes
    # to see where lines begin.
    assert added < index.bytes_read <= 2 * added + 10 * (2 * TAIL_BYTES + 2)
    assert looked(folder, file)[1].bytes_read == 0


def test_a_last_line_that_has_not_ended_counts_when_it_is_whole_and_is_read_again(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    path = folder / "s.jsonl"
    whole = answer(1, 10) + answer(2, 100)
    for cut in range(len(answer(1, 10)) - 2, len(whole) + 1):
        path.write_bytes(whole[:cut])
        counts, index = looked(folder, file)
        assert outputs(counts) == 10 * (cut >= len(answer(1, 10)) - 1) + 100 * (cut >= len(whole) - 1)
        assert index.files_read == 1
    assert looked(folder, file)[1].files_read == 0


@pytest.mark.parametrize("size", [BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 7])
def test_a_torn_line_of_any_length_is_no_end(size: int, tmp_path: Path, file: Path) -> None:
    path = tmp_path / "s.jsonl"
    for torn in (b"", b'{"' + b"x" * size):
        path.write_bytes(answer(1, 10) + torn)
        assert outputs(looked(tmp_path, file)[0]) == 10
    with open(path, "ab") as opened:
        opened.write(b"\n" + answer(2, 100))
    assert outputs(looked(tmp_path, file)[0]) == 110


def test_a_file_that_shrank_or_was_replaced_is_read_again(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    path = folder / "s.jsonl"
    path.write_bytes(answer(1, 10) + answer(2, 100))
    assert outputs(looked(folder, file)[0]) == 110
    path.write_bytes(answer(1, 10))  # smaller
    assert outputs(looked(folder, file)[0]) == 10
    path.write_bytes(answer(3, 20))  # the same size
    os.utime(path, ns=(1, 1))
    assert outputs(looked(folder, file)[0]) == 20
    path.write_bytes(answer(4, 1000) + answer(5, 1000))  # larger, with other contents
    assert outputs(looked(folder, file)[0]) == 2000
    other = folder / "new"
    other.write_bytes(answer(6, 5) + path.read_bytes())
    os.replace(other, path)
    assert outputs(looked(folder, file)[0]) == 2005
    path.unlink()
    assert looked(folder, file)[0] == {}


def test_copies_count_when_the_original_is_gone(tmp_path: Path, file: Path) -> None:
    """The copied answers still belong to the original session."""
    projects = unpack("fork_both", tmp_path)
    true = truth("fork_both")["sums"]["expected_from_transcripts"]
    assert looked(projects, file)[0] == true
    with UsageIndex(projects, file) as index:
        sessions = index.sums("session")
    asked = {each["session_id"] for each in truth("fork_both")["answers"]}
    assert sessions.keys() == asked
    for path in sorted(projects.glob("*/*.jsonl")):
        kept = path.read_bytes()
        path.unlink()
        counts = looked(projects, file)[0]
        assert counts == by_the_rule(projects)
        assert counts != true
        path.write_bytes(kept)
        assert looked(projects, file)[0] == true


def test_what_is_gone_stays_counted_until_it_is_pruned(tmp_path: Path, file: Path) -> None:
    """The index keeps such counts because the CLI deletes transcripts after some days."""
    folder = tmp_path / "projects"
    folder.mkdir()
    old, new = folder / "old.jsonl", folder / "new.jsonl"
    old.write_bytes(answer(1, 10) + answer(2, 20))
    new.write_bytes(answer(3, 100))
    looked(folder, file)
    kept = old.read_bytes()
    old.unlink()
    for _ in range(2):
        with UsageIndex(folder, file) as index:
            assert outputs(plain(index.sums()[""])) == 130
            assert (index.gone, index.files) == ([old], 1)
    new.write_bytes(answer(3, 100) + answer(1, 10))  # a copy of a deleted answer counts once
    with UsageIndex(folder, file) as index:
        assert outputs(plain(index.sums()[""])) == 130
    old.write_bytes(kept)
    with UsageIndex(folder, file) as index:
        assert outputs(plain(index.sums()[""])) == 130
        assert index.gone == []
    old.unlink()
    with UsageIndex(folder, file) as index:
        assert index.prune() == 1
        assert outputs(plain(index.sums()[""])) == 110
        assert (index.gone, index.prune()) == ([], 0)
    assert outputs(looked(folder, file)[0]) == 110


def test_a_cost_without_a_session_is_of_no_session(tmp_path: Path, file: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"type":"cost-state","totalCostUSD":3,"modelUsage":{}}\n')
    with UsageIndex(tmp_path, file) as index:
        assert index.own_costs() == {}


def test_a_last_line_that_another_process_goes_on_with_is_counted_no_more(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    path = folder / "a.jsonl"
    path.write_bytes(answer(1, 10) + answer(2, 1000).removesuffix(b"\n"))
    assert outputs(looked(folder, file)[0]) == 1010
    with open(path, "ab") as opened:
        opened.write(answer(3, 5))
    assert looked(folder, file)[0] == looked(folder, ":memory:")[0] == by_the_rule(folder)


def test_a_file_that_had_no_answers_yet_is_not_damaged(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    path, old = folder / "a.jsonl", folder / "old.jsonl"
    path.write_bytes(line({"type": "user"}))
    old.write_bytes(answer(1, 10))
    looked(folder, file)
    old.unlink()
    for number in range(2, 4):
        with open(path, "ab") as opened:
            opened.write(answer(number, 100))
        with UsageIndex(folder, file) as index:
            assert outputs(plain(index.sums()[""])) == 10 + 100 * (number - 1)
            assert (index.notes, index.gone) == ([], [old])


def test_one_damaged_byte_makes_no_other_sums(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    cost = b'{"type":"cost-state","sessionId":"s","totalCostUSD":7.25,"modelUsage":{}}\n'
    (folder / "a.jsonl").write_bytes(b"".join(answer(id, 10) for id in range(300)) + cost)
    right = looked(folder, file)[0]
    whole = file.read_bytes()
    chance = random.Random(3)
    places = [whole.index(b"CREATE TABLE names") + 8, whole.index(b"[7.25, ") + 5]
    for place in [*places, *(chance.randrange(100, len(whole)) for _ in range(100))]:
        data = bytearray(whole)
        data[place] ^= 1 << chance.randrange(8) if place not in places else 0x80
        file.write_bytes(data)
        with UsageIndex(folder, file) as index:
            assert plain(index.sums()[""]) == right
            index.own_costs()
            index.sums("project")
        with UsageIndex(folder, file) as index:
            assert plain(index.sums()[""]) == right
            assert index.notes == []


def test_the_cost_of_a_session_in_two_files_does_not_depend_on_which_was_read_first(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()

    def cost(usd: float) -> bytes:
        return b'{"type":"cost-state","sessionId":"s","totalCostUSD":%g,"modelUsage":{}}\n' % usd

    (folder / "b.jsonl").write_bytes(answer(1, 10) + cost(1.0))
    looked(folder, file)
    (folder / "a.jsonl").write_bytes(answer(1, 10) + cost(2.0))
    with UsageIndex(folder, file) as index, UsageIndex(folder, ":memory:") as new:
        assert index.own_costs() == new.own_costs()
        assert index.sums("project") == new.sums("project")


def test_costs_are_those_of_a_full_look_however_the_file_grew(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()

    def cost(usd: float, **more: Any) -> bytes:
        return line({"type": "cost-state", "totalCostUSD": usd, **more})

    ends = [
        cost(1.0),
        cost(2.0, sessionId="c", modelUsage={}).rstrip(b"\n"),
        b" torn\n",
        cost(3.0, sessionId="d"),
        answer(1, 10),
        cost(4.0, sessionId="e", modelUsage=None),
    ]
    expected: list[dict[str, float]] = [{}, {"c": 2.0}, {}, {"d": 3.0}, {"s": 3.0}, {"s": 4.0}]
    path = folder / "a.jsonl"
    for end, costs in zip(ends, expected, strict=True):
        with open(path, "ab") as opened:
            opened.write(end)
        for place in (file, ":memory:"):
            with UsageIndex(folder, place) as index:
                assert index.own_costs() == {session: OwnCost(usd, {}) for session, usd in costs.items()}
                assert index.notes == []


# --- damaged and foreign indexes --------------------------------------------------------------------------------------


def damaged(file: Path) -> Iterator[str]:
    """Damage an index file in one way after another."""
    whole = file.read_bytes()
    for damage in ("noise", "half", "header", "middle"):
        data = bytearray(whole)
        if damage == "noise":
            data = bytearray(b"noise" * 1000)
        elif damage == "half":
            del data[len(data) // 2 :]
        elif damage == "header":
            data[:100] = bytes(100)
        else:
            data[4096:] = b"\xff" * (len(data) - 4096)
        file.write_bytes(data)
        yield damage


def test_a_damaged_index_is_built_anew_with_a_word(everything: Path, file: Path) -> None:
    expected, _ = looked(everything, file)
    for damage in damaged(file):
        journal = file.with_name(file.name + "-journal")
        journal.write_bytes(b"noise")
        counts, index = looked(everything, file)
        assert counts == expected, damage
        assert not journal.exists()
        assert [note for note in index.notes if "is built anew" in note] == index.notes
        assert len(index.notes) == 1
        assert looked(everything, file)[1].files_read == 0


def test_an_index_of_another_version_is_built_anew(tmp_path: Path, file: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(answer(1))
    expected, _ = looked(tmp_path, file)
    with sqlite3.connect(file) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    counts, index = looked(tmp_path, file)
    assert counts == expected
    assert "version 99" in index.notes[0]
    assert looked(tmp_path, file)[1].notes == []


def test_without_a_place_for_the_index_all_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(answer(1))
    (tmp_path / "no-folder").write_bytes(b"")
    for place in (tmp_path / "no-folder" / "index", tmp_path):
        counts, index = looked(tmp_path, place)
        assert outputs(counts) == 1
        assert index.file is None
        assert "is not used" in index.notes[0]


def test_an_index_that_another_process_holds_is_done_without(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "BUSY_SECONDS", 0.01)
    (tmp_path / "s.jsonl").write_bytes(answer(1))
    looked(tmp_path, file)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    counts, index = looked(tmp_path, file)
    assert outputs(counts) == 1
    assert "locked" in index.notes[0]
    other.execute("ROLLBACK")
    other.close()
    assert looked(tmp_path, file)[1].notes == []


LOOK = """
import sys
from claude_wire_kit.usage import UsageIndex
with UsageIndex(sys.argv[1], sys.argv[2]) as index:
    print(sum(each.output_tokens for each in index.sums()[""].values()), index.notes)
"""


def test_several_processes_at_once_have_the_same_sums(everything: Path, file: Path) -> None:
    expected = outputs(looked(everything, ":memory:")[0])
    command = [sys.executable, "-c", LOOK, str(everything), str(file)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=120)[0] for process in running] == [f"{expected} []\n"] * 4
    assert looked(everything, file)[1].files_read == 0


def test_an_interrupt_leaves_the_index_as_it_was(
    everything: Path, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(everything, folder)
    expected, _ = looked(folder, file)
    for path in sorted(folder.rglob("*.jsonl"))[:10]:
        with open(path, "ab") as opened:
            opened.write(answer(1, 10**6))
    taken = 0

    def interrupted(part: Range) -> Any:
        nonlocal taken
        taken += 1
        if taken == 6:
            raise KeyboardInterrupt
        return read_usage(part)

    monkeypatch.setattr(file_delta_module, "read_usage", interrupted)
    with UsageIndex(folder, file) as index:
        with pytest.raises(KeyboardInterrupt):
            index.sums()
        assert outputs(plain(index.sums()[""])) == outputs(expected) + 10**6


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.jsonl").write_bytes(answer(ord(name)))
    looked(folder, file)
    with open(folder / "b.jsonl", "ab") as opened:
        opened.write(answer(3))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("claude_wire_kit.usage.file_delta.os.fstat", refuse)
        counts, index = looked(folder, file)
    assert index.unreadable == [folder / "b.jsonl"]
    assert outputs(counts) == 2  # the counts of an unreadable file stay
    assert outputs(looked(folder, file)[0]) == 3
    with UsageIndex(tmp_path / "nowhere", file) as index, pytest.raises(FileNotFoundError):
        index.sums()


def test_a_file_that_cannot_be_read_to_its_end_leaves_the_others(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    names = [f"{name}.jsonl" for name in "abc"] + [os.fsdecode(b"\xff.jsonl"), os.fsdecode(b"\xfe.jsonl")]
    for number, name in enumerate(names):
        (folder / name).write_bytes(answer(number, 10**number))

    def failing(part: Range) -> Any:
        if part.path.endswith("b.jsonl"):
            raise OSError(5, "Input/output error")
        return read_usage(part)

    with monkeypatch.context() as patch:
        patch.setattr(file_delta_module, "read_usage", failing)
        counts, index = looked(folder, file)
    assert (outputs(counts), index.unreadable) == (11101, [folder / "b.jsonl"])
    counts, index = looked(folder, file)
    assert (outputs(counts), index.unreadable, index.files_read) == (11111, [], 1)


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "projects"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "s.jsonl").write_bytes(answer(ord(name)))
    scandir = os.scandir

    def refuse(path: bytes) -> Any:
        if path.endswith(b"/b/"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr("claude_wire_kit.usage.index.os.scandir", refuse)
        counts, index = looked(folder, file)
    assert (outputs(counts), index.unreadable) == (1, [folder / "b"])
    counts, index = looked(folder, file)
    assert (outputs(counts), index.unreadable) == (2, [])


def test_it_is_told_how_far_a_look_is(tmp_path: Path, file: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_bytes(answer(number))
    told: list[tuple[int, int]] = []
    for _ in range(2):
        with UsageIndex(tmp_path, file, on_file=lambda done, files: told.append((done, files))) as index:
            index.refresh()
    assert told == [(0, 3), (1, 3), (2, 3)]


def test_files_of_any_name_and_content_are_taken(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "projects"
    (folder / "p" / "s" / "tool-results").mkdir(parents=True)
    (folder / "folder.jsonl").mkdir()
    os.symlink(folder, folder / "circle")
    half = {"id": "\ud83d", "model": "\ud83d"}
    strange = b"\xff\n{torn\n[]\n" + answer(1, sessionId="\ud83d", cwd="\ud83d\0", has=half)
    huge = answer(2, 10**30) + answer(3, -5) + answer(4, has={"usage": {"output_tokens": "x"}})
    (folder / os.fsdecode(b"\xff\n.jsonl")).write_bytes(strange)
    (folder / "p" / "huge.jsonl").write_bytes(huge)
    (folder / "p" / "s" / "tool-results" / "x.jsonl").write_bytes(answer(9))
    state = {"type": "cost-state", "sessionId": "\ud83d", "totalCostUSD": 1, "modelUsage": {}}
    (folder / "cost.jsonl").write_bytes(line(state) + b'{"type":"cost-state"}\n{"type":"cost-state","x"\n')
    with UsageIndex(folder, file) as index:
        assert len(index.sums("session")) == 2
        assert index.files == 3
        assert sum(each.answers for each in index.sums()[""].values()) == 4
        assert index.own_costs().popitem()[1] == OwnCost(1, {})
        assert index.unreadable == []


def test_the_last_sum_of_the_cli_is_found_wherever_it_stands(tmp_path: Path, file: Path) -> None:
    def state(total: float) -> bytes:
        usage = {"inputTokens": 1, "outputTokens": 1, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}
        models = {"x": {**usage, "webSearchRequests": 0, "costUSD": total}}
        return line({"type": "cost-state", "sessionId": "s", "totalCostUSD": total, "modelUsage": models})

    quoted = line({"type": "mode", "mode": '{"type":"cost-state"}', "sessionId": "s", "cost-state": "cost-state"})
    filler = answer(1) + b" " * 40 + b"\n"
    path = tmp_path / "s.jsonl"
    for behind in (0, BLOCK_BYTES - 300, BLOCK_BYTES - 10, BLOCK_BYTES, 2 * BLOCK_BYTES):
        path.write_bytes(state(1) + state(2) + quoted + filler + b"x" * behind + b"\n" + quoted)
        with UsageIndex(tmp_path, file) as index:
            assert index.own_costs() == {"s": OwnCost(2, {"x": 2})}
    with open(path, "ab") as opened:
        opened.write(state(3)[:-5])
    with UsageIndex(tmp_path, file) as index:
        assert index.own_costs()["s"].total == 2
        with open(path, "ab") as opened:
            opened.write(state(3)[-5:])
        index.refresh()
        assert index.own_costs()["s"].total == 3


# --- what is kept -----------------------------------------------------------------------------------------------------


def texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, dict)):
            yield from texts(value.values() if isinstance(value, dict) else value)


def test_the_index_has_no_text_of_a_conversation_and_only_its_user_can_read_it(everything: Path, file: Path) -> None:
    looked(everything, file)
    kept = file.read_bytes()
    said: set[str] = set()
    projects: set[str] = set()
    for path in everything.rglob("*.jsonl"):
        for data in path.read_bytes().splitlines():
            try:
                record = json.loads(data)
            except ValueError:
                continue
            projects.add(record.get("cwd", ""))
            if "message" in record:
                said.update(texts([record["message"].get("content"), record["message"].get("id")]))
    # The index may hold the name of a subagent, and the folders of sessions, which a tool's output may repeat.
    long = {text for text in said if len(text) > 12 and text != "general-purpose" and text not in projects}
    assert len(long) > 100
    for text in long:
        assert text.encode("utf-8", "replace") not in kept
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("files", "answers"), [(1, 10_000), (10, 1000), (100, 50), (1000, 2)])
def test_the_index_is_as_small_as_the_page_of_limits_says(files: int, answers: int, tmp_path: Path, file: Path) -> None:
    """An index has at most 90 bytes for each answer, 5 KB for each file, and the 10 pages of an empty index."""
    folder = tmp_path / "projects" / "-home-user-src-project"
    folder.mkdir(parents=True)
    for number in range(files):
        about = {"sessionId": f"{number:08x}-aaaa-bbbb-cccc-dddddddddddd", "cwd": "/home/user/src/project"}
        numbers = range(number * answers, (number + 1) * answers)
        lines = (answer(id, 2000, **about, has={"id": f"msg_{id:024}", "model": "claude-opus-5-5"}) for id in numbers)
        (folder / f"{about['sessionId']}.jsonl").write_bytes(b"".join(lines))
    counts, _ = looked(folder.parent, file)
    assert counts["claude-opus-5-5"]["answers"] == files * answers
    assert file.stat().st_size <= files * answers * 90 + files * 5000 + 10 * 4096
    with open(folder / f"{about['sessionId']}.jsonl", "ab") as opened:
        opened.write(answer(files * answers))
    looked(folder.parent, file)
    assert file.stat().st_size <= files * answers * 90 + files * 5000 + 11 * 4096


@pytest.mark.parametrize("begins", ["x", "ü"])
def test_long_names_and_huge_numbers_are_cut(begins: str, tmp_path: Path, file: Path) -> None:
    """Foreign files may contain them. Names with the same first 1,000 characters count as one name."""
    name = begins * 1000
    for number, end in enumerate(("a", "b", "c" * 10**6)):
        usage = {"output_tokens": 2**40 + number, "input_tokens": 2**40 - 1}
        has = {"model": name + end, "usage": usage}
        one = answer(number, sessionId=name + end, cwd=name + end, has=has)
        (tmp_path / f"agent-{number}.jsonl").write_bytes(one)
        (tmp_path / f"agent-{number}.meta.json").write_text(json.dumps({"agentType": name + end}))
    with UsageIndex(tmp_path, file) as index:
        for by in ("session", "project", "subagent"):
            assert list(index.sums(by)) == [name]
        ((model, totals),) = index.sums()[""].items()
    assert (model, totals.answers) == (name, 3)
    assert (totals.output_tokens, totals.input_tokens) == (3 * 2**40, 3 * (2**40 - 1))
    assert file.stat().st_size < 100_000


def test_the_index_is_in_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.jsonl").write_bytes(answer(1))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with UsageIndex(tmp_path) as index:
        assert outputs(plain(index.sums()[""])) == 1
        assert index.file == default_file(tmp_path)
        assert index.file.parent == tmp_path / "cache" / "claude-wire"
        assert repr(index) == f"<UsageIndex: 1 files, {len(answer(1)):,} bytes>"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_file(tmp_path).parent == tmp_path / ".cache" / "claude-wire"
    assert default_file(tmp_path) != default_file(tmp_path / "cache")
    assert asdict(AnswerTotals())["unpriced"] == 0
    assert PRICES.of("x") is None
