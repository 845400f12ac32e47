"""Columns against msgspec by hand: CPU seconds of the same jobs on generated transcripts, in one run.

``columns.py [MEGABYTES [ROUNDS]]``. Jobs take turns, and what is claimed is the ratio of their medians:

* tokens by message id: at most half of what msgspec takes, which reads the same fields by Structs;
* 14 columns with text, written to nothing but Arrow batches: at most 0.8 seconds a GB;
* two threads over the same ranges: at least 1.75 times as fast as one, on two cores that are idle otherwise.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

import corpus

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from arrow_reader import Array, opened
from claude_wire.tables import Range, plan, scan, usage

IDS = ["message_id", "request_id", "source", "request_session_id", "input_tokens", "output_tokens"]
COLUMNS = [
    *["source", "type", "subtype", "uuid", "parent_uuid", "session_id", "timestamp", "message_id", "request_id"],
    *["role", "model", "text", "stop_reason", "is_sidechain"],
]


class Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class Message(msgspec.Struct):
    id: str | None = None
    usage: Usage | None = None


class Line(msgspec.Struct):
    type: str = ""
    message: Message | None = None
    requestId: str | None = None


def by_hand(path: Path) -> tuple[int, int]:
    """Tokens by message id, the way one writes it: a Struct of the fields, and json's slow way where that fails."""
    decode = msgspec.json.Decoder(Line).decode
    best: dict[tuple[str | None, str | None], Usage] = {}
    with open(path, "rb") as file:
        for line in file:
            try:
                read = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            if read.type == "assistant" and read.message is not None and read.message.usage is not None:
                best[read.message.id, read.requestId] = read.message.usage
    return sum(one.input_tokens for one in best.values()), sum(one.output_tokens for one in best.values())


def drained(source: object, table: str, columns: list[str]) -> int:
    """Read a scan to its end, with a consumer that looks at nothing. Returns how many rows there were."""
    rows = 0
    stream = opened(scan(source, table, columns).__arrow_c_stream__())  # type: ignore[arg-type]
    while True:
        array = Array()
        if stream.get_next(ctypes.byref(stream), ctypes.byref(array)):
            raise OSError(stream.get_last_error(ctypes.byref(stream)))
        if not array.release:
            break
        rows += array.length
        array.release(ctypes.byref(array))
    stream.release(ctypes.byref(stream))
    return rows


def threads(ranges: list[Range], count: int, table: str, columns: list[str]) -> int:
    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(lambda part: drained(part, table, columns), ranges))


def measured(job: Callable[[], object], clock: Callable[[], float]) -> float:
    begin = clock()
    job()
    return clock() - begin


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.jsonl")
        corpus.write(path, megabytes * 1_000_000)
        size = os.stat(path).st_size
        ranges = plan(path, size // 8)
        cpu: dict[str, Callable[[], object]] = {
            "tokens, msgspec by hand": lambda: by_hand(path),
            "tokens, columns": lambda: usage.combine(scan(path, "usage", IDS)),
            "14 columns with text": lambda: drained(path, "messages", COLUMNS),
            "blocks, text and inputs of tools": lambda: drained(path, "blocks", ["block_type", "text", "tool_input"]),
        }
        wall: dict[str, Callable[[], object]] = {
            f"{table}, {count} thread{'s'[: count - 1]} (elapsed)": (
                lambda table=table, count=count, columns=columns: threads(ranges, count, table, columns)
            )
            for table, columns in (("usage", IDS), ("messages", COLUMNS))
            for count in (1, 2)
        }
        taken: dict[str, list[float]] = {name: [] for name in (*cpu, *wall)}
        for _ in range(rounds):
            for name, job in cpu.items():
                taken[name].append(measured(job, time.process_time))
            for name, job in wall.items():
                taken[name].append(measured(job, time.perf_counter))
        print(f"{size / 1e6:,.0f} MB, {rounds} rounds; seconds a GB, median (lowest)")
        for name, seconds in taken.items():
            print(f"{name:<34} {statistics.median(seconds) / size * 1e9:7.3f} ({min(seconds) / size * 1e9:.3f})")


if __name__ == "__main__":
    main()
