"""The sessions of ``data/sessions*.tar.xz``, as a real CLI saved them, for tests with real transcripts.

Each folder of an archive is one scenario. ``projects`` has the files that the CLI wrote there. ``stdout.ndjson`` is its
output (``stdout.2.ndjson``, … for later processes). ``truth.json`` has the API's answers and their sums.
"""

from __future__ import annotations

import functools
import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

from folders import DATA

__all__ = ["measured_scenarios", "outputs", "scenarios", "transcripts", "truth", "unpack"]


#: The sessions of the CLI versions 2.1.330 and 2.1.331.
ARCHIVES = ("sessions.tar.xz", "sessions-2.1.331.tar.xz")


@functools.cache
def _archive() -> dict[str, dict[str, bytes]]:
    return {scenario: files for name in ARCHIVES for scenario, files in _unpacked(name).items()}


@functools.cache
def _unpacked(name: str) -> dict[str, dict[str, bytes]]:
    folders: dict[str, dict[str, bytes]] = {}
    with lzma.open(DATA / name) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                scenario, _, name = member.name.partition("/")
                folders.setdefault(scenario, {})[name] = content.read()
    return folders


def scenarios() -> list[str]:
    """Return the names of all scenarios, sorted."""
    return sorted(_archive())


def measured_scenarios() -> list[str]:
    """Return the names of the scenarios from which the documentation takes its numbers, sorted."""
    return sorted(_unpacked(ARCHIVES[0]))


def _named(scenario: str, start: str, end: str) -> dict[str, bytes]:
    files = sorted(_archive()[scenario].items())
    return {name: data for name, data in files if name.startswith(start) and name.endswith(end)}


def transcripts(scenario: str) -> dict[str, bytes]:
    """Return the transcripts of a scenario by file name, including those of subagents."""
    return _named(scenario, "projects/", ".jsonl")


def outputs(scenario: str) -> list[bytes]:
    """Return the standard output of each process of a scenario."""
    return list(_named(scenario, "stdout", ".ndjson").values())


def truth(scenario: str) -> dict[str, Any]:
    """Return the API's answers and their sums."""
    said: dict[str, Any] = json.loads(_archive()[scenario]["truth.json"])
    return said


def unpack(scenario: str, folder: Path) -> Path:
    """Write the files of a scenario into a folder. Return its ``projects`` folder."""
    for name, data in _named(scenario, "projects/", "").items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "projects"
