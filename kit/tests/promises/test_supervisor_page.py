"""docs/supervisor.md lists exactly the commands, frames, fields, states and errors that a supervisor has."""

from __future__ import annotations

import re
from typing import Any, get_args

import msgspec

from claude_wire_kit.supervisor import frames
from claude_wire_kit.supervisor.frames import Life
from folders import ROOT

PAGE = (ROOT / "docs" / "supervisor.md").read_text(encoding="utf-8")
#: Matches the code that creates a refusal. Its error word is the first argument.
REFUSAL = re.compile(r'(?:RefusedError|SupervisorError)\(\s*"(\w+)"|Failed\(\s*error="(\w+)"')


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """Return the rows of all Markdown tables in a text, without the headings."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    rules = [number for number, line in enumerate(lines) if set(line) <= set("|-")]
    return [row for number, row in enumerate(cells) if number not in rules and number + 1 not in rules]


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


def test_every_frame_has_its_row_with_its_fields() -> None:
    told = {
        codes(row[0])[0]: codes(row[1]) for row in rows(section("On the socket")) if row[0].startswith("`supervisor_")
    }
    there: dict[str, list[str]] = {}
    for frame in get_args(frames.Frame):
        config: Any = msgspec.structs.fields(frame)
        there[frame.__struct_config__.tag] = [field.encode_name for field in config]
    assert told == there


def test_every_command_has_its_row_with_its_fields() -> None:
    told = {}
    for row in rows(section("On the socket")):
        if row[0].startswith("`{"):
            names = set(re.findall(r"\w+", " ".join([*codes(row[0]), *codes(row[1])])))
            told[re.findall(r"\w+", row[0])[0]] = names
    fields = {name: {field.encode_name for field in msgspec.structs.fields(kind)} for name, kind in commands()}
    assert told.keys() == fields.keys()
    common = {field.encode_name for field in msgspec.structs.fields(frames.Attach)} - {"attach"}
    spec = {field.encode_name for field in msgspec.structs.fields(frames.Spec)}
    assert told["create"] >= spec
    for name, there in fields.items():
        # The row of `attach` lists the fields that commands share. The text before the table explains `version`.
        assert there - (common if name in ("create", "resume") else {"version"}) <= told[name] | {"version"}, name


def commands() -> list[tuple[str, Any]]:
    return [(kind.__name__.lower(), kind) for kind in get_args(frames.Command)]


def test_every_state_of_a_session_has_its_row() -> None:
    assert [codes(row[0])[0] for row in rows(section("A session's life"))] == [life.value for life in Life]


def test_every_word_of_an_error_has_its_row() -> None:
    told = [word for row in rows(section("Errors")) for word in codes(row[0])]
    assert len(told) == len(set(told))
    kit = ROOT / "kit" / "claude_wire_kit"
    folders = [kit / "supervisor", kit / "commands" / "supervisor"]
    said = {
        word
        for folder in folders
        for path in folder.rglob("*.py")
        for pair in REFUSAL.findall(path.read_text(encoding="utf-8"))
        for word in pair
        if word
    }
    assert len(said) > 10
    assert said - set(told) == set()
    assert set(told) - said <= {"timeout", "lost"}
