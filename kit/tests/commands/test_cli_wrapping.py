"""Live output breaks between words and fits the terminal's width."""

from __future__ import annotations

import functools
import io
import random
import re
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("rich")

from rich.cells import cell_len
from rich.console import Console

from claude_wire import ResultMessage
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.page import MAX_AT_ONCE, Page
from claude_wire_kit.terminal.wrapping import Wrapping, width_of, wrapped
from recordings import load
from shown import decoded, words

TEXT = (
    "+ Bash touch a.txt && echo made it\n    description: 日本語、中文 and 0 invalid\n\n  = one\ttwo  three\n"
    "https://example.org/a/very/long/path/that/no/row/can/hold, and more\n- a list\n  - within a list of words"
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("14 messages, 0 invalid", ["14 messages, 0", "invalid"]),
        ("* 14 messages, 0 invalid", ["* 14 messages,", "  0 invalid"]),
        ("  = 14 messages, 0 invalid", ["  = 14", "    messages, 0", "    invalid"]),
        ("abcdefghijklmnopqrstuvwxyz and more", ["abcdefghijklmnopqrstuvwxyz", "and more"]),
        ("and abcdefghijklmnopqrstuvwxyz", ["and", "abcdefghijklmnopqrstuvwxyz"]),
        ("  = abcdefghijklmnopqrstuvwxyz is", ["  = abcdefghijklmnopqrstuvwxyz", "    is"]),
        ("exactly fifteen", ["exactly fifteen"]),
        ("日本語 日本語 日本", ["日本語 日本語", "日本"]),
        ("* 日本語とChineseに空白はない", ["* 日本語と", "  Chineseに空白", "  はない"]),
        ("一二三四五六七八九十", ["一二三四五六七", "八九十"]),
        ("exactly fifteen ", ["exactly fifteen"]),
        ("one " + " " * 20 + "\ntwo" + " " * 20, ["one", "two"]),
        ("a\tb\tcd", ["a\tb", "cd"]),
        ("\n\n", ["", "", ""]),
        ("            far in and on", ["            far", "in and on"]),
    ],
)
def test_lines_are_broken_between_words(text: str, rows: list[str]) -> None:
    assert wrapped(text, 15).split("\n") == rows


@pytest.mark.parametrize("width", [1, 7, 10, 23, 40, 80, 1000])
@pytest.mark.parametrize("bars", ["", "| | "])
def test_rows_fit_and_every_word_is_whole(width: int, bars: str) -> None:
    rows = wrapped(TEXT, width, bars).split("\n")
    assert all(row.startswith(bars) for row in rows)
    inner = [row.removeprefix(bars) for row in rows]
    assert words(" ".join(inner)) == words(TEXT)
    for row in rows:
        assert cell_len(row) <= width or len(row.strip("| +=-").split()) <= 1 or "\t" in row


@pytest.mark.parametrize("width", [7, 23, 40])
def test_text_in_pieces_is_broken_as_in_one(width: int) -> None:
    whole = wrapped(TEXT, width, "| ")
    for seed in range(100):
        chance = random.Random(seed)
        wrapping, shown, at = Wrapping(width, "| "), "| ", 0
        while at < len(TEXT):
            end = at + chance.randint(1, 9)
            shown += wrapping.feed(TEXT[at:end])
            at = end
        assert shown + wrapping.rest() == whole


def test_only_a_word_that_may_have_to_move_is_held_back() -> None:
    wrapping = Wrapping(20)
    assert wrapping.feed("beginn") == "beginn"  # the first word of a line never moves
    assert wrapping.feed("ing of a li") == "ing of a"
    assert wrapping.feed("ne with a long") == " line\nwith a"
    assert wrapping.rest() == " long"
    assert wrapping.feed("est word") == "est"
    assert wrapping.rest() == " word"
    wrapping = Wrapping(20)
    assert wrapping.feed("with 日本語は空白がない、so") == "with 日本語は空白が\nない、"


def test_without_a_terminal_lines_stay_as_they_are() -> None:
    assert wrapped(TEXT, None, "| ") == "| " + TEXT.replace("\n", "\n| ")
    assert width_of(Console(file=io.StringIO(), width=5)) is None
    assert width_of(Console(file=io.StringIO(), width=5, force_terminal=True)) is None
    assert width_of(Console(file=Terminal(), width=5, force_terminal=True)) == 5


def test_a_page_shows_what_is_typed_behind_at_once_and_holds_back_a_word_of_a_text() -> None:
    file = Terminal()
    page = Page(Console(file=file, width=20, force_terminal=True, color_system=None))
    page.text("allow? [y, n] ")
    page.flush()
    assert file.getvalue() == "allow? [y, n] "
    page.typed()
    page.text("Some text whose las")
    page.wait()
    assert file.getvalue().endswith("Some text whose")
    page.text("t word moves")
    page.close()
    assert file.getvalue().endswith("Some text whose last\nword moves\n")


@pytest.mark.parametrize(
    "text", ["line\n" * 20_000, "x" * 100_000, "x" * 10_000 + "\n\n"], ids=["lines", "a line", "both"]
)
@pytest.mark.parametrize("grows", [True, False], ids=["text", "line"])
def test_a_long_text_is_written_whole_and_in_pieces(text: str, grows: bool) -> None:
    """The display passes bounded pieces to rich, whose time grows with the square of the number of lines."""
    sizes: list[int] = []

    class Watched(Console):
        def out(self, *objects: Any, **options: Any) -> None:
            sizes.append(sum(map(len, objects)))
            super().out(*objects, **options)

    file = io.StringIO()
    page = Page(Watched(file=file))
    (page.text if grows else page.line)(text)
    page.close()
    assert file.getvalue() == text + "\n"
    assert max(sizes) <= MAX_AT_ONCE


# --- A terminal of any width shows recorded sessions in rows that fit, with whole words and each cost once ------------


#: Recordings with tool calls, MCP, subagents, wide characters, several turns, hooks, structured output and long texts.
RECORDINGS = (
    *("04_tools_bypass_partial", "06_hooks_events", "07_mcp", "08_control", "10_unicode", "12_multi_replay"),
    *("13_struct", "15_subagent_partial", "16_bg_bash"),
)
#: The characters that may mark the beginning of a row, before its text.
MARKS = "| +=?#!*<>-"


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
