"""Decode a file again and again: ``decoding.py FILE PASSES``.

Whenever a line arrives on stdin, the program feeds the file ``PASSES`` times to a new decoder, in chunks of 64 KiB, and
prints the seconds for each line of the file. A bench runs several such programs, because a process has one engine.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import claude_wire
import workloads


def main(path: Path, passes: int) -> None:
    data = path.read_bytes()
    chunks = workloads.chunks(data) * passes
    lines = workloads.count(data) * passes

    for _ in sys.stdin:
        feed = claude_wire.Decoder().feed
        start = time.perf_counter()
        for chunk in chunks:
            feed(chunk)
        print((time.perf_counter() - start) / lines, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
