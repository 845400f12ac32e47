"""Read a recording's files from a folder, a player script or a single output file, and unpack compressed files."""

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
#: The names of a recording's files. A compressed file has ``.gz`` or ``.xz`` after the name: ``stdout.ndjson.gz``.
FILES = (
    "stdout.ndjson",
    "stdin.ndjson",
    "order.jsonl",
    "stdout.reads.jsonl",
    "cmd.json",
    "exit.json",
    "stderr.txt",
)

#: The first bytes of a player script, and the bytes in it that precede the recording.
PACKED = b"#!/bin/sh\n"
PACKED_FILES = b"\n#recording "

#: Maximum total size of a recording's compressed files after unpacking, in bytes. They are all kept in memory.
MAX_UNPACKED_BYTES = 256 * 1024 * 1024

#: Maximum memory for unpacking an .xz file, in bytes. A file that ``xz -9`` wrote needs 65 MiB.
MAX_XZ_MEMORY_BYTES = 128 * 1024 * 1024


class UnpackLimitError(ValueError):
    """A compressed file is too large, or needs too much memory to unpack."""


def read_files(path: str) -> dict[str, bytes]:
    """Return file name -> content, from a folder, a player script, or a file that has only the CLI's output.

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
    """Read a file. Unpack a .gz or .xz file, and raise UnpackLimitError if its content has more than ``most`` bytes."""
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
    """Yield the content of a .gz or .xz file in pieces of at most :data:`BLOCK_BYTES`. Memory use is constant.

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

    # lzma.open() sets no memory limit, and a file header of a few bytes can make it allocate 4 GiB.
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
            # An .xz file may contain several streams, with NUL bytes between them.
            while not (data := data.lstrip(b"\0")):
                if not (data := file.read(BLOCK_BYTES)):
                    return
    except lzma.LZMAError as error:
        if "Memory usage limit" in str(error):
            raise UnpackLimitError(f"{name} takes more than {MAX_XZ_MEMORY_BYTES:,} bytes to unpack") from error
        raise ValueError(f"{name} is damaged: {error}") from error


def packed(head: bytes, files: Mapping[str, bytes]) -> bytes:
    """Return a script: ``head``, which is shell code that ends with ``exec``, and then the recording's files."""
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
    """Return the recorded CLI's arguments without the program name; an empty list if they were not recorded."""
    return [str(flag) for flag in list_in(_json_file(files, "cmd.json").get("argv"))[1:]]


def exit_code_of(files: Mapping[str, bytes]) -> int:
    """Return the recorded exit code: negative for a signal, as in :mod:`subprocess`; 0 if none was recorded."""
    code = _json_file(files, "exit.json").get("rc")
    return code if isinstance(code, int) else 0


def _json_file(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    try:
        return object_in(json.loads(files.get(name, b"{}")))
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from error
