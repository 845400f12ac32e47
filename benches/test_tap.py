"""The tap between a CLI and a host that reads as fast as it can: how much it slows down the pipe.

Each run starts a CLI and a tap. The time is from the first byte that the host gets to the last, so the start of the tap
does not count. If possible, recordings are written to files in memory, so the disk's speed does not count.
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

#: The claims, as multiples of the bare pipe's time: the tap keeps 0.35 or 0.45 of its speed.
AT_MOST = {"recording": 1 / 0.35, "alone": 1 / 0.45}
#: The claims for the latency in milliseconds. There is none for redacting, which runs in another thread.
MAX_LATENCY = {"recording": 0.04, "alone": 0.04}
#: Name of a variant -> the argument of program.py; None for no tap.
WAYS = {"recording": "plain", "redacting": "redacted", "alone": "", "bare": None}


@pytest.fixture
def memory() -> Iterator[Path]:
    """Return a folder in /dev/shm, whose files are in memory, or a normal temporary folder on other systems."""
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def command(tmp_path: Path, memory: Path) -> Callable[..., list[str]]:
    """Return a function that gives the command of a CLI with this variant of the tap."""
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
    """Read half a gigabyte in blocks of 64 KiB."""

    def taken(way: str) -> float:
        return tapped.Reader(command(way, "blocks", BLOCKS)).seconds

    contest.measured(
        f"0.5 GB through the tap, {way}",
        lambda: taken(way),
        at_most={"the bare pipe": (lambda: taken("bare"), AT_MOST[way])},
    )


@pytest.mark.parametrize("way", ["alone", "recording"])
def test_processor_time(contest: Contest, command: Callable[..., list[str]], way: str) -> None:
    """Measure the tap's processor time per gigabyte, without its startup."""

    def taken() -> float:
        some, few = (tapped.Reader(command(way, "blocks", count)) for count in (BLOCKS, 20))
        return (some.processor_seconds - few.processor_seconds) / (some.size - few.size) * 1e9

    contest.measured(
        f"processor time of the tap for a gigabyte, {way}", taken, at_most={"one second": (lambda: 1.0, 0.7)}
    )


@pytest.mark.parametrize("way", ["alone", "recording", "redacting"])
def test_latency(contest: Contest, command: Callable[..., list[str]], way: str) -> None:
    """Measure the median time from the write of an event to its read, with one event per millisecond."""
    contest.measured(
        f"latency of one event through the tap, {way}",
        lambda: tapped.latency(command(way, "events", EVENTS)),
        above={"the bare pipe": (lambda: tapped.latency(command("bare", "events", EVENTS)), MAX_LATENCY.get(way))},
    )
