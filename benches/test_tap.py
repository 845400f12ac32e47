"""The tap, between a CLI and a host that reads as fast as it can: what it takes of the speed of the pipe.

Each run is a CLI and a tap of its own. Times are from the first byte that the host gets to the last one, so that what
the tap needs to start is not in them. The recordings go into files in memory, where there are such: the speed of a disk
is not the tap's.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tapped
from claude_wire_kit.tap import program
from conftest import Contest, takes_own_time

pytestmark = [
    takes_own_time,
    pytest.mark.skipif(
        sys.platform != "linux", reason="the tap is measured with splice and tee, which Linux alone has"
    ),
]

#: Half a gigabyte.
BLOCKS = 500_000_000 // tapped.BLOCK_BYTES
EVENTS = 1_000

#: Of the speed of the bare pipe: 0.35 and 0.45; here as times.
AT_MOST = {"recording": 1 / 0.35, "alone": 1 / 0.45}
#: In milliseconds. Nothing is claimed where a thread redacts meanwhile.
MAX_LATENCY = {"recording": 0.04, "alone": 0.04}
#: What program.py is told; None for no tap.
WAYS = {"recording": "plain", "redacting": "redacted", "alone": "", "bare": None}


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder whose files are in memory, if the system has such."""
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def command(tmp_path: Path, memory: Path) -> Callable[..., list[str]]:
    """The command of a CLI, behind a tap in one of those ways, or without one."""
    cli = tmp_path / "cli"

    def of(way: str, *arguments: object) -> list[str]:
        cli.write_text(f'#!/bin/sh\nexec {sys.executable} {tapped.FILE} "$@"\n')
        cli.chmod(0o755)
        folder = memory / "recorded"
        shutil.rmtree(folder, ignore_errors=True)
        how = WAYS[way]
        tap = [] if how is None else [sys.executable, "-I", program.__file__]
        options = [] if how is None else [str(folder) if how else "", how or "plain"]
        return [*tap, str(cli), *options, *map(str, arguments)]

    return of


@pytest.mark.parametrize("way", ["alone", "recording"])
def test_speed(contest: Contest, command: Callable[..., list[str]], way: str) -> None:
    """Blocks of 64 KiB."""

    def taken(way: str) -> float:
        return tapped.Reader(command(way, "blocks", BLOCKS)).seconds

    contest.measured(
        f"0.5 GB through the tap, {way}",
        lambda: taken(way),
        at_most={"the bare pipe": (lambda: taken("bare"), AT_MOST[way])},
    )


@pytest.mark.parametrize("way", ["alone", "recording"])
def test_processor_time(contest: Contest, command: Callable[..., list[str]], way: str) -> None:
    """What the tap takes for a gigabyte, beside its start."""

    def taken() -> float:
        some, few = (tapped.Reader(command(way, "blocks", count)) for count in (BLOCKS, 20))
        return (some.processor_seconds - few.processor_seconds) / (some.size - few.size) * 1e9

    contest.measured(
        f"processor time of the tap for a gigabyte, {way}", taken, at_most={"one second": (lambda: 1.0, 0.7)}
    )


@pytest.mark.parametrize("way", ["alone", "recording", "redacting"])
def test_latency(contest: Contest, command: Callable[..., list[str]], way: str) -> None:
    """An event a millisecond: from its writing to its reading, the median."""
    contest.measured(
        f"latency of one event through the tap, {way}",
        lambda: tapped.latency(command(way, "events", EVENTS)),
        above={"the bare pipe": (lambda: tapped.latency(command("bare", "events", EVENTS)), MAX_LATENCY.get(way))},
    )
