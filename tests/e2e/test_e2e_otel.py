"""A live session of the real CLI and its transcript produce the same OpenTelemetry spans."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("opentelemetry.sdk")

from claude_wire import ResultMessage, Session, StreamEvent
from claude_wire.integrations.otel import traced
from claude_wire.transcripts import Transcript, messages
from places import Place
from scripts import SESSION_ID
from spans import PlainSpan, Spans, spans_of
from through_sdk import DEADLINE
from through_session import Talk

#: Options with which the live stream contains everything that the transcript records.
WHOLE: dict[str, Any] = {
    "include_partial_messages": True,
    "replay_user_messages": True,
    "forward_subagent_text": True,
    "session_id": SESSION_ID,
}
#: Attributes that the live stream never has for a subagent's answers.
OF_SUBAGENTS = {"gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons"}


async def turn(session: Session, prompt: str, spans: Spans, *, interrupt: bool = False) -> None:
    await session.query(prompt)
    async for message in traced(session.receive_response(), spans.tracer):
        if interrupt and isinstance(message, StreamEvent) and getattr(message.event, "index", 0) == 1:
            interrupt = False
            await session.interrupt()


def on_disk(place: Place) -> list[PlainSpan]:
    path: Path = next(place.home.rglob(f"{SESSION_ID}.jsonl"))
    return spans_of(messages(Transcript.load(path)))


def without(span: PlainSpan, since: float = math.inf) -> PlainSpan:
    """Remove what only one side knows: final counts of subagents, and start times at or after `since`."""
    kept = {key: value for key, value in span.attributes.items() if key not in OF_SUBAGENTS or len(span.path) < 3}
    return span._replace(attributes=kept, start=0 if span.start >= since else span.start)


def live_and_on_disk(place: Place, *prompts: str, interrupt: str = "") -> tuple[list[PlainSpan], list[PlainSpan]]:
    spans = Spans()

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            async with Talk(place).session(permission_mode="bypassPermissions", **WHOLE) as session:
                for prompt in prompts:
                    await turn(session, prompt, spans, interrupt=prompt == interrupt)

    anyio.run(main)
    return spans.ended, on_disk(place)


def test_turns_with_tools_that_fail_and_thinking(place: Place) -> None:
    live, disk = live_and_on_disk(place, "[[thinking]]", "[[endless]]", "[[read]]", "[[mcp]]")
    assert live == disk
    chats = [span for span in live if span.name.startswith("chat ")]
    assert len(chats) >= 8
    assert all(span.attributes["gen_ai.usage.output_tokens"] > 0 for span in chats)
    assert all(span.start < span.end for span in chats)


def test_a_subagent(place: Place) -> None:
    live, disk = live_and_on_disk(place, "[[agent]]")
    below = [span for span in disk if "execute_tool Agent" in span.path[:-1]]
    assert [span.name.split()[0] for span in below] == ["invoke_agent", "chat", "execute_tool", "chat"]
    assert [without(span) for span in live] == [without(span) for span in disk]


def test_a_subagent_in_the_background(place: Place) -> None:
    """When a background subagent ends, the CLI starts a turn without a prompt. Its span starts at the CLI's message."""
    spans = Spans()

    async def main() -> None:
        assert place.api is not None
        with anyio.fail_after(DEADLINE):
            async with Talk(place).session(permission_mode="bypassPermissions", **WHOLE) as session:
                await session.query("[[background_agent]]")
                async for message in traced(session.receive_run(), spans.tracer):
                    if isinstance(message, ResultMessage):
                        place.api.open("scout")

    anyio.run(main)
    live, disk = spans.ended, on_disk(place)
    brought = [span.start for span in disk if len(span.path) == 1][1]
    assert [span.name.split()[0] for span in disk if "invoke_agent general-purpose" in span.path[:-1]] == [
        *("chat", "execute_tool", "chat")
    ]
    assert [without(span, brought) for span in live] == [without(span, brought) for span in disk]


def test_an_interrupted_turn(place: Place) -> None:
    live, disk = live_and_on_disk(place, "[[stall]]", "[[again]]", interrupt="[[stall]]")
    assert live == disk
    assert [span.attributes.get("error.type") for span in live if span.name.startswith("invoke")] == [
        "interrupted",
        None,
    ]


def test_an_api_that_refuses(place: Place) -> None:
    live, disk = live_and_on_disk(place, "[[again]]", "[[error_400]]")
    assert live == disk
    assert (live[-1].path, live[-1].attributes["error.type"]) == (
        ("invoke_agent claude-code",),
        "invalid_request_error",
    )
