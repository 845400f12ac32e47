"""The page and the charts of the benches, generated from a made-up table, show the numbers of that table."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from folders import ROOT
from site_hooks import on_page_markdown

sys.path.append(str(ROOT / "benches"))

import chart
import page
from table import TIMES, Measure, Row, Table, quantity, shown

SVG = "{http://www.w3.org/2000/svg}"


def faster(job: str, peer: str, values: list[float], claim: float | None = None, charted: bool = True) -> Row:
    return Row("Decoding", job, 300e-9, peer, 300e-9 * values[0], values, Measure.FASTER, claim, charted=charted)


@pytest.fixture
def table() -> Table:
    return Table(
        [
            faster("decode <one> & all", "claude-agent-sdk", [9.0, 10.0, 11.0], claim=7),
            faster("decode <one> & all", "orjson.loads (dicts)", [0.8, 0.9, 1.1]),
            faster("feed", "json.loads (dicts)", [8.0]),
            faster("not in the chart", "json.loads (dicts)", [1e9], charted=False),
            Row("Decoding", "feed", 300e-9, "msgspec decode", 200e-9, [1.4, 1.5, 1.6], Measure.TIME, claim=1.2),
            Row("Passing over", "only", 30e-9, "", None, [7.9, 8.0, 9.5], Measure.RATE, claim=8),
            Row("Memory", "growth", 0.5, "", None, [0.5], Measure.MEMORY, claim=8, unit="MB"),
            Row("Memory", "growth", 0.5, "orjson", 0.02, [], Measure.MEMORY, unit="MB"),
        ]
    )


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (285e-9, "s", "285 ns"),
        (9.9994e-6, "s", "9,999 ns"),
        (12.34e-6, "s", "12.3 µs"),
        (0.0127, "s", "12.7 ms"),
        (3.0, "s", "3,000 ms"),
        (3.44, "MB", "3.4 MB"),
        (0.027, "MB", "27 KB"),
        (None, "s", ""),
    ],
)
def test_a_quantity_has_its_unit(value: float | None, unit: str, written: str) -> None:
    assert quantity(value, unit) == written


@pytest.mark.parametrize(
    ("measure", "values", "claim", "met"),
    [
        (Measure.FASTER, [6.9, 7.0, 9.0], 7.0, True),
        (Measure.FASTER, [6.9, 6.9, 9.0], 7.0, False),
        (Measure.RATE, [7.9], 8.0, False),
        (Measure.TIME, [1.0, 1.2, 1.9], 1.2, True),
        (Measure.TIME, [1.21], 1.2, False),
        (Measure.MEMORY, [8.1], 8.0, False),
        (Measure.ABOVE, [-3.0], 40.0, True),
        (Measure.TIME, [1.0], None, None),
    ],
)
def test_a_claim_is_about_the_median(measure: Measure, values: list[float], claim: float | None, met: bool) -> None:
    row = Row("", "", 1.0, "", None, values, measure, claim)
    assert row.met is met
    assert shown(row)[1].rpartition(": ")[2] == {True: "yes", False: "NO", None: ""}[met]


def test_what_is_lost_is_what_misses_its_claim_and_what_is_slower_than_a_peer(table: Table) -> None:
    assert [(row.job, row.package) for row in table.rows if row.lost] == [
        ("decode <one> & all", "orjson"),
        ("feed", "msgspec"),
    ]


def test_a_terminal_shows_every_row_with_its_spread_and_its_verdict(table: Table) -> None:
    text = "\n".join(table.lines())
    assert f"10.0 {TIMES} faster (9.00 to 11.0)" in text
    assert re.search(rf"msgspec decode +200 ns +1\.50 {TIMES} its time \(1\.40 to 1\.60\) +at most 1\.2: NO", text)
    assert "8.00 GB/s (7.90 to 9.50)" in text
    assert text.count("yes") == 3
    assert [line for line in text.splitlines() if line and line[0] != " "] == ["Decoding", "Passing over", "Memory"]


def test_the_page_of_all_numbers_has_every_row_and_what_is_lost_is_bold(table: Table) -> None:
    text = page.all_numbers(table)
    lines = text.splitlines()
    for row in table.rows:
        numbers = shown(row)[0].replace(" to ", "\N{EN DASH}").replace(f" {TIMES}", TIMES) or "20 KB"
        if row.peer in page.COLUMNS and row.measure is Measure.FASTER:
            numbers = numbers.replace(f"{TIMES} faster", "")
        wanted = f"**{numbers}**" if row.lost else f"| {numbers} "
        claim = "" if row.claim is None else f"{row.claim:g} |"
        assert any(line.startswith("| ") and wanted in line and claim in line for line in lines), row
    assert text.count("**") == 2 * sum(row.lost for row in table.rows)
    assert "\N{GREATER-THAN OR EQUAL TO}7 |" in text
    assert "\N{LESS-THAN OR EQUAL TO}1.2 |" in text


def test_peers_that_do_most_jobs_have_a_column_each(table: Table) -> None:
    text = page.all_numbers(table)
    assert f"| {TIMES} faster than | claude-agent-sdk | json | orjson |\n" in text
    dash, bound = "\N{EN DASH}", "\N{GREATER-THAN OR EQUAL TO}"
    job = f"| decode <one> & all, 300 ns | 10.0 (9.00{dash}11.0) {bound}7 |  | **0.90 (0.80{dash}1.10)** |\n"
    assert job in text
    assert "| feed, 300 ns |  | 8.00 |  |\n" in text


def test_a_peer_of_several_jobs_has_a_column_and_a_peer_of_one_job_has_a_line() -> None:
    rows = [Row("Reading", job, 1e-6, "a pipe", 1e-6, [1.5], Measure.TIME, 2) for job in ("read", "wait")]
    rows += [Row("Reading", "wait", 1e-6, "", None, [], Measure.TIME) for _ in range(2)]
    rows.append(Row("Reading", "read", 1e-6, "a file", 1e-6, [0.25], Measure.ABOVE))
    text = page.all_numbers(Table(rows))
    bound = "\N{LESS-THAN OR EQUAL TO}2"
    assert f"| {TIMES} the time of | a pipe |\n|---|---|\n| read, 1,000 ns | 1.50 {bound} |\n| wait, 1,000 ns" in text
    assert "| read, 1,000 ns | a file | 0.25 ms above it |\n" in text


def test_the_first_page_says_how_much_is_lost_and_to_whom(table: Table) -> None:
    lost = page.first_page(table, 15).partition("## Where it loses")[2].partition("\n## ")[0]
    assert "1 of our 4 claims do not hold" in lost
    job = "decode <one> & all, against orjson.loads (dicts): 0.90 "
    assert f"In 1 of 4 comparisons the peer is faster:\n\n- {job}" in lost


def test_the_first_page_is_short_and_each_of_its_rows_is_one_of_all(table: Table) -> None:
    rows = [faster(job, peer, [0.9, 1.0, 1.1]) for job, peer, _ in page.DECISIVE]
    text = page.first_page(Table(rows), 15)
    assert [line.split(" | ")[0][2:] for line in text.splitlines() if line.startswith("| ")][1:] == [
        words for _, _, words in page.DECISIVE
    ]
    assert len(page.DECISIVE) == 10
    whole = on_page_markdown((ROOT / "docs" / "benchmarks-all.md").read_text(encoding="utf-8"))
    for job, peer, _ in page.DECISIVE:
        assert f"| {job}, " in whole, job
        assert f" {peer}" in whole, peer


@pytest.mark.parametrize("written", [lambda table: page.first_page(table, 15), page.all_numbers])
def test_every_line_of_a_table_has_as_many_cells_as_its_head(table: Table, written: Callable[[Table], str]) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", written(table), re.MULTILINE)
    assert tables
    for lines in tables:
        assert len({line.count("|") for line in lines.splitlines()}) == 1, lines


def test_the_page_tells_the_machine_but_not_whose(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: pytest.fail("the name of the machine was asked for"))
    system, versions = page.machine()
    assert re.fullmatch(r".+, \d+ cores; \w+ \w+; \w+ 3\.\d+\.\d+\S*", system)
    assert "msgspec " in versions
    assert str(Path.home()) not in page.first_page(table, 15)


@pytest.mark.parametrize("theme", [chart.LIGHT, chart.DARK], ids=["light", "dark"])
def test_the_chart_is_sound_xml_with_one_mark_for_each_charted_package(table: Table, theme: chart.Theme) -> None:
    root = ElementTree.fromstring(chart.svg(table, theme))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "decode <one> & all" in texts
    assert "not in the chart" not in texts
    marks = [element.text for element in root.iter(f"{SVG}title")][1:]
    assert marks == ["orjson.loads (dicts): 0.90", "claude-agent-sdk: 10.00", "json.loads (dicts): 8.00"]
    for package in ("claude-agent-sdk", "orjson", "json"):
        assert package in texts
        assert theme.marks[package] in chart.svg(table, theme)


def test_the_axis_is_logarithmic_and_holds_every_round(table: Table) -> None:
    root = ElementTree.fromstring(chart.svg(table, chart.LIGHT))
    places = {element.text: float(element.get("x", "")) for element in root.iter(f"{SVG}text")}
    assert places["10"] - places["1"] == pytest.approx(places["5"] - places["0.5"], abs=0.2)
    width = float(root.get("width", ""))
    lines = [line for group in root.iter(f"{SVG}g") for line in group.iter(f"{SVG}line")]
    assert len(lines) == 3
    assert all(places["0.5"] <= float(line.get("x1", "")) <= float(line.get("x2", "")) <= width for line in lines)


def test_marks_of_one_job_do_not_hide_each_other() -> None:
    peers = ["orjson.loads", "jiter.from_json", "json.loads"]
    root = ElementTree.fromstring(chart.svg(Table([faster("feed", peer, [2.0]) for peer in peers]), chart.LIGHT))
    heights = {group.get("transform") for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None}
    assert len(heights) == 3


def test_the_colours_of_a_theme_stand_out_from_its_background() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for theme in (chart.LIGHT, chart.DARK):
        for colour in [theme.ink, theme.faint, *theme.marks.values()]:
            light, dark = sorted([luminance(colour), luminance(theme.background)], reverse=True)
            wanted = 4.5 if colour in (theme.ink, theme.faint) else 2.0
            assert (light + 0.05) / (dark + 0.05) >= wanted, colour


def test_the_readme_gets_three_rows_of_the_same_run(tmp_path: Path) -> None:
    rows = [faster(job, f"{package}, its parser", [10.0, 11.0, 12.0]) for job, package, _ in page.CHOSEN]
    above = tmp_path / "README.md"
    above.write_text("Before.\n<!-- numbers -->\nold\n<!-- /numbers -->\nAfter.\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    for _ in range(2):
        page.write(Table(rows), tmp_path / "docs", 15)
    text = above.read_text(encoding="utf-8")
    assert text.startswith("Before.\n<!-- numbers -->\n| job |")
    assert text.endswith("<!-- /numbers -->\nAfter.\n")
    assert text.count(f"11.0 {TIMES} faster (10.0 to 12.0)") == 3
    assert "old" not in text


def test_each_number_of_the_readme_stands_on_the_pages_of_the_benches() -> None:
    first, whole = (
        on_page_markdown((ROOT / "docs" / f"{name}.md").read_text("utf-8")) for name in ("benchmarks", "benchmarks-all")
    )
    found = page.NUMBERS.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    ratios = re.findall(r"^\| [A-Z].* \| ([^|]+) \|$", found[0], re.MULTILINE)
    assert len(ratios) == len(page.CHOSEN)
    for (job, _, _), ratio in zip(page.CHOSEN, ratios, strict=True):
        start = re.search(rf"^\| {re.escape(job)}, ", whole, re.MULTILINE)
        assert start is not None, job
        rows = whole[start.start() :].partition("\n| feed, dicts")[0].replace("*", "")
        written = ratio.replace(" to ", "\N{EN DASH}").replace(f" {TIMES} faster", "")
        assert written in rows.replace(f"{TIMES} faster", "")
    system = re.search(r"highest: (.*)\.$", found[0], re.MULTILINE)
    assert system is not None
    assert system[1] in first


def test_writing_gives_the_pages_and_the_pictures_that_they_show(table: Table, tmp_path: Path) -> None:
    for _ in range(2):
        page.write(table, tmp_path, 15)
    text = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    for name in re.findall(r'(?:src|srcset)="([^"]+)"', text):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<svg ")
    assert "(benchmarks-all.md)" in text


def test_what_is_written_is_read_again_and_gives_the_same_page(table: Table, tmp_path: Path) -> None:
    page.write(table, tmp_path, 15)
    again = page.load(tmp_path / "benchmarks.json")
    assert page.all_numbers(again) == page.all_numbers(table)
    assert page.first_page(again, 15) == page.first_page(table, 15)


def test_the_first_page_and_the_readme_show_the_rounded_numbers_of_the_json(tmp_path: Path) -> None:
    rows = [faster(job, f"{peer}, its parser", [10.5499996]) for job, peer, _ in page.CHOSEN]
    above = tmp_path / "README.md"
    above.write_text("<!-- numbers -->\n<!-- /numbers -->\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    page.write(Table(rows), tmp_path / "docs", 15)
    saved = page.load(tmp_path / "docs" / "benchmarks.json")
    assert page.readme(saved, 15) in above.read_text(encoding="utf-8")
    assert (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page.first_page(saved, 15)
