"""Write the results of a run: docs/benchmarks.md, docs/benchmarks.json, the charts, and the table in the README.

The page has the numbers that matter for a decision, good and bad. The JSON has every row; the site shows all rows in
docs/benchmarks-all.md.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
from collections import Counter
from pathlib import Path

import chart
from table import TIMES, Measure, Row, Table, quantity, shown

__all__ = ["all_numbers", "first_page", "load", "machine", "readme", "write"]

#: The packages whose versions the page shows: this library, its dependencies, and the peers.
PACKAGES = (
    *("claude-wire", "msgspec", "cffi", "anyio", "trio"),
    *("orjson", "jiter", "fastsimdjson", "pysimdjson", "pydantic", "claude-agent-sdk"),
    *("duckdb", "polars", "pyarrow"),
)

#: The rows of the README: the job, the peer, and the job in plain words.
CHOSEN = (
    ("feed, typed, mixed sessions", "claude-agent-sdk", "Decode whole recorded sessions"),
    ("open_process, child writes lines, async for", "claude-agent-sdk", "Read a process that writes line by line"),
    ('feed, only={"result", "assistant"}', "claude-agent-sdk", "Wait for results, and skip the text before them"),
)
#: The rows of the first page: the job, the beginning of the peer's label, and both in plain words.
DECISIVE = (
    ("decode(line)", "claude-agent-sdk", "decode one live line, against claude-agent-sdk"),
    ("feed, typed, mixed sessions", "claude-agent-sdk", "decode whole sessions, against claude-agent-sdk"),
    ("feed, typed, mixed sessions", "orjson", "the same, against orjson, which makes dicts"),
    ("feed, typed, mixed sessions", "msgspec by hand at its best, by", "the same, against msgspec used by hand"),
    ('feed, only={"result", "assistant"}', "claude-agent-sdk", "wait for results, against claude-agent-sdk"),
    ("open_process, child writes lines, async for", "claude-agent-sdk", "read a process, against claude-agent-sdk"),
    ("latency of one event, asyncio", "claude-agent-sdk", "wait for one event, against claude-agent-sdk"),
    ("import claude_wire", "claude-agent-sdk", "import, against claude-agent-sdk"),
    ("an event through a supervisor, asyncio", "a bare pipe", "an event through a supervisor, against a bare pipe"),
    ("an event to a connection, one event at a time", "a plain", "an event over HTTP, against a plain endpoint"),
)
#: Label of a peer that has a column on the page with all numbers -> the column's heading.
COLUMNS = {
    "claude-agent-sdk": "claude-agent-sdk",
    "pydantic, discriminated unions": "pydantic",
    "msgspec by hand at its best": "msgspec by hand",
    "msgspec by hand, a Struct of the type": "msgspec by hand",
    "msgspec by hand, a Struct of the tags": "msgspec by hand",
    "msgspec by hand, Structs of the tags alone": "msgspec by hand",
    "json.loads (dicts)": "json",
    "json.dumps (dicts)": "json",
    "json.dumps (dict)": "json",
    "json.loads, json.dumps (dicts)": "json",
    "orjson.loads (dicts)": "orjson",
    "orjson.dumps (dicts)": "orjson",
    "orjson.dumps (dict)": "orjson",
    "orjson.loads, orjson.dumps (dicts)": "orjson",
    "jiter.from_json (dicts)": "jiter",
    "pysimdjson, Parser.parse (dicts)": "pysimdjson",
    "fastsimdjson.loads (dicts)": "fastsimdjson",
    "fastsimdjson.loads_many (dicts)": "fastsimdjson",
    "fastsimdjson.dumpb (dicts)": "fastsimdjson",
    "fastsimdjson.loads_many, fields= of the type": "fastsimdjson, fields=",
    "fastsimdjson.loads_many, fields= of the text": "fastsimdjson, fields=",
    "fastsimdjson.loads_many, fields= of the tags": "fastsimdjson, fields=",
    "claude_wire without only=": "without the option",
    "claude_wire without coalesce=": "without the option",
}
#: Measure -> the heading of a table that has a column for each of its peers.
HEADS = {
    Measure.FASTER: f"{TIMES} faster than",
    Measure.TIME: f"{TIMES} the time of",
    Measure.ABOVE: "ms above",
}
#: Matches the table in the README.
NUMBERS = re.compile(r"(<!-- numbers -->\n).*?(<!-- /numbers -->\n)", re.DOTALL)


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> list[str]:
    """Return two lines: the machine and its Python, and the versions of the packages."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    versions = ", ".join(f"{name} {version}" for name in PACKAGES if (version := _version(name)))
    return [f"{_cpu()}, {_cores()} cores; {platform.system()} {platform.machine()}; {python}", versions]


