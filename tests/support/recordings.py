"""The recorded sessions of ``data/recordings.tar.xz``, for tests with real traffic.

Each folder of the archive is one session of a real CLI, recorded byte for byte:

* ``stdout.ndjson`` and ``stdin.ndjson``: the two streams;
* ``stdout.reads.jsonl``: a pair ``[seconds, bytes]`` for each read of stdout by the recorder;
* ``order.jsonl``, ``cmd.json`` and ``exit.json``: the order of the lines of both streams, the command line of the CLI,
  and its exit code.

Each process reads the archive once, into memory. Nothing is unpacked to disk.
"""

from __future__ import annotations

import functools
import json
import lzma
import tarfile
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from folders import DATA

__all__ = ["ARCHIVE", "Recording", "load", "names"]

ARCHIVE = DATA / "recordings.tar.xz"


class Recording(NamedTuple):
    """One recorded session."""

    #: The folder's name, such as ``05_perm_cancel``.
    name: str
    #: All output of the CLI.
    stdout: bytes
    #: All output of the host; empty if the CLI got its prompt as an argument.
    stdin: bytes
    #: The number of bytes of each read of stdout, in order. The sum is ``len(stdout)``.
    reads: list[int]
    #: Every file of the folder, by its name.
    files: Mapping[str, bytes]


@functools.cache
def _archive() -> dict[str, dict[str, bytes]]:
    folders: dict[str, dict[str, bytes]] = {}
    with lzma.open(ARCHIVE) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                folder, _, file = member.name.rpartition("/")
                folders.setdefault(folder, {})[file] = content.read()
    return folders


def names() -> list[str]:
    """The names of all recordings, sorted."""
    return sorted(_archive())


@functools.cache
def load(name: str) -> Recording:
    """Return the recording with this name.

    Raises:
        KeyError: there is no such recording.
    """
    files = _archive()[name]
    reads = [json.loads(line)[1] for line in files.get("stdout.reads.jsonl", b"").splitlines()]
    return Recording(name, files["stdout.ndjson"], files.get("stdin.ndjson", b""), reads, MappingProxyType(files))
