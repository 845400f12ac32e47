"""Print how many bytes a process grows while it decodes many messages: ``held.py WHO LINES FILE``.

``WHO`` decodes the messages: ``claude-wire``, ``claude-wire, all kept``, ``orjson, all kept``, ``claude-wire through a
pipe``, or the label of a peer. Only the ``all kept`` jobs keep the messages. ``LINES`` is the number of lines to
decode; the lines of ``FILE`` are repeated. The growth is the peak of resident memory at the end, minus the peak after
everything was imported and a few lines were decoded.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

CHUNK = 64 * 1024


def peak() -> int:
    """Return this process's peak resident memory in bytes."""
    try:
        # On Linux, ru_maxrss also includes the parent's peak before the fork.
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def chunks(path: Path, lines: int) -> Iterator[bytes]:
    data = path.read_bytes()
    size = len(data) * lines // data.count(b"\n")
    at = 0
    while size > 0:
        chunk = data[at : at + min(CHUNK, size)]
        yield chunk
        size -= len(chunk)
        at = (at + len(chunk)) % len(data)


def by_feed(path: Path, lines: int) -> None:
    import claude_wire

    decoder = claude_wire.Decoder()
    for chunk in chunks(path, lines):
        decoder.feed(chunk)
    assert decoder.stats.lines == decoder.stats.messages == lines


#: The messages that the ``all kept`` jobs keep.
messages: list[object] = []


def keeping(path: Path, lines: int) -> None:
    import claude_wire

    decoder = claude_wire.Decoder()
    for chunk in chunks(path, lines):
        messages.extend(decoder.feed(chunk))


def keeping_dicts(path: Path, lines: int) -> None:
    import orjson

    import peers

    for line in peers.lines_of(chunks(path, lines)):
        messages.append(orjson.loads(line))


def by_peer(label: str, path: Path, lines: int) -> None:
    import peers

    peer = {**peers.DICTS, **peers.TYPED}[label]
    assert peer is not None
    peer(chunks(path, lines), peers.nothing)


def through_a_pipe(path: Path, lines: int) -> None:
    import anyio

    import claude_wire

    async def main() -> None:
        writer = [sys.executable, "-S", str(Path(__file__).with_name("writer.py")), str(path)]
        async with claude_wire.open_process(writer) as process:
            left = lines
            while left:
                part = min(left, 50_000)  # the writer builds the whole output in memory before it writes
                await process.send_bytes(b"blocks %d\n" % part)
                left -= part
                async for _ in process:
                    part -= 1
                    if not part:
                        break

    anyio.run(main)


def main(who: str, lines: int, path: Path) -> int:
    jobs = {
        "claude-wire": by_feed,
        "claude-wire through a pipe": through_a_pipe,
        "claude-wire, all kept": keeping,
        "orjson, all kept": keeping_dicts,
    }
    job = jobs[who] if who in jobs else partial(by_peer, who)

    job(path, 5_000)
    before = peak()
    job(path, lines)
    return peak() - before


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
