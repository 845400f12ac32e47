"""The command ``claude-wire view``: a recording, or a pipe, as it would have been seen live."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import click

from claude_wire import Decoder
from claude_wire.cli.failure import Failure
from claude_wire.cli.recognised import recognised
from claude_wire.cli.show.live import LiveView
from claude_wire.cli.show.output import Output
from claude_wire.cli.show.page import Page
from claude_wire.cli.sources import SOURCE, Piece, display_name, pieces
from claude_wire.messages import InvalidLine, UnknownMessage
from claude_wire.transcripts import MOST_BYTES, Record, Transcript, messages

__all__ = ["view"]


@click.command()
@click.argument("source", metavar="FILE|-", type=SOURCE)
def view(source: str) -> None:
    """Show a recorded session, or a pipe; - is standard input.

    FILE has the lines that the CLI wrote, such as "claude -p PROMPT --output-format stream-json --verbose" writes them;
    .gz and .xz are unpacked. Of a recording's folder what the host wrote is shown, too. What comes late through a pipe
    is shown when it comes. Of a transcript, which the CLI keeps on disk, the active branch is shown, with what its
    subagents have said.

    \b
    >  a prompt                  ?  a question of the CLI, and its answer
    +  a tool is called          #  a hook, or a message to an MCP server
    =  its result, or a turn's   *  what the CLI tells of itself
    |  a subagent                !  an error, or a line that is not JSON
    <  a request of the host

    What tools are given and give back is cut to a few lines, and control characters are shown as escapes. Exit code: 0,
    also if a turn has failed or a line is invalid; 2 if the file cannot be read.
    """
    with closing(Page(Output(), row=source == "-")) as page, pieces(source, both=True) as stream:
        live = LiveView(page)
        page.activity("waiting for the first line")
        page.wait()
        dialect, lines = recognised(stream)
        if dialect == "transcript":
            _show_transcript(source, lines, live, page)
        else:
            _show_stream(lines, live, page)


def _show_stream(stream: Iterator[Piece], live: LiveView, page: Page) -> None:
    written, sent = Decoder(), Decoder()
    for piece in stream:
        if piece.sent:
            for message in sent.feed(piece.data):
                live.sent(message)
        else:
            for message in written.feed(piece.data):
                live.show(message)
        page.wait()
    for message in sent.close():
        live.sent(message)
    for message in written.close():
        live.show(message)


def _show_transcript(source: str, stream: Iterator[Piece], live: LiveView, page: Page) -> None:
    """Show the active branch of a transcript, after the lines of it that are no records."""
    decoder, lines, size = Decoder(Record), list[Record | UnknownMessage | InvalidLine](), 0
    for piece in stream:
        size += len(piece.data)
        if size > MOST_BYTES:
            raise Failure(f"{display_name(source)} has more than {MOST_BYTES:,} bytes: too many to find its branches")
        lines += decoder.feed(piece.data)
    transcript = Transcript([*lines, *decoder.close()], None if source == "-" else source)
    for line in transcript.invalid:
        live.show(line)
    for message in messages(transcript):
        live.show(message)
        page.wait()
