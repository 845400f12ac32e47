"""Reading columns of generated transcripts (``corpus.py``): against other libraries, in two threads, and the memory
used.

In 1% of the lines, the JSON is cut off or has half of an emoji. Several libraries silently skip such lines; the label
of a peer then says what the peer found instead.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import corpus
from conftest import Contest, Job

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

import column_peers
from claude_wire.columns import plan

SIZE = 64_000_000
#: Fewer rounds than usual, because json takes half a second in each.
ROUNDS = 7


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    corpus.write(made, SIZE)
    return made


def lines(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def entered(
    path: Path, ours: column_peers.Peer, everyone: dict[str, column_peers.Peer | None], claims: dict[str, float]
) -> dict[str, tuple[Job | None, float | None]]:
    """Return the peers for a contest. A peer's label says whether it finds something else or refuses the file."""
    found: dict[str, tuple[Job | None, float | None]] = {}
    for label, peer in everyone.items():
        said, given = "", path
        if peer is not None:
            try:
                told = peer(given)
            except Exception:
                said, given = ", REFUSES the file; here without its odd lines", without_odd(path)
                told = peer(given)
            pairs = zip(told, ours(given), strict=True)
            wrong = ", ".join(f"{(one - other) / other:+.2%}" for one, other in pairs if one != other)
            said += f", WRONG by {wrong}" if wrong else ""
        found[label + said] = (_job(peer, given) if peer else None), claims.get(label)
    return found


def _job(peer: column_peers.Peer, path: Path) -> Job:
    return lambda: peer(path)


def without_odd(path: Path) -> Path:
    """Return a copy of the file without the lines that are cut off or have half of an emoji."""
    clean = path.with_suffix(".clean")
    if not clean.exists():
        with open(path, "rb") as file:
            clean.write_bytes(b"".join(line for line in file if b"\\ud83d" not in line and is_whole(line)))
    return clean


def is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_tokens(contest: Contest, path: Path) -> None:
    others = entered(path, column_peers.tokens, column_peers.TOKENS, {"msgspec by hand": 2.0})
    job = _job(column_peers.tokens, path)
    contest("tokens by message id", lines(path), job, faster_than=others, rounds=ROUNDS)


def test_text(contest: Contest, path: Path) -> None:
    """Read the columns into a pyarrow table, which keeps all rows in memory."""
    others = entered(path, column_peers.columns, column_peers.TABLES, {})
    job = _job(column_peers.columns, path)
    contest("14 columns with text", lines(path), job, faster_than=others, rounds=ROUNDS)


def test_text_in_batches(contest: Contest, path: Path) -> None:
    """Read the columns with a consumer that drops each batch."""

    def job() -> int:
        return column_peers.drained(path, "messages", column_peers.COLUMNS)

    contest("14 columns with text, in batches", lines(path), job, rate=(SIZE, 1.25), rounds=ROUNDS)


@pytest.mark.parametrize(("table", "claim"), [("usage", 1.75), ("messages", 1.6)])
def test_two_threads(contest: Contest, path: Path, table: str, claim: float) -> None:
    """Scan in two threads. The scan does not hold the interpreter's lock, so two idle cores should be twice as fast."""
    ranges = plan(path, SIZE // 8)
    names = column_peers.IDS if table == "usage" else column_peers.COLUMNS

    def by(count: int) -> Callable[[], Any]:
        def job() -> int:
            with ThreadPoolExecutor(count) as pool:
                return sum(pool.map(lambda part: column_peers.drained(part, table, names), ranges))

        return job

    assert by(1)() == by(2)()
    contest(f"{table} by two threads", lines(path), by(2), faster_than={"one thread": (by(1), claim)}, rounds=ROUNDS)


def test_memory(contest: Contest, path: Path) -> None:
    """Measure how much a process grows while it reads eight files."""

    program = "import sys, column_peers as c, held; of = sys.argv[1:]; before = held.peak(); "
    program += "c.drained(of, 'messages', c.COLUMNS); print(held.peak() - before)"
    places = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "tests" / "support")]
    program = f"import sys; sys.path += {places}; {program}"

    def grown() -> float:
        return float(subprocess.check_output([sys.executable, "-c", program, *[str(path)] * 8]))

    contest.memory("growth over 512 MB, 14 columns with text", grown, claim=100)
