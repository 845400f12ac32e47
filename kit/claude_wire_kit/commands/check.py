"""The command ``claude-wire check``: report what recordings contain, as text or JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from claude_wire import PROTOCOL_VERSION
from claude_wire.messages import InvalidLine
from claude_wire.transcripts import LineDialect
from claude_wire_kit.commands.shared.json_output import print_json
from claude_wire_kit.commands.shared.options import takes_json
from claude_wire_kit.commands.shared.progress import Progress
from claude_wire_kit.commands.shared.sources import display_name, known_size, note_no_messages, pieces, several_sources
from claude_wire_kit.survey.check import Summary, Survey
from claude_wire_kit.survey.report import invalid_as_json, invalid_as_text, summary_as_json, summary_as_text
from claude_wire_kit.terminal.output import Output
from claude_wire_kit.terminal.wrapping import width_of, wrapped


@click.command()
@several_sources
@takes_json
def check(files: tuple[str, ...], as_json: bool) -> None:
    """Check recorded lines, and list what is unknown.

    Counts messages by kind. Lists every line that is not one JSON object, with its number, byte offset and reason.
    Lists everything that this version of claude-wire does not know: types, subtypes, blocks, events, deltas, requests,
    hook events, and fields by path. Each is listed once, with its count and its first line.

    FILE has lines that the CLI wrote: its output, or a transcript, which the CLI keeps on disk. The first lines tell
    which of the two FILE is. It may be compressed (.gz, .xz), or the folder of a recording, whose stdout.ndjson is
    read. - is standard input. The fields of an answer depend on its request, so answers are checked only in a
    recording, or if the requests are among the lines. Files are read once, in constant memory; folders are loaded into
    memory. The output has names of types and fields, but no content of lines.

    Exit code: 0 if every line is a JSON object (unknown types and fields are not errors), 1 if a line is invalid, 2 if
    a file cannot be read.

    The keys of --json are on the page "Use the command" of the documentation.
    """
    total = check_as_json(files) if as_json else _check_as_text(files)
    if total.invalid and not total.messages:
        note_no_messages()
    if total.invalid:
        click.get_current_context().exit(1)


def _check_as_text(files: tuple[str, ...]) -> Summary:
    """Check the files, and print each invalid line immediately, so a file with only invalid lines takes no memory."""
    total, width = Summary(), width_of(Output())

    def say(line: str) -> None:
        click.echo(wrapped(line, width))

    for number, file in enumerate(files):
        heading = ("\n" if number else "") + display_name(file)
        dialect, found = _check_file(
            file, display_name(file), lambda line: say(invalid_as_text(line)), partial(say, f"{heading}:")
        )
        if dialect == "transcript":
            say("  a transcript, as the CLI keeps it on disk")
        for line in summary_as_text(found):
            say(line)
        total.add(found)
    if len(files) > 1:
        say(f"\nall {len(files)} files:")
        for line in summary_as_text(total, name_sources=True):
            say(line)
    return total


def check_as_json(files: tuple[str, ...]) -> Summary:
    """Check the files, and print one JSON object at the end. Until then, each invalid line takes 0.5 KB of memory.

        {"files": [FILE, ...], "total": TOTAL, "protocol": str}
        FILE: {"path": PATH, "dialect": "stream" or "transcript", "bytes": int, "lines": int,
          "messages": int, "invalid": int, "kinds": {NAME: int, ...},
          "unknown": [{"what": str, "name": str, "path": str, "reason": str, "count": int,
            "first_line": int}, ...], "unknown_not_listed": int,
          "invalid_lines": [{"line": int, "offset": int, "length": int, "kind": str,
            "reason": str}, ...]}
        TOTAL: {... as FILE without "path", "dialect" and "invalid_lines", and with "first_path"
          in each "unknown"}

    ``what`` is one of field, type, subtype, block, event, delta, request, hook event, object, message, answer. Line
    numbers begin with 1 and count blank lines; ``lines`` does not. ``protocol`` is the CLI version whose protocol this
    version describes. The ``path`` of standard input is ``-``.
    """
    total = Summary()
    done: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    for file in files:
        dialect, found = _check_file(file, file, lambda line: invalid.append(invalid_as_json(line)))
        done.append({"path": file, "dialect": dialect, **summary_as_json(found), "invalid_lines": invalid[:]})
        invalid.clear()
        total.add(found)
    totals = summary_as_json(total, name_sources=True)
    print_json({"files": done, "total": totals, "protocol": PROTOCOL_VERSION})
    return total


def _check_file(
    file: str, name: str, on_invalid: Callable[[InvalidLine], object], on_open: Callable[[], object] | None = None
) -> tuple[LineDialect, Summary]:
    """Check one file, and return its dialect and its findings.

    Args:
        name: the name of the file in the findings.
        on_invalid: called with each invalid line.
        on_open: called once the file is open, so a file that cannot be opened gets no heading.
    """
    with pieces(file, both=True) as stream, Progress(f"checking {display_name(file)}") as progress:
        if on_open is not None:
            on_open()

        def invalid(line: InvalidLine) -> None:
            progress.hide()
            on_invalid(line)

        survey = Survey(name, invalid)
        for piece in progress.of(stream, known_size(file)):
            if piece.sent:
                survey.sent(piece.data)
            else:
                survey.feed(piece.data)
        found = survey.close()
        return survey.dialect or "stream", found
