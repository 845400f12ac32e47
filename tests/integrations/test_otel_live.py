"""The spans of a live session end, however its messages end."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import anyio
import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from async_backends import Backend, every_backend
from claude_wire import AssistantMessage, decode
from claude_wire.agent import Agent, Turn
from claude_wire.integrations import otel
from claude_wire.testing import open_agent
from cli_lines import assistant, call, line, result
from spans import Spans

SAID = [decode(line(assistant("I look.", call("a", command="ls"), timestamp="2026-11-20T10:00:00Z")))]


class Closed(Exception):
    pass


async def said(*, then: BaseException | None = None, closed: list[str]) -> AsyncIterator[Any]:
    """Yield the messages of SAID, then raise `then`, or wait forever without it."""
    try:
        for message in SAID:
            yield message
        if then is not None:
            raise then
        await anyio.sleep_forever()
    finally:
        closed.append("closed")


def names(spans: Spans) -> list[tuple[str, str | None]]:
    return [(span.name, span.attributes.get("error.type")) for span in spans.ended]


async def take(messages: Any) -> list[Any]:
    return [message async for message in messages]


@every_backend
def test_error_ends_them(backend: Backend) -> None:
    spans, closed = Spans(), list[str]()

    async def main() -> None:
        with pytest.raises(Closed):
            await take(otel.traced(said(then=Closed(), closed=closed), spans.tracer))

    backend.run(main)
    assert names(spans) == [
        ("invoke_agent claude-code", "Closed"),
        ("chat", "Closed"),
        ("execute_tool Bash", "Closed"),
    ]


@every_backend
def test_cancellation_ends_them(backend: Backend) -> None:
    spans, closed = Spans(), list[str]()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                async for _ in otel.traced(said(closed=closed), spans.tracer):
                    tasks.cancel_scope.cancel()

            tasks.start_soon(read)

    backend.run(main)
    assert [(name, bool(error)) for name, error in names(spans)] == [
        ("invoke_agent claude-code", True),
        ("chat", True),
        ("execute_tool Bash", True),
    ]
    assert closed == ["closed"]


@every_backend
def test_generator_that_is_closed_ends_them(backend: Backend) -> None:
    spans, closed = Spans(), list[str]()

    async def main() -> None:
        async with aclosing(otel.traced(said(closed=closed), spans.tracer)) as messages:
            async for _ in messages:
                break
            assert names(spans) == []
        assert closed == ["closed"]

    backend.run(main)
    assert names(spans) == [("invoke_agent claude-code", None), ("chat", None), ("execute_tool Bash", "unfinished")]


@every_backend
def test_session_gives_its_messages_and_its_spans_below_the_active_one(backend: Backend) -> None:
    spans = Spans()

    async def answer(turn: Turn) -> None:
        async def run(given: dict[str, Any]) -> str:
            return "done"

        await turn.run_tool("Bash", {"command": "ls"}, run)
        await turn.say("That was all.")

    async def main() -> None:
        with spans.tracer.start_as_current_span("request"):
            async with open_agent(Agent(answer), can_use_tool=lambda request: request.allow()) as session:
                await session.query("Look")
                seen = await take(otel.traced(session.receive_response(), spans.tracer))
        assert [message.text for message in seen if isinstance(message, AssistantMessage)][-1] == "That was all."

    backend.run(main)
    ended = spans.ended
    root = ("request", "invoke_agent claude-code")
    assert {span.path for span in ended} >= {("request",), root, (*root, "execute_tool Bash")}
    request = next(span for span in ended if span.name == "request")
    assert all(request.start <= span.start <= span.end <= request.end for span in ended)


class Raising(SpanProcessor):
    """Raises when a span of this name starts, or when it ends."""

    def __init__(self, at: str, name: str) -> None:
        self._at, self._name = at, name

    def _see(self, at: str, span: Any) -> None:
        if (at, span.name.split()[0]) == (self._at, self._name):
            raise Closed

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._see("start", span)

    def on_end(self, span: Any) -> None:
        self._see("end", span)


@pytest.mark.parametrize("name", ["invoke_agent", "chat", "execute_tool"])
@pytest.mark.parametrize("at", ["start", "end"])
def test_provider_that_raises_costs_its_spans_and_no_message(
    at: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is logged once. All other spans exist and have ended."""
    spans = Spans(Raising(at, name))
    lines = [assistant("And more.", id="m2"), assistant("Done.", id="m3"), result(session_id="s")]
    messages = [*SAID, *(decode(line(each)) for each in lines)]

    async def given() -> AsyncIterator[Any]:
        for message in messages:
            yield message

    async def main() -> None:
        assert await take(otel.traced(given(), spans.tracer)) == messages

    anyio.run(main)
    expected = {"invoke_agent": 1, "chat": 3, "execute_tool": 1}
    del expected[name]
    assert Counter(span.name.split()[0] for span in spans.ended) == expected
    assert [record.getMessage() for record in caplog.records] == [
        "Spans are missing: the provider of OpenTelemetry has raised Closed"
    ]


@pytest.mark.parametrize("method", ["set_attribute", "set_status", "end"])
def test_spans_that_raise_break_nothing(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other implementations of the OpenTelemetry API may raise where its SDK does not."""
    raised: list[str] = []

    def fail(*_: object, **__: object) -> None:
        raised.append(method)
        raise Closed

    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    monkeypatch.setattr(trace.NonRecordingSpan, method, fail)
    with otel.SpanRecorder(trace.NoOpTracer()) as recorder:
        recorder.add(SAID[0])
    assert raised


@every_backend
def test_session_that_is_cancelled_within_a_call_leaves_no_span_open(backend: Backend) -> None:
    spans = Spans()

    async def answer(turn: Turn) -> None:
        async def run(given: dict[str, Any]) -> str:
            await anyio.sleep_forever()
            return ""

        await turn.say("I look.")
        await turn.run_tool("Bash", {"command": "ls"}, run)

    async def main() -> None:
        async with open_agent(Agent(answer), can_use_tool=lambda request: request.allow()) as session:
            with anyio.CancelScope() as scope:
                await session.query("Look")
                async for message in otel.traced(session.receive_response(), spans.tracer):
                    if isinstance(message, AssistantMessage) and message.tool_uses:
                        scope.cancel()

    backend.run(main)
    ended = {span.name: span for span in spans.ended}
    assert {"invoke_agent claude-code", "execute_tool Bash"} <= ended.keys()
    assert all(span.failed for span in ended.values() if not span.name.startswith("chat"))


def test_global_tracer_is_taken_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = Spans()
    monkeypatch.setattr(trace, "get_tracer", lambda name: spans.tracer)
    with otel.SpanRecorder() as recorder:
        recorder.add(SAID[0])
    assert len(spans.ended) == 3


def test_without_the_package_the_module_says_what_to_install() -> None:
    program = "import sys; sys.modules['opentelemetry'] = None; import claude_wire.integrations.otel"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "claude_wire.integrations.otel needs opentelemetry-api" in done.stderr
