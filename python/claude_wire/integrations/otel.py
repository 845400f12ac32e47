"""Create OpenTelemetry spans for a session, following the semantic conventions for generative AI.

::

    from claude_wire.integrations.otel import traced

    async with open_session(options) as session:
        await session.query("Hello")
        async for message in traced(session.receive_response()):
            ...

A turn is an ``invoke_agent`` span. Its children are a ``chat`` span for each of the model's answers, and an
``execute_tool`` span for each tool call. A subagent is an ``invoke_agent`` span below the ``execute_tool`` span that
started it. Only ``chat`` spans have token counts, so a sum over all spans counts each token once. Texts, inputs and
results are omitted, unless the environment variable ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` is ``true``,
``SPAN_ONLY`` or ``SPAN_AND_EVENT``.

A transcript's messages give the same spans as the messages of the stream, as far as both have the same content.

This module needs the package ``opentelemetry-api`` (extra ``otel``). At most ``MAX_OPERATIONS`` tool calls and
``MAX_OPERATIONS`` agents have open spans. Before another span is opened, the oldest is ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

from claude_wire.support.extras import install_extra

try:
    from opentelemetry import trace
except ModuleNotFoundError as _error:
    if _error.name != "opentelemetry":
        raise
    raise ImportError(
        f"claude_wire.integrations.otel needs opentelemetry-api: {install_extra('otel')}", name="opentelemetry"
    ) from _error

from claude_wire import messages as m
from claude_wire.integrations.otel_attributes import (
    CONTENT_CHARS,
    MAX_NUMBER,
    answered,
    as_json,
    asked,
    captures_content,
    count,
    end,
    failed,
    name_of,
    named,
    part,
    put_tokens,
    why,
)
from claude_wire.support.ids import Key as KnownId
from claude_wire.support.ids import key_of
from claude_wire.support.moments import moment
from claude_wire.support.plain_json import fields_of
from claude_wire.support.tool_calls import MAX_OPERATIONS, SUBAGENT_TOOLS

if TYPE_CHECKING:
    from types import TracebackType

    from opentelemetry.context import Context
    from typing_extensions import Self

__all__ = ["SpanRecorder", "record", "traced"]

#: The main agent's name.
AGENT = "claude-code"

#: The beginning of the text that the CLI writes as a user message when a turn is interrupted.
INTERRUPTED = "[Request interrupted by user"

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="m.Message | m.InvalidLine")

#: Maximum total length of the content on all open spans, in characters. More content is omitted.
MAX_HELD = 16 * 1024 * 1024

#: A session id, and the id of the tool call that runs the subagent; None for the main conversation.
Key: TypeAlias = "tuple[KnownId | None, KnownId | None]"


class _Open:
    """An open span, and how many characters of content it has."""

    __slots__ = ("held", "span")

    def __init__(self, span: trace.Span) -> None:
        self.span, self.held = span, 0


class _Chat(_Open):
    """The span of one of the model's answers."""

    __slots__ = ("counts", "end", "id", "parts", "stop")

    def __init__(self, span: trace.Span, id: KnownId | None, start: int) -> None:
        super().__init__(span)
        self.id, self.end = id, start
        self.counts: dict[str, int] = {}
        self.stop: str | None = None
        # The parts of the answer, each as JSON.
        self.parts: list[str] = []


class _Agent(_Open):
    """The span of a turn or a subagent. ``last`` is the time of its last message, in nanoseconds since 1970."""

    __slots__ = ("chat", "context", "error", "last")

    def __init__(self, span: trace.Span, start: int) -> None:
        super().__init__(span)
        self.last = start
        self.context: Context = trace.set_span_in_context(span)
        self.chat: _Chat | None = None
        self.error: str | None = None


class _Tool(_Open):
    """The span of a tool call that has no result yet, the agent that made the call, and the call's start time."""

    __slots__ = ("agent", "started")

    def __init__(self, span: trace.Span, agent: Key, started: int) -> None:
        super().__init__(span)
        self.agent, self.started = agent, started


