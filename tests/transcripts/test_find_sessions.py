"""Sessions are listed from the beginnings and ends of their files, whatever the files contain."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from children import linux_only
from claude_wire import encode
from claude_wire.transcripts import Transcript, find_sessions, messages
from claude_wire.transcripts.sessions import END_BYTES
from sessions import scenarios, transcripts, unpack


@pytest.mark.parametrize("scenario", [name for name in scenarios() if name != "no_persistence"])
def test_each_session_is_found_with_its_project_times_and_prompts(scenario: str, tmp_path: Path) -> None:
    projects = unpack(scenario, tmp_path)
    found = list(find_sessions(projects))
    assert {str(one.path.relative_to(tmp_path)) for one in found} == {
        name for name in transcripts(scenario) if "/subagents/" not in name
    }
    assert list(find_sessions(tmp_path)) == found
    assert [one for folder in sorted(projects.iterdir()) for one in find_sessions(folder)] == found
    for one in found:
        lines = []
        for line in one.path.read_bytes().split(b"\n"):
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
        assert one.id == one.path.stem
        assert one.size == one.path.stat().st_size
        assert one.project == next(line["cwd"] for line in lines if "cwd" in line)
        assert one.started is not None
        assert one.ended is not None
        stamps = [line["timestamp"] for line in lines if "timestamp" in line]
        assert one.started.isoformat(timespec="milliseconds").replace("+00:00", "Z") == stamps[0]
        assert one.ended.isoformat(timespec="milliseconds").replace("+00:00", "Z") == stamps[-1]
        last = [line["lastPrompt"] for line in lines if line["type"] == "last-prompt"]
        assert one.last_prompt == (last[-1][:1000] if last else None)
        assert one.first_prompt is not None


@pytest.mark.parametrize("scenario", [name for name in scenarios() if name != "no_persistence"])
def test_the_first_prompt_is_that_of_the_official_reader(scenario: str, tmp_path: Path) -> None:
    """The first prompt is the text that a user typed, not markup of the CLI."""
    sdk = pytest.importorskip("claude_agent_sdk._internal.sessions")
    for one in find_sessions(unpack(scenario, tmp_path)):
        theirs = sdk._extract_first_prompt_from_head(one.path.read_bytes()[:END_BYTES].decode(errors="replace"))
        assert one.first_prompt is not None
        mine = one.first_prompt.replace("\n", " ")
        assert (mine if len(mine) <= 200 else mine[:200].rstrip() + "\u2026") == theirs


def test_a_command_is_the_first_prompt_only_if_there_is_no_other(tmp_path: Path) -> None:
    def user(content: object, **others: object) -> bytes:
        return encode({"type": "user", "uuid": "u", "message": {"role": "user", "content": content}, **others})

    command = user("<command-name>/clear</command-name>\n<command-args></command-args>")
    opened = {"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    added = [
        user("caveat", isMeta=True),
        user("summary", isCompactSummary=True),
        user([result]),
        user("<local-command-stdout>done</local-command-stdout>"),
        user("[Request interrupted by user for tool use]"),
        user([opened]),
        user(" \n"),
        user("<command-name>/other</command-name>"),
    ]
    path = tmp_path / "s.jsonl"
    for lines, wanted in (
        ([command, *added, user([opened, {"type": "text", "text": " hello\nyou "}]), user("later")], "hello\nyou"),
        ([*added[:-1], command, *added], "/clear"),
        (added[:-1], None),
        ([user("<command-name>never closed")], "<command-name>never closed"),
    ):
        path.write_bytes(b"".join(lines))
        assert [one.first_prompt for one in find_sessions(tmp_path)] == [wanted]


def test_the_title_is_what_the_user_gave_before_what_the_model_made(tmp_path: Path) -> None:
    titles = [one.title for one in find_sessions(unpack("resume_fork_clear", tmp_path))]
    assert titles == ["newname", None, None]
    folder = tmp_path / "alone"
    folder.mkdir()
    records = encode({"type": "ai-title", "aiTitle": "made"}) + encode({"type": "summary", "summary": "old"})
    (folder / "s.jsonl").write_bytes(records)
    (one,) = find_sessions(folder)
    assert one.title == "made"
    beside = one.path.with_suffix("")
    beside.mkdir()
    (beside / "custom-title.json").write_text('{"customTitle": "given"}')
    assert [each.title for each in find_sessions(one.path.parent)] == ["given"]
    (beside / "custom-title.json").write_text('["torn')
    assert [each.title for each in find_sessions(one.path.parent)] == ["made"]


def test_hostile_files_are_listed_in_bounded_memory(tmp_path: Path) -> None:
    long = "x" * 5000
    lines = {
        "empty": b"",
        "noise": b"\xff\n{x}\n" * 10,
        "long": encode({"type": "last-prompt", "lastPrompt": long}) + encode({"type": "ai-title", "aiTitle": long}),
        "huge": b'{"type":"user","uuid":"u","parentUuid":null,"message":"' + b"y" * (4 * END_BYTES) + b'"}\n',
        "times": encode({"type": "mode", "mode": "normal", "timestamp": 5})
        + encode({"type": "pr-link", "timestamp": "soon"}),
    }
    for name, data in lines.items():
        (tmp_path / f"{name}.jsonl").write_bytes(data)
    (tmp_path / "agent-old.jsonl").write_bytes(b"")
    (tmp_path / "folder.jsonl").mkdir()
    found = {one.id: one for one in find_sessions(tmp_path)}
    assert found.keys() == lines.keys()
    assert found["long"].title == found["long"].last_prompt == "x" * 1000
    for name in ("empty", "noise", "huge", "times"):
        assert found[name][2:6] == (None, None, None, None)
        assert found[name].size == len(lines[name])


def test_times_are_in_utc_and_can_be_compared(tmp_path: Path) -> None:
    stamps = ["2026-01-01T12:00:00", "2026-01-01T12:00:00Z", "2026-01-01T13:00:00+02:00", "0001-01-01T00:00:00+02:00"]
    for number, stamp in enumerate(stamps):
        (tmp_path / f"{number}.jsonl").write_bytes(encode({"type": "pr-link", "timestamp": stamp}))
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    assert [one.started for one in find_sessions(tmp_path)] == [noon, noon, noon.replace(hour=11), None]


def hangs(hostile: Path) -> None:
    os.mkfifo(hostile)


def never_ends(hostile: Path) -> None:
    hostile.symlink_to("/dev/zero")


def goes_round(hostile: Path) -> None:
    hostile.symlink_to(hostile)


def is_a_folder(hostile: Path) -> None:
    hostile.mkdir()


@linux_only
@pytest.mark.parametrize("make", [hangs, never_ends, goes_round, is_a_folder])
def test_what_is_no_file_is_passed_over(make: Callable[[Path], None], tmp_path: Path) -> None:
    """Try a session, its title, a subagent's description and a subagent's transcript."""
    (path,) = unpack("subagent_parallel", tmp_path).glob("*/*.jsonl")
    whole = list(messages(Transcript.load(path)))
    for name in ("other.jsonl", f"{path.stem}/custom-title.json", f"{path.stem}/subagents/agent-x.meta.json"):
        make(path.parent / name)
    assert [one.id for one in find_sessions(tmp_path)] == [path.stem]
    with pytest.raises(OSError):  # noqa: PT011  # the exact error depends on the system
        Transcript.load(path.parent / "other.jsonl")
    assert list(messages(Transcript.load(path))) == whole
    for agent in Transcript.load(path).subagents.values():
        agent.path.unlink()
        make(agent.path)
    assert len(list(messages(Transcript.load(path)))) < len(whole)
