"""The command ``claude-wire check``: what recordings hold, with the progress of large ones, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from claude_wire import PROTOCOL_VERSION
from claude_wire.cli.count.report import invalid_as_json, invalid_as_text, summary_as_json, summary_as_text
from claude_wire.cli.count.survey import Summary, Survey
from claude_wire.cli.show.output import Output
from claude_wire.cli.show.wrapping import width_of, wrapped
from claude_wire.cli.sources import display_name, known_size, pieces, several_sources
from claude_wire.messages import InvalidLine

__all__ = ["check"]

#: Files above this size get a progress bar.
LARGE_BYTES = 50_000_000


@click.command()
@several_sources
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def check(files: tuple[str, ...], as_json: bool) -> None:
    """Check recorded lines; - is standard input.

    Counts messages by kind, lists every line that is not one JSON object with its number, byte offset and reason, and
    lists what this version of claude-wire does not know: types, subtypes, blocks, events, deltas, requests, hook
    events, and fields by path. Each is listed once, with its count and the first line that has it.

    A FILE has the lines that the CLI wrote; .gz and .xz are unpacked, and of a recording's folder it is the
    stdout.ndjson. Files are read once, in constant memory; folders are loaded. Nothing of a line's content is printed,
    only names of types and fields.

    Exit code: 0 if every line is a JSON object (unknown things are no error), 1 if a line is invalid, 2 if a file
    cannot be read.

    \b
    --json prints {"files": [FILE...], "total": TOTAL, "protocol": "2.1.330"}; FILE is
      {"file": str, "bytes": int, "lines": int, "messages": int, "invalid": int,
       "kinds": {"stream_event/content_block_delta/text_delta": int, ...},
       "unknown": [{"what": "field", "name": "zzz", "path": "user.zzz", "reason": str,
                    "count": int, "first_line": int}, ...],
       "unknown_not_listed": int,
       "invalid_lines": [{"line": int, "offset": int, "length": int, "kind": str, "reason": str}, ...]}
    and TOTAL is the same without "file" and "invalid_lines", with "first_file" in "unknown".
    "what" is one of field, type, subtype, block, event, delta, request, hook event, object, message.
    Offsets and lengths are bytes; line numbers begin with 1 and count blank lines, which "lines" does not.
    """
    report: _Report = _JsonReport() if as_json else _TextReport()
    total = Summary()
    for file in files:
        total.add(_check_file(file, report))
    report.end(total)
    if total.invalid:
        click.get_current_context().exit(1)


# --- reports ----------------------------------------------------------------------------------------------------------


class _Report(Protocol):
    def begin_file(self, name: str) -> None: ...
    def invalid(self, line: InvalidLine) -> None: ...
    def end_file(self, summary: Summary) -> None: ...
    def end(self, total: Summary) -> None: ...


class _TextReport:
    """Prints invalid lines while they are found, so that even a file of nothing else takes no memory."""

    def __init__(self) -> None:
        self._files = 0
        self._width = width_of(Output())

    def begin_file(self, name: str) -> None:
        if self._files:
            click.echo()
        self._files += 1
        self._say(f"{name}:")

    def invalid(self, line: InvalidLine) -> None:
        self._say(invalid_as_text(line))

    def end_file(self, summary: Summary) -> None:
        self._print(summary, name_sources=False)

    def end(self, total: Summary) -> None:
        if self._files > 1:
            self._say(f"\nall {self._files} files:")
            self._print(total, name_sources=True)

    def _print(self, summary: Summary, *, name_sources: bool) -> None:
        for line in summary_as_text(summary, name_sources=name_sources):
            self._say(line)

    def _say(self, line: str) -> None:
        click.echo(wrapped(line, self._width))


class _JsonReport:
    """Collects everything for one JSON object; invalid lines take memory until then, 0.5 KB each."""

    def __init__(self) -> None:
        self._files: list[dict[str, Any]] = []
        self._name = ""
        self._invalid: list[dict[str, Any]] = []

    def begin_file(self, name: str) -> None:
        self._name = name
        self._invalid = []

    def invalid(self, line: InvalidLine) -> None:
        self._invalid.append(invalid_as_json(line))

    def end_file(self, summary: Summary) -> None:
        self._files.append({"file": self._name, **summary_as_json(summary), "invalid_lines": self._invalid})

    def end(self, total: Summary) -> None:
        totals = summary_as_json(total, name_sources=True)
        click.echo(json.dumps({"files": self._files, "total": totals, "protocol": PROTOCOL_VERSION}))


# --- one file ---------------------------------------------------------------------------------------------------------


def _check_file(file: str, report: _Report) -> Summary:
    name = display_name(file)
    with pieces(file) as stream, _progress(known_size(file)) as progress:
        report.begin_file(name)

        def invalid(line: InvalidLine) -> None:
            with progress.paused():
                report.invalid(line)

        survey = Survey(name, invalid)
        for piece in stream:
            survey.feed(piece.data)
            progress.advance(len(piece.data))
        summary = survey.close()
    report.end_file(summary)
    return summary


# --- progress ---------------------------------------------------------------------------------------------------------


class _NoProgress:
    def advance(self, count: int) -> None: ...

    @contextmanager
    def paused(self) -> Generator[None, None, None]:
        yield


class _Bar(_NoProgress):
    """A bar on standard error; it makes room while something is printed, because both may be the same terminal."""

    def __init__(self, progress: Progress, size: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=size)

    def advance(self, count: int) -> None:
        self._progress.advance(self._task, count)

    @contextmanager
    def paused(self) -> Generator[None, None, None]:
        self._progress.stop()
        yield
        self._progress.start()


@contextmanager
def _progress(size: int) -> Generator[_NoProgress, None, None]:
    console = Console(stderr=True)
    if size <= LARGE_BYTES or not console.is_terminal:
        yield _NoProgress()
        return
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        yield _Bar(progress, size)
