"""Read and unpack the files of a recording: a folder, a player script that contains them, or one output file."""

from __future__ import annotations

import io
import json
import os

from .lines import list_in, object_in
from .pipes import BLOCK_BYTES

TYPE_CHECKING = False  # do not import typing, which is slow
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from typing import Any, BinaryIO
#: The files of a recording. Each may be compressed: ``stdout.ndjson.gz`` or ``.xz``.
FILES = (
    "stdout.ndjson",
    "stdin.ndjson",
    "order.jsonl",
    "stdout.reads.jsonl",
    "cmd.json",
    "exit.json",
    "stderr.txt",
)

#: The first bytes of a script with a packed recording, and the bytes directly before the recording.
PACKED = b"#!/bin/sh\n"
PACKED_FILES = b"\n#recording "

#: Maximum size in bytes of a recording's files after decompression, because a recording is held in memory.
MAX_UNPACKED_BYTES = 256 * 1024 * 1024

#: Limit for the memory to unpack an .xz file, in bytes. Files of ``xz -9`` need 65 MiB.
MAX_XZ_MEMORY_BYTES = 128 * 1024 * 1024


class UnpackLimitError(ValueError):
    """A compressed file is too large, or needs too much memory to unpack."""


def read_files(path: str) -> dict[str, bytes]:
    """Read the files of a recording, by name: from a folder, a player script, or a file with only the output.

    Raises:
        OSError: ``path`` cannot be read, or is a folder without ``stdout.ndjson``.
        ValueError: a compressed file is damaged.
        UnpackLimitError: the compressed files unpack to more than :data:`MAX_UNPACKED_BYTES`.
    """
    if not os.path.isdir(path):
        data = _contents(path, MAX_UNPACKED_BYTES)
        if data.startswith(PACKED) and PACKED_FILES in data:
            return _unpacked(data)
        return {"stdout.ndjson": data}
    files: dict[str, bytes] = {}
    left = MAX_UNPACKED_BYTES
    for entry in sorted(os.listdir(path)):
        name = entry.removesuffix(".gz").removesuffix(".xz")
        if name in FILES:
            files[name] = _contents(os.path.join(path, entry), left)
            left -= len(files[name]) if entry != name else 0
    if "stdout.ndjson" not in files:
        within = [entry for entry in os.listdir(path) if os.path.isfile(os.path.join(path, entry, "stdout.ndjson"))]
        hint = f", but there is one in {min(within)!r}" if within else ""
        raise FileNotFoundError(2, f"not a recording: it has no stdout.ndjson{hint}", path)
    return files


def _contents(path: str, most: int) -> bytes:
    """Read a file. If its name ends with .gz or .xz, unpack it, to at most ``most`` bytes."""
    name = os.path.basename(path)
    if not name.endswith((".gz", ".xz")):
        with open(path, "rb") as file:
            return file.read()
    unpacked = io.BytesIO()
    for piece in unpacked_pieces(path):
        if unpacked.tell() + len(piece) > most:
            raise UnpackLimitError(
                f"{name} is too large: the files of a recording may unpack to {MAX_UNPACKED_BYTES:,} bytes"
            )
        unpacked.write(piece)
    return unpacked.getvalue()


def unpacked_pieces(path: str) -> Generator[bytes, None, None]:
    """Yield the content of a .gz or .xz file in pieces of at most :data:`BLOCK_BYTES`, in constant memory.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged.
        UnpackLimitError: unpacking needs more than :data:`MAX_XZ_MEMORY_BYTES`.
    """
    unpacked = _unpacked_gz if path.endswith(".gz") else _unpacked_xz
    with open(path, "rb") as file:
        yield from unpacked(file, os.path.basename(path))


def _unpacked_gz(file: BinaryIO, name: str) -> Iterator[bytes]:
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=file) as stream:
            while piece := stream.read(BLOCK_BYTES):
                yield piece
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name} is damaged: {error}") from error


def _unpacked_xz(file: BinaryIO, name: str) -> Iterator[bytes]:
    import lzma

    # lzma.open has no memory limit, and a header of a few bytes may ask for 4 GiB.
    data = file.read(BLOCK_BYTES)
    try:
        while True:
            stream = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY_BYTES)
            while not stream.eof:
                if stream.needs_input and not data:
                    raise ValueError(f"{name} is damaged: the end of the compressed data is missing")
                if piece := stream.decompress(data, BLOCK_BYTES):
                    yield piece
                data = file.read(BLOCK_BYTES) if stream.needs_input else b""
            data = stream.unused_data
            # Another stream may follow, after a padding of NUL bytes.
            while not (data := data.lstrip(b"\0")):
                if not (data := file.read(BLOCK_BYTES)):
                    return
    except lzma.LZMAError as error:
        if "Memory usage limit" in str(error):
            raise UnpackLimitError(f"{name} takes more than {MAX_XZ_MEMORY_BYTES:,} bytes to unpack") from error
        raise ValueError(f"{name} is damaged: {error}") from error


def packed(head: bytes, files: Mapping[str, bytes]) -> bytes:
    """Make a script: ``head`` (lines of a shell script, which end with ``exec``), and a recording after it."""
    sizes = json.dumps({name: len(data) for name, data in files.items()}).encode("ascii")
    return PACKED + head + PACKED_FILES + sizes + b"\n" + b"".join(files.values())


def _unpacked(data: bytes) -> dict[str, bytes]:
    begin = data.index(PACKED_FILES) + len(PACKED_FILES)
    at = data.index(b"\n", begin) + 1
    files: dict[str, bytes] = {}
    for name, size in json.loads(data[begin:at]).items():
        files[name] = data[at : at + size]
        at += size
    return files


def flags_of(files: Mapping[str, bytes]) -> list[str]:
    """Return the CLI's recorded arguments without the program; empty if they were not recorded."""
    return [str(flag) for flag in list_in(_json_file(files, "cmd.json").get("argv"))[1:]]


def exit_code_of(files: Mapping[str, bytes]) -> int:
    """Return the recorded exit code, negative for a signal as in :mod:`subprocess`; 0 if none was recorded."""
    code = _json_file(files, "exit.json").get("rc")
    return code if isinstance(code, int) else 0


def _json_file(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    try:
        return object_in(json.loads(files.get(name, b"{}")))
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from error
