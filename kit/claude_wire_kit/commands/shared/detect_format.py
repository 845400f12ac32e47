"""Detect whether a source contains the CLI's output or a transcript."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from claude_wire.transcripts import LineDialect
from claude_wire.transcripts.recognise import Head
from claude_wire_kit.commands.shared.sources import Piece


def recognised(stream: Iterator[Piece]) -> tuple[LineDialect, Iterator[Piece]]:
    """Read the first lines of a stream. Returns the dialect, and all pieces of the stream including those lines."""
    head = Head()
    first: list[Piece] = []
    for piece in stream:
        first.append(piece)
        if not piece.sent:
            head.feed(piece.data)
            if head.dialect is not None:
                break
    head.close()
    assert head.dialect is not None
    return head.dialect, chain(first, stream)
