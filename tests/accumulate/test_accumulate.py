"""Stream events form whole messages, however texts are cut and events are interleaved. Snapshots work at any time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import recordings
from claude_wire import (
    AssistantMessage,
    Decoder,
    InvalidLine,
    Message,
    StreamEvent,
    TextBlock,
    ToolUseBlock,
    decode,
    encode,
)
from claude_wire.accumulate.accumulator import Accumulator, PartialMessage
from claude_wire.messages import ApiMessage, CompactionBlock, UnknownBlock
from each import each
from stream_events import (
    MESSAGE_STOP,
    TEXT,
    THINKING,
    TOOL,
    block_start,
    block_stop,
    citations,
    cut,
    decoded,
    delta,
    folded,
    inputs,
    json_delta,
    line,
    message_delta,
    message_start,
    odd_texts,
    only,
    text_delta,
    texts,
)

# --- Recordings -------------------------------------------------------------------------------------------------------

WITH_PARTIAL = [name for name in recordings.names() if b'"stream_event"' in recordings.load(name).stdout]

#: Tool call -> the change that the CLI makes to its input before it writes the assistant line.
CHANGED_BY_THE_CLI: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    # The CLI strips white space, including U+2028, from the ends of lines.
    ("04_tools_bypass_partial", "toolu_fake000000000010"): lambda given: {
        **given,
        "content": given["content"].replace(" \u2028\n", "\n"),
    },
    ("04_tools_bypass_partial", "toolu_fake000000000016"): lambda given: {"replace_all": False, **given},
}


def messages_of(name: str) -> list[Message | InvalidLine]:
    decoder = Decoder()
    return decoder.feed(recordings.load(name).stdout) + decoder.close()


def as_the_cli_writes(name: str, content: list[Any]) -> list[Any]:
    return [
        replace(block, input=change(block.input))
        if isinstance(block, ToolUseBlock) and (change := CHANGED_BY_THE_CLI.get((name, block.id)))
        else block
        for block in content
    ]


def streamed_and_whole(
    name: str, stream: Iterable[Message | InvalidLine], accumulator: Accumulator
) -> Iterator[tuple[list[Any], list[Any], bool]]:
    """Return the content of each streamed message, the content of its assistant lines, and whether it was stopped."""
    partials: dict[str | None, PartialMessage] = {}
    lines: dict[str | None, list[Any]] = {}
    for message in stream:
        partial = accumulator.add(message)
        if partial is not None:
            partials[partial.id] = partial
        if isinstance(message, AssistantMessage) and message.message.id in partials:
            lines.setdefault(message.message.id, []).extend(message.content)
    for api_id, partial in partials.items():
        content = as_the_cli_writes(name, partial.message().content)
        yield content, lines.get(api_id, []), all(block.done for block in partial.blocks)


def test_recordings_with_partial_messages_are_there() -> None:
    assert len(WITH_PARTIAL) >= 25


@each("name", WITH_PARTIAL, str)
def test_equal_to_the_assistant_lines(name: str) -> None:
    seen = 0
    for streamed, whole, done in streamed_and_whole(name, messages_of(name), Accumulator()):
        seen += 1
        if done:
            assert streamed == whole
            assert [encode(AssistantMessage.of([block])) for block in streamed] == [
                encode(AssistantMessage.of([block])) for block in whole
            ]
        else:
            # Some recordings end in the middle of a block, so the block has no assistant line.
            assert streamed[: len(whole)] == whole
            assert len(whole) == len(streamed) - 1
    assert seen


@each("name", WITH_PARTIAL, str)
def test_the_block_is_whole_when_its_assistant_line_comes(name: str) -> None:
    # The assistant line comes before the block's stop. Only an input that is not JSON may still be incomplete then.
    accumulator = Accumulator()
    for message in messages_of(name):
        accumulator.add(message)
        current = accumulator.current
        if isinstance(message, AssistantMessage) and current is not None and message.message.id == current.id:
            (last,) = as_the_cli_writes(name, [current.blocks[-1].content()])
            if name == "16_bad_tool_json" and isinstance(last, ToolUseBlock):
                assert last.input == {"command": "echo"}
            else:
                assert [last] == message.content


def test_the_ends_of_recorded_messages() -> None:
    accumulator = Accumulator()
    ends = []
    for message in messages_of("04_tools_bypass_partial"):
        partial = accumulator.add(message)
        if partial is not None and partial.done:
            assert partial.usage is not None
            ends.append((partial.stop_reason, partial.usage.output_tokens, partial.usage.service_tier))
    assert [end[0] for end in ends] == ["tool_use"] * 6 + ["end_turn"]
    assert all(tokens and tier == "standard" for _, tokens, tier in ends)
    assert [output for _, output, _ in ends] != [1] * 7  # 1 is the value in message_start


def test_recordings_as_interleaved_subagents_and_sessions() -> None:
    names = ["02_long_partial", "03_think_partial", "04_tools_bypass_partial", "16_server_tools"]
    # All recordings use the same ids, so only the session and the parent distinguish the conversations.
    streams = [
        [
            replace(message, parent_tool_use_id=None if number == 0 else f"toolu_{number}", session_id=f"s{number % 2}")
            for message in messages_of(name)
            if isinstance(message, StreamEvent)
        ]
        for number, name in enumerate(names)
    ]
    accumulator = Accumulator()
    texts: dict[tuple[int, str | None], Any] = {}
    for row in itertools.zip_longest(*streams):
        for number, message in enumerate(row):
            if message is not None:
                partial = accumulator.add(message)
                assert partial is not None
                assert (partial.session_id, partial.parent_tool_use_id) == (
                    message.session_id,
                    message.parent_tool_use_id,
                )
                texts[number, partial.id] = partial
    for number, name in enumerate(names):
        alone = Accumulator()
        expected = {}
        for message in messages_of(name):
            partial = alone.add(message)
            if partial is not None:
                expected[partial.id] = partial.message()
        assert {key[1]: partial.message() for key, partial in texts.items() if key[0] == number} == expected


def test_other_messages_give_none() -> None:
    accumulator = Accumulator()
    for name in WITH_PARTIAL[:3]:
        for message in messages_of(name):
            assert (accumulator.add(message) is None) == (not isinstance(message, StreamEvent))
    assert accumulator.add(InvalidLine(b"x", 1, 0, "bad")) is None


# --- Any cutting, any interleaving ------------------------------------------------------------------------------------


@st.composite
def block_events(draw: st.DrawFn, index: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Draw the events of a block, and the final block."""
    kind = draw(
        st.sampled_from(["text", "thinking", "tool_use", "server_tool_use", "mcp_tool_use", "whole", "unknown"])
    )
    events: list[dict[str, Any]]
    if kind == "text":
        text, cited = draw(odd_texts), draw(st.lists(citations, max_size=2))
        events = [block_start(index, type="text", text="")]
        events += [text_delta(index, piece) for piece in draw(cut(text))]
        for citation in cited:
            events.insert(draw(st.integers(1, len(events))), delta(index, "citations", citation=citation))
        cited = [event["delta"]["citation"] for event in events[1:] if "citation" in event["delta"]]
        final: dict[str, Any] = {"type": "text", "text": text, **({"citations": cited} if cited else {})}
    elif kind == "thinking":
        text = draw(texts)
        events = [block_start(index, type="thinking", thinking="", signature="")]
        events += [
            delta(index, "thinking", thinking=piece, estimated_tokens=draw(st.none() | st.integers(0, 9)))
            for piece in draw(cut(text))
        ]
        events += [delta(index, "signature", signature="sig")]
        final = {"type": "thinking", "thinking": text, "signature": "sig"}
    elif kind.endswith("tool_use"):
        value = draw(inputs)
        written = json.dumps(value, ensure_ascii=draw(st.booleans()))
        call = {"type": kind, "id": "t", "name": "n", **({"server_name": "x"} if kind == "mcp_tool_use" else {})}
        events = [block_start(index, **call, input={})]
        events += [json_delta(index, piece) for piece in draw(cut(written))]
        final = {**call, "input": value}
    else:
        final = {"type": "redacted_thinking", "data": "x"} if kind == "whole" else {"type": "of_tomorrow", "x": [1]}
        events = [block_start(index, **final)]
    return [*events, block_stop(index)], final


