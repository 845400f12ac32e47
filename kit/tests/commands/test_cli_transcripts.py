"""The commands detect that a file is a transcript, and show its contents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from claude_wire import encode
from claude_wire_kit.commands.app import cli
from sessions import outputs, scenarios, transcripts, truth, unpack


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == ("torn-resumed" in arguments[-1] and arguments[0] == "check"), done.output
    return done.output


@pytest.mark.parametrize("scenario", [name for name in scenarios() if name != "no_persistence"])
def test_check_knows_every_field_of_every_line(scenario: str, tmp_path: Path) -> None:
    for path in sorted(unpack(scenario, tmp_path).rglob("*.jsonl")):
        (file,) = json.loads(run("check", "--json", str(path)))["files"]
        assert file["dialect"] == "transcript"
        assert file["unknown"] == []
        if scenario == "torn_resumed":
            (torn,) = file["invalid_lines"]
            assert path.read_bytes()[torn["offset"] :].startswith(path.read_bytes().split(b"\n")[29])


def test_check_finds_what_no_class_knows(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    envelope: dict[str, Any] = {"uuid": "u", "parentUuid": None, "sessionId": "s"}
    system = {"type": "system", "subtype": "informational", **envelope, "zzz": 1}
    attachment = {"type": "attachment", **envelope, "attachment": {"type": "of_tomorrow"}}
    torn = b'{"type":"us'
    path.write_bytes(b"{torn\n" + encode({"type": "of-tomorrow"}) + encode(system) + encode(attachment) + torn)
    done = CliRunner().invoke(cli, ["check", "--json", str(path)])
    (file,) = json.loads(done.output)["files"]
    assert [(each["what"], each["path"]) for each in file["unknown"]] == [
        ("object", "attachment.attachment"),
        ("type", "of-tomorrow"),
        ("field", "system.informational.zzz"),
    ]
    assert [line["offset"] for line in file["invalid_lines"]] == [0, path.stat().st_size - len(torn)]
    assert file["kinds"] == {"attachment/unknown": 1, "system/informational": 1, "unknown": 1}
    assert "a transcript" in CliRunner().invoke(cli, ["check", str(path)]).output


def test_stats_has_the_sum_of_the_cli_and_the_tools(tmp_path: Path) -> None:
    (path,) = unpack("tools", tmp_path).glob("*/*.jsonl")
    (file,) = json.loads(run("stats", "--json", str(path)))["files"]
    (session,) = truth("tools")["by_session"].values()
    assert file["usd"] == session["cost_state"]["totalCostUSD"]
    assert file["turns"]["prompts"] == 1
    assert sum(tool["calls"] for tool in file["tools"].values()) == 10
    assert sum(tool["unanswered"] for tool in file["tools"].values()) == 0
    assert "transcripts: 1, 1 prompt\n" in run("stats", str(path))


def test_stats_counts_prompts_that_were_sent_during_a_turn(tmp_path: Path) -> None:
    (path,) = unpack("midturn_fold", tmp_path).glob("*/*.jsonl")
    (file,) = json.loads(run("stats", "--json", str(path)))["files"]
    assert file["turns"]["prompts"] == 4


def test_stats_says_of_a_transcript_what_it_does_not_know(tmp_path: Path) -> None:
    (path,) = unpack("tools", tmp_path).glob("*/*.jsonl")
    (file,) = json.loads(run("stats", "--json", str(path)))["files"]
    assert file["turns"]["num_turns"] is file["duration_ms"] is file["main_loop_tokens"] is None
    sums = [json.loads(each) for each in path.read_bytes().splitlines() if b'"cost-state"' in each]
    assert file["duration_api_ms"] == sums[-1]["totalAPIDuration"] > 0
    shown = run("stats", str(path))
    assert "  turns: n/a\n" in shown
    assert "  time: n/a in turns, " in shown
    assert re.search(r"^main loop +n/a +n/a +n/a +n/a *$", shown, re.MULTILINE)
    assert " 0 ok" not in shown
    # The transcript of a killed process or of an older CLI has no record of the cost.
    killed = tmp_path / "killed.jsonl"
    killed.write_bytes(b"".join(each for each in path.read_bytes().splitlines(True) if b'"cost-state"' not in each))
    (file,) = json.loads(run("stats", "--json", str(killed)))["files"]
    assert file["usd"] is file["tokens"] is file["duration_api_ms"] is None
    assert "  cost: n/a\n" in run("stats", str(killed))
    both = run("stats", str(path), str(killed))
    assert ", excluding 1 transcript without a cost\n" in both
    # For a stream, even an empty one, all of these numbers are known.
    stream = tmp_path / "stdout.ndjson"
    for data in (outputs("tools")[0], b""):
        stream.write_bytes(data)
        assert "n/a" not in run("stats", str(stream))
        assert "null" not in run("stats", "--json", str(stream))


def test_view_shows_the_conversation_with_its_subagents(tmp_path: Path) -> None:
    (path,) = unpack("subagent", tmp_path).glob("*/*.jsonl")
    shown = run("view", str(path))
    assert "-- subagent general-purpose" in shown
    assert "sub result text" in shown


def test_a_stream_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "stdout.ndjson"
    path.write_bytes(outputs("plain")[0])
    (file,) = json.loads(run("check", "--json", str(path)))["files"]
    assert file["dialect"] == "stream"
    assert "a transcript" not in run("check", str(path))
    assert transcripts("plain")
