"""The command ``claude-wire export``: write sessions as Parquet or CSV files."""

from __future__ import annotations

import os
from typing import Any

import click

from claude_wire.support import printable
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.folders import takes_folder
from claude_wire_kit.commands.shared.sources import display_name

TABLES = ["messages", "blocks", "usage", "results", "answers"]


@click.command()
@takes_folder
@click.option("-o", "--output", metavar="DIR", required=True, help="A folder that is not there yet, or is empty.")
@click.option("--table", type=click.Choice(TABLES), default="messages", help="Which table; messages if not said.")
@click.option("--format", "form", type=click.Choice(["parquet", "csv"]), default="parquet", help="parquet if not said.")
@click.option("--by", type=click.Choice(["day"]), help="A folder for each day, such as day=2026-11-23.")
@click.option("--tz", "zone", metavar="ZONE", default="UTC", help="The time zone of days; UTC if not said.")
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Threads; if not said, one for each processor, 8 at most."
)
def export(folder: str, output: str, table: str, form: str, by: str | None, zone: str, jobs: int | None) -> None:
    """Write sessions as Parquet or CSV files.

    FOLDER is the CLI's projects folder, if none is named: that in CLAUDE_CONFIG_DIR, or in ~/.claude. All files below
    it that end in .jsonl are read; they may be transcripts and recorded streams. Needs pyarrow.

    \b
    --table  a row for each
    messages  line, of whatever type
    blocks    content block of a user or the assistant
    usage     line with the usage of an answer: several lines have the same
    answers   answer of the model: each answer's usage once, to be summed
    results   result of a stream, and cost-state of a transcript

    DIR gets part-00000.parquet and so on; with --by day, in a folder for each day, as DuckDB, polars, Spark and
    pyarrow read them. Times are in UTC. DIR appears when everything is written; a failed export leaves nothing. Text
    may begin with "=", which spreadsheets take for a formula in a CSV.

    Each thread holds 16 MiB of lines, or one longer line; all answers are held, at 0.3 KB each.

    Exit code: 0, also if a value does not fit its column, which is reported; 2 if something cannot be read or written.
    """
    try:
        from claude_wire_kit.commands import table_files
    except ImportError as error:
        raise Failure(str(error)) from error
    most = min(8, os.cpu_count() or 1)
    kinds: Any = {"table": table, "format": form, "by_day": by is not None, "zone": zone}
    try:
        done = table_files.export(folder, output, **kinds, jobs=jobs or most)
    except (OSError, ValueError) as error:
        raise Failure(f"nothing is exported: {printable(str(error), keep='')}") from error
    if said := done.report.warning:
        click.echo(f"note: {printable(said, keep='')}", err=True)
    click.echo(f"{done.rows:,} rows of {table} in {done.files:,} files below {display_name(output)}")
