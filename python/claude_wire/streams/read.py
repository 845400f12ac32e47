"""Read lines from files and pipes, synchronously and in constant memory."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from claude_wire.codec.decoder import MESSAGE, Decoder, OnInvalid
from claude_wire.codec.kinds import Kind
from claude_wire.codec.stats import DecoderStats
from claude_wire.limits import BLOCK_BYTES, DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import InvalidLine, Message, UnknownMessage
from claude_wire.messages.vocabulary import Family
from claude_wire.support.arguments import tells_where, type_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from claude_wire.codec.arguments import DecoderArguments, DictArguments, FamilyArguments

T = TypeVar("T")
F = TypeVar("F", bound=Family)
Source = str | os.PathLike[str] | IO[bytes]
#: File name suffix -> module that decompresses the file.
_COMPRESSED = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}


class Reader(Generic[T]):
    """Iterates over the messages in a file, reading 64 KiB at a time. :func:`read` returns it.

    An exception, for example with ``on_invalid="raise"``, does not end the iteration: the next step continues after the
    line. A reader that opened its file closes it after the last message, in :meth:`close`, or at the end of a ``with``
    block.
    """

    __slots__ = ("_decoder", "_ended", "_file", "_owned", "_ready")

    def __init__(self, source: Source, decoder: Decoder[T]) -> None:
        self._decoder = decoder
        decoder.raise_in_turn()
        self._ready: deque[T] = deque()
        self._ended = False
        self._owned = False
        if isinstance(source, (str, os.PathLike)):
            if source == "-":
                self._file: IO[bytes] = sys.stdin.buffer
            else:
                self._file = _opened(source)
                self._owned = True
        elif not hasattr(source, "read"):
            hint = "; pass bytes to Decoder().feed(), or one line to decode()" if isinstance(source, bytes) else ""
            raise TypeError(f"read() takes a path or a binary file, not {type_of(source)}{hint}")
        elif isinstance(source.read(0), str):
            raise TypeError("read() takes a binary file; open it with mode 'rb'")
        else:
            self._file = source

    def __repr__(self) -> str:
        return f"<Reader {'ended' if self._ended else 'open'}: {self.stats.summary()}>"

    @property
    def stats(self) -> DecoderStats:
        """The number of lines, messages and bytes so far."""
        return self._decoder.stats

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while not self._ready:
            if self._decoder.holds_back:
                self._ready.extend(self._decoder.feed(b""))
            elif self._ended:
                self.close()
                raise StopIteration
            else:
                self._read()
        return self._ready.popleft()

    def _chunk(self) -> bytes:
        """Return the next bytes; empty at the end."""
        # read1() returns the bytes that are available in a pipe; read() would wait for a whole block.
        data: bytes | None = getattr(self._file, "read1", self._file.read)(BLOCK_BYTES)
        if data is None:
            raise BlockingIOError("read() takes a blocking file")
        return data

    def _read(self) -> None:
        data = self._chunk()
        if data:
            self._ready.extend(self._decoder.feed(data))
        else:
            self._ready.extend(self._decoder.close())
            self._ended = True

    def close(self) -> None:
        """Close the file if the reader opened it, and end the iteration. A second call does nothing."""
        self._ready.clear()
        self._decoder.forget()
        self._ended = True
        if self._owned:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(path: str | os.PathLike[str]) -> IO[bytes]:
    module = _COMPRESSED.get(os.path.splitext(path)[1])
    if module is not None:
        raise ValueError(f"the file is compressed, by its name: read({module}.open(path)) unpacks it")
    try:
        return open(path, "rb", buffering=0)
    except IsADirectoryError as error:
        what = "a directory: read() takes one file of it at a time; of a recording, stdout.ndjson"
        raise IsADirectoryError(error.errno, what, error.filename) from None
    except OSError as error:
        if isinstance(path, str) and path.lstrip().startswith("{"):  # do not show the whole line as a file name
            raise ValueError("read() takes a path, not JSON: pass one line to decode()") from None
        raise error from None


@overload
def read(
    source: Source,
    type: type[dict[str, Any]],
    *,
    on_invalid: Literal["return"] = ...,
    **arguments: Unpack[DictArguments],
) -> Reader[dict[str, Any] | InvalidLine]: ...
@overload
def read(
    source: Source,
    type: type[dict[str, Any]],
    *,
    on_invalid: Literal["raise"] | Callable[[InvalidLine], object],
    **arguments: Unpack[DictArguments],
) -> Reader[dict[str, Any]]: ...
# The last two overloads take any type, so they overlap the first two. A type checker chooses the first one that fits.
@overload
def read(  # pyright: ignore[reportOverlappingOverload]  # see above
    source: Source,
    type: type[F],
    *,
    on_invalid: Literal["return"] = ...,
    **arguments: Unpack[FamilyArguments],
) -> Reader[F | UnknownMessage | InvalidLine]: ...
@overload
def read(  # pyright: ignore[reportOverlappingOverload]  # see above
    source: Source,
    type: type[F],
    *,
    on_invalid: Literal["raise"] | Callable[[InvalidLine], object],
    **arguments: Unpack[FamilyArguments],
) -> Reader[F | UnknownMessage]: ...
@overload
def read(
    source: Source,
    type: Any = Message,
    *,
    on_invalid: Literal["return"] = ...,
    **arguments: Unpack[DecoderArguments],
) -> Reader[Message | InvalidLine]: ...
@overload
def read(
    source: Source,
    type: Any = Message,
    *,
    on_invalid: Literal["raise"] | Callable[[InvalidLine], object],
    **arguments: Unpack[DecoderArguments],
) -> Reader[Message]: ...
@tells_where({})
def read(
    source: Source,
    type: Any = MESSAGE,
    *,
    only: Iterable[str | Kind] | None = None,
    coalesce: bool = False,
    max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
    on_invalid: OnInvalid = "return",
    surrogates: Literal["keep", "replace"] = "keep",
    loads: Callable[[bytes], Any] | None = None,
) -> Reader[Any]:
    """Iterate over the messages in a file, in constant memory.

    Args:
        source: a path, a binary file, or ``"-"`` for standard input.
        type, only, coalesce, max_line_bytes, on_invalid, surrogates, loads: as for :class:`Decoder`.

    Raises:
        OSError: the file cannot be opened or read.
        TypeError: the file is a text file.
        ValueError: the file's name shows that it is compressed. Use ``read(gzip.open(path))``.
        InvalidLineError: in a step of the iteration, with ``on_invalid="raise"``. The next step continues after the
            line.
    """
    # The overloads above check which arguments go together.
    make = cast("Callable[..., Decoder[Any]]", Decoder)
    decoder = make(
        type,
        only=only,
        coalesce=coalesce,
        max_line_bytes=max_line_bytes,
        on_invalid=on_invalid,
        surrogates=surrogates,
        loads=loads,
    )
    return Reader(source, decoder)
