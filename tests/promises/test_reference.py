"""The reference has every public name, on exactly one page."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections import Counter
from typing import Any, get_args

from all_sessions import REQUIRED
from claude_wire import AssistantMessage
from claude_wire.columns.tables import TableName, columns_of
from folders import ROOT
from pages import blocks
from site_hooks import GENERATED, MARK, on_page_markdown

#: Modules whose ``__all__`` lists public names.
PACKAGES = [
    "claude_wire",
    "claude_wire.accumulate",
    "claude_wire.agent",
    "claude_wire.codec",
    "claude_wire.errors",
    "claude_wire.streams",
    "claude_wire.messages",
    "claude_wire.protocol",
    "claude_wire.session",
    "claude_wire_kit.events",
    "claude_wire.dialects",
    "claude_wire_kit.supervisor",
    "claude_wire.integrations.agent_sdk",
    "claude_wire.integrations.mcp",
    "claude_wire.integrations.otel",
    "claude_wire_kit.web",
    "claude_wire.sync",
    "claude_wire.columns",
    "claude_wire.testing",
    "claude_wire.testing.fixtures",
    "claude_wire.transcripts",
    "claude_wire_kit.usage",
]
#: Modules that need packages which only `make test-tables` installs.
PACKAGES_OF_TABLES = ["claude_wire_kit.fleet"]
if REQUIRED:
    PACKAGES += PACKAGES_OF_TABLES
#: An entry of a reference page. Methods of a class, which have a heading level, do not match.
ENTRY = re.compile(r"^::: (\S+)$(?!\n    options:\n      heading_level)", re.M)


@functools.cache
def written() -> list[str]:
    """Return the path of each entry of the reference pages. Building the pages takes a second."""
    return [
        path
        for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
        for path in ENTRY.findall(on_page_markdown(page.read_text(encoding="utf-8")))
        if REQUIRED or path.rpartition(".")[0] not in PACKAGES_OF_TABLES
    ]


def value(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_no_name_stands_twice() -> None:
    assert [path for path, times in Counter(written()).items() if times > 1] == []


def test_every_public_name_stands_there_and_nothing_else_does() -> None:
    there = {(path.rpartition(".")[2], id(value(path))) for path in written()}
    assert len(there) == len(written())
    public = {
        (name, id(getattr(module, name)))
        for module in map(importlib.import_module, PACKAGES)
        for name in module.__all__
    }
    assert {name for name, _ in public - there} == set()
    assert {name for name, _ in there - public} == set()


def test_each_page_begins_with_an_example_that_prints_something() -> None:
    """``test_pages.py`` runs the examples, and compares what they print with the comments behind ``print``."""
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        first = blocks(page)[0]
        assert first.language == "python", page
        assert first.line < 9, page
        assert re.search(r"^ *print\(.*\)  # .", first.text, re.M), page
        assert "fragment" not in first.said, page


def test_what_an_editor_shows_of_a_field_stands_in_the_table_of_its_class() -> None:
    page = on_page_markdown("::: claude_wire.messages.conversation.messages.AssistantMessage\n")
    source = inspect.getsource(AssistantMessage)
    shown = re.search(r'parent_tool_use_id: .*\n    """(.*)"""\n', source)
    assert shown is not None
    assert f"| `parent_tool_use_id` | `str | None` | always | {shown[1]} |" in page
    assert "AssistantMessage.of\n" in page


def test_each_mark_on_a_page_becomes_what_the_site_generates_and_each_part_has_its_mark() -> None:
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")]
    marks = MARK.findall("\n".join(pages))
    assert sorted(marks) == sorted(GENERATED)
    assert [page for page in map(on_page_markdown, pages) if "Only the site shows" in page] == []


def test_the_page_of_columns_has_each_column_of_each_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| \w+ \| .+ \|$", GENERATED["columns"](), re.M)
    for table in get_args(TableName):
        assert {name for name, tables in rows if tables == "all" or table in tables.split(", ")} == {*columns_of(table)}
