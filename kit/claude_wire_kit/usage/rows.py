"""Read the answers in parts of files as columns, which is several times faster than reading records.

The columns arrive in the structs of Arrow's C data interface. This module can only read the column types that it asks
for: strings, numbers and times. Strings are kept as bytes, because most of them are ids and names that were already
decoded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from claude_wire.columns import Range, scan
from claude_wire_kit.usage.answers import SYNTHETIC, digest_of

_TEXTS = ("path", "message_id", "request_id", "uuid", "request_session_id", "session_id", "model", "cwd")
_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_creation_5m", "cache_creation_1h")
COLUMNS = (*_TEXTS, "offset", "timestamp", *_COUNTS, "cache_read_input_tokens")
_SYNTHETIC = SYNTHETIC.encode()


class Row(NamedTuple):
    """An answer's usage, according to its last line in a part of a file. Strings are in UTF-8."""

    key: bytes
    #: The session in which a copied answer was requested. None for an original.
    asked_in: bytes | None
    session: bytes | None
    model: bytes | None
    cwd: bytes | None
    #: Microseconds since 1970.
    time: int | None
    #: The token counts, in the field order of :class:`~claude_wire_kit.usage.Tokens`. A count that is missing in the
    #: line is None.
    counts: tuple[int | None, ...]

    @property
    def prompt_tokens(self) -> int:
        """Return the number of tokens that the model read."""
        return (self.counts[0] or 0) + (self.counts[2] or 0) + (self.counts[5] or 0)


def answers_in(parts: Sequence[Range]) -> dict[bytes, list[Row]]:
    """Return each answer in parts of different files once. Answers that the CLI made up are omitted.

    The keys are the paths in UTF-8, with U+FFFD for bytes that are not UTF-8. A part without answers has no key.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file cannot be read completely.
    """
    files: dict[bytes, dict[object, Sequence[Any]]] = {}
    for columns in _batches(scan(parts, "usage", COLUMNS).__arrow_c_stream__()):
        for row in zip(*columns, strict=True):
            path, id, request, uuid, asked_in, _, model, _, offset, *_ = row
            if model == _SYNTHETIC:
                continue
            answers = files.setdefault(path, {})
            answer = (id, request) if id is not None else uuid or offset
            before = answers.get(answer)
            if before is not None:
                if before[4] is None and asked_in is not None:  # a copy does not replace an original
                    continue
                del answers[answer]  # a later line replaces an earlier one, and is stored at its own place
            answers[answer] = row
    return {path: [_row(*row) for row in answers.values()] for path, answers in files.items()}


def _row(
    path: bytes,
    id: bytes | None,
    request: bytes | None,
    uuid: bytes | None,
    asked_in: bytes | None,
    session: bytes | None,
    model: bytes | None,
    cwd: bytes | None,
    offset: int,
    time: int | None,
    *counts: int | None,
) -> Row:
    ids = id + b"\0" + (request or b"") if id is not None else uuid or b"%s:%d" % (path, offset)
    return Row(digest_of(ids), asked_in, session, model, cwd, time, counts)


class _Array(ctypes.Structure):
    """The C struct ``ArrowArray``."""


class _Stream(ctypes.Structure):
    """The C struct ``ArrowArrayStream``."""


_Array._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

_pointer_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _batches(capsule: object) -> Iterator[list[list[Any]]]:
    """Yield the columns of each batch of a stream. The stream is released when the capsule is."""
    stream = _Stream.from_address(_pointer_of(capsule, b"arrow_array_stream"))
    while True:
        batch = _Array()
        if stream.get_next(ctypes.byref(stream), ctypes.byref(batch)):
            raise ValueError(stream.get_last_error(ctypes.byref(stream)).decode("utf-8", "replace"))
        if not batch.release:
            return
        try:
            columns = [_values(batch.children[index].contents, name in _TEXTS) for index, name in enumerate(COLUMNS)]
        finally:
            batch.release(ctypes.byref(batch))
        yield columns


def _values(column: _Array, is_text: bool) -> list[Any]:
    count: int = column.length
    values: list[Any]
    if is_text:
        ends = (ctypes.c_int32 * (count + 1)).from_address(column.buffers[1])
        data = ctypes.string_at(column.buffers[2], ends[count]) if ends[count] else b""
        values = [data[begin:end] for begin, end in pairwise(ends)]
    else:
        values = list((ctypes.c_int64 * count).from_address(column.buffers[1]))
    if column.null_count == count:
        return [None] * count
    if column.null_count:
        valid = ctypes.string_at(column.buffers[0], -(-count // 8))
        return [value if valid[index >> 3] >> (index & 7) & 1 else None for index, value in enumerate(values)]
    return values
