"""Encoding: what it costs to write a message, or to read and write it, compared with msgspec's encoder and json."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import claude_wire
import peers
import workloads
from claude_wire.messages import InitMessage
from conftest import Contest, Job


def joined(dumps: Callable[[Any], bytes], messages: list[Any]) -> Job:
    return lambda: b"".join([dumps(message) + b"\n" for message in messages])


def json_dumps(message: Any) -> bytes:
    return json.dumps(message).encode()


def pydantic_dumps(message: Any) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def by_lines(chunks: list[bytes], loads: Callable[[bytes], Any] | None, dumps: Callable[[Any], bytes]) -> Job | None:
    """Return a job that decodes and encodes line by line with these functions."""
    if loads is None:
        return None

    def job() -> None:
        tail = b""
        for chunk in chunks:
            *lines, tail = (tail + chunk).split(b"\n")
            b"".join([dumps(loads(line)) + b"\n" for line in lines])

    return job


@pytest.mark.parametrize(("text", "claim"), [("ASCII", 0.65), ("CJK", 0.65)])
def test_encode_lines(contest: Contest, text: str, claim: float) -> None:
    """``Encoder.encode_lines`` of typed messages."""
    data = workloads.deltas() if text == "ASCII" else workloads.deltas(workloads.IN_CJK, 1)
    messages: list[Any] = claude_wire.Decoder().feed(data)
    plain = [message.to_dict() for message in messages]
    theirs = msgspec.json.Encoder().encode_lines
    contest(
        f"encode_lines, {text}",
        len(messages) * 10,
        lambda: [claude_wire.Encoder().encode_lines(messages) for _ in range(10)],
        at_most={"msgspec encode_lines": (lambda: [theirs(messages) for _ in range(10)], claim)},
        faster_than={
            "json.dumps (dicts)": (joined(json_dumps, plain * 10), 3),
            "orjson.dumps (dicts)": (joined(peers.orjson.dumps, plain * 10) if peers.orjson else None, None),
            "fastsimdjson.dumpb (dicts)": (
                joined(peers.fastsimdjson.dumpb, plain * 10) if peers.fastsimdjson else None,
                None,
            ),
        },
        charted=text == "ASCII",
    )


def messages(kind: str) -> list[Any]:
    """Return messages of this kind, as in a session."""
    if kind == "prompt":
        return [claude_wire.UserMessage.of("Fix the failing test, please, and tell me what was wrong with it.")]
    if kind == "initialize":
        return [claude_wire.decode(workloads.initialized("1"))]
    if kind == "delta":
        return list(claude_wire.Decoder().feed(workloads.deltas())[:200])
    session: list[Any] = claude_wire.Decoder().feed(workloads.mixed())
    if kind == "tool use":
        return [one for one in session if isinstance(one, claude_wire.AssistantMessage) and one.tool_uses][:20]
    if kind == "init":
        return [one for one in session if isinstance(one, InitMessage)][:20]
    if kind == "result":
        return [one for one in session if isinstance(one, claude_wire.ResultMessage)][:20]
    return session[:400]


@pytest.mark.parametrize("kind", ["prompt", "delta", "tool use", "result", "init", "initialize", "session"])
def test_encode_each(contest: Contest, kind: str) -> None:
    """``encode(message)`` of each kind: a prompt, a delta, a tool use, a result, two with lists, and a session."""
    chosen = messages(kind)
    assert chosen
    plain = [message.to_dict() for message in chosen]
    turns = max(1, workloads.LINES // 4 // len(chosen))

    def times(function: Callable[[Any], object] | None, what: list[Any]) -> Job | None:
        if function is None:
            return None

        # One long list, because starting a loop takes as long as encoding a prompt.
        often = what * turns

        def job() -> None:
            for one in often:
                function(one)

        return job

    ours = times(claude_wire.encode, chosen)
    assert ours is not None
    contest(
        f"encode(message), {kind}",
        turns * len(chosen),
        ours,
        at_most={"msgspec encode": (times(msgspec.json.Encoder().encode, chosen), 0.9)},
        faster_than={
            "json.dumps (dict)": (times(json_dumps, plain), None),
            "orjson.dumps (dict)": (times(peers.orjson and peers.orjson.dumps, plain), 1.7),
        },
    )


def test_round_trip(contest: Contest) -> None:
    """Decode chunks of 64 KiB and encode the messages again, as a relay that inspects each message does."""
    chunks = workloads.chunks(workloads.deltas()) * 10

    def ours() -> None:
        feed, encode_lines = claude_wire.Decoder().feed, claude_wire.Encoder().encode_lines
        for chunk in chunks:
            encode_lines(feed(chunk))

    contest(
        "feed and encode_lines",
        workloads.DIFFERENT * 10,
        ours,
        faster_than={
            "json.loads, json.dumps (dicts)": (by_lines(chunks, json.loads, json_dumps), None),
            "orjson.loads, orjson.dumps (dicts)": (
                by_lines(chunks, peers.orjson.loads, peers.orjson.dumps) if peers.orjson else None,
                None,
            ),
            "pydantic, discriminated unions": (by_lines(chunks, peers.validate, pydantic_dumps), None),
        },
        charted=True,
    )
