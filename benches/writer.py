"""The child of the transport benches: writes recorded lines when it is told to, as fast as its reader lets it.

Each line of its input is a command: ``blocks N`` and ``lines N`` write N lines, in writes of 64 KiB or of one line
each; ``paced N MICROSECONDS`` writes N lines one by one, with so much time between them and, as their text, the
nanoseconds of the clock at which each was written. Started by claude-agent-sdk as its CLI, it ignores the flags.
"""

import functools
import itertools
import os
import sys
import time


def write(data: bytes) -> None:
    written = os.write(1, data)
    while written < len(data):
        written += os.write(1, data[written:])


def main(path: str) -> None:
    with open(path, "rb") as file:
        different = file.read().splitlines(keepends=True)

    @functools.cache  # what is written is made before the first round that is measured
    def made(how: bytes, count: int) -> list[bytes]:
        lines = list(itertools.islice(itertools.cycle(different), count))
        if how != b"blocks":
            return lines
        data = b"".join(lines)
        return [data[at : at + 65_536] for at in range(0, len(data), 65_536)]

    for command in sys.stdin.buffer:
        how, count, *rest = command.split()
        pieces = made(how, int(count))
        if how == b"paced":
            before, after = b'{"type":"text_delta","text":"', b'"}'
            for line in pieces:
                time.sleep(int(rest[0]) / 1e6)
                start = line.index(before) + len(before)
                end = line.index(after, start)
                os.write(1, line[:start] + b"%d" % time.perf_counter_ns() + line[end:])
        else:
            for piece in pieces:
                write(piece)


if __name__ == "__main__":
    main(sys.argv[1] if not sys.argv[1].startswith("-") else os.environ["LINES_FILE"])
