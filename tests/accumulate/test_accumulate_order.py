"""Stream events in impossible orders and in long sessions, with a fixed cost per event."""

from __future__ import annotations

import functools
import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire import (
    AssistantMessage,
    Decoder,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    UserMessage,
    decode,
    encode,
)
from claude_wire.accumulate import partial_message as _partial_message
from claude_wire.accumulate.accumulator import Accumulator, PartialMessage
from claude_wire.messages import CompactionBlock, ResultSuccess
from stream_events import (
    MESSAGE_STOP,
    TEXT,
    THINKING,
    TOOL,
    block_start,
    block_stop,
    citations,
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

# --- Out of order -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "content"),
    [
        (text_delta(3, "x"), TextBlock("x")),
        (delta(3, "thinking", thinking="x"), ThinkingBlock("x", "")),
        (delta(3, "signature", signature="x"), ThinkingBlock("", "x")),
        (json_delta(3, '{"a": 1}'), ToolUseBlock(id="", name="", input={"a": 1})),
        (delta(3, "compaction", content="x"), CompactionBlock(content="x")),
        (delta(3, "wibble"), {}),
    ],
)
def test_attached_in_the_middle(event: dict[str, Any], content: Any) -> None:
    partial = folded(event, api_message_id="m")
    assert (partial.id, partial.started, partial.model, partial.role) == ("m", False, None, "assistant")
    (block,) = partial.blocks
    assert (block.index, block.start) == (3, None)
    assert partial.message().content == [content]
    assert partial.message().id == "m"


def test_a_message_start_while_another_is_under_way_replaces_it() -> None:
    accumulator = Accumulator()
    first = folded(message_start("a"), TEXT, text_delta(0, "lost"), into=accumulator)
    snapshot = first.snapshot()
    second = folded(message_start("b"), into=accumulator)
    assert (first.abandoned, first.done, first.text) == (True, False, "lost")
    assert (snapshot.abandoned, second.abandoned) == (False, False)
    assert accumulator.current is second
    folded(TEXT, text_delta(0, "again"), block_stop(0), MESSAGE_STOP, into=accumulator)
    third = folded(message_start("c"), into=accumulator)
    assert (first.text, second.text, second.abandoned, third.text) == ("lost", "again", False, "")
    assert list(accumulator.under_way.values()) == [third]


def test_what_comes_twice_or_late() -> None:
    accumulator = Accumulator()
    partial = folded(message_start(), TEXT, text_delta(0, "a"), block_stop(0), block_stop(0), into=accumulator)
    assert only(partial).done
    folded(text_delta(0, "b"), block_stop(7), into=accumulator)
    assert (partial.text, len(partial.others), len(partial.blocks)) == ("ab", 1, 1)
    folded(TEXT, text_delta(0, "c"), MESSAGE_STOP, MESSAGE_STOP, into=accumulator)
    assert (partial.text, partial.done, only(partial).done) == ("c", True, True)
    # A late event with the message's id belongs to that message. A late event without an id begins a new message.
    assert folded(text_delta(0, "d"), into=accumulator, api_message_id="m") is partial
    assert partial.text == "cd"
    new = folded(text_delta(0, "e"), into=accumulator)
    assert new is not partial
    assert (partial.text, new.text, new.started, partial.abandoned) == ("cd", "e", False, False)


def test_a_lost_message_start_is_noticed() -> None:
    accumulator = Accumulator()
    first = folded(message_start("a"), TEXT, text_delta(0, "1"), into=accumulator, api_message_id="a")
    second = folded(text_delta(0, "2"), into=accumulator, api_message_id="b")
    assert (first.text, second.text, second.id, first.abandoned) == ("1", "2", "b", True)


@pytest.mark.parametrize("event", [{"type": "ping"}, {"type": "wobble"}, MESSAGE_STOP, block_stop(0)])
def test_an_event_of_no_message_gives_none(event: dict[str, Any]) -> None:
    accumulator = Accumulator()
    assert accumulator.add(line(event)) is None
    assert accumulator.current is None
    assert not accumulator.under_way


any_events = st.one_of(
    st.just(message_start()),
    st.just(message_start("n", content=[{"type": "text", "text": "z"}])),
    st.builds(block_start, st.integers(-1, 2), type=st.just("text"), text=st.just("")),
    st.builds(block_start, st.integers(-1, 2), type=st.just("tool_use"), id=texts, name=texts, input=inputs),
    st.builds(block_start, st.integers(-1, 2), type=st.just("of_tomorrow")),
    st.builds(text_delta, st.integers(-1, 2), odd_texts),
    st.builds(json_delta, st.integers(-1, 2), texts),
    st.builds(lambda i, c: delta(i, "citations", citation=c), st.integers(-1, 2), citations),
    st.builds(lambda i: delta(i, "signature", signature="s"), st.integers(-1, 2)),
    st.builds(lambda i: delta(i, "wibble"), st.integers(-1, 2)),
    st.builds(block_stop, st.integers(-1, 2)),
    st.just(message_delta(output_tokens=1)),
    st.sampled_from([MESSAGE_STOP, {"type": "ping"}, {"type": "wobble"}, {"type": "error", "error": {"type": "x"}}]),
)


