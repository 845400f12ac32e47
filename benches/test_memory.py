"""How much a process grows while it decodes messages. Each measurement is a separate process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import peers
import workloads
from conftest import Contest

HELD = Path(__file__).with_name("held.py")
LINES = 1_000_000


@pytest.fixture
def grown(tmp_path: Path) -> Callable[[str], Callable[[], float]]:
    """Return a function that runs held.py with this decoder and returns the growth in bytes."""
    path = tmp_path / "lines.ndjson"
    path.write_bytes(workloads.deltas())

    def of(who: str) -> Callable[[], float]:
        return lambda: float(subprocess.check_output([sys.executable, str(HELD), who, str(LINES), str(path)]))

    return of


def test_fed(contest: Contest, grown: Callable[[str], Callable[[], float]]) -> None:
    """Decode chunks of 64 KiB from memory."""
    others = {**peers.TYPED, "json.loads (dicts)": peers.by_json, "orjson.loads (dicts)": peers.by_orjson}
    contest.memory(
        "growth over 1,000,000 messages, feed",
        grown("claude-wire"),
        {label: grown(label) if peer else None for label, peer in others.items()},
        claim=8,
    )


def test_through_a_pipe(contest: Contest, grown: Callable[[str], Callable[[], float]]) -> None:
    """Decode the output of a child process with ``async for``."""
    contest.memory("growth over 1,000,000 messages, a child's", grown("claude-wire through a pipe"), {}, claim=8)


@pytest.mark.parametrize(("name", "lines", "claim"), [("deltas", LINES, 400), ("mixed sessions", 100_000, 200)])
def test_kept(contest: Contest, tmp_path: Path, name: str, lines: int, claim: float) -> None:
    """Keep every message. The claims are 400 bytes per delta, and 2 KB per message of mixed sessions."""
    path = tmp_path / "lines.ndjson"
    path.write_bytes(workloads.deltas() if name == "deltas" else workloads.mixed())

    def of(who: str) -> Callable[[], float]:
        return lambda: float(subprocess.check_output([sys.executable, str(HELD), who, str(lines), str(path)]))

    others = {"orjson.loads (dicts)": of("orjson, all kept") if peers.orjson else None}
    contest.memory(f"growth over {lines:,} kept messages, {name}", of("claude-wire, all kept"), others, claim=claim)
