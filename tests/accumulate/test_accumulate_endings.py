"""Streamed messages end when the CLI breaks them off, or with blocks for which the CLI writes no line."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recordings
from claude_wire import Decoder, StreamEvent, TextBlock, decode
from claude_wire.accumulate.accumulator import Accumulator, PartialMessage
from stream_events import (
    MESSAGE_STOP,
    TEXT,
    block_start,
    block_stop,
    folded,
    line,
    message_delta,
    message_start,
    text_delta,
)

RETRY = {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 3, "retry_delay_ms": 1, "error": "x"}
CANCELLED = {"type": "result", "subtype": "error_during_execution", "terminal_reason": "aborted_streaming"}


def say(accumulator: Accumulator, value: dict[str, Any], session: str | None = "s") -> None:
    assert accumulator.add(decode(json.dumps({"error_status": None, **value, "session_id": session}))) is None


def broken_off(accumulator: Accumulator, *, parent: str | None = None) -> PartialMessage:
    """Add the events that the CLI writes when the API's stream breaks: the CLI stops the block and the message."""
    return folded(
        message_start(), TEXT, text_delta(0, "half"), block_stop(0), MESSAGE_STOP, into=accumulator, parent=parent
    )


@pytest.mark.parametrize("after", [RETRY, CANCELLED, {"type": "result", "subtype": "cancelled"}])
@pytest.mark.parametrize("session", ["s", None])
@pytest.mark.parametrize("parent", [None, "toolu"])
def test_an_answer_that_was_broken_off_is_abandoned(
    after: dict[str, Any], session: str | None, parent: str | None
) -> None:
    accumulator = Accumulator()
    partial = broken_off(accumulator, parent=parent)
    before = partial.snapshot()
    for _ in range(3):  # the CLI may retry more than once
        say(accumulator, after, session)
        assert (partial.done, partial.abandoned, partial.text) == (True, True, "half")
    assert (before.done, before.abandoned) == (True, False)
    again = folded(message_start("n"), TEXT, text_delta(0, "whole"), into=accumulator)
    assert not again.abandoned


def test_an_answer_that_the_cli_marks_is_abandoned_at_its_stop() -> None:
    accumulator = Accumulator()
    partial = folded(message_start(), TEXT, text_delta(0, "half"), block_stop(0), into=accumulator)
    assert not partial.abandoned
    accumulator.add(line(MESSAGE_STOP, abandoned_blocks={"api_message_id": "m", "from_block_index": 1}))
    assert (partial.done, partial.abandoned) == (True, True)


def test_a_whole_answer_is_not_abandoned_by_what_comes_later() -> None:
    accumulator = Accumulator()
    partial = folded(
        message_start(), TEXT, text_delta(0, "whole"), block_stop(0), message_delta(), MESSAGE_STOP, into=accumulator
    )
    say(accumulator, RETRY)
    say(accumulator, CANCELLED)
    assert (partial.done, partial.abandoned) == (True, False)


def test_a_retry_concerns_neither_what_is_under_way_nor_other_sessions() -> None:
    accumulator = Accumulator()
    other = broken_off(accumulator)
    under_way = folded(message_start(), TEXT, text_delta(0, "a"), into=accumulator, parent="p")
    say(accumulator, RETRY, "another")
    assert not other.abandoned
    say(accumulator, RETRY)
    assert other.abandoned
    assert not under_way.abandoned


def test_the_recorded_interrupts_are_abandoned_and_no_other_finished_message() -> None:
    found = 0
    for name in recordings.names():
        stdout = recordings.load(name).stdout
        accumulator, partials = Accumulator(), dict[int, PartialMessage]()
        marked = set[str | None]()
        decoder = Decoder()
        for message in [*decoder.feed(stdout), *decoder.close()]:
            partial = accumulator.add(message)
            if partial is not None:
                partials[id(partial)] = partial
            if isinstance(message, StreamEvent) and message.abandoned_blocks is not None:
                marked.add(message.api_message_id)
        for partial in partials.values():
            if partial.done:
                assert partial.abandoned is (partial.id in marked), name
                found += partial.abandoned
    assert found >= 3


# --- Blocks without a line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("", True),
        (" \n\t", True),
        ("\ufeff\u2003\xa0", True),  # white space in JavaScript
        ("\x1c", False),  # white space in Python only
        ("(no content)", True),
        ("(no content) ", False),
        ("[Request interrupted by user for tool use]", True),
        ("a", False),
        (" a ", False),
    ],
)
def test_a_text_block_that_is_blank_in_the_end_is_left_out(text: str, left_out: bool) -> None:
    accumulator = Accumulator()
    tool = block_start(1, type="tool_use", id="t", name="Bash", input={})
    partial = folded(message_start(), TEXT, *([text_delta(0, text)] if text else []), into=accumulator)
    assert partial.content == [TextBlock(text)]  # more text may follow
    folded(block_stop(0), tool, block_stop(1), message_delta("tool_use"), MESSAGE_STOP, into=accumulator)
    assert [block.left_out for block in partial.blocks] == [left_out, False]
    names = ["tool_use"] if left_out else ["text", "tool_use"]
    assert [block.__struct_config__.tag for block in partial.content] == names
    assert partial.message().content == partial.content
    assert [block.index for block in partial.blocks] == [0, 1]


def test_an_empty_block_of_thinking_is_not_left_out() -> None:
    thinking = block_start(0, type="thinking", thinking="", signature="")
    partial = folded(message_start(), thinking, block_stop(0), message_delta(), MESSAGE_STOP)
    assert len(partial.content) == 1
