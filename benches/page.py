"""docs/benchmarks.md, its charts and the README's rows, from the table of one run. Knows Markdown; measures nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path

import chart
from table import TIMES, Row, Table, quantity, shown

__all__ = ["TRIED", "machine", "markdown", "readme", "write"]

#: The part of the page that is kept by hand.
TRIED = Path(__file__).with_name("tried_and_left_out.md")
#: Whose versions are told: ourselves, what we stand on, and the peers.
PACKAGES = (
    *("claude-wire", "msgspec", "cffi", "anyio", "trio"),
    *("orjson", "jiter", "fastsimdjson", "pysimdjson", "pydantic", "claude-agent-sdk"),
    *("duckdb", "polars", "pyarrow"),
)

#: The rows of the README: a job, the peer, and what a reader calls the job.
CHOSEN = (
    ("feed, typed, mixed sessions", "claude-agent-sdk", "Decode whole recorded sessions"),
    ("open_process, child writes lines, async for", "claude-agent-sdk", "Read a process that writes line by line"),
    ('feed, only={"result", "assistant"}', "claude-agent-sdk", "Wait for results, and skip the text before them"),
)
#: Where they stand there.
NUMBERS = re.compile(r"(<!-- numbers -->\n).*?(<!-- /numbers -->\n)", re.DOTALL)

METHOD = f"""\
Subject and peers take turns in one process: in each round every peer does the job once, then `claude_wire` does, and
the ratio of that round is kept. The table has the median of the ratios of {{rounds}} rounds, with the lowest and the
highest (fewer rounds where one takes long; memory is measured once). The times beside them are medians for one line,
unless the job is something else by its name; they drift with the machine by tens of percent, ratios much less, so only
ratios are claimed. A bound that is claimed stands behind its ratio, with whether this run met it.

- Lines are recorded ones of the real CLI: `stream_event` lines of 286 bytes, unless said. "Mixed sessions" are whole
  recorded sessions. "Made" traffic is that of the tests' generator (`tests/support/traffic.py`). Chunks are of 64 KiB,
  cut anywhere, unless said, and lie in the processor's cache, as after a read.
- Messages are dropped as soon as they are made, unless said.
- "{TIMES} faster" is the peer's time divided by ours: above 1 we are ahead. "{TIMES} its time" is our time divided by
  that of a floor (msgspec's own part of the job, say) or of another way of ours: the lower, the better.
- Peers get their input as they like it best: whole lines, or blocks of whole lines. None of them sees to it that a line
  is one object but those that read line by line; the others take two objects on a line for two messages.
  claude-agent-sdk is its own framing, `json` and message parser, without its process and queues; through a pipe it is
  its whole transport.
- "msgspec by hand" is what an application would write: the same classes, tracked by the garbage collector, one for all
  `system` messages and one for all results. pydantic has the same classes as models, in discriminated unions.
- The instructions of the native core alone are counted by `make instructions` and kept in `benches/instructions.json`.
"""


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
    """Two lines: the machine and its Python, and the versions of the packages."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    versions = ", ".join(f"{name} {version}" for name in PACKAGES if (version := _version(name)))
    return [f"{_cpu()}, {_cores()} cores; {platform.system()} {platform.machine()}; {python}", versions]


def _table_rows(rows: list[Row]) -> list[str]:
    lines = ["| job | ours | against | theirs | | claimed |", "|---|---:|---|---:|---|---|"]
    last = "", ""
    for row in rows:
        ours = quantity(row.ours, row.unit)
        numbers, verdict = shown(row)
        first = "| |" if (row.job, ours) == last else f"{row.job} | {ours} |"
        last = row.job, ours
        if row.met is False:
            verdict = f"**{verdict}**"
        theirs = quantity(row.theirs, row.unit)
        lines.append(f"| {first} {row.peer} | {theirs} | {numbers} | {verdict} |")
    return lines


def _lost(rows: list[Row]) -> list[str]:
    lines = []
    for row in rows:
        numbers, verdict = shown(row)
        against = f" against {row.peer}" if row.peer else ""
        claimed = f" ({verdict})" if verdict else ""
        lines.append(f"- {row.job}{against}: {numbers}{claimed}")
    return lines


def markdown(table: Table, rounds: int, tried: str) -> str:
    """The page. ``tried`` is the part that is kept by hand."""
    system, versions = machine()
    claims = [row for row in table.rows if row.met is not None]
    missed = sum(row.met is False for row in claims)
    lost = [row for row in table.rows if row.lost]
    parts = [
        "# How fast",
        "",
        "Written by `make bench` from one run. What ends this page is kept in `benches/tried_and_left_out.md`.",
        "",
        "<picture>",
        '  <source media="(prefers-color-scheme: dark)" srcset="benchmarks-dark.svg">',
        f'  <img alt="{chart.TITLE}" src="benchmarks-light.svg">',
        "</picture>",
        "",
        "## Machine",
        "",
        f"{system}.  ",
        f"{versions}.",
        "",
        "## Method",
        "",
        METHOD.format(rounds=rounds).rstrip(),
        "",
        "## Where it loses",
        "",
        f"{len(claims)} bounds are claimed; {missed} of them were not met in this run. What did not meet its bound,",
        "and every peer that was faster:",
        "",
        *(_lost(lost) or ["Nothing, in this run."]),
        "",
        "## All of it",
    ]
    for section, rows in table.sections():
        parts += ["", f"### {section}", "", *_table_rows(rows)]
    parts += ["", "## Tried and left out", "", re.sub(r"<!--.*?-->\s*", "", tried, flags=re.DOTALL).strip()]
    return "\n".join(parts).rstrip() + "\n"


def readme(table: Table, rounds: int) -> str:
    """The README's rows: three jobs against claude-agent-sdk. Those that this run has not done are left out."""
    lines = ["| job | claude_wire, against claude-agent-sdk |", "|---|---|"]
    for job, package, words in CHOSEN:
        lines += [
            f"| {words} | {shown(row)[0]} |"
            for row in table.rows
            if row.job == job and row.package == package and row.values
        ]
    return "\n".join([*lines, "", f"Medians of {rounds} rounds, with the lowest and the highest: {machine()[0]}.", ""])


def write(table: Table, folder: Path, rounds: int) -> None:
    """Write the page and its two charts into a folder; if a README stands above it, its rows, too."""
    above = folder.parent / "README.md"
    if above.is_file():
        text = above.read_text(encoding="utf-8")
        rows = readme(table, rounds)
        above.write_text(NUMBERS.sub(lambda found: f"{found[1]}{rows}{found[2]}", text), encoding="utf-8")
    (folder / "benchmarks-light.svg").write_text(chart.svg(table, chart.LIGHT), encoding="utf-8")
    (folder / "benchmarks-dark.svg").write_text(chart.svg(table, chart.DARK), encoding="utf-8")
    tried = TRIED.read_text(encoding="utf-8")
    (folder / "benchmarks.md").write_text(markdown(table, rounds, tried), encoding="utf-8")