def _tables(rows: list[Row]) -> list[str]:
    """Return a section's tables: the tables with a column per common peer, and a table with a line per other peer."""
    lines: list[str] = []
    for measure, head in HEADS.items():
        wide = _wide(rows, measure)
        if wide:
            lines += [*_columns(wide, head), ""]
            rows = [row for row in rows if row not in wide]
    if rows:
        lines += ["| job, our time | against | result |", "|---|---|---|"]
    last = ""
    for row in rows:
        lines.append(f"| {'' if _job(row) == last else _job(row)} | {row.peer} | {_compact(row)} |")
        last = _job(row)
    return lines if rows else lines[:-1]


def _wide(rows: list[Row], measure: Measure) -> list[Row]:
    """Return the rows of the peers that have a column: those in COLUMNS, and those with several such rows."""
    peers = Counter(row.peer for row in rows if row.measure is measure and row.peer)
    known = {COLUMNS[peer] for peer in peers if peer in COLUMNS} if measure is Measure.FASTER else set()
    chosen = {peer for peer in peers if peers[peer] > 1 or (len(known) > 1 and peer in COLUMNS)}
    wide = [row for row in rows if row.measure is measure and row.peer in chosen]
    if len(known) > 1:
        wide += [row for row in rows if row.measure is Measure.RATE]
    return wide


def _columns(rows: list[Row], head: str) -> list[str]:
    """Return a table with a line per job, and a column per peer and for the rate."""
    peers = dict.fromkeys([*COLUMNS.values(), *(row.peer for row in rows if row.peer not in COLUMNS)])
    names = [name for name in peers if any(_column(row) == name for row in rows)]
    lines = [f"| {head} | {' | '.join(name or f'our rate, {Measure.RATE.written}' for name in names)} |"]
    lines.append("|---|" + "---|" * len(names))
    for job in dict.fromkeys(map(_job, rows)):
        cells = {_column(row): _bare(row) for row in rows if _job(row) == job}
        lines.append(f"| {job} | {' | '.join(cells.get(name, '') for name in names)} |")
    return lines


def _column(row: Row) -> str:
    return COLUMNS.get(row.peer, row.peer)


def _job(row: Row) -> str:
    return row.job if row.measure is Measure.MEMORY else f"{row.job}, {quantity(row.ours, row.unit)}"


def _compact(row: Row) -> str:
    """Return a row's numbers and its claimed bound. The numbers are bold if :attr:`Row.lost` is true."""
    numbers, verdict = shown(row)
    numbers = numbers.replace(" to ", "\N{EN DASH}").replace(f" {TIMES}", TIMES) or quantity(row.theirs, row.unit)
    bound = verdict.partition(":")[0].replace("at least ", "\N{GREATER-THAN OR EQUAL TO}")
    bound = bound.replace("at most ", "\N{LESS-THAN OR EQUAL TO}")
    return f"**{numbers}** {bound}".rstrip() if row.lost else f"{numbers} {bound}".rstrip()


def _bare(row: Row) -> str:
    """Return the numbers and the bound of a row without its measure, which the heading of the table or column has."""
    return _compact(row).replace(f" {row.measure.written}", "").replace(row.measure.written, "")


def _decisive(table: Table) -> list[str]:
    """Return the first page's rows that this run has."""
    return [
        f"| {words} | {shown(row)[0]} | {quantity(row.ours, row.unit)} |"
        for job, peer, words in DECISIVE
        for row in table.rows
        if row.job == job and row.peer.startswith(peer) and row.values
    ]