@st.composite
def interleaved(draw: st.DrawFn, sequences: list[list[Any]]) -> list[Any]:
    """Interleave sequences at random, with the items of each sequence in order."""
    left = [iter(sequence) for sequence in sequences]
    order = draw(st.permutations([number for number, sequence in enumerate(sequences) for _ in sequence]))
    return [next(left[number]) for number in order]


@st.composite
def messages(draw: st.DrawFn, api_id: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw the events of a message with interleaved blocks, and its content."""
    made = [draw(block_events(index)) for index in range(draw(st.integers(0, 3)))]
    events = draw(interleaved([events for events, _ in made]))
    return [message_start(api_id), *events, message_delta(output_tokens=5), MESSAGE_STOP], [final for _, final in made]


keys = st.lists(
    st.tuples(st.sampled_from(["s", "t", None]), st.sampled_from([None, "a", "b"])), unique=True, max_size=3
)


@given(st.data(), keys)
def test_any_cutting_and_any_interleaving_gives_the_same(data: st.DataObject, keys: list[Any]) -> None:
    accumulator = Accumulator()
    streams = []
    contents = {}
    for number, (session, parent) in enumerate(keys):
        events, contents[session, parent] = data.draw(messages(f"m{number}"))
        streams.append([line(event, parent, session, api_message_id=f"m{number}") for event in events])
    snapshots: list[tuple[PartialMessage, ApiMessage | None]] = []
    for message in data.draw(interleaved(streams)):
        partial = accumulator.add(message)
        assert partial is not None
        snapshots.append((partial.snapshot(), partial.message() if len(snapshots) % 2 else None))
    assert accumulator.under_way.keys() == contents.keys()
    for key, partial in accumulator.under_way.items():
        whole = decoded(contents[key])
        assert [block.content() for block in partial.blocks] == whole
        written = [block for block, part in zip(whole, partial.blocks, strict=True) if not part.left_out]
        assert partial.content == written
        assert partial.message().stop_reason == "end_turn"
        assert partial.done
    # Each snapshot is still the message of its time, and every text was a beginning of the final text.
    for snapshot, then in snapshots:
        assert then is None or snapshot.message() == then
        final = accumulator.under_way[snapshot.session_id, snapshot.parent_tool_use_id]
        for block in snapshot.blocks:
            last = final.block(block.index)
            assert last is not None
            for so_far, whole in (
                (block.text, last.text),
                (block.thinking, last.thinking),
                (block.partial_json, last.partial_json),
            ):
                assert whole.startswith(so_far)
            assert last.citations[: len(block.citations)] == block.citations


# --- Surrogates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "x"])
@pytest.mark.parametrize("between", [0, 1])
def test_halves_of_a_surrogate_pair_become_one_character(before: str, between: int) -> None:
    accumulator = Accumulator()
    partial = folded(message_start(), TEXT, text_delta(0, before + "\ud83d"), into=accumulator)
    assert partial.text == before  # a lone surrogate is held back
    early = partial.snapshot()
    for _ in range(between):
        folded(text_delta(0, ""), into=accumulator)
        assert partial.text == before
    folded(text_delta(0, "\ude00y"), into=accumulator)
    assert partial.text == before + "\U0001f600y"
    assert early.text == before


def test_a_half_without_the_other_is_kept() -> None:
    accumulator = Accumulator()
    partial = folded(message_start(), TEXT, text_delta(0, "a\ud83d"), into=accumulator)
    folded(block_stop(0), into=accumulator)
    assert partial.text == "a\ud83d"
    assert folded(
        message_start(), TEXT, text_delta(0, "a\ud83d"), text_delta(0, "b"), text_delta(0, "\ude00")
    ).text == ("a\ud83db\ude00")
    assert folded(message_start(), TEXT, text_delta(0, "\ud83d"), text_delta(0, "\ud83d\ude00")).text == (
        "\ud83d\U0001f600"
    )


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "raw"])
def test_surrogates_in_input(ascii_only: bool) -> None:
    value = {"a": "x\ud83dy", "b": "\U0001f600"}
    written = json.dumps(value, ensure_ascii=ascii_only)
    partial = folded(message_start(), TOOL, json_delta(0, written[:-1]))
    assert only(partial).input == {"a": "x\ufffdy", "b": "\U0001f600"}  # the part that can be read so far
    assert only(folded(message_start(), TOOL, json_delta(0, written))).input == value
    assert only(folded(message_start(), TOOL, json_delta(0, written), block_stop(0))).input == value


# --- Fields of a message ----------------------------------------------------------------------------------------------


def test_usage_and_the_end() -> None:
    start = {"input_tokens": 10, "cache_read_input_tokens": 7, "output_tokens": 1, "service_tier": "standard"}
    accumulator = Accumulator()
    partial = folded(message_start(usage=start), into=accumulator, ttft_ms=812.5)
    before = partial.snapshot()
    end = message_delta("refusal", input_tokens=0, cache_read_input_tokens=None, output_tokens=0)
    end["delta"] |= {
        "stop_sequence": "###",
        "stop_details": {"type": "refusal", "category": "bio"},
        "container": {"id": "c", "expires_at": "x"},
    }
    end["context_management"] = {"applied_edits": []}
    end["input_transformations"] = [{"type": "of_tomorrow"}]
    folded(end, into=accumulator)
    message = partial.message()
    assert message.usage is not None
    assert message.usage.to_dict() == {**start, "output_tokens": 0}
    assert message.to_dict()["stop_details"] == {"type": "refusal", "category": "bio"}
    assert message.to_dict()["container"] == {"id": "c", "expires_at": "x"}
    assert message.to_dict()["context_management"] == {"applied_edits": []}
    assert message.to_dict()["input_transformations"] == [{"type": "of_tomorrow"}]
    assert (partial.stop_sequence, message.stop_sequence, before.stop_sequence) == ("###", "###", None)
    assert (partial.ttft_ms, before.ttft_ms) == (812.5, 812.5)
    assert (partial.stop_reason, partial.done, message.id, message.model) == ("refusal", False, "m", "x")
    assert before.usage is not None
    assert (before.stop_reason, before.usage.to_dict()) == (None, start)
    folded(MESSAGE_STOP, into=accumulator)
    assert (partial.done, before.done) == (True, False)


def test_compaction_is_replaced_by_its_delta() -> None:
    start = block_start(0, type="compaction", content=None, signature="s")
    partial = folded(message_start(), start, delta(0, "compaction", content="sum", encrypted_content="e"))
    assert partial.content == [CompactionBlock(content="sum", encrypted_content="e", signature="s")]
    assert folded(message_start(), start, delta(0, "compaction", content=None)).content == [
        CompactionBlock(content=None, signature="s")
    ]


def test_estimates_of_thinking_are_summed() -> None:
    deltas = [
        delta(0, "thinking", thinking=c, estimated_tokens=n) for c, n in zip("abcd", [2, None, 0, 3], strict=True)
    ]
    block = only(folded(message_start(), THINKING, *deltas))
    assert (block.thinking, block.estimated_tokens, block.signature) == ("abcd", 5, "")


@given(st.lists(citations, max_size=2), st.lists(citations, max_size=2))
def test_citations_are_those_of_the_start_and_those_of_the_deltas(
    first: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    start = block_start(0, type="text", text="", citations=first)
    block = only(folded(message_start(), start, *(delta(0, "citations", citation=citation) for citation in more)))
    (expected,) = decoded([{"type": "text", "text": "", "citations": [*first, *more]}])
    assert block.citations == expected.citations
    assert block.content() == expected


def test_what_the_start_of_a_block_holds_counts_as_it_does_for_the_cli() -> None:
    assert folded(message_start(), block_start(0, type="text", text="x"), text_delta(0, "xy")).text == "xy"
    call = {"id": "t", "name": "n", "input": {"a": 1}}
    assert only(folded(message_start(), block_start(0, type="server_tool_use", **call), block_stop(0))).input == {}
    whole = only(folded(message_start(), block_start(0, type="mcp_tool_use", server_name="s", **call)))
    assert (whole.input, whole.name, whole.id, whole.type) == ({"a": 1}, "n", "t", "mcp_tool_use")
    assert whole.start == whole.content()


def test_content_of_a_message_start_is_whole() -> None:
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": "b", "signature": "c"},
        {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
    ]
    partial = folded(message_start(content=content))
    assert partial.content == decoded(content)
    assert all(block.done for block in partial.blocks)


def test_the_unknown_is_kept_and_changes_nothing() -> None:
    partial = folded(
        message_start(),
        block_start(0, type="of_tomorrow", x=1),
        delta(0, "wibble", y=2),
        text_delta(0, "for it"),
        block_start(1, type="text", text=""),
        text_delta(1, "a"),
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": 5}},
        {"type": "wobble"},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {"type": "ping"},
        text_delta(1, "b"),
    )
    unknown, text = partial.blocks
    assert isinstance(unknown.content(), UnknownBlock)
    assert partial.content == [{"type": "of_tomorrow", "x": 1}, TextBlock("ab")]
    assert (unknown.type, unknown.unknown_deltas, unknown.text) == (
        "of_tomorrow",
        [{"type": "wibble_delta", "y": 2}],
        "for it",
    )
    assert text.unknown_deltas == [{"type": "text_delta", "text": 5}]
    assert [event.type if isinstance(event, dict) else type(event).__name__ for event in partial.others] == [
        "wobble",
        "ErrorEvent",
    ]
    assert partial.error is not None
    assert partial.error.error.type == "overloaded_error"
    assert partial.text == "ab"


def test_dicts_are_refused() -> None:
    with pytest.raises(TypeError, match=r"use Decoder\(\) instead of Decoder\(dict\)"):
        Accumulator().add({"type": "stream_event"})


def test_nothing_of_the_content_is_in_a_repr() -> None:
    partial = folded(message_start(), TEXT, text_delta(0, "secret"))
    assert "secret" not in repr(partial) + repr(partial.blocks)


# --- Streamed messages end when the CLI breaks them off, or with blocks for which the CLI writes no line --------------


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
