"""The spans of a session, from its recording and while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from each import each

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from async_backends import every_backend
from claude_wire import AssistantMessage, decode
from claude_wire.agent import Agent, Turn
from claude_wire.integrations import otel
from claude_wire.testing import open_agent
from claude_wire.transcripts import Transcript, messages
from claude_wire_kit.events.operations import MAX_OPERATIONS
from cli_lines import assistant, call, delta, event, line, result, returned, start
from recordings import load, names
from sessions import outputs, scenarios, truth, unpack
from shown import decoded
from spans import PlainSpan, Spans, spans_of

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
USAGE = "gen_ai.usage."
#: Attributes of an answer that a stream without deltas does not have.
FINAL = {f"{USAGE}output_tokens", f"{USAGE}reasoning.output_tokens", "gen_ai.response.finish_reasons"}

#: Scenarios whose transcripts and streams hold different answers. The reasons: copies in forks, subagents whose texts
#: were not forwarded, inactive branches, no transcript, answers lost in a crash, and answers written after the host
#: had closed the stream.
OTHERS = {
    *("fork_both", "resume_fork_clear", "subagent", "subagent_models", "subagent_nested", "subagent_parallel"),
    *("resume_at", "no_persistence", "torn_resumed", "hooks_every_event", "plugin_all", "skills_project"),
    "h_background",
}


@pytest.fixture(autouse=True)
def without_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CAPTURE, raising=False)


def on_disk(scenario: str, folder: Path) -> list[PlainSpan]:
    paths = sorted(unpack(scenario, folder).glob("*/*.jsonl"))
    return [span for path in paths for span in spans_of(messages(Transcript.load(path)))]


def streamed(scenario: str) -> list[PlainSpan]:
    return [span for output in outputs(scenario) for span in spans_of(decoded(output))]


def plain(lines: list[dict[str, Any]]) -> list[Any]:
    return [decode(json.dumps(line)) for line in lines]


def at(second: int) -> str:
    return f"2026-11-20T10:00:{second:02d}.500Z"


# --- recorded sessions ------------------------------------------------------------------------------------------------


def same_in_both(spans: list[PlainSpan]) -> Counter[str]:
    """Count the spans by what a stream without deltas and prompts knows: no final token counts, no start of a turn."""
    kept: Counter[str] = Counter()
    for span in spans:
        attributes = {key: value for key, value in span.attributes.items() if key not in FINAL}
        start = span.start if span.name.startswith("execute_tool") else 0
        kept[repr((span.path, start, span.end, sorted(attributes.items()), span.failed, span.kind))] += 1
    return kept


@pytest.mark.parametrize("scenario", [name for name in scenarios() if name not in OTHERS])
def test_transcript_gives_the_spans_of_its_stream(scenario: str, tmp_path: Path) -> None:
    disk, stream = on_disk(scenario, tmp_path), streamed(scenario)
    assert disk
    assert same_in_both(disk) == same_in_both(stream)


def test_deltas_bring_the_final_counts(tmp_path: Path) -> None:
    disk, stream = on_disk("think", tmp_path), streamed("think")
    assert [span.attributes for span in disk] == [span.attributes for span in stream]
    chats = [span for span in disk if span.name.startswith("chat")]
    assert chats
    assert all(FINAL & span.attributes.keys() for span in chats)


@pytest.mark.parametrize("scenario", scenarios())
def test_tokens_are_those_of_the_answers_and_on_leaves_alone(scenario: str, tmp_path: Path) -> None:
    """Only leaf spans carry tokens, and their sums match the answers. Transcripts with copies or gaps have no sum."""
    spans = on_disk(scenario, tmp_path)
    counted = [span for span in spans if any(key.startswith(USAGE) for key in span.attributes)]
    assert all(span.name.startswith("chat ") for span in counted)
    if scenario in ("fork_both", "resume_fork_clear", "resume_at", "torn_resumed", "no_persistence"):
        return
    expected = Counter[str]()
    for model in truth(scenario)["sums"]["expected_from_transcripts"].values():
        cached = model["cache_read_input_tokens"] + model["cache_creation_input_tokens"]
        expected["input_tokens"] += model["input_tokens"] + cached
        expected["output_tokens"] += model["output_tokens"]
    found = Counter[str]()
    for span in counted:
        for name in ("input_tokens", "output_tokens"):
            found[name] += span.attributes.get(USAGE + name, 0)
    if scenario.startswith("interrupt"):  # the CLI does not report the length of an interrupted answer
        del found["output_tokens"], expected["output_tokens"]
    assert found == expected


def test_subagents_stand_below_the_calls_that_started_them(tmp_path: Path) -> None:
    spans = on_disk("subagent_nested", tmp_path)
    root, outer = "invoke_agent claude-code", ("execute_tool Agent", "invoke_agent general-purpose")
    assert Counter(span.path[:-1] for span in spans if span.name == "execute_tool Bash") == {
        (root, *outer): 1,
        (root, *outer, *outer): 1,
    }
    agents = [span for span in spans if span.name == outer[1]]
    assert len({span.attributes["gen_ai.agent.id"] for span in agents}) == 2
    assert all(span.kind == ("CLIENT" if span.name.startswith("chat") else "INTERNAL") for span in spans)


@each("name", names(), str)
def test_every_span_that_starts_ends_and_no_stream_raises(name: str) -> None:
    spans = Spans()
    started: list[Any] = []
    original = spans.tracer.start_span

    def start_span(*arguments: Any, **named: Any) -> Any:
        started.append(original(*arguments, **named))
        return started[-1]

    spans.tracer.start_span = start_span
    otel.record(decoded(load(name).stdout), spans.tracer)
    assert all(span.end_time is not None and span.end_time >= span.start_time for span in started)


# --- the rules, one by one --------------------------------------------------------------------------------------------


def test_what_stands_on_each_span() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 7, "output_tokens": 11}
    said = assistant(call("a", command="ls"), timestamp=at(2), agent_id=None)
    said["message"] |= {"model": "claude-x", "usage": usage, "stop_reason": "tool_use"}
    prompt = {"type": "user", "message": {"role": "user", "content": "Hi"}, "isReplay": True, "session_id": "s"}
    back = {**returned("a", "no", is_error=True), "timestamp": at(3), "session_id": "s"}
    agent, chat, tool = spans_of(plain([{**prompt, "timestamp": at(1)}, said, back]))
    common = {"gen_ai.provider.name": "anthropic", "gen_ai.conversation.id": "s"}
    assert agent.attributes == {
        **common,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "claude-code",
        "gen_ai.request.model": "claude-x",
    }
    assert chat.attributes == {
        **common,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "claude-x",
        "gen_ai.response.model": "claude-x",
        "gen_ai.response.id": "m",
        "gen_ai.response.finish_reasons": ("tool_use",),
        "gen_ai.usage.input_tokens": 42,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "gen_ai.usage.output_tokens": 11,
    }
    assert tool.attributes == {
        **common,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "Bash",
        "gen_ai.tool.call.id": "a",
        "gen_ai.tool.type": "function",
        "error.type": "tool_error",
    }
    second = 1_000_000_000
    base = 1795168800 * second + 500_000_000
    assert [(span.start - base, span.end - base) for span in (agent, chat, tool)] == [
        (1 * second, 3 * second),
        (1 * second, 2 * second),
        (2 * second, 3 * second),
    ]
    assert (agent.failed, chat.failed, tool.failed) == (False, False, True)


def test_content_is_there_only_if_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "the secret"
    prompt = {"type": "user", "message": {"role": "user", "content": secret}, "isReplay": True, "session_id": "s"}
    said = assistant(secret, call("a", command=secret), timestamp=at(2))
    lines = plain(
        [{**prompt, "timestamp": at(1)}, said, {**returned("a", secret), "session_id": "s", "timestamp": at(3)}]
    )
    for value in ("", "false", "NO_CONTENT", "EVENT_ONLY", "yes"):
        monkeypatch.setenv(CAPTURE, value)
        assert secret not in repr(spans_of(lines))
    for value in ("true", "SPAN_ONLY", "span_and_event"):
        monkeypatch.setenv(CAPTURE, value)
        agent, chat, tool = spans_of(lines)
        parts = [{"type": "text", "content": secret}]
        assert json.loads(agent.attributes["gen_ai.input.messages"]) == [{"role": "user", "parts": parts}]
        asked = {"type": "tool_call", "id": "a", "name": "Bash", "arguments": {"command": secret}}
        assert json.loads(chat.attributes["gen_ai.output.messages"]) == [
            {"role": "assistant", "parts": [*parts, asked], "finish_reason": "error"}
        ]
        assert json.loads(tool.attributes["gen_ai.tool.call.arguments"]) == {"command": secret}
        assert json.loads(tool.attributes["gen_ai.tool.call.result"]) == secret
    long = assistant("x" * 200_000, call("a", command="y" * 200_000))
    assert all(len(repr(span)) < 2000 for span in spans_of(plain([long, returned("a", "z" * 200_000)])))


def test_interrupted_turn_and_failed_one() -> None:
    _, chat = spans_of(
        plain([assistant("I was", aborted=True), result(is_error=True, terminal_reason="aborted_tools")])
    )
    assert chat.attributes["error.type"] == "interrupted"
    (agent, _) = spans_of(plain([assistant("x"), result(subtype="error_max_turns", is_error=True, session_id="s")]))
    assert (agent.failed, agent.attributes["error.type"]) == (True, "error_max_turns")
    synthetic = assistant("Please log in", error="authentication_failed")
    synthetic["message"]["model"] = "<synthetic>"
    (agent,) = spans_of(plain([synthetic]))
    assert agent.attributes["error.type"] == "authentication_failed"
    refused = {**returned("a", "no", is_error=True), "session_id": "s"}
    refused["tool_result_meta"] = [{"id": "a", "non_execution_kind": "permission-rule"}]
    spans = spans_of(plain([assistant(call("a", command="rm")), refused]))
    assert spans[-1].attributes["error.type"] == "permission-rule"


def test_call_without_a_result_ends_with_its_turn() -> None:
    spans = spans_of(plain([assistant(call("a", command="sleep")), result(session_id="s")]))
    assert spans[-1].attributes["error.type"] == "unfinished"


def test_counts_of_a_delta_replace_those_of_the_start_unless_they_are_0() -> None:
    said = assistant("x", id="n")
    said["message"]["usage"] = {"input_tokens": 5, "cache_read_input_tokens": 30, "output_tokens": 1}
    usage = {"output_tokens": 70, "input_tokens": 0, "output_tokens_details": {"thinking_tokens": 9}}
    ends = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}, "n")
    _, chat = spans_of(plain([start("n"), delta("x", id="n"), said, ends]))
    assert chat.attributes["gen_ai.usage.input_tokens"] == 35
    assert chat.attributes["gen_ai.usage.output_tokens"] == 70
    assert chat.attributes["gen_ai.usage.reasoning.output_tokens"] == 9
    assert chat.attributes["gen_ai.response.finish_reasons"] == ("end_turn",)
    _, chat = spans_of(plain([start("other"), said, ends]))
    assert "gen_ai.usage.output_tokens" not in chat.attributes


def test_odd_values_are_left_out_or_made_safe() -> None:
    odd = assistant(call("a\ud800", "B\u202e\x1b" + "x" * 500, command="\ud800"), timestamp="9999-12-31T23:59:59Z")
    odd["message"] |= {
        "usage": {"input_tokens": 2**70, "output_tokens": -1},
        "stop_reason": "\ud800",
        "model": "\ud800",
    }
    for span in spans_of(plain([odd])):
        assert span.end < 2**63
        for value in (*span.path, *span.attributes.values()):
            assert not isinstance(value, str) or (value.isprintable() and len(value) < 200)
            assert not isinstance(value, int) or 0 <= value < 2**63


def test_background_subagent_belongs_to_its_call_after_that_has_ended(tmp_path: Path) -> None:
    for spans in (streamed("subagent_background"), on_disk("subagent_background", tmp_path)):
        (agent,) = [span for span in spans if span.name == "invoke_agent general-purpose"]
        (started,) = [span for span in spans if span.name == "execute_tool Agent"]
        assert agent.path[:-1] == started.path
        assert agent.end > started.end


def test_more_calls_and_agents_than_are_kept_end_the_oldest() -> None:
    spans = Spans()
    recorder = otel.SpanRecorder(spans.tracer)
    for number in range(MAX_OPERATIONS + 5):
        for message in plain([assistant(call(f"c{number}", "Agent"), id=f"m{number}")]):
            recorder.add(message)
    tools = [span for span in spans.ended if span.name == "execute_tool Agent"]
    assert [span.attributes["gen_ai.tool.call.id"] for span in tools] == [f"c{number}" for number in range(5)]
    for number in range(MAX_OPERATIONS + 5):
        for message in plain([assistant("x", parent=f"p{number}"), start(f"q{number}", parent=f"p{number}")]):
            recorder.add(message)
    kept = [recorder._agents, recorder._tools, recorder._started, recorder._deltas]
    assert all(len(each) <= MAX_OPERATIONS for each in kept)
    recorder.close()
    assert not any((recorder._agents, recorder._tools, recorder._started, recorder._deltas))


def test_subagents_in_each_other_end_however_deep() -> None:
    lines = [assistant(call("c0", "Agent"))]
    lines += [assistant(call(f"c{n}", "Agent"), parent=f"c{n - 1}") for n in range(1, 1000)]
    spans = Spans()
    otel.record(plain([*lines, result(session_id="s")]), spans.tracer)
    finished = spans._exporter.get_finished_spans()
    assert Counter(span.name.split()[0] for span in finished) == {
        "invoke_agent": 1000,
        "chat": 1000,
        "execute_tool": 1000,
    }


def test_content_of_open_spans_and_long_ids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CAPTURE, "true")
    spans = Spans()
    recorder = otel.SpanRecorder(spans.tracer)
    long = "i" * 1000
    for number in range(MAX_OPERATIONS):
        block = call(f"{long}{number}", "Agent", command="y" * 60_000)
        parent, session = f"{long}p{number}", f"{long}s"
        said = assistant("x" * 60_000, block, id=f"{long}m{number}", parent=parent)
        recorder.add(*plain([{**said, "session_id": session}]))
    assert otel.MAX_HELD - 200_000 < recorder._held <= otel.MAX_HELD
    assert len(recorder._tools) == MAX_OPERATIONS
    keys = [key for known in (recorder._agents, recorder._tools, recorder._started) for key in known]
    assert all(len(id) <= 128 for key in keys for id in key if id is not None)
    recorder.close()
    assert recorder._held == 0
    with_input = ["gen_ai.tool.call.arguments" in span.attributes for span in spans.ended if len(span.path) == 2]
    assert {True, False} <= set(with_input)


# --- The spans of a live session end, however its messages end --------------------------------------------------------


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


def names_of(spans: Spans) -> list[tuple[str, str | None]]:
    return [(span.name, span.attributes.get("error.type")) for span in spans.ended]


async def take(messages: Any) -> list[Any]:
    return [message async for message in messages]


@every_backend
async def test_error_ends_them() -> None:
    spans, closed = Spans(), list[str]()

    with pytest.raises(Closed):
        await take(otel.traced(said(then=Closed(), closed=closed), spans.tracer))
    assert names_of(spans) == [
        ("invoke_agent claude-code", "Closed"),
        ("chat", "Closed"),
        ("execute_tool Bash", "Closed"),
    ]


@every_backend
async def test_cancellation_ends_them() -> None:
    spans, closed = Spans(), list[str]()

    async with anyio.create_task_group() as tasks:

        async def read() -> None:
            async for _ in otel.traced(said(closed=closed), spans.tracer):
                tasks.cancel_scope.cancel()

        tasks.start_soon(read)
    assert [(name, bool(error)) for name, error in names_of(spans)] == [
        ("invoke_agent claude-code", True),
        ("chat", True),
        ("execute_tool Bash", True),
    ]
    assert closed == ["closed"]


@every_backend
async def test_generator_that_is_closed_ends_them() -> None:
    spans, closed = Spans(), list[str]()

    async with aclosing(otel.traced(said(closed=closed), spans.tracer)) as messages:
        async for _ in messages:
            break
        assert names_of(spans) == []
    assert closed == ["closed"]
    assert names_of(spans) == [("invoke_agent claude-code", None), ("chat", None), ("execute_tool Bash", "unfinished")]


@every_backend
async def test_session_gives_its_messages_and_its_spans_below_the_active_one() -> None:
    spans = Spans()

    async def answer(turn: Turn) -> None:
        async def run(given: dict[str, Any]) -> str:
            return "done"

        await turn.run_tool("Bash", {"command": "ls"}, run)
        await turn.say("That was all.")

    with spans.tracer.start_as_current_span("request"):
        async with open_agent(Agent(answer), can_use_tool=lambda request: request.allow()) as session:
            await session.query("Look")
            seen = await take(otel.traced(session.receive_response(), spans.tracer))
    assert [message.text for message in seen if isinstance(message, AssistantMessage)][-1] == "That was all."
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
async def test_session_that_is_cancelled_within_a_call_leaves_no_span_open() -> None:
    spans = Spans()

    async def answer(turn: Turn) -> None:
        async def run(given: dict[str, Any]) -> str:
            await anyio.sleep_forever()
            return ""

        await turn.say("I look.")
        await turn.run_tool("Bash", {"command": "ls"}, run)

    async with open_agent(Agent(answer), can_use_tool=lambda request: request.allow()) as session:
        with anyio.CancelScope() as scope:
            await session.query("Look")
            async for message in otel.traced(session.receive_response(), spans.tracer):
                if isinstance(message, AssistantMessage) and message.tool_uses:
                    scope.cancel()
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
