"""The command ``claude-wire export``: write sessions as Parquet or CSV files."""

from __future__ import annotations

import os

import click

from claude_wire.support import printable
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.progress import Progress
from claude_wire_kit.commands.shared.selection import Selection, takes_selection
from claude_wire_kit.commands.shared.sources import display_name

TABLES = ["messages", "blocks", "usage", "results", "answers"]


@click.command()
@takes_selection
@click.option("-o", "--output", metavar="DIR", required=True, help="A new or empty folder.")
@click.option("--table", type=click.Choice(TABLES), default="messages", show_default=True, help="Which table.")
@click.option("--format", "form", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True)
@click.option("--by", type=click.Choice(["day"]), help="Write a folder for each day: day=2026-11-23.")
@click.option("--tz", "zone", metavar="ZONE", default="UTC", show_default=True, help="Time zone for day boundaries.")
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Threads (default: one for each processor, at most 8)."
)
def export(
    selection: Selection,
    output: str,
    table: str,
    form: str,
    by: str | None,
    zone: str,
    jobs: int | None,
) -> None:
    """Write sessions as Parquet or CSV files.

    FOLDER is by default the CLI's "projects" folder in CLAUDE_CONFIG_DIR or in ~/.claude. All .jsonl files below it are
    read; they may be transcripts or recorded streams. Needs pyarrow.

    \b
    --table   has a row for each
    messages  line of any type
    blocks    content block of a user or assistant message
    usage     line with the usage of an answer; several lines may repeat it
    answers   answer of the model, with its usage once: use this for sums
    results   result of a stream, and cost-state of a transcript

    DIR gets the files part-00000.parquet and so on. With --by day, DIR gets a folder for each day, which DuckDB,
    polars, Spark and pyarrow can read as a partition. Times are in UTC. DIR appears when all files are complete; a
    failed export leaves no files. Open a CSV in a spreadsheet with care: text may begin with "=", as a formula does.

    With --since or --until, rows without a time are omitted.

    Each thread keeps 16 MiB of lines in memory, or one longer line. --table answers keeps 0.3 KB for each answer.

    Exit code: 0, even if a value does not fit its column, which is reported; 2 if something cannot be read or written.
    """
    try:
        from claude_wire_kit.commands import table_files
    except ImportError as error:
        raise Failure(str(error)) from error
    most = min(8, os.cpu_count() or 1)
    try:
        with Progress("writing") as progress:
            done = table_files.export(
                selection.files(),
                output,
                table,
                form,
                by_day=by is not None,
                zone=zone,
                within=selection.period.bounds(),
                jobs=jobs or most,
                on_part=progress.show,
            )
    except (OSError, ValueError) as error:
        raise Failure(f"nothing was exported: {printable(str(error), keep='')}") from error
    if said := done.report.warning:
        click.echo(f"note: {printable(said, keep='')}", err=True)
    if not done.rows:
        click.echo(f"note: no {table} found in {printable(selection.folder, keep='')}", err=True)
    click.echo(f"{done.rows:,} rows of {table} in {done.files:,} files below {display_name(output)}")
