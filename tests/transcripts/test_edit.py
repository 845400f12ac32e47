"""Sessions are renamed, tagged, forked and deleted as claude-agent-sdk does it, and both can read the result."""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest

from children import linux_only
from claude_wire.transcripts import (
    Transcript,
    delete_session,
    find_sessions,
    fork_session,
    messages,
    rename_session,
    tag_session,
)
from claude_wire.transcripts.sessions import session_info
from sessions import scenarios, unpack

SCENARIOS = [name for name in scenarios() if name != "no_persistence"]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[list[Path], list[Path]]]:
    """Unpack a recorded scenario twice: for this library, and for the SDK, whose folder is CLAUDE_CONFIG_DIR."""

    def unpacked(scenario: str) -> tuple[list[Path], list[Path]]:
        folders = [tmp_path / "ours", tmp_path / "theirs"]
        for folder in folders:
            folder.mkdir()
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folders[1]))
        ours, theirs = ([one.path for one in find_sessions(unpack(scenario, folder))] for folder in folders)
        return ours, theirs

    return unpacked


def lines(path: Path) -> list[Any]:
    """Return the records of a file, without torn lines."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.endswith(b"}")]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_titles_and_tags_are_written_as_the_sdk_writes_them(scenario: str, both: Any) -> None:
    ours, theirs = both(scenario)
    for mine, other in zip(ours, theirs, strict=True):
        rename_session(session_info(mine), "  My title \ud83d ")
        tag_session(mine, " a\u200btag\uff11 ")
        claude_agent_sdk.rename_session(other.stem, "  My title \ud83d ")
        claude_agent_sdk.tag_session(other.stem, " a\u200btag\uff11 ")
        assert mine.read_bytes() == other.read_bytes()
        assert session_info(mine)[2] == session_info(other)[2]
        assert session_info(mine).tag == "atag1"
        tag_session(mine, None)
        claude_agent_sdk.tag_session(other.stem, None)
        assert mine.read_bytes() == other.read_bytes()
        assert session_info(mine).tag is None


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_sdk_reads_what_was_written_here(scenario: str, both: Any) -> None:
    for path in both(scenario)[1]:
        rename_session(path, "Mine")
        tag_session(path, "blue")
        info = claude_agent_sdk.get_session_info(path.stem)
        if info is not None:  # the SDK does not list sessions without a prompt
            assert (info.custom_title, info.tag) == ("Mine", "blue")


def comparable(records: list[Any]) -> list[Any]:
    """Return records with numbers in place of uuids, and without timestamps."""
    numbers: dict[str, str] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key != "timestamp"}
        if isinstance(value, list):
            return [plain(item) for item in value]
        try:
            return numbers.setdefault(value, f"uuid {len(numbers)}") if str(uuid.UUID(value)) == value else value
        except (ValueError, AttributeError, TypeError):
            return value

    return [plain(record) for record in records]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fork_is_that_of_the_sdk(scenario: str, both: Any) -> None:
    ours, theirs = both(scenario)
    for mine, other in zip(ours, theirs, strict=True):
        # The SDK treats these characters as line ends, so its copy would lack the message. Escape them.
        escaped = other.read_bytes()
        for separator in ("\u2028", "\u2029", "\x85"):
            escaped = escaped.replace(separator.encode(), rb"\u%04x" % ord(separator))
        other.write_bytes(escaped)
        uuids = [line["uuid"] for line in lines(mine) if line.get("type") in ("user", "assistant")]
        for up_to in (None, uuids[len(uuids) // 2]):
            fork = fork_session(mine, up_to=up_to, title="Copy")
            copied = claude_agent_sdk.fork_session(other.stem, up_to_message_id=up_to, title="Copy").session_id
            assert fork.parent == mine.parent
            assert comparable(lines(fork)) == comparable(lines(other.with_name(f"{copied}.jsonl")))
            assert stat.S_IMODE(fork.stat().st_mode) == 0o600
            assert session_info(fork).title == "Copy"
            stamps = {line["uuid"]: line["timestamp"] for line in lines(mine) if "uuid" in line}
            made = [line for line in lines(fork) if "forkedFrom" in line]
            assert [line["timestamp"] for line in made[:-1]] == [
                stamps[line["forkedFrom"]["messageUuid"]] for line in made[:-1]
            ]
            assert made[-1]["timestamp"] > max(stamps.values())


def test_a_fork_reads_as_its_session(tmp_path: Path) -> None:
    path = max(
        (one.path for one in find_sessions(unpack("resume_fork_clear", tmp_path))), key=lambda path: path.stat().st_size
    )
    fork = fork_session(path)
    said = [
        [message.text for message in messages(Transcript.load(one)) if hasattr(message, "text")] for one in (path, fork)
    ]
    assert said[0] == said[1] != []
    assert session_info(fork).title == f"{session_info(path).title or session_info(path).first_prompt} (fork)"


def test_a_session_is_deleted_with_its_subagents(tmp_path: Path) -> None:
    path = next(one.path for one in find_sessions(unpack("subagent", tmp_path)))
    assert list(path.with_suffix("").rglob("*.jsonl"))
    delete_session(path)
    assert not path.exists()
    assert not path.with_suffix("").exists()
    with pytest.raises(FileNotFoundError):
        delete_session(path)


def test_a_line_that_was_cut_stays_apart_from_what_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"type":"user","mess')
    rename_session(path, "title")
    assert path.read_bytes().split(b"\n")[0] == b'{"type":"user","mess'
    assert session_info(path).title == "title"


def test_parents_among_progress_that_go_round_end(tmp_path: Path) -> None:
    records = [
        {"type": "progress", "uuid": "a", "parentUuid": "b"},
        {"type": "progress", "uuid": "b", "parentUuid": "a"},
        {"type": "user", "uuid": "c", "parentUuid": "a", "message": {"role": "user", "content": "hi"}},
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    copied = lines(fork_session(path))
    assert [line.get("parentUuid") for line in copied] == [None, None]


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda path: rename_session(path, " "), ValueError, "the title is empty"),
        (lambda path: tag_session(path, "\u200b"), ValueError, "the tag is empty; None removes the tag"),
        (lambda path: fork_session(path, up_to="x"), ValueError, "no message of the session has the uuid"),
        (lambda path: fork_session(path, max_bytes=3), ValueError, "the session has more than 3 bytes"),
        (lambda path: delete_session(path.parent), ValueError, "a session is a .jsonl file"),
        (lambda path: rename_session(path.with_name("no.jsonl"), "a"), FileNotFoundError, "no.jsonl"),
        (lambda path: rename_session(path.with_name("empty.jsonl"), "a"), FileNotFoundError, "the session is empty"),
        (lambda path: fork_session(path.with_name("empty.jsonl")), ValueError, "the session has no messages"),
    ],
)
def test_what_cannot_be_done_is_refused(act: Any, error: type[Exception], text: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}\n')
    (tmp_path / "empty.jsonl").touch()
    before = path.read_bytes()
    with pytest.raises(error, match=text):
        act(path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["empty.jsonl", "s.jsonl"]


@linux_only
def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        rename_session(path, "a")
