"""Read a source that the user names: a file, a compressed file, a recording's folder, or a pipe.

Reading takes constant memory, except that a folder is loaded as a whole. The bytes of a pipe are available as soon as
they arrive.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import chain
from typing import IO, Any, NamedTuple, TextIO, cast

import click

from claude_wire.support import printable
from claude_wire.testing import Recording
from claude_wire.testing.player.files import unpacked_pieces
from claude_wire.transcripts import LineDialect
from claude_wire.transcripts.recognise import Head
from claude_wire.transcripts.sessions import session_files
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.options import Decorator

#: The click type of an argument that names a source.
SOURCE = click.Path(exists=True, readable=True, allow_dash=True)

#: Maximum bytes in one read: the size of a pipe on Linux.
CHUNK_BYTES = 64 * 1024

#: A file that begins with these bytes may be a script with a recording in it, from ``claude-wire replay --script``.
SCRIPT = b"#!"

#: The suffixes of compressed files.
COMPRESSED = (".gz", ".xz")


class Piece(NamedTuple):
    """Bytes of a stream, cut anywhere."""

    #: True if the host wrote these bytes to the CLI's standard input.
    sent: bool
    data: bytes


class Unreadable(Failure):
    """A source cannot be read."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{display_name(source)} cannot be read: {reason}")


def _standard_input_once(context: click.Context, parameter: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
    if files.count("-") > 1:
        raise click.UsageError("'-' (standard input) can be read only once.", context)
    return files


#: Adds the argument ``files``: one or more sources. Standard input may be named only once.
several_sources: Decorator = click.argument(
    "files", metavar="FILE...|-", nargs=-1, required=True, type=SOURCE, callback=_standard_input_once
)


def display_name(source: str) -> str:
    """Return the name of a source, safe to print."""
    return "standard input" if source == "-" else printable(os.fsdecode(source), keep="")


def note_no_messages() -> None:
    """Print a note to standard error, because all lines of the input are invalid."""
    click.echo("note: the input has no messages; is it a recording?", err=True)


@contextmanager
def pieces(source: str, *, both: bool = False) -> Generator[Iterator[Piece], None, None]:
    """Open a path, or ``-`` for standard input. The context manager returns an iterator of the source's pieces.

    A folder is a recording, and each of its pieces is a line. With ``both``, the pieces include the host's lines, in
    the order in which both sides wrote.

    Raises:
        Unreadable: the source cannot be opened, or cannot be read during the iteration.
    """
    with ExitStack() as stack:
        with _reading(source):
            stream = _stream(source, both, stack)
        yield stream


def recognised(stream: Iterator[Piece]) -> tuple[LineDialect, Iterator[Piece]]:
    """Detect whether a stream is the CLI's output or a transcript, from its first lines.

    Returns the dialect, and all pieces of the stream including those lines.
    """
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


def standard_input() -> TextIO:
    """Return standard input.

    Raises:
        Unreadable: standard input was closed before this process started.
    """
    if sys.stdin is None:
        raise Unreadable("-", "it was closed by the parent process")
    return sys.stdin


def known_size(source: str) -> int:
    """Return the size of a source in bytes, or 0 if it is not known in advance."""
    try:
        status = os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)
    except OSError:  # standard input without a descriptor
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) and not source.endswith(COMPRESSED) else 0


@contextmanager
def _reading(source: str) -> Generator[None, None, None]:
    """Turn an OSError or ValueError raised in the block into :class:`Unreadable`."""
    try:
        yield
    except OSError as error:
        raise Unreadable(source, error.strerror or str(error)) from error
    except ValueError as error:  # one of the recording's files is damaged or too large; the text names it
        raise Unreadable(source, str(error)) from error


def _stream(source: str, both: bool, stack: ExitStack) -> Iterator[Piece]:
    if source == "-":
        return _chunks(source, _reader(standard_input().buffer))
    if os.path.isdir(source):
        _require_recording(source)
        return _recorded(Recording.load(source), both)
    if source.endswith(COMPRESSED):
        unpacked = stack.enter_context(closing(unpacked_pieces(source)))
        first = Piece(False, next(unpacked, b""))  # now, so a damaged file is refused before anything is printed
        return chain([first], _chunks(source, partial(next, unpacked, b"")))
    file = stack.enter_context(open(source, "rb"))  # noqa: SIM115 - the stack closes it
    # Check only a regular file for a script: Recording.load() opens it again.
    regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    if regular and file.peek(len(SCRIPT))[: len(SCRIPT)] == SCRIPT:
        return _recorded(Recording.load(source), both)
    return _chunks(source, _reader(file))


def _require_recording(folder: str) -> None:
    """Refuse a folder with session files instead of a recording."""
    if not os.path.exists(os.path.join(folder, "stdout.ndjson")) and session_files(folder):
        advice = f"claude-wire sessions {shlex.quote(os.fsdecode(folder))}"
        raise Failure(f"{display_name(folder)} is a folder of sessions: list them with {printable(advice, keep='')}")


def _recorded(recording: Recording, both: bool) -> Iterator[Piece]:
    steps = (Piece(step.direction == "in", step.data) for step in recording.steps)
    return (step for step in steps if both or not step.sent)


def _reader(file: IO[bytes]) -> Callable[[], bytes | None]:
    """Return a function that reads what a pipe has now. ``file.read`` would wait for the full size."""
    return partial(cast("Any", file).read1, CHUNK_BYTES)


def _chunks(source: str, read: Callable[[], bytes | None]) -> Iterator[Piece]:
    while True:
        with _reading(source):
            chunk = read()
        if chunk is None:
            raise Unreadable(source, "the stream is non-blocking")
        if not chunk:
            return
        yield Piece(False, chunk)
