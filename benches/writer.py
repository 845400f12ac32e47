"""The transport benches' child process. It writes recorded lines on command, as fast as its reader reads.

Each line of its input is a command. ``blocks N`` writes N lines in writes of 64 KiB, ``lines N`` in one write per line.
``paced N MICROSECONDS`` writes N lines with a pause after each; the text of a line is the time of its write, in
nanoseconds. The CLI's flags are ignored.
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


@functools.cache  # create the data only once, before the first measured round
def made(path: str, how: str, count: int) -> list[bytes]:
    """Return ``count`` lines, repeating those of a file: one by one, or joined into blocks if ``how`` is ``blocks``."""
    with open(path, "rb") as file:
        different = file.read().splitlines(keepends=True)
    lines = list(itertools.islice(itertools.cycle(different), count))
    if how != "blocks":
        return lines
    data = b"".join(lines)
    return [data[at : at + 65_536] for at in range(0, len(data), 65_536)]


def main(path: str) -> None:
    for command in sys.stdin:
        how, count, *rest = command.split()
        pieces = made(path, how, int(count))
        if how == "paced":
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
