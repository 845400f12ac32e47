"""Lines that do not become Python objects: skipped by ``only``, merged by ``coalesce``, or only peeked at.

The input is recorded deltas. Each bench first checks that the subject and the peers return the same result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import claude_wire
import peers
import workloads
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.native.line_buffer import LineBuffer
from conftest import Contest, Job
from test_decode import feeding

WANTED = {"result", "assistant"}
ONLY = 'feed, only={"result", "assistant"}'
#: How many times the subject reads its input in a round. Reading it once takes too little time to measure.
PASSES = 10

Texts = dict[str, list[str]]


# --- only results and assistants --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["deltas", "whole sessions", "without SIMD"])
def test_only(contest: Contest, which: str) -> None:
    """``only={"result", "assistant"}`` on deltas before short messages, and on whole sessions."""
    data = workloads.session_of_deltas() if which == "whole sessions" else workloads.deltas_and_end()
    sessions = 20
    chunks = workloads.chunks(data) * sessions

    def ours(plain: bool = False) -> int:
        decoder = claude_wire.Decoder(only=WANTED)
        if plain:
            decoder._buffer = LineBuffer(DEFAULT_MAX_LINE_BYTES, only=frozenset(WANTED), plain=True)
            decoder._feeder = decoder._lines.engine.new_feed(decoder._buffer.handle)
        feed = decoder.feed
        return sum(len(feed(chunk)) for chunk in chunks)

    def counting(peer: peers.Peer | None, is_wanted: Callable[[Any], bool]) -> Callable[[], int] | None:
        if peer is None:
            return None

        def job() -> int:
            found: list[Any] = []
            peer(chunks, lambda message: is_wanted(message) and found.append(message))
            return len(found)

        return job

    def wanted_dict(message: dict[str, Any]) -> bool:
        return message["type"] in WANTED

    typed = claude_wire.AssistantMessage, claude_wire.ResultMessage
    sdk_typed = (peers.agent_sdk.AssistantMessage, peers.agent_sdk.ResultMessage) if peers.agent_sdk else ()
    jobs = {
        "claude-agent-sdk": (
            counting(peers.by_agent_sdk, lambda message: isinstance(message, sdk_typed)),
            100.0 if which == "deltas" else None,
        ),
        "json.loads (dicts)": (counting(peers.by_json, wanted_dict), None),
        "orjson.loads (dicts)": (counting(peers.by_orjson, wanted_dict), None),
        "fastsimdjson.loads_many, fields= of the type": (
            counting(peers.by_fastsimdjson_fields("/type"), lambda kind: kind in WANTED),
            None,
        ),
        "msgspec by hand, a Struct of the type": (counting(_by_tags, lambda message: message.type in WANTED), None),
        "claude_wire without only=": (_typed(chunks, typed), None),
    }
    expected = ours()
    assert expected == ours(plain=True) == 2 * sessions
    assert all(job() == expected for job, _ in jobs.values() if job is not None)
    lines, size = workloads.count(data) * sessions, len(data) * sessions
    if which == "without SIMD":
        contest(f"{ONLY}, without SIMD", lines, lambda: ours(plain=True), rate=(size, 2), passes=PASSES)
        return
    deltas = which == "deltas"
    contest(
        ONLY if deltas else f"{ONLY}, whole sessions",
        lines,
        ours,
        faster_than=jobs,
        rate=(size, 13 if deltas else 10),
        passes=PASSES,
        charted=deltas,
        rounds=9,
    )


def _typed(chunks: list[bytes], classes: Any) -> Callable[[], int]:
    def job() -> int:
        feed = claude_wire.Decoder().feed
        return sum(isinstance(message, classes) for chunk in chunks for message in feed(chunk))

    return job


class Delta(msgspec.Struct):
    """The tags of a line, as an application that reads nothing else would declare them."""

    type: str | None = None


class Event(msgspec.Struct):
    type: str | None = None
    delta: Delta | None = None


class Tags(msgspec.Struct):
    type: str | None = None
    subtype: str | None = None
    event: Event | None = None


_tags = msgspec.json.Decoder(Tags)
_by_tags = peers.block_by_block(_tags.decode_lines)


# --- the text of deltas -----------------------------------------------------------------------------------------------


def merged(texts: Texts) -> dict[str, str]:
    return {session: "".join(parts) for session, parts in texts.items()}


@pytest.mark.parametrize("at_random", [False, True], ids=["in turns", "at random"])
def test_text(contest: Contest, at_random: bool) -> None:
    """``coalesce=True``: collect the text of two sessions whose lines alternate, or are mixed at random."""
    data = workloads.interleaved(at_random)
    chunks = workloads.chunks(data) * workloads.PASSES

    def ours(coalesce: bool = True) -> Texts:
        feed = claude_wire.Decoder(coalesce=coalesce).feed
        texts: Texts = {}
        for chunk in chunks:
            for message in feed(chunk):
                texts.setdefault(message.session_id, []).append(message.text_delta)
        return texts

    def collecting(peer: peers.Peer | None, read: Callable[[Any], tuple[str, str]]) -> Callable[[], Texts] | None:
        if peer is None:
            return None

        def job() -> Texts:
            texts: Texts = {}

            def each(message: Any) -> None:
                session, text = read(message)
                texts.setdefault(session, []).append(text)

            peer(chunks, each)
            return texts

        return job

    def of_dict(message: Any) -> tuple[str, str]:
        return message["session_id"], message["event"]["delta"]["text"]

    fields = peers.by_fastsimdjson_fields("/session_id", "/event/delta/text")
    jobs: dict[str, tuple[Callable[[], Texts] | None, float | None]] = {
        "claude-agent-sdk": (
            collecting(peers.by_agent_sdk, lambda event: (event.session_id, event.event["delta"]["text"])),
            None if at_random else 60.0,
        ),
        "fastsimdjson.loads_many, fields= of the text": (
            collecting(fields, lambda pair: pair),
            None if at_random else 3.0,
        ),
        "json.loads (dicts)": (collecting(peers.by_json, of_dict), None),
        "orjson.loads (dicts)": (collecting(peers.by_orjson, of_dict), None),
        "claude_wire without coalesce=": (lambda: ours(False), None),
    }
    expected = merged(ours())
    assert len(expected) == 2
    assert all(merged(job()) == expected for job, _ in jobs.values() if job is not None)
    contest(
        f"feed, coalesce=True, text of two sessions{' at random' if at_random else ''}",
        workloads.LINES,
        ours,
        faster_than=jobs,
        rate=(len(data) * workloads.PASSES, None if at_random else 11),
        passes=PASSES,
        charted=not at_random,
        rounds=9,
    )


def made_text(contest: Contest, name: str, data: bytes, claim: float | None = None) -> None:
    """Measure ``coalesce=True`` on generated traffic, in chunks of 64 KiB. ``claim`` is in GB/s."""
    passes = max(1, 5_000_000 // len(data))
    chunks = workloads.chunks(data) * passes

    contest(
        f"feed, coalesce=True, {name}",
        workloads.count(data) * passes,
        feeding(chunks, lambda: claude_wire.Decoder(coalesce=True)),
        faster_than={"claude_wire without coalesce=": (feeding(chunks), 0.91)},
        rate=(len(data) * passes, claim),
        rounds=5,
    )


@pytest.mark.parametrize("variation", workloads.VARIATIONS)
def test_text_of_made_traffic(contest: Contest, variation: str) -> None:
    """``coalesce=True`` for generated traffic: three sessions with text, thinking, tool input and whole messages."""
    made_text(contest, variation, workloads.made(variation))


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize("variation", ["ASCII", "CJK", "spaces and escapes as Python writes them"])
def test_text_of_made_deltas(contest: Contest, variation: str, sessions: int) -> None:
    """``coalesce=True`` for deltas alone, about 20 in a block: of one session, or of two that take turns at random."""
    data = workloads.made(variation, sessions=sessions, deltas_only=True)
    made_text(contest, f"deltas of {sessions} session{'s' * (sessions > 1)}, {variation}", data, claim=4)


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize(("text", "words"), [("ascii", "words with escapes"), ("cjk", "CJK")])
def test_text_of_long_answers(contest: Contest, text: str, words: str, sessions: int) -> None:
    """``coalesce=True`` for answers of 400 deltas: of one session, or of two in turn."""
    name = f"long answers, {words}" + ", two sessions in turn" * (sessions > 1)
    made_text(contest, name, workloads.answers(text, sessions), claim=4)


def compare(contest: Contest, name: str, lines: int, streams: list[list[bytes]], claim: float = 1.05) -> None:
    """Measure ``coalesce=True`` against a decoder without it. Each stream of chunks gets a separate decoder."""

    def job(**options: Any) -> None:
        for chunks in streams:
            decoder = claude_wire.Decoder(**options)
            for chunk in chunks:
                decoder.feed(chunk)
            decoder.close()

    contest(
        f"feed, coalesce=True, {name}",
        lines,
        lambda: job(coalesce=True),
        at_most={"claude_wire without coalesce=": (job, claim)},
    )


def recorded(*, at_least: int, below: int = 1_000_000) -> list[bytes]:
    """Return the recordings whose number of lines is in this range."""
    streams = [workloads.recordings.load(name).stdout for name in workloads.recordings.names()]
    return [stream for stream in streams if at_least <= workloads.count(stream) < below]


@pytest.mark.parametrize(
    ("name", "at_least", "below", "claim"),
    [
        ("all recordings", 1, 1_000_000, 1.05),
        ("recordings below 200 lines", 1, 200, 1.10),
        ("recordings of 200 lines or more", 200, 1_000_000, 1.05),
    ],
)
def test_coalescing_recordings(contest: Contest, name: str, at_least: int, below: int, claim: float) -> None:
    """``coalesce=True`` on short recorded streams, where it should cost little although nothing can be merged."""
    streams = recorded(at_least=at_least, below=below)
    compare(contest, name, sum(map(workloads.count, streams)), [workloads.chunks(stream) for stream in streams], claim)


@pytest.mark.parametrize("stream", recorded(at_least=200), ids=workloads.count)
def test_coalescing_each_longer_recording(contest: Contest, stream: bytes) -> None:
    count = workloads.count(stream)
    streams = [workloads.chunks(stream)] * max(1, 2_000 // count)
    compare(contest, f"{count:,} lines of {len(stream):,} bytes", max(2_000, count), streams)


def test_coalescing_pairs_of_deltas(contest: Contest) -> None:
    """``coalesce=True`` on groups of two deltas and another line, where merging saves only one line of three."""
    compare(contest, "pairs of deltas", workloads.DIFFERENT * 5, [workloads.chunks(workloads.pairs())] * 5)


def test_coalescing_lines_that_come_alone(contest: Contest) -> None:
    """``coalesce=True`` on deltas in one chunk each, as a live process writes them."""
    compare(contest, "one delta a chunk", workloads.DIFFERENT * 5, [workloads.lines(workloads.deltas())] * 5)


# --- unchanged lines with their kinds ---------------------------------------------------------------------------------


def test_kinds(contest: Contest) -> None:
    """``peek_lines`` on blocks of 64 KiB."""
    data = workloads.session_of_deltas()
    blocks = workloads.blocks(data)

    def ours() -> list[Any]:
        return [kind for block in blocks for kind in claude_wire.codec.peek_lines(block)]

    def names(read: Callable[[Any], tuple[Any, ...]], peer: peers.Peer | None) -> Callable[[], list[Any]] | None:
        if peer is None:
            return None

        def job() -> list[Any]:
            found: list[Any] = []
            peer(blocks, lambda message: found.append(read(message)))
            return found

        return job

    def of_dict(message: dict[str, Any]) -> tuple[Any, ...]:
        event = message.get("event", {})
        inner = event.get("delta") or event.get("content_block") or {}
        return message["type"], event.get("type", message.get("subtype")), inner.get("type")

    def of_fields(fields: tuple[Any, ...]) -> tuple[Any, ...]:
        return fields[0], fields[2] or fields[1], fields[3] or fields[4]

    pointers = "/type", "/subtype", "/event/type", "/event/delta/type", "/event/content_block/type"
    jobs = {
        "fastsimdjson.loads_many, fields= of the tags": (
            names(of_fields, peers.by_fastsimdjson_fields(*pointers)),
            None,
        ),
        "msgspec by hand, Structs of the tags alone": (names(lambda tags: tags, _by_tags), None),
        "orjson.loads (dicts)": (names(of_dict, peers.by_orjson), None),
        "json.loads (dicts)": (names(of_dict, peers.by_json), None),
    }
    expected = [tuple(kind) for kind in ours()]
    assert [of_dict(json.loads(line)) for line in data.splitlines()] == expected
    contest(
        "peek_lines, blocks of 64 KiB",
        workloads.count(data),
        ours,
        faster_than=jobs,
        rate=(len(data), 3),
        passes=PASSES * 2,
        charted=True,
    )


@pytest.mark.parametrize("name", ["peek_lines, lines of 3.5 MB", "peek of each line of 3.5 MB"])
def test_kinds_of_huge_lines(contest: Contest, name: str) -> None:
    """Peek at two recorded lines of 3.5 MB. In one, ``type`` follows the text."""
    data = workloads.huge()
    lines = workloads.lines(data)

    def in_a_block() -> list[Any]:
        return claude_wire.codec.peek_lines(data)

    def one_by_one() -> list[Any]:
        return [claude_wire.peek(line) for line in lines]

    def by(loads: Callable[[bytes], Any] | None) -> Job | None:
        return None if loads is None else lambda: [loads(line)["type"] for line in lines]

    def by_tags() -> list[Any]:
        return [_tags.decode(line).type for line in lines]

    ours = in_a_block if name.startswith("peek_lines") else one_by_one
    assert [kind.type for kind in ours()] == by_tags() == ["assistant", "result"]
    contest(
        name,
        len(lines),
        ours,
        faster_than={
            "msgspec by hand, a Struct of the tags": (by_tags, None),
            "orjson.loads (dicts)": (by(peers.orjson and peers.orjson.loads), None),
            "json.loads (dicts)": (by(json.loads), None),
        },
        rate=(len(data), 8),
        passes=PASSES,
    )


def test_raw_lines_with_kinds(contest: Contest) -> None:
    """``LineSplitter`` and ``peek(line)``: the work of a relay that passes lines on unchanged."""
    data = workloads.session_of_deltas()
    chunks = workloads.chunks(data) * 10

    def ours() -> None:
        feed, peek = claude_wire.LineSplitter(keepends=True).feed, claude_wire.peek
        for chunk in chunks:
            for line in feed(chunk):
                peek(line)

    def split(loads: Callable[[bytes], Any] | None) -> Job | None:
        return peers.of(peers.line_by_line(loads), chunks)

    contest(
        "LineSplitter and peek of each line",
        workloads.count(data) * 10,
        ours,
        faster_than={
            "json.loads (dicts)": (split(json.loads), None),
            "orjson.loads (dicts)": (split(peers.orjson and peers.orjson.loads), 1.5),
            "msgspec by hand, Structs of the tags alone": (split(_tags.decode), None),
        },
    )