def _lost(table: Table) -> list[str]:
    """Say how many claims do not hold, and list the jobs at which a peer is faster."""
    claims = [row for row in table.rows if row.met is not None]
    missed = sum(row.met is False for row in claims)
    races = [row for row in table.rows if row.measure is Measure.FASTER and row.values]
    lost = [row for row in races if row.median < 1]
    return [
        f"{missed} of our {len(claims)} claims do not hold; they are bold in [all numbers](benchmarks-all.md).",
        f"In {len(lost)} of {len(races)} comparisons the peer is faster{':' if lost else '.'}",
        "",
        *(f"- {row.job}, against {row.peer}: {shown(row)[0]}" for row in lost),
    ]


def first_page(table: Table, rounds: int) -> str:
    """Return the first, short page."""
    system, versions = machine()
    parts = [
        "# How fast",
        "",
        f"`make bench` writes this page from one run. A result is the median of {rounds} rounds, with the lowest and",
        "the highest. [All numbers](benchmarks-all.md) has every job and the method.",
        "",
        f'"{TIMES} faster" is the peer\'s time divided by ours: below 1 we lose. "{TIMES} its time" is our time',
        "divided by the peer's: above 1 we lose. \"ms above it\" is our time minus the peer's.",
        "",
        "| job | result | our time |",
        "|---|---|---:|",
        *_decisive(table),
        "",
        "<picture>",
        '  <source media="(prefers-color-scheme: dark)" srcset="benchmarks-dark.svg">',
        f'  <img alt="{chart.TITLE}" src="benchmarks-light.svg">',
        "</picture>",
        "",
        "## Where it loses",
        "",
        *_lost(table),
        "",
        "## Machine",
        "",
        f"{system}.  ",
        f"{versions}.",
    ]
    return "\n".join(parts) + "\n"


def all_numbers(table: Table) -> str:
    """Return every row in Markdown, with a heading for each section."""
    return "\n\n".join(f"## {section}\n\n" + "\n".join(_tables(rows)) for section, rows in table.sections()) + "\n"


def _saved(table: Table) -> str:
    """Return all rows as a JSON array. For each row, it has the lowest value, the median and the highest value."""
    lines = []
    for row in table.rows:
        values = [min(row.values), row.median, max(row.values)] if len(row.values) > 1 else row.values
        fields = {"section": row.section, "job": row.job, "ours": _rounded(row.ours), "unit": row.unit}
        fields |= {"peer": row.peer, "theirs": _rounded(row.theirs), "measure": row.measure.name, "claim": row.claim}
        lines.append(json.dumps({**fields, "values": list(map(_rounded, values))}))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def load(path: Path) -> Table:
    """Return the rows in a file that ``write`` wrote."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return Table([Row(**{**row, "measure": Measure[row["measure"]]}) for row in rows])


def readme(table: Table, rounds: int) -> str:
    """Return the README's table: its comparisons with claude-agent-sdk, as far as this run has them."""
    lines = ["| job | claude_wire, against claude-agent-sdk |", "|---|---|"]
    for job, package, words in CHOSEN:
        lines += [
            f"| {words} | {shown(row)[0]} |"
            for row in table.rows
            if row.job == job and row.package == package and row.values
        ]
    return "\n".join([*lines, "", f"Medians of {rounds} rounds, with the lowest and the highest: {machine()[0]}.", ""])


def write(table: Table, folder: Path, rounds: int) -> None:
    """Write page, rows and charts into ``folder``, and the table into the README of its parent, if there is one."""
    (folder / "benchmarks-light.svg").write_text(chart.svg(table, chart.LIGHT), encoding="utf-8")
    (folder / "benchmarks-dark.svg").write_text(chart.svg(table, chart.DARK), encoding="utf-8")
    (folder / "benchmarks.json").write_text(_saved(table), encoding="utf-8")
    table = load(folder / "benchmarks.json")  # with the rounded numbers, so that all pages show the same
    (folder / "benchmarks.md").write_text(first_page(table, rounds), encoding="utf-8")
    above = folder.parent / "README.md"
    if above.is_file():
        text = above.read_text(encoding="utf-8")
        rows = readme(table, rounds)
        above.write_text(NUMBERS.sub(lambda found: f"{found[1]}{rows}{found[2]}", text), encoding="utf-8")
