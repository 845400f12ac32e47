"""The command ``claude-wire view``, which shows a recording, transcript or pipe in the terminal or as an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain

import click

from claude_wire import Decoder
from claude_wire.messages import InvalidLine, Message
from claude_wire.transcripts import MAX_BYTES, Transcript, messages
from claude_wire.transcripts.transcript import decoded
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.progress import Progress
from claude_wire_kit.commands.shared.sources import (
    SOURCE,
    Piece,
    display_name,
    known_size,
    note_no_messages,
    pieces,
    recognised,
)
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.output import Output
from claude_wire_kit.terminal.page import Page


@click.command()
@click.argument("source", metavar="FILE|-", type=SOURCE)
@click.option("--html", "as_html", is_flag=True, help="Write one static HTML page.")
@click.option("-o", "--output", metavar="OUT", help="File for the page (default: standard output).")
def view(source: str, as_html: bool, output: str | None) -> None:
    """Show a recorded session, or a pipe.

    FILE has lines that the CLI wrote, for example with "claude -p PROMPT --output-format stream-json --verbose". It may
    be compressed (.gz, .xz). If FILE is the folder of a recording, the output includes the host's lines. If FILE is a
    transcript, which the CLI keeps on disk, the output is the active branch, with the messages of its subagents. - is
    standard input, whose lines appear as they arrive.

    \b
    >  a prompt                  ?  a question of the CLI, and its answer
    +  a tool call               #  a hook, or a message to an MCP server
    =  its result, or a turn's   *  a report of the CLI
    |  a subagent                !  an error, or a line that is not JSON
    <  a request of the host

    Inputs and results of tools are cut to a few lines, and control characters are shown as escapes.

    With --html, the output is a page for a browser, with whole texts, changes of files, times and cost. It loads
    nothing and needs no script. It contains everything in the session, including names of files and secrets: read it
    before you share it.

    Exit code: 0, even if a turn has failed or a line is invalid; 2 if the file cannot be read or the page cannot be
    written.
    """
    if as_html:
        with pieces(source, both=True) as stream, Progress("reading") as progress:
            _page(source, progress.of(stream, known_size(source)), output or "-")
        return
    if output is not None:
        raise click.UsageError("-o needs --html.")
    valid: set[bool] = set()
    with closing(Page(Output(), row=source == "-")) as page, pieces(source, both=True) as stream:
        live = LiveView(page)
        page.activity("waiting for the first line")
        page.wait()
        dialect, lines = recognised(stream)
        if dialect == "transcript":
            transcript = _transcript(source, lines, valid)
            for message in chain(transcript.invalid, messages(transcript)):
                live.show(message)
                page.wait()
        else:
            for sent, message in _both(lines, valid, page.wait):
                (live.sent if sent else live.show)(message)
    _note(source, valid)


def _both(
    stream: Iterator[Piece], valid: set[bool], wait: Callable[[], None]
) -> Iterator[tuple[bool, Message | InvalidLine]]:
    """Yield the messages of both sides, each with True if the host wrote it.

    Args:
        valid: gets True if the stream has a message, and False if the stream has an invalid line.
        wait: called after each piece.
    """
    decoders = {sent: Decoder() for sent in (True, False)}
    for piece in stream:
        for message in decoders[piece.sent].feed(piece.data):
            valid.add(not isinstance(message, InvalidLine))
            yield piece.sent, message
        wait()
    for sent, decoder in decoders.items():
        for message in decoder.close():
            valid.add(not isinstance(message, InvalidLine))
            yield sent, message


def _note(source: str, valid: set[bool]) -> None:
    """Print a note if the source is empty, or if all its lines are invalid."""
    if not valid:
        click.echo(f"note: {display_name(source)} is empty", err=True)
    elif True not in valid:
        note_no_messages()


def _transcript(source: str, stream: Iterator[Piece], valid: set[bool]) -> Transcript:
    valid.add(True)  # recognised() has found a record
    try:
        return Transcript(decoded(piece.data for piece in stream), None if source == "-" else source)
    except ValueError:
        name = display_name(source)
        raise Failure(f"{name} has more than {MAX_BYTES:,} bytes: too many to find its branches") from None


def _page(source: str, stream: Iterator[Piece], output: str) -> None:
    from claude_wire_kit.commands.shared.saving import save
    from claude_wire_kit.html.document import document
    from claude_wire_kit.html.story import Story

    valid: set[bool] = set()
    dialect, lines = recognised(stream)
    story = Story(transcript=dialect == "transcript")
    if dialect == "transcript":
        story.tell(_transcript(source, lines, valid))
    else:
        for sent, message in _both(lines, valid, lambda: None):
            (story.sent if sent else story.show)(message)
    story.close()
    save(document(story), output)
    _note(source, valid)