@given(st.lists(st.tuples(any_events, st.sampled_from([None, "m", "n"]), st.sampled_from([None, "p"])), max_size=30))
def test_no_order_of_events_raises_or_changes_a_snapshot(
    events: list[tuple[dict[str, Any], str | None, str | None]],
) -> None:
    accumulator = Accumulator()
    then = []
    for event, api_id, parent in events:
        partial = accumulator.add(line(event, parent, api_message_id=api_id))
        if partial is not None:
            snapshot = partial.snapshot()
            assert snapshot.snapshot() is snapshot
            then.append((snapshot, partial.message(), partial.others, partial.abandoned, partial.text))
    for snapshot, *said in then:
        assert [snapshot.message(), snapshot.others, snapshot.abandoned, snapshot.text] == said
        encode(AssistantMessage(message=snapshot.message()))


# --- Memory -----------------------------------------------------------------------------------------------------------


def whole_message(accumulator: Accumulator, api_id: str, parent: str | None, session: str = "s") -> PartialMessage:
    return folded(
        message_start(api_id),
        TEXT,
        text_delta(0, "x"),
        block_stop(0),
        MESSAGE_STOP,
        into=accumulator,
        parent=parent,
        session=session,
    )


def tool_result(tool_use_id: str) -> UserMessage:
    content = [{"type": "tool_result", "tool_use_id": tool_use_id, "content": "x"}]
    message = decode(json.dumps({"type": "user", "message": {"role": "user", "content": content}, "session_id": "s"}))
    assert isinstance(message, UserMessage)
    return message


def result(session: str) -> ResultSuccess:
    value = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 1, "duration_api_ms": 1}
    message = decode(json.dumps({**value, "num_turns": 1, "session_id": session, "total_cost_usd": 0, "result": ""}))
    assert isinstance(message, ResultSuccess)
    return message


def test_an_event_that_is_nested_as_deeply_as_can_be_read_does_not_raise() -> None:
    """An event that was decoded on a low stack may be nested too deeply to be encoded on a higher stack."""

    def below(calls: int, function: Callable[[], object]) -> None:
        if calls:
            below(calls - 1, function)
        else:
            function()

    limit = sys.getrecursionlimit()
    accumulator = Accumulator()
    partial = folded(message_start(), TEXT, into=accumulator)
    for depth in range(limit - 200, limit):
        nested = "[" * depth + "]" * depth
        event = f'{{"type":"stream_event","session_id":"s","event":{{"type":"unheard_of","x":{nested}}}}}'
        (message,) = Decoder().feed(event.encode() + b"\n")
        if isinstance(message, StreamEvent):
            below(60, functools.partial(accumulator.add, message))
    assert folded(text_delta(0, "a"), into=accumulator) is partial
    assert partial.text == "a"


def test_a_long_session_does_not_grow() -> None:
    accumulator = Accumulator()
    for turn in range(50):
        whole_message(accumulator, f"m{turn}", None)
        for agent in range(3):
            whole_message(accumulator, f"a{agent}", f"toolu_{turn}_{agent}")
            accumulator.add(tool_result(f"toolu_{turn}_{agent}"))
        whole_message(accumulator, "background", f"toolu_{turn}_background")
        assert len(accumulator.under_way) == 2
        accumulator.add(result("s"))
        assert list(accumulator.under_way) == [("s", None)]
        assert accumulator.current is not None
        assert accumulator.current.id == f"m{turn}"


def test_a_subagent_at_work_outlives_results() -> None:
    accumulator = Accumulator()
    partial = folded(message_start(), TEXT, text_delta(0, "a"), into=accumulator, parent="p")
    other = whole_message(accumulator, "o", "p", session="other")
    accumulator.add(tool_result("p"))
    assert list(accumulator.under_way) == [("s", "p")]
    whole_message(accumulator, "o", "q", session="other")
    accumulator.add(result("s"))
    assert list(accumulator.under_way) == [("s", "p"), ("other", "q")]
    assert folded(text_delta(0, "b"), into=accumulator, parent="p") is partial
    assert (partial.text, other.text, accumulator.current) == ("ab", "x", None)


def test_sessions_and_abandoned_subagents_are_bounded() -> None:
    accumulator = Accumulator(keep=4)
    at_work = folded(message_start(), TEXT, into=accumulator, parent="p")
    for number in range(20):
        whole_message(accumulator, "m", None, session=str(number))
        assert len(accumulator.under_way) <= 4
    assert list(accumulator.under_way) == [("s", "p"), ("17", None), ("18", None), ("19", None)]
    assert at_work is accumulator.under_way["s", "p"]
    for number in range(20):
        folded(message_start(), into=accumulator, parent=str(number))
    assert list(accumulator.under_way) == [("s", str(number)) for number in range(16, 20)]
    with pytest.raises(ValueError, match="keep"):
        Accumulator(keep=0)


