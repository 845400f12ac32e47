"""A terminal of any width shows recorded sessions in rows that fit, with whole words and each cost once."""

from __future__ import annotations

import functools
import io
import re
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("rich")

from rich.cells import cell_len
from rich.console import Console

from claude_wire import ResultMessage
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.page import Page
from recordings import load
from shown import decoded, words

#: Recordings with tool calls, MCP, subagents, wide characters, several turns, hooks, structured output and long texts.
RECORDINGS = (
    *("04_tools_bypass_partial", "06_hooks_events", "07_mcp", "08_control", "10_unicode", "12_multi_replay"),
    *("13_struct", "15_subagent_partial", "16_bg_bash"),
)
#: The characters that may mark the beginning of a row, before its text.
MARKS = "| +=?#!*<>-"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@functools.cache
def messages(name: str) -> list[Any]:
    return decoded(load(name).stdout)


def rows(name: str, width: int | None) -> list[str]:
    """Return the rows that a terminal of this width shows, or that a pipe receives if the width is None."""
    file = io.StringIO() if width is None else Terminal()
    console = Console(file=file, width=width, force_terminal=width is not None, color_system=None)
    with closing(Page(console)) as page:
        live = LiveView(page)
        for message in messages(name):
            live.show(message)
    return file.getvalue().split("\n")


def words_of(shown: list[str]) -> list[str]:
    return words(" ".join(re.sub(r"^(\| )+", "", row) for row in shown))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("name", RECORDINGS)
def test_rows_fit_a_terminal_and_no_word_is_broken(name: str, width: int) -> None:
    shown = rows(name, width)
    too_wide = [row for row in shown if cell_len(row) > width]
    assert [row for row in too_wide if len(row.strip(MARKS).split()) > 1] == []
    assert words_of(shown) == words_of(rows(name, None))


@pytest.mark.parametrize("name", RECORDINGS)
def test_each_result_has_its_cost_once(name: str) -> None:
    results = [message for message in messages(name) if isinstance(message, ResultMessage)]
    assert len(results) > 0
    told = [row for row in rows(name, None) if re.search(r"\$\d", row) and row.startswith("= ")]
    assert len(told) == len(results)
    for row, result in zip(told, results, strict=True):
        assert row.count(f"${result.total_cost_usd:.6f}") == 1
