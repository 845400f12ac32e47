"""What the user names on the command line, as bytes: a file, a compressed file, a recording's folder, a pipe.

Knows files; not what their bytes mean. Anything but a folder is read piece by piece, in constant memory, and a piece of
a pipe is handed on as soon as it is there.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import IO, Any, NamedTuple, TextIO, cast

import click

from claude_wire.support import printable
from claude_wire.testing import Recording
from claude_wire.testing.player.files import unpacked_pieces
from claude_wire_kit.commands.shared.failure import Failure

#: The type of an argument that names a source.
SOURCE = click.Path(exists=True, readable=True, allow_dash=True)

#: A pipe of Linux holds this much.
CHUNK_BYTES = 64 * 1024

#: A file that begins so may be a script with a recording in it, as ``claude-wire replay --script`` writes it.
SCRIPT = b"#!"

#: The ends of the names of compressed files.
COMPRESSED = (".gz", ".xz")


class Piece(NamedTuple):
    """Some bytes of a stream, cut anywhere."""

    #: Whether the host wrote them, to the CLI's standard input.
    sent: bool
    data: bytes


class Unreadable(Failure):
    """A source that cannot be read, or not to its end."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{display_name(source)} cannot be read: {reason}")


def several_sources(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the argument ``files``: one source or more, standard input once at the most."""
    argument = click.argument(
        "files", metavar="FILE...|-", nargs=-1, required=True, type=SOURCE, callback=_standard_input_once
    )
    return argument(command)


def _standard_input_once(context: click.Context, parameter: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
    if files.count("-") > 1:
        raise click.UsageError("'-' (standard input) can be read only once.", context)
    return files


def display_name(source: str) -> str:
    """The name of a source, safe to print."""
    return "standard input" if source == "-" else printable(os.fsdecode(source), keep="")


@contextmanager
def pieces(source: str, *, both: bool = False) -> Generator[Iterator[Piece], None, None]:
    """Open a path, or ``-`` for standard input, and yield its pieces; it is closed at the end of the block.

    A folder is a recording: its lines come one by one, with ``both`` those of the host among them, in the order in
    which they went.

    Raises:
        Unreadable: it cannot be opened; a step of the iteration raises it when it cannot be read.
    """
    with ExitStack() as stack:
        with _reading(source):
            stream = _stream(source, both, stack)
        yield stream


def standard_input() -> TextIO:
    """Standard input.

    Raises:
        Unreadable: it was closed before this process began.
    """
    if sys.stdin is None:
        raise Unreadable("-", "it is closed")
    return sys.stdin


def known_size(source: str) -> int:
    """How many bytes there are to read; 0 where only reading them tells."""
    try:
        status = os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)
    except OSError:  # standard input without a descriptor
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) and not source.endswith(COMPRESSED) else 0


@contextmanager
def _reading(source: str) -> Generator[None, None, None]:
    """Turns any error of the block into one that names the source."""
    try:
        yield
    except OSError as error:
        raise Unreadable(source, error.strerror or str(error)) from error
    except ValueError as error:  # it says which file is damaged, or too large
        raise Unreadable(source, str(error)) from error


def _stream(source: str, both: bool, stack: ExitStack) -> Iterator[Piece]:
    if source == "-":
        return _chunks(source, standard_input().buffer)
    if os.path.isdir(source):
        return _recorded(Recording.load(source), both)
    if source.endswith(COMPRESSED):
        unpacked = stack.enter_context(closing(unpacked_pieces(source)))
        return _unpacked(source, next(unpacked, b""), unpacked)
    file = stack.enter_context(open(source, "rb"))  # noqa: SIM115 - the stack closes it
    # What is no regular file cannot be rewound.
    regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    if regular and file.peek(len(SCRIPT))[: len(SCRIPT)] == SCRIPT:
        return _recorded(Recording.load(source), both)
    return _chunks(source, file)


def _unpacked(source: str, first: bytes, others: Iterator[bytes]) -> Iterator[Piece]:
    data = first
    while data:
        yield Piece(False, data)
        with _reading(source):
            data = next(others, b"")


def _recorded(recording: Recording, both: bool) -> Iterator[Piece]:
    steps = (Piece(step.direction == "in", step.data) for step in recording.steps)
    return (step for step in steps if both or not step.sent)


def _chunks(source: str, file: IO[bytes]) -> Iterator[Piece]:
    # read1 returns what a pipe has instead of waiting for all of it.
    read1 = cast("Any", file).read1
    while True:
        with _reading(source):
            chunk: bytes | None = read1(CHUNK_BYTES)
        if chunk is None:
            raise Unreadable(source, "it is non-blocking")
        if not chunk:
            return
        yield Piece(False, chunk)
