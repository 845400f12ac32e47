"""The types of messages built from deltas. test_typing.py runs type checkers on this file; nothing executes it."""

from typing import Any

from typing_extensions import assert_type

from claude_wire import InvalidLine, Message
from claude_wire.accumulate.accumulator import Accumulator, PartialBlock, PartialMessage
from claude_wire.messages import ApiMessage, ContentBlock, ErrorEvent, Usage


def what_is_added(accumulator: Accumulator, message: Message | InvalidLine) -> None:
    assert_type(accumulator.add(message), PartialMessage | None)
    assert_type(accumulator.current, PartialMessage | None)
    assert_type(accumulator.under_way, dict[tuple[str | None, str | None], PartialMessage])


def what_comes_out(partial: PartialMessage) -> None:
    assert_type(partial.snapshot(), PartialMessage)
    assert_type(partial.message(), ApiMessage)
    assert_type(partial.blocks, tuple[PartialBlock, ...])
    assert_type(partial.block(0), PartialBlock | None)
    assert_type(partial.content, list[ContentBlock])
    assert_type(partial.usage, Usage | None)
    assert_type(partial.error, ErrorEvent | None)
    assert_type((partial.text, partial.done, partial.stop_reason), tuple[str, bool, str | None])
    for block in partial.blocks:
        assert_type(block.content(), ContentBlock)
        assert_type(block.start, ContentBlock | None)
        assert_type((block.text, block.thinking, block.partial_json), tuple[str, str, str])
        assert_type(block.input, Any)
        assert_type(block.input_error, str | None)
    partial.text = ""  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
