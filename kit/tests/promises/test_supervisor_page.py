"""docs/supervisor.md lists exactly the commands, frames, states and errors that a supervisor has."""

from __future__ import annotations

import re
from typing import get_args

from claude_wire_kit.supervisor import frames
from claude_wire_kit.supervisor.frames import Life
from folders import ROOT
from site_hooks import on_page_markdown

PAGE = (ROOT / "docs" / "supervisor.md").read_text(encoding="utf-8")
#: Matches the code that creates a refusal. Its error word is the first argument.
REFUSAL = re.compile(r'SupervisorError\(\s*"(\w+)"|Failed\(\s*error="(\w+)"')


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


def test_the_site_lists_every_command_and_frame_with_its_fields() -> None:
    told = {codes(row[0])[0]: codes(row[1]) for row in rows(on_page_markdown(section("On the socket")))}
    there = {kind.__name__.lower(): kind for kind in get_args(frames.Command)}
    there |= {kind.__struct_config__.tag: kind for kind in get_args(frames.Frame)}
    assert told == {name: [*kind.__struct_encode_fields__] for name, kind in there.items()}


def test_the_site_describes_commands_and_frames_in_words_of_the_wire() -> None:
    said = " ".join(row[2] for row in rows(on_page_markdown(section("On the socket"))))
    assert "The answer is `supervisor_attached`." in said
    assert "with `null`, stop all CLIs" in said
    assert ":class:" not in said
    assert "None" not in said


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
