"""The child of the transport benches: writes recorded lines when it is told to, as fast as its reader lets it.

Each line of its input is a command: ``blocks N`` and ``lines N`` write N lines, in writes of 64 KiB or of one line
each; ``paced N MICROSECONDS`` writes N lines one by one, with so much time between them and, as their text, the
nanoseconds of the clock at which each was written. Started by claude-agent-sdk as its CLI, it ignores the flags.
"""

import itertools
import os
import sys
import time


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main(path: str) -> None:
    with open(path, "rb") as file:
        different = file.read().splitlines(keepends=True)
    for command in sys.stdin.buffer:
        how, count, *rest = command.split()
        lines = list(itertools.islice(itertools.cycle(different), int(count)))
        if how == b"blocks":
            data = b"".join(lines)
            for at in range(0, len(data), 65_536):
                write(data[at : at + 65_536])
        elif how == b"lines":
            for line in lines:
                os.write(1, line)
        elif how == b"paced":
            before, after = b'{"type":"text_delta","text":"', b'"}'
            for line in lines:
                time.sleep(int(rest[0]) / 1e6)
                start = line.index(before) + len(before)
                end = line.index(after, start)
                os.write(1, line[:start] + b"%d" % time.perf_counter_ns() + line[end:])


if __name__ == "__main__":
    main(sys.argv[1] if not sys.argv[1].startswith("-") else os.environ["LINES_FILE"])
