"""The folder ``protocol`` matches the classes, stays within its size limit, and is the same in every archive."""

from __future__ import annotations

import dataclasses
import functools
import re
import tarfile
from pathlib import Path
from typing import Any, get_args

import pytest

import claude_wire
from claude_wire.flags.flags import Flags, flag_of
from claude_wire.messages import AssistantMessage, ControlRequestPayload, Message, StopFailureHookInput
from claude_wire.messages.base import MessageBase
from claude_wire.protocol import run
from protocol.__main__ import check, differences, write
from protocol.archive import pack
from protocol.folder import as_text, made_files
from protocol.source import field_notes
from verdicts import FOLDER, load

MAX_BYTES = 4 << 20


@functools.cache
def made() -> dict[str, str]:
    return made_files()


def test_the_folder_is_up_to_date() -> None:
    assert differences(FOLDER, made()) == []


def test_a_file_that_differs_or_is_too_many_is_found(tmp_path: Path) -> None:
    write(tmp_path, made())
    check(tmp_path, made())
    (tmp_path / "more.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"protocol/more\.json differs from"):
        check(tmp_path, made())
    write(tmp_path, made())
    assert not (tmp_path / "more.json").exists()
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"protocol/run\.json differs from"):
        check(tmp_path, made())


def test_a_new_version_of_the_cli_has_its_entry_in_the_changelog(tmp_path: Path) -> None:
    write(tmp_path, made())
    (tmp_path / "index.json").write_text(as_text({**load("index.json"), "cli": "2.1.1"}))
    flags = load("flags.json")
    (tmp_path / "flags.json").write_text(as_text({**flags, "flags": flags["flags"][1:]}))
    write(tmp_path, made())
    [entry] = (tmp_path / "changelog").iterdir()
    assert entry.name == f"2.1.1-{claude_wire.PROTOCOL_VERSION}.json"
    assert f'"field": "{flags["flags"][0]["flag"]}"' in entry.read_text()
    check(tmp_path, made())


def test_the_folder_has_at_most_4_mib() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) <= MAX_BYTES


def test_the_archive_is_the_same_whoever_packs_it(tmp_path: Path) -> None:
    first = pack(FOLDER, tmp_path / "a").read_bytes()
    again = pack(FOLDER, tmp_path / "b")
    assert again.name == f"protocol-{claude_wire.__version__}.tar.gz"
    assert again.read_bytes() == first
    with tarfile.open(again) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        owners = {(member.uid, member.gid, member.uname, member.mtime, member.mode) for member in archive}
    assert names == {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert owners == {(0, 0, "", 0, 0o644)}


# --- the index --------------------------------------------------------------------------------------------------------

ENTRIES: list[dict[str, Any]] = load("index.json")["definitions"]


def test_every_entry_of_the_index_has_its_definition() -> None:
    for entry in ENTRIES:
        for schema in entry["schemas"]:
            definition = load(load("index.json")["schemas"][schema])["$defs"][entry["name"]]
            assert definition.get("required", []) == entry["required"], entry["name"]
            assert entry["open_words"].keys() <= definition["properties"].keys() if "open_words" in entry else True


def test_every_entry_says_when_it_comes() -> None:
    for entry in ENTRIES:
        assert entry["when"], entry["name"]
        assert ":class:" not in entry["when"], entry["name"]
        assert "``" not in entry["when"], entry["name"]


def test_every_message_and_request_is_sent_by_whom_its_class_says() -> None:
    classes = {
        cls.__name__: cls.sent_by
        for cls in (*get_args(Message), *get_args(ControlRequestPayload))
        if hasattr(cls, "sent_by")
    }
    found = {entry["name"]: entry["sent_by"] for entry in ENTRIES if entry["group"] in ("message", "request")}
    assert found == classes


def test_the_parts_of_a_question_and_its_answer_are_sent_by_two_sides() -> None:
    senders = {entry["name"]: entry["sent_by"] for entry in ENTRIES}
    assert senders["StopHookInput"] == senders["InterruptResponse"] == senders["UserRecord"] == "agent"
    assert senders["StopHookSpecificOutput"] == senders["PermissionResultAllow"] == "host"
    assert senders["TextBlock"] == "both"


def test_every_message_class_is_in_the_index() -> None:
    todo: list[type] = [MessageBase]
    names = {entry["name"] for entry in ENTRIES}
    while todo:
        children = (cls := todo.pop()).__subclasses__()
        todo += children
        # Skip the classes that other tests define.
        if not children and cls.__module__.startswith("claude_wire.messages.") and cls.__name__ != "NoOther":
            assert cls.__name__ in names


@pytest.mark.parametrize("schema", ["output", "input", "records"])
def test_the_place_for_other_keys_is_no_key(schema: str) -> None:
    """``extra`` stores keys that have no field; it is not a key on the wire."""
    for name, definition in load(f"{schema}.schema.json")["$defs"].items():
        assert "extra" not in definition.get("properties", {}), name
    assert not any('"extra"' in str(case.get("text")) for case in load(f"corpus/{schema}.json")["cases"])


def test_the_known_words_are_those_of_the_source() -> None:
    words = field_notes(AssistantMessage)["error"].words
    assert {"rate_limit", "overloaded"} < set(words)
    assert field_notes(StopFailureHookInput)["error"].words == words
    assert field_notes(claude_wire.ResultMessage)["total_cost_usd"].description.startswith("A running total")


# --- flags and runs ---------------------------------------------------------------------------------------------------


def test_every_flag_has_its_row() -> None:
    wanted = [flag.name for field in dataclasses.fields(Flags) if (flag := flag_of(field))]
    assert [row["flag"] for row in load("flags.json")["flags"]] == wanted
    assert all(row["description"] for row in load("flags.json")["flags"])


def test_the_states_of_a_run_are_those_of_the_library() -> None:
    table = load("run.json")
    for state in run.State:
        for event in run.Event:
            prompt = run.SentPrompt(None, 0.0, 1)
            prompt.state = state
            prompt.happens(event)
            assert table["transitions"][state.name].get(event.name, state.name) == prompt.state.name
            assert table["states"][state.name]["final"] == (not table["transitions"][state.name])
    assert table["first"] == run.SentPrompt(None, 0.0, 1).state.name
    said = " ".join(table["rules"] + [state["description"] for state in table["states"].values()])
    for event in ("NAMED", "FIRST", "LATER", "SWEPT", "SETTLED"):
        assert event in said


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_names_what_is_there() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    named = set(re.findall(r"`((?:corpus/|changelog/)?[\w.-]+\.(?:json|md))`", page))
    for name in named:
        assert (FOLDER / name).exists(), name
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.json") if path.parent.name != "changelog"}
    assert files <= named
