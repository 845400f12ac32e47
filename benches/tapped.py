#!/usr/bin/env python3
"""A stand-in for the CLI, and its reader, for the tap's benches.

Run as a program, this module is the CLI. ``tapped.py blocks COUNT`` writes blocks of 64 KiB, which consist of whole
lines, to standard output. ``tapped.py events COUNT`` writes a line with the current time each millisecond.
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
    """Write ``count`` blocks, then write the processor time used to standard error."""
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
    """Write ``count`` lines, each with the time of its write in nanoseconds."""
    filling = b"x" * 250
    for _ in range(count):
        time.sleep(PAUSE_SECONDS)
        os.write(1, b'{"at":%d,"filling":"%s"}\n' % (time.monotonic_ns(), filling))


class Reader:
    """Runs a CLI, with or without the tap, and reads its output to the end."""

    def __init__(self, command: list[str]) -> None:
        #: The seconds from the first byte to the last, and the number of bytes.
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
        #: The tap's processor time, without the CLI's. The CLI counts as the tap's child.
        self.processor_seconds: float = used.ru_utime + used.ru_stime - float(own)


def latency(command: list[str]) -> float:
    """Return the median time from the write of an event to its read, in seconds."""
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