class SpanRecorder:
    """Create spans from a session's messages, in order. It never raises because of a message. If a span processor
    raises, only that span is lost, and the first such error is logged as a warning of the logger ``claude_wire``.

    The times of spans come from the messages. :meth:`close` ends the spans that are still open; the recorder is also a
    context manager.

    Args:
        tracer: creates the spans; None: the global provider's tracer. The span of a turn is a child of the span that
            is active when the turn starts.
    """

    def __init__(self, tracer: trace.Tracer | None = None) -> None:
        self._tracer: trace.Tracer = trace.get_tracer("claude_wire") if tracer is None else tracer
        self._with_content: bool = captures_content()
        self._agents: dict[Key, _Agent] = {}
        self._tools: dict[Key, _Tool] = {}
        # Call that started a subagent -> the subagent's parent context, and the call's start time. The subagent may
        # write messages after the call ended.
        self._started: dict[Key, tuple[Context, int]] = {}
        # The start of the turn that has no answer yet, and its prompt; None if there is no such turn.
        self._began: int | None = None
        self._prompt: str | None = None
        self._last: int = 0
        # How many characters of content all open spans have.
        self._held: int = 0
        # Agent -> id of the answer that it is streaming. The last delta has the answer's final token counts.
        self._deltas: dict[Key, KnownId | None] = {}
        # True for the messages of a stream, false for those of a transcript.
        self._is_stream = False
        # True after a failure of the span provider was logged.
        self._told: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """End all open spans. The type of ``error``, if there is one, becomes their ``error.type``."""
        reason = None if error is None or isinstance(error, GeneratorExit) else type(error).__name__
        for key in list(self._agents):
            self._end_agent(key, reason)
        for key in list(self._tools):
            self._end_tool(key, self._last, reason or "unfinished")
        self._started.clear()
        self._deltas.clear()

    def add(self, message: m.Message | m.InvalidLine, now: int | None = None) -> None:
        """Start or end spans according to a message.

        Args:
            now: the time in nanoseconds since 1970 for messages without a time; None: the current time.
        """
        match message:
            case m.StreamEvent():
                self._event(message)
            case m.InitMessage():
                self._is_stream, self._began, self._prompt = True, now, None
            case m.AssistantMessage():
                self._assistant(message, now)
            case m.UserMessage():
                self._user(message, now)
            case m.ResultMessage():
                self._result(message)
            case m.TaskNotificationMessage(tool_use_id=str(id)):
                self._end_agent(_key(message.session_id, id))
            case _:
                pass

    def _time(self, stamp: str | None, now: int | None) -> int:
        when = moment(stamp)
        if when is not None and 1970 <= when.year < 2262:
            now = int(when.timestamp()) * 1_000_000_000 + when.microsecond * 1000
        self._last = min(time.time_ns() if now is None else now, MAX_NUMBER)
        return self._last

    # --- agents -------------------------------------------------------------------------------------------------------

    def _agent(self, key: Key, message: m.AssistantMessage, at: int) -> _Agent:
        """Return a message's agent. The agent's first answer creates the span, which starts at the prompt's time."""
        agent = self._agents.get(key)
        if agent is None:
            session, context = key[0], None
            if key[1] is None:
                name, start, self._began = AGENT, at if self._began is None else self._began, None
            else:
                name = name_of(message.subagent_type or "subagent")
                main = self._agents.get((session, None))
                context, start = self._started.get(key) or (main.context if main else None, at)
            _make_room(self._agents, self._end_agent)
            about = {"agent.name": name, "agent.id": message.agent_id, "request.model": message.model}
            span = self._span("invoke_agent", name, start, context, message.session_id, about)
            agent = self._agents[key] = _Agent(span, start)
            if key[1] is None and self._prompt is not None:
                self._content(agent, "gen_ai.input.messages", asked(self._prompt))
                self._prompt = None
        return agent

    def _end_agent(self, key: Key, error: str | None = None) -> None:
        """End an agent's span, after the spans of its answer, its calls, and their subagents."""
        ended: list[_Agent] = []
        waiting = [key]
        while waiting:  # not recursive, because subagents may be nested to any depth
            at = waiting.pop()
            agent = self._agents.pop(at, None)
            if agent is not None:
                ended.append(agent)
                self._end_chat(agent, error)
                calls = [call for call, tool in self._tools.items() if tool.agent == at]
                for call in calls:
                    self._end_tool(call, agent.last, agent.error or error or "unfinished")
                waiting += calls
        for agent in reversed(ended):
            self._end(agent, agent.last, agent.error or error)

    def _result(self, result: m.ResultMessage) -> None:
        key = _key(result.session_id, None)
        agent = self._agents.get(key)
        if agent is not None and not result.ok and agent.error is None:
            reason = "interrupted" if result.cancelled else result.terminal_reason or result.subtype or ""
            agent.error = name_of(reason)
        self._end_agent(key)
        self._began = self._prompt = None

    # --- answers ------------------------------------------------------------------------------------------------------

    def _assistant(self, message: m.AssistantMessage, now: int | None) -> None:
        key = _key(message.session_id, message.parent_tool_use_id)
        at, said, error = self._time(message.timestamp, now), message.message, message.error_reason
        error = message.api_error_type or error if error else None
        if message.model == "<synthetic>":  # the CLI wrote this text, not a model
            if error:
                agent = self._agent(key, message, at)
                agent.error, agent.last = name_of(error), max(agent.last, at)
            return
        agent = self._agent(key, message, at)
        chat = agent.chat
        id = None if said.id is None else key_of(said.id)
        if chat is None or chat.id != id or id is None:
            self._end_chat(agent)
            agent.error = None  # an earlier error did not end the turn
            model = name_of(message.model or "")
            about = {"request.model": model, "response.model": model, "response.id": said.id}
            kind, session = trace.SpanKind.CLIENT, message.session_id
            span = self._span("chat", model, agent.last, agent.context, session, about, kind)
            chat = agent.chat = _Chat(span, id, agent.last)
        chat.end = agent.last = max(agent.last, at)
        if said.usage is not None:
            # An answer has its final counts and its stop reason only in transcripts.
            count(chat.counts, said.usage, final=said.stop_reason is not None)
        chat.stop = name_of(said.stop_reason or "") or chat.stop
        if error or message.aborted:
            agent.error = name_of(error or "interrupted")
            self._safely(failed, chat.span, agent.error)
        for found in map(part, said.content if self._with_content else ()):
            text = None if found is None else as_json(found)
            if text is not None and chat.held + len(text) <= CONTENT_CHARS and self._hold(chat, len(text)):
                chat.parts.append(text)
        for call in message.tool_uses:
            self._call(key, agent, call, at, message.session_id)

    def _event(self, message: m.StreamEvent) -> None:
        """Take an answer's final counts from its last delta."""
        key = _key(message.session_id, message.parent_tool_use_id)
        match message.event:
            case m.MessageStartEvent(message=started):
                _make_room(self._deltas, self._deltas.pop)
                self._deltas[key] = None if started.id is None else key_of(started.id)
            case m.MessageDeltaEvent(usage=usage, delta=delta):
                agent, id = self._agents.get(key), self._deltas.pop(key, None)
                chat = None if agent is None else agent.chat
                if chat is not None and id is not None and chat.id == id:
                    count(chat.counts, usage, final=delta.stop_reason is not None)
                    chat.stop = name_of(delta.stop_reason or "") or chat.stop
            case _:
                pass

    def _end_chat(self, agent: _Agent, error: str | None = None) -> None:
        chat, agent.chat = agent.chat, None
        if chat is not None:
            self._safely(put_tokens, chat.span, chat.counts)
            if chat.stop:
                self._safely(chat.span.set_attribute, "gen_ai.response.finish_reasons", [chat.stop])
            if chat.parts:
                self._safely(chat.span.set_attribute, "gen_ai.output.messages", answered(chat.parts, chat.stop))
            self._end(chat, chat.end, error)

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, caller: Key, agent: _Agent, call: m.ToolUseBlock, at: int, session: str | None) -> None:
        key = caller[0], key_of(call.id)
        if key in self._tools:
            return
        _make_room(self._tools, lambda oldest: self._end_tool(oldest, at, "unfinished"))
        name = name_of(call.name)
        about: dict[str, str | None] = {"tool.name": name, "tool.call.id": call.id, "tool.type": "function"}
        span = self._span("execute_tool", name, at, agent.context, session, about)
        tool = self._tools[key] = _Tool(span, caller, at)
        self._content(tool, "gen_ai.tool.call.arguments", call.input)
        if call.name in SUBAGENT_TOOLS:
            _make_room(self._started, self._started.pop)
            self._started[key] = trace.set_span_in_context(span), at

    def _user(self, message: m.UserMessage, now: int | None) -> None:
        key = _key(message.session_id, message.parent_tool_use_id)
        agent, results = self._agents.get(key), message.tool_results
        at = self._time(message.timestamp, now)
        for result in results:
            call = key[0], key_of(result.tool_use_id)
            if fields_of(message.tool_use_result).get("isAsync") is not True:  # otherwise the subagent is still running
                self._end_agent(call)
                self._started.pop(call, None)
            tool = self._tools.get(call)
            if tool is not None and not result.is_error:
                self._content(tool, "gen_ai.tool.call.result", result.content)
            self._end_tool(call, at, why(message, result))
        if results and agent is not None:
            agent.last = max(agent.last, at)
        elif not results and key[1] is None:
            if message.text.startswith(INTERRUPTED):
                if agent is not None:
                    agent.error, agent.last = "interrupted", max(agent.last, at)
            # The priority "next" marks a prompt that was sent during the turn, in a transcript.
            elif message.isReplay and message.priority != "next":
                self._prompted(key, message.text, at)

    def _prompted(self, key: Key, text: str, at: int) -> None:
        """Begin a turn with a prompt. A transcript has no results, so there a prompt also ends the previous turn."""
        if not self._is_stream:
            self._end_agent(key)
        if key not in self._agents:
            self._began, self._prompt = at, text[: CONTENT_CHARS + 1] if self._with_content else None

    def _end_tool(self, key: Key, at: int, error: str | None) -> None:
        tool = self._tools.pop(key, None)
        if tool is not None:
            self._end(tool, max(tool.started, at), error)

    def _span(
        self,
        operation: str,
        name: str,
        start: int,
        context: Context | None,
        session: str | None,
        about: dict[str, str | None],
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
    ) -> trace.Span:
        attributes = named(operation, {"conversation.id": session, **about})
        title = f"{operation} {name}".strip()
        span = self._safely(self._tracer.start_span, title, context, kind, attributes, start_time=start)
        return trace.INVALID_SPAN if span is None else span

    def _content(self, of: _Open, name: str, value: Any) -> None:
        """Add content to a span, if content is enabled and :data:`MAX_HELD` allows it."""
        text = as_json(value) if self._with_content else None
        if text is not None and self._hold(of, len(text)):
            self._safely(of.span.set_attribute, name, text)

    def _hold(self, of: _Open, chars: int) -> bool:
        if self._held + chars > MAX_HELD:
            return False
        of.held += chars
        self._held += chars
        return True

    def _end(self, of: _Open, at: int, error: str | None) -> None:
        self._held -= of.held
        self._safely(end, of.span, at, error)

    def _safely(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Call one of the span provider's functions. A provider error must not make the session fail."""
        try:
            return work(*args, **kwargs)
        except Exception as error:
            if not self._told:
                self._told = True
                text = "Spans are missing: the provider of OpenTelemetry has raised %s"
                logging.getLogger("claude_wire").warning(text, type(error).__name__, exc_info=error)
            return None


async def traced(messages: AsyncIterable[M], tracer: trace.Tracer | None = None) -> AsyncGenerator[M, None]:
    """Yield a live session's messages, and create spans from them.

    All spans are ended when the messages end, raise, or are cancelled, and when this generator is closed. If your code
    may leave the loop early, close the generator with :class:`contextlib.aclosing`.

    Args:
        messages: for example ``session``, ``session.receive_response()`` or a :class:`~claude_wire.Process`.
        tracer: as for :class:`SpanRecorder`.
    """
    async with AsyncExitStack() as stack:
        if isinstance(messages, AsyncGenerator):
            await stack.enter_async_context(aclosing(cast("AsyncGenerator[M, None]", messages)))
        recorder = stack.enter_context(SpanRecorder(tracer))
        async for message in messages:
            recorder.add(message, time.time_ns())
            yield message


def record(messages: Iterable[m.Message | m.InvalidLine], tracer: trace.Tracer | None = None) -> None:
    """Create the spans for a stream's or a transcript's recorded messages.

    Args:
        messages: for example ``claude_wire.read(path)`` or ``claude_wire.transcripts.messages(transcript)``.
        tracer: as for :class:`SpanRecorder`.
    """
    with SpanRecorder(tracer) as recorder:
        for message in messages:
            recorder.add(message)


def _key(session: str | None, parent: str | None) -> Key:
    return None if session is None else key_of(session), None if parent is None else key_of(parent)


def _make_room(known: dict[Key, Any], drop: Callable[[Key], object]) -> None:
    if len(known) >= MAX_OPERATIONS:
        drop(next(iter(known)))
