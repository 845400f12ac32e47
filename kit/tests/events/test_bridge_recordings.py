"""A bridge processes all recordings without an error. Each text appears once, and all that begins ends once."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

import recordings
from claude_wire import AssistantMessage, Decoder, ResultMessage, TextBlock
from claude_wire_kit.events import (
    Bridge,
    ClaudeResponse,
    Operation,
    PermissionCancelled,
    PermissionRequest,
    SubagentProgress,
    TurnComplete,
    UiEvent,
)
from each import each
from feeding import cut, fed

NAMES = recordings.names()
#: Only recordings of at most this many bytes are fed in chunks of 1 and 7 bytes.
SMALL = 20_000


def events_of(ui: Bridge, messages: Iterable[Any]) -> list[UiEvent]:
    return [event for message in messages for event in ui.add(message)] + ui.end()


def by_conversation(events: list[UiEvent]) -> dict[str | None, list[UiEvent]]:
    """Group the events by conversation. Progress without a conversation belongs to the response before it."""
    found: dict[str | None, list[UiEvent]] = {}
    last: str | None = None
    for event in events:
        if event.conversationId is not None or isinstance(event, ClaudeResponse):
            last = event.conversationId
        found.setdefault(last, []).append(event)
    return found


def check_ends(events: list[UiEvent], *, answered: bool = False) -> None:
    """Check that everything that begins ends once, and nothing else ends. `answered`: the test answers questions."""
    open_operations: set[tuple[Any, str]] = set()
    ended_operations: set[tuple[Any, str]] = set()
    running: set[tuple[Any, str]] = set()
    stopped: set[tuple[Any, str]] = set()
    asked: set[Any] = set()
    for event in events:
        if isinstance(event, Operation):
            place = event.conversationId, event.id
            assert place not in ended_operations
            if event.state == "started":
                assert place not in open_operations
                open_operations.add(place)
            else:
                open_operations.remove(place)
                ended_operations.add(place)
        elif isinstance(event, SubagentProgress):
            agent = event.conversationId, event.agentId
            assert agent not in stopped
            assert (event.status == "started") == (agent not in running) or event.status != "started"
            running.add(agent)
            if event.status not in ("started", "running"):
                running.remove(agent)
                stopped.add(agent)
        elif isinstance(event, PermissionRequest):
            assert event.requestId not in asked
            asked.add(event.requestId)
        elif isinstance(event, PermissionCancelled):
            asked.remove(event.requestId)
    assert (open_operations, running) == (set(), set())
    assert answered or not asked


def texts(messages: Iterable[Any]) -> list[tuple[str | None, str]]:
    return [
        (message.session_id, block.text)
        for message in messages
        if isinstance(message, AssistantMessage) and message.parent_tool_use_id is None
        for block in message.content
        if isinstance(block, TextBlock) and block.text.strip()
    ]


def told(events: Iterable[UiEvent]) -> list[tuple[str | None, str]]:
    return [
        (event.conversationId, event.content)
        for event in events
        if isinstance(event, ClaudeResponse) and not event.partial
    ]


@each("name", NAMES, str)
def test_each_text_appears_once_and_all_that_begins_ends(name: str) -> None:
    messages = fed(Decoder(), [recordings.load(name).stdout])
    events = events_of(Bridge(), messages)
    check_ends(events)
    assert told(events) == texts(messages)
    calls = {block.id for message in messages if isinstance(message, AssistantMessage) for block in message.tool_uses}
    assert {event.id for event in events if isinstance(event, Operation)} >= calls
    turns = {message.uuid or id(message): message for message in messages if isinstance(message, ResultMessage)}
    assert [event.ok for event in events if isinstance(event, TurnComplete)] == [one.ok for one in turns.values()]
    for event in events:
        assert event.to_json().startswith('{"type":"')


def test_a_turn_that_leaves_a_subagent_at_work_says_that_the_run_goes_on() -> None:
    """The first result arrives while a subagent works in the background, and the second one after it has ended."""
    events = events_of(Bridge(), fed(Decoder(), [recordings.load("15_subagent_background").stdout]))
    assert [event.background for event in events if isinstance(event, TurnComplete)] == [1, None]


@each("name", NAMES, str)
def test_the_chunks_of_a_stream_make_no_difference(name: str) -> None:
    recording = recordings.load(name)
    expected = events_of(Bridge(partial=True), fed(Decoder(), [recording.stdout]))
    sizes = [tuple(recording.reads) or (4096,), (65_536,)]
    if len(recording.stdout) <= SMALL:
        sizes += [(1,), (7,)]
    for chunks in sizes:
        assert events_of(Bridge(partial=True), fed(Decoder(), cut(recording.stdout, *chunks))) == expected


def test_streams_that_are_mixed_give_what_each_of_them_gives() -> None:
    """The streams use the same ids, so the bridge must distinguish them by their session."""
    found: list[list[Any]] = []
    sessions: set[str] = set()
    for name in NAMES:
        messages = [m for m in fed(Decoder(), [recordings.load(name).stdout]) if getattr(m, "session_id", None)]
        own = {message.session_id for message in messages}
        if len(own) == 1 and not own & sessions and len(messages) < 300:
            sessions |= own
            found.append(messages)
    assert len(found) > 60
    mixed = [message for row in itertools.zip_longest(*found) for message in row if message is not None]
    events = events_of(Bridge(), mixed)
    check_ends(events)
    together = by_conversation(events)
    for messages in found:
        alone = events_of(Bridge(), messages)
        assert (
            by_conversation(alone) == {id: one for id, one in together.items() if id == messages[0].session_id}
            or not alone
        )


@each("name", NAMES, str)
def test_deltas_come_under_the_id_of_the_text_that_replaces_them(name: str) -> None:
    messages = fed(Decoder(), [recordings.load(name).stdout])
    events = [one for one in events_of(Bridge(partial=True), messages) if isinstance(one, ClaudeResponse)]
    assert told(events) == texts(messages)
    streamed: dict[str, str] = {}
    finals: Counter[str] = Counter()
    for event in events:
        assert event.content
        if event.partial:
            assert event.id is not None
            assert not finals[event.id]
            streamed[event.id] = streamed.get(event.id, "") + event.content
        elif event.id is not None:
            finals[event.id] += 1
            assert event.content.strip() == streamed[event.id].strip()
    assert not finals or max(finals.values()) == 1


def test_every_stream_may_end_anywhere() -> None:
    for name in ("15_subagent_background", "05_perm_cancel", "16_interrupt_bash", "06_hooks"):
        messages = fed(Decoder(), [recordings.load(name).stdout])
        for end in range(len(messages)):
            check_ends(events_of(Bridge(), messages[:end]))
