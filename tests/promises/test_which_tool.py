"""The page that compares tools: the row of claude_wire matches its measured behavior."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from all_sessions import unpack_all
from folders import ROOT

sys.path.append(str(ROOT / "benches"))
import which_tool


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_all(tmp_path_factory.mktemp("all"))


def test_our_row_is_the_truth_and_stands_on_the_page(folder: Path) -> None:
    true = which_tool.truth(folder)
    assert min(true[:5]) > 300
    assert which_tool.ours(folder) == true
    page = which_tool.PAGE.read_text(encoding="utf-8")
    assert which_tool.line("**the API**", true, true) in page
    assert which_tool.line("**claude_wire**", true, true) in page


def test_what_differs_has_its_difference_beside_it() -> None:
    true = which_tool.Says(100, 10, 10, 10, 10, 10)
    said = which_tool.Says(None, 11, 10, 5, 1_000, 0)
    row = which_tool.line("x", said, true)
    assert row == "| x | - | 11 (**+10.0%**) | 10 | 5 (**-50.0%**) | 1,000 (**+9900.0%**) | 0 (**-100.0%**) |"
    assert which_tool.line("x", "no such file", true).count("|") == row.count("|")


def test_what_others_lose_is_what_the_page_says(folder: Path) -> None:
    true = which_tool.truth(folder)
    lossy = which_tool.by_orjson(folder)
    assert (true.answers or 0) - (lossy.answers or 0) == 2
    assert (true.texts or 0) - (lossy.texts or 0) == 1
    added = which_tool.all_lines(folder)
    assert added.input_tokens > true.input_tokens
    orjson_row = re.search(r"^\| orjson .*$", which_tool.PAGE.read_text(encoding="utf-8"), re.M)
    assert orjson_row is not None
    assert f"{lossy.input_tokens:,}" in orjson_row[0]