def test_a_message_that_is_dropped_before_it_has_finished_is_abandoned() -> None:
    accumulator = Accumulator(keep=1)
    first = folded(message_start(), TEXT, text_delta(0, "a"), into=accumulator, session="1")
    finished = folded(message_start(), MESSAGE_STOP, into=accumulator, session="2")
    folded(message_start(), into=accumulator, session="3")
    assert (first.abandoned, first.done, first.text) == (True, False, "a")
    assert (finished.abandoned, finished.done) == (False, True)


# --- Cost -------------------------------------------------------------------------------------------------------------


def lines_run(function: Callable[[], object]) -> int:
    """Return the number of source lines of the package that a call executes."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if "claude_wire" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(("start", "kind"), [(TEXT, "text"), (TOOL, "partial_json"), (THINKING, "thinking")])
def test_a_megabyte_of_one_character_deltas_is_linear(start: dict[str, Any], kind: str) -> None:
    name = "input_json" if kind == "partial_json" else kind
    events = [line(delta(0, name, **{kind: character})) for character in "abcdefgh"]
    accumulator = Accumulator()
    partial = folded(message_start(), start, into=accumulator)
    accumulator.add(events[-1])
    few = lines_run(lambda: accumulator.add(events[0])), lines_run(partial.snapshot)
    add = accumulator.add
    for _ in range(125_000):
        for event in events:
            add(event)
    # The cost of an event and of a snapshot does not depend on the events before.
    assert (lines_run(lambda: accumulator.add(events[0])), lines_run(partial.snapshot)) == few
    snapshot = partial.snapshot()
    # One str.join joins the text, whatever the number of pieces.
    block, copy = only(partial), only(snapshot)
    assert lines_run(lambda: getattr(block, kind)) < 60
    assert getattr(block, kind) == "ha" + "abcdefgh" * 125_000 + "a"
    assert lines_run(lambda: getattr(block, kind)) < 30
    assert getattr(copy, kind) == getattr(block, kind)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40))
def test_deltas_that_alternate_between_blocks_are_linear(order: list[int]) -> None:
    accumulator = Accumulator()
    starts = [block_start(index, type="text", text="") for index in range(3)]
    partial = folded(message_start(), *starts, into=accumulator)
    most = 0
    for index in order:
        event = line(text_delta(index, str(index)))
        most = max(most, lines_run(lambda event=event: accumulator.add(event)))
    assert most <= 80
    assert [block.text for block in partial.blocks] == [str(i) * order.count(i) for i in range(3)]


def test_reading_does_not_go_through_what_was_read_before() -> None:
    accumulator = Accumulator()
    partial = folded(message_start(), *(block_start(i, type="text", text="") for i in range(2)), into=accumulator)
    costs = []
    for number in range(200):
        folded(text_delta(number % 2, "x"), into=accumulator)
        block = partial.blocks[number % 2]
        costs.append(lines_run(lambda block=block: block.text))
        assert block.text == "x" * (number // 2 + 1)
    # The first read of each block joins no earlier pieces, so only the later reads are compared.
    assert len(set(costs[4:])) == 1


def test_a_text_read_after_each_delta_takes_each_piece_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # This counts only the pieces. Each read also copies the previous text, which is quadratic in its length.
    pieces_seen = 0

    def counting(text: str, pieces: list[str]) -> str:
        nonlocal pieces_seen
        pieces_seen += len(pieces)
        return joined(text, pieces)

    joined = _partial_message._joined
    monkeypatch.setattr(_partial_message, "_joined", counting)
    accumulator = Accumulator()
    partial = folded(message_start(), TEXT, into=accumulator)
    for number in range(1000):
        folded(text_delta(0, "x"), into=accumulator)
        assert len(partial.text) == number + 1
    assert pieces_seen == 1000


# --- Threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_before", [False, True])
def test_threads_may_read_one_snapshot_at_the_same_time(monkeypatch: pytest.MonkeyPatch, read_before: bool) -> None:
    accumulator = Accumulator()
    starts = [block_start(index, type="text", text="") for index in range(2)]
    partial = folded(message_start(), *starts, into=accumulator)
    for index in [0, 1, 0, 1, 0]:
        folded(text_delta(index, "abc"), into=accumulator)
    snapshot = partial.snapshot()
    folded(text_delta(0, "more"), into=accumulator)
    if read_before:
        assert len(snapshot.blocks) == 2  # the threads share the list of blocks, but no text is joined yet

    joined = _partial_message._joined
    both = threading.Barrier(2)

    def meeting(text: str, pieces: list[str]) -> str:
        both.wait(60)  # neither thread has stored its text yet
        return joined(text, pieces)

    monkeypatch.setattr(_partial_message, "_joined", meeting)
    with ThreadPoolExecutor(2) as threads:
        read = [threads.submit(lambda: [block.text for block in snapshot.blocks]) for _ in range(2)]
        assert [future.result(60) for future in read] == [["abc" * 3, "abc" * 2]] * 2
    assert [block.text for block in snapshot.blocks] == ["abc" * 3, "abc" * 2]
