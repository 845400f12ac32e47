#!/usr/bin/env python3
"""A CLI for the benches of the tap, and what stands at its other end.

Run as a program, it writes to its standard output: ``tapped.py blocks COUNT`` so many blocks of 64 KiB, which are whole
lines; ``tapped.py events COUNT`` so many lines a millisecond apart, each with its time.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

BLOCK_BYTES = 65536
PAUSE_SECONDS = 0.001
FILE = Path(__file__)


def write_blocks(count: int) -> None:
    """Write so many blocks, and tell on the standard error how much processor time that took."""
    import workloads

    lines = workloads.deltas()
    block = lines[: lines.rindex(b"\n", 0, BLOCK_BYTES) + 1]
    block = block[:-1] + b" " * (BLOCK_BYTES - len(block)) + b"\n"
    for _ in range(count):
        left = memoryview(block)
        while left:
            left = left[os.write(1, left) :]
    used = resource.getrusage(resource.RUSAGE_SELF)
    os.write(2, b"%.6f" % (used.ru_utime + used.ru_stime))


def write_events(count: int) -> None:
    """Write so many lines, each with the nanosecond at which that is done."""
    filling = b"x" * 250
    for _ in range(count):
        time.sleep(PAUSE_SECONDS)
        os.write(1, b'{"at":%d,"filling":"%s"}\n' % (time.monotonic_ns(), filling))


class Reader:
    """A process whose output is read, with or without the tap before it."""

    def __init__(self, command: list[str]) -> None:
        #: How long it took from the first byte to the last, in seconds; and the bytes.
        self.seconds = 0.0
        self.size = 0
        process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        buffer = bytearray(BLOCK_BYTES)
        self.size = os.readv(process.stdout.fileno(), [buffer])
        start = time.perf_counter()
        while size := os.readv(process.stdout.fileno(), [buffer]):
            self.size += size
        self.seconds = time.perf_counter() - start
        own = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        #: The processor time of the tap alone: less what the CLI took, which it has waited for.
        self.processor_seconds: float = used.ru_utime + used.ru_stime - float(own)


def latency(command: list[str]) -> float:
    """The median time from the writing of an event to its reading, in seconds."""
    taken: list[int] = []
    with subprocess.Popen(command, bufsize=0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        fd = process.stdout.fileno()
        while line := os.read(fd, BLOCK_BYTES):
            now = time.monotonic_ns()
            taken.append(now - int(line[6 : line.index(b",")]))
    return statistics.median(taken[len(taken) // 10 :]) / 1e9


if __name__ == "__main__":
    {"blocks": write_blocks, "events": write_events}[sys.argv[1]](int(sys.argv[2]))
