"""Encoding: what a message costs to write, against msgspec's own encoder and json."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

import claude_wire
import workloads
from conftest import Contest


def test_encode_lines(contest: Contest) -> None:
    """``Encoder.encode_lines`` of typed messages, ASCII and not."""
    messages: list[Any] = claude_wire.Decoder().feed(workloads.deltas())
    plain = [message.to_dict() for message in messages]
    theirs = msgspec.json.Encoder().encode_lines

    def by_json() -> bytes:
        return b"".join(json.dumps(message).encode() + b"\n" for message in plain)

    contest(
        "encode_lines, ASCII",
        len(messages),
        lambda: claude_wire.Encoder().encode_lines(messages),
        at_most={"msgspec encode_lines": (lambda: theirs(messages), None)},
        faster_than={"json.dumps (dicts)": (by_json, None)},
    )


def test_encode_one(contest: Contest) -> None:
    """``encode(message)``: a prompt, an answer."""
    message = claude_wire.UserMessage.of("Fix the failing test, please, and tell me what was wrong with it.")
    encoder = msgspec.json.Encoder()

    def times(function: Callable[[Any], object]) -> Callable[[], None]:
        def job() -> None:
            for _ in range(workloads.LINES):
                function(message)

        return job

    contest(
        "encode(message)",
        workloads.LINES,
        times(claude_wire.encode),
        at_most={"msgspec encode": (times(encoder.encode), None)},
    )
