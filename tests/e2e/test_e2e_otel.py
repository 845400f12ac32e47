"""A live session of the real CLI and its transcript give the same spans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("opentelemetry.sdk")

from claude_wire import Session, StreamEvent
from claude_wire.integrations.otel import traced
from claude_wire.transcripts import Transcript, messages
from places import Place
from scripts import SESSION_ID
from spans import PlainSpan, Spans, spans_of
from through_sdk import DEADLINE
from through_session import Talk

#: With these a stream says what its transcript says.
WHOLE: dict[str, Any] = {
    "include_partial_messages": True,
    "replay_user_messages": True,
    "forward_subagent_text": True,
    "session_id": SESSION_ID,
}
#: What no stream says of the answers of subagents.
OF_SUBAGENTS = {"gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons"}


async def turn(session: Session, prompt: str, spans: Spans, *, interrupt: bool = False) -> None:
    await session.query(prompt)
    async for message in traced(session.receive_response(), spans.tracer):
        if interrupt and isinstance(message, StreamEvent) and getattr(message.event, "index", 0) == 1:
            interrupt = False
            await session.interrupt()


def live_and_on_disk(place: Place, *prompts: str, interrupt: str = "") -> tuple[list[PlainSpan], list[PlainSpan]]:
    spans = Spans()

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            async with Talk(place).session(permission_mode="bypassPermissions", **WHOLE) as session:
                for prompt in prompts:
                    await turn(session, prompt, spans, interrupt=prompt == interrupt)

    anyio.run(main)
    path: Path = next(place.home.rglob(f"{SESSION_ID}.jsonl"))
    return spans.ended, spans_of(messages(Transcript.load(path)))


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
    for span in below:
        for name in OF_SUBAGENTS:
            span.attributes.pop(name, None)
    assert live == disk


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
