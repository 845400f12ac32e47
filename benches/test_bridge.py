"""Events for a front end: what they cost in addition to decoding whole sessions."""

from __future__ import annotations

from claude_wire import Decoder, decode
from claude_wire_kit.events import Bridge
from conftest import Contest
from workloads import chunks, count, deltas, lines, mixed

#: 2 KB of English text that does not look like a progress report.
PROSE = "I have read the module, and most of the work is in one of its loops; the rest of it is plain. " * 20
SAYS = b'{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]},"session_id":"s"}\n'


def _contest(contest: Contest, job: str, data: bytes, *, partial: bool = False) -> None:
    """Compare decoding, making events and encoding them as JSON with decoding alone."""
    fed, total = chunks(data), count(data)

    def shown() -> None:
        decoder, ui = Decoder(), Bridge(partial=partial)
        for chunk in fed:
            for message in decoder.feed(chunk):
                for event in ui.add(message):
                    event.to_json()

    def decoded() -> None:
        decoder = Decoder()
        for chunk in fed:
            for _ in decoder.feed(chunk):
                pass

    contest(job, total, shown, at_most={"feed alone": (decoded, None)}, rounds=7)


def test_sessions(contest: Contest) -> None:
    _contest(contest, "bridge, mixed sessions", mixed())


def test_deltas(contest: Contest) -> None:
    _contest(contest, "bridge, deltas that are passed over", deltas() * 10)


def test_partial(contest: Contest) -> None:
    _contest(contest, "bridge, deltas that are shown", deltas() * 10, partial=True)


def test_prose(contest: Contest) -> None:
    data = SAYS % PROSE.encode() * 2000
    assert len(lines(data)) == 2000
    _contest(contest, "bridge, texts of 2 KB", data)


def test_hostile(contest: Contest) -> None:
    """Create events from text full of numbers. Only its end should be read, whatever its size."""
    small, large = (decode(SAYS % (b"Running test 2 of 1 " * (size // 20))) for size in (1_000_000, 10_000_000))

    def one() -> None:
        Bridge().add(small)

    def ten() -> None:
        Bridge().add(large)

    contest("bridge, a hostile text of 10 MB", 1, ten, at_most={"of 1 MB": (one, None)}, rounds=5)
