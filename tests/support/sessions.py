"""The sessions of ``data/sessions*.tar.xz``, as a real CLI kept them on disk, for every test that wants real files.

One folder of an archive is one scenario: ``projects`` with what the CLI wrote there, ``stdout.ndjson`` (of later
processes ``stdout.2.ndjson``, …), its output, and ``truth.json``, what the API had answered, with the sums.
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


#: The sessions of CLI 2.1.330, and those of 2.1.331.
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
    """The names of all scenarios, sorted."""
    return sorted(_archive())


def measured_scenarios() -> list[str]:
    """The names of the scenarios that the documentation's numbers are of, sorted."""
    return sorted(_unpacked(ARCHIVES[0]))


def _named(scenario: str, start: str, end: str) -> dict[str, bytes]:
    files = sorted(_archive()[scenario].items())
    return {name: data for name, data in files if name.startswith(start) and name.endswith(end)}


def transcripts(scenario: str) -> dict[str, bytes]:
    """The transcripts of a scenario by their names, those of subagents among them."""
    return _named(scenario, "projects/", ".jsonl")


def outputs(scenario: str) -> list[bytes]:
    """What the processes of a scenario wrote to their standard output."""
    return list(_named(scenario, "stdout", ".ndjson").values())


def truth(scenario: str) -> dict[str, Any]:
    """What the API had answered."""
    said: dict[str, Any] = json.loads(_archive()[scenario]["truth.json"])
    return said


def unpack(scenario: str, folder: Path) -> Path:
    """Write the files of a scenario below a folder. Returns its ``projects``."""
    for name, data in _named(scenario, "projects/", "").items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "projects"
