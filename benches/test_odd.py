"""Cases in which a line costs more: unknown or invalid lines, tiny and huge lines, chunks of one byte."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import claude_wire
import peers
import workloads
from conftest import Contest, takes_own_time
from floor import floor
from test_decode import aligned, by_hand, feeding
from test_live import each_of

DECODING = Path(__file__).with_name("decoding.py")


@pytest.mark.parametrize(
    ("odd", "every", "name", "claim"),
    [
        (workloads.UNKNOWN_TYPE, 200, "1 line in 200 of an unknown type", 1.3),
        (workloads.UNKNOWN_TYPE, 1, "all lines of an unknown type", 6.0),
        (workloads.UNKNOWN_DELTA, 200, "1 line in 200 an unknown delta", None),
        (workloads.NOT_JSON, 200, "1 line in 200 not JSON", None),
        (workloads.UNKNOWN_KEY, 1, "an unknown key in each line", 1.3),
        (workloads.NESTED_UNKNOWN_KEY, 1, "an unknown key in each line's delta", 1.3),
    ],
)
def test_odd_lines(contest: Contest, odd: tuple[bytes, bytes], every: int, name: str, claim: float | None) -> None:
    """Unknown and invalid lines among deltas: what they cost, and what the lines around them cost."""
    known = feeding(workloads.chunks(workloads.deltas()) * workloads.PASSES)
    contest(
        f"feed, {name}",
        workloads.LINES,
        feeding(workloads.chunks(workloads.deltas(odd, every)) * workloads.PASSES),
        at_most={"feed, none": (known, claim)},
    )


@pytest.mark.parametrize(
    ("name", "data", "claim"),
    [
        ("all lines unknown deltas", lambda: workloads.deltas(workloads.UNKNOWN_DELTA, 1), 1.7),
        ("all lines of unknown subtypes", workloads.unknown_subtypes, 1.2),
        ("all lines with an unknown block", lambda: workloads.unknown_blocks(1), 1.7),
        ("all lines with three unknown blocks", lambda: workloads.unknown_blocks(3), 1.4),
    ],
)
def test_all_lines_unknown(contest: Contest, name: str, data: Callable[[], bytes], claim: float) -> None:
    """Lines that all have unknown content deep inside, as a newer CLI would write them."""
    chunks = workloads.chunks(data()) * 5
    contest(
        f"feed, {name}",
        workloads.count(data()) * 5,
        feeding(chunks),
        faster_than=peers.entered(chunks, {"claude-agent-sdk": peers.by_agent_sdk, **peers.DICTS}, {"orjson": claim}),
        rounds=5,
    )


def test_tiny_lines(contest: Contest) -> None:
    """``keep_alive``, the shortest message."""
    data = b'{"type":"keep_alive"}\n' * 40_000
    chunks = workloads.chunks(data)
    contest(
        "feed, lines of 22 bytes",
        40_000,
        feeding(chunks),
        at_most={"msgspec decode_lines of aligned blocks, our own decoder": (aligned(floor, data), None)},
        faster_than=peers.entered(chunks, peers.DICTS),
    )


def test_huge_line(contest: Contest) -> None:
    """Feed a line of 3 MB in chunks of 64 KiB."""
    text = "All work and no play makes Jack a dull boy. " * 70_000
    said = {"role": "assistant", "model": "claude-opus-5-5", "content": [{"type": "text", "text": text}]}
    line = claude_wire.encode({"type": "assistant", "message": said, "parent_tool_use_id": None, "session_id": "s"})
    chunks = workloads.chunks(line)
    contest(
        "feed, a line of 3 MB",
        1,
        feeding(chunks),
        at_most={"msgspec decode of the whole": (lambda: floor.decode(line), 0.8)},
        faster_than=peers.entered(
            chunks, {**peers.DICTS, "claude-agent-sdk": peers.by_agent_sdk}, {"fastsimdjson": 1.4}
        ),
    )


def test_recorded_huge_lines(contest: Contest) -> None:
    """Feed two recorded lines of 3.5 MB in chunks of 64 KiB."""
    chunks = workloads.chunks(workloads.huge())
    whole = each_of(workloads.lines(workloads.huge()), floor.decode, 1)
    contest(
        "feed, recorded lines of 3.5 MB",
        2,
        feeding(chunks),
        at_most={"msgspec decode of the whole, our own decoder": (whole, None)},
        faster_than=peers.entered(chunks, {**peers.DICTS, "claude-agent-sdk": peers.by_agent_sdk}),
    )


def test_one_byte_at_a_time(contest: Contest) -> None:
    """Feed chunks of one byte."""
    chunks = [bytes([byte]) for line in workloads.lines(workloads.deltas())[:100] for byte in line]
    contest(
        "feed, one byte at a time",
        100,
        feeding(chunks),
        faster_than=peers.entered(
            chunks,
            {"claude-agent-sdk": peers.by_agent_sdk, "json.loads (dicts)": peers.by_json},
            {"claude-agent-sdk": 7},
        ),
        rounds=5,
    )


def test_live_line_of_cjk(contest: Contest) -> None:
    """Decode one line at a time. The lines are not ASCII, so their UTF-8 must be validated."""
    lines = workloads.lines(workloads.made("CJK")) * 5
    contest(
        "feed(one line), made traffic in CJK",
        len(lines),
        feeding(lines),
        at_most={"msgspec by hand at its best": (each_of(lines, by_hand.decode, 1), None)},
        faster_than=peers.entered(lines, {"claude-agent-sdk": peers.by_agent_sdk, "json.loads (dicts)": peers.by_json}),
    )


@pytest.fixture
def decoding() -> Iterator[Callable[[str, Path, int], Callable[[], float]]]:
    """Return a function that starts decoding.py with an engine. The result returns the seconds per line."""
    with ExitStack() as processes:

        def start(engine: str, path: Path, passes: int) -> Callable[[], float]:
            command = [sys.executable, str(DECODING), str(path), str(passes)]
            environment = {**os.environ, "CLAUDE_WIRE_ENGINE": engine}
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
            processes.enter_context(process)
            assert process.stdin is not None
            assert process.stdout is not None
            given, timed = process.stdin, process.stdout

            def seconds() -> float:
                given.write("\n")
                return float(timed.readline())

            seconds()  # creates the plans
            return seconds

        yield start


@takes_own_time
@pytest.mark.parametrize(
    ("name", "data", "passes"),
    [("typed", workloads.deltas, workloads.PASSES), ("typed, mixed sessions", workloads.mixed, 1)],
)
def test_references_counted_by_functions(
    contest: Contest,
    decoding: Callable[[str, Path, int], Callable[[], float]],
    tmp_path: Path,
    name: str,
    data: Callable[[], bytes],
    passes: int,
) -> None:
    """Count references by functions of CPython's stable ABI, as for an interpreter whose layout is unknown."""
    path = tmp_path / "lines.ndjson"
    path.write_bytes(data())
    contest.measured(
        f"feed, {name}, functions count references",
        decoding("functions", path, passes),
        at_most={"the native reader counts them": (decoding("native", path, passes), 1.15)},
        rounds=None,
    )
