"""Turn messages into events. This module decides which parts of a session a person sees.

It does no I/O and reads no clock, so the same messages always give the same events. The terminal, the HTML page and the
web page use ``Bridge(details=True)``, whose events contain everything that the messages say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias, cast, get_args

from msgspec.structs import replace

from claude_wire import messages as m
from claude_wire.dialects.frames import as_stream_json
from claude_wire.messages.conversation.results import words_of
from claude_wire.messages.union import require_message
from claude_wire.support import MAX_OPERATIONS, SUBAGENT_TOOLS, Ids, Key, key_of, one_line, require_function, short_id
from claude_wire_kit.events.content import block_name, has_content, parts_of
from claude_wire_kit.events.conversation import Conversation
from claude_wire_kit.events.events import (
    Activity,
    Answer,
    ClaudeResponse,
    Notice,
    PromptOrigin,
    SessionStarted,
    SubagentStatus,
    Thinking,
    Tokens,
    TurnComplete,
    UiEvent,
    UserPrompt,
)
from claude_wire_kit.events.names import tag, why_failed
from claude_wire_kit.events.notices import FOR_ALL, MAY_BE_FOR_ALL, describe_activity, describe_message
from claude_wire_kit.events.permissions import Permissions, Settled
from claude_wire_kit.events.progress import MAX_READ, PROGRESS_RULES, ProgressRule
from claude_wire_kit.events.requests import describe_answer, describe_question, describe_request, prompt_in
from claude_wire_kit.events.subagents import find_mentions
from claude_wire_kit.events.work import CALLS, Task, Work, decision_of
from claude_wire_kit.usage.meter import UsageMeter

#: Maximum number of conversations. The next one ends the conversation whose last message is the oldest.
MAX_CONVERSATIONS = 256
#: How many prompts the bridge remembers, because the CLI may repeat them, and how many texts, because a result may
#: repeat them.
MAX_PROMPTS, MAX_SAID = 1000, 100
#: The output of the CLI's local commands begins with one of these texts.
PRINTED = ("<local-command-stdout>", "<local-command-stderr>")
#: When the user interrupts a turn, the CLI writes a user message that begins with this text.
INTERRUPTED = "[Request interrupted by user"

Events: TypeAlias = "list[UiEvent]"


class Bridge:
    """Turns the messages of one or several streams into events for a front end.

    Give all messages to ``add`` in order, including control messages and messages of other dialects. The bridge keeps
    separate state for each session. A message without a session id belongs to the session of the previous message. The
    events are those of :data:`~claude_wire_kit.events.UiEvent`; each has ``to_dict()`` and ``to_json()``.

    ``docs/events.md`` lists the limits of this state, in items and in bytes. An id of more than 128 characters is
    replaced by its digest.

    Args:
        project: called once for each session, with the session's id. Returns the session's ``projectId``, or None.
        progress: the rules that find progress in text. An empty tuple turns them off.
        partial: also create events for text deltas.
        prompts: also create events for the prompts that the CLI repeats.
        permissions_from_tools: names of tools. Each use of one of these tools creates a permission question, until the
            agent asks its first question itself. The agent does not wait for the answer.
        details: also create events for everything else: thinking, subagents' texts, whole inputs and results, every
            prompt, hooks, and the host's requests. These classes and fields are marked *detail*.
    """

    def __init__(
        self,
        project: Callable[[str], str | None] | None = None,
        progress: Iterable[ProgressRule] = PROGRESS_RULES,
        partial: bool = False,
        prompts: bool = False,
        permissions_from_tools: Iterable[str] = (),
        details: bool = False,
    ) -> None:
        if project is not None:
            require_function("project", project, "the session id", awaited=False)
        self._project = project
        self._rules = tuple(progress)
        if not all(map(callable, self._rules)):
            raise TypeError("progress must be a list of functions, such as PROGRESS_RULES")
        if isinstance(permissions_from_tools, (str, bool)):
            raise TypeError("permissions_from_tools must be names of tools, such as ['Bash', 'Write']")
        # The tools whose uses become questions. Empty once the agent asked a question itself.
        self._asked_tools: frozenset[str] = frozenset(permissions_from_tools)
        self._partial = partial
        self._conversations: dict[str | None, Conversation] = {}
        # The conversation of the previous message.
        self._latest: Conversation | None = None
        self._messages = 0
        # The uuids of prompts that already have an event. If the host sends a prompt again, the CLI repeats it again.
        self._prompts = Ids()
        self._prompts_wanted = prompts
        self._work = Work(self._rules, details=details)
        self._permissions = Permissions(details=details)
        self._meter = UsageMeter()
        self._details = details
        # Only for details. `_awaited`: shown prompts that the CLI may still give to a hook or repeat. `_hooked`: shown
        # prompts that a hook got, and that the CLI may still repeat. `_said`: the latest texts of main conversations.
        self._awaited: deque[Key] = deque(maxlen=MAX_PROMPTS)
        self._hooked: deque[Key] = deque(maxlen=MAX_PROMPTS)
        self._said: deque[Key] = deque(maxlen=MAX_SAID)
        # The CLI's open requests: id key -> (subtype, tool call id).
        self._asked: dict[Key, tuple[str, str | None]] = {}
        # The latest SessionStarted event, and the number of characters in the tool input that is streaming now.
        self._started: SessionStarted | None = None
        self._input_chars = 0

    def __repr__(self) -> str:
        return (
            f"<Bridge: {len(self._conversations)} conversations; open: {len(self._work.operations)} operations, "
            f"{len(self._work.subagents)} subagents, {len(self._permissions)} permission questions>"
        )

    def add(self, message: m.Message | m.InvalidLine) -> list[UiEvent]:
        """Process the next message, and return its events in order.

        Raises:
            TypeError: the argument is not a message, but a dict from ``Decoder(dict)``, a line, or a list of messages.
        """
        handler = self._handlers.get(type(message))
        if handler is None:
            require_message("a Bridge", message)
            handler = Bridge._other
        events: Events = []
        handler(self, message, events)
        return events

    def sent(self, message: m.Message | m.InvalidLine) -> list[UiEvent]:
        """Process a message that the host sent, and return its events in order. Requires ``details=True``."""
        events: Events = []
        match message:
            case m.UserMessage():
                self._prompt(message, None, self._conversation_of(None, events), events, is_sent=True)
                self.expect_prompt(message.text)
            case m.ControlRequest(request=request):
                self._notify(describe_request(request), None, events)
            case m.ControlResponse():
                asked, call = self._asked.pop(_key(message.request_id), (None, None))
                self._notify(describe_answer(asked, message), None, events, callId=call)
                self._control_response(message, events)
            case m.ControlCancelRequest():
                self._notify(Notice(kind="host", text="no longer asked"), None, events)
            case m.PermissionReply(allow=allow):
                decision = Notice(kind="allowed" if allow else "denied", text="allowed" if allow else "denied")
                self._notify(decision, None, events)
            case m.InvalidLine():
                self._invalid(message, events, "line to the CLI")
            case _:
                pass
        return events

    def end(self) -> list[UiEvent]:
        """End all open operations, subagents and questions, because the stream ended. Returns the events."""
        events: Events = []
        while self._conversations:
            self._end_oldest(events)
        events += self._permissions.withdraw_all(None)
        self._latest = None
        return events

    def answer(
        self,
        request_id: str | float,
        allow: bool,
        option: int = 0,
        message: str = "The user did not allow it.",
        updated_input: dict[str, Any] | None = None,
    ) -> m.ControlResponse | m.PermissionReply:
        """Answer a permission question, and return the message to send to the CLI.

        If :class:`~claude_wire_kit.events.Questions` asked the question, the session sends the answer itself: ignore
        the returned message.

        Args:
            request_id: the ``requestId`` of the :class:`~claude_wire_kit.events.PermissionRequest`.
            allow: whether the tool may run.
            option: if allowed, the index of the chosen option.
            message: if denied, the reason. The model reads it.
            updated_input: if allowed, the input for the tool; None for the input that the model chose.

        Raises:
            AnswerError: the question is unknown, or already settled.
            ValueError: the question does not have this option.
        """
        call = self._permissions.call_of(request_id)
        reply = self._permissions.answer(request_id, allow, option, message, updated_input)
        if not allow and call is not None:
            self._work.operations.deny(short_id(call))
        return reply

    def ask(self, request: m.CanUseToolRequest, settled: Settled) -> tuple[str, list[UiEvent]]:
        """Add a question without its control request. Used by :class:`~claude_wire_kit.events.Questions`.

        Args:
            settled: called once, with the answer, or with None if nobody needs an answer any more.

        Returns:
            The id of the question, and its events.
        """
        events: Events = []
        self._agent_asks(events)
        id = self._permissions.make_id()
        events += self._permissions.ask(request, id, self._asked_in(request), settled)
        return id, events

    def withdraw(self, request_id: str | float) -> list[UiEvent]:
        """Settle a question without an answer. Return the events: none if the question was already settled."""
        return list(self._permissions.withdraw(request_id))

    # --- conversations ------------------------------------------------------------------------------------------------

    def _conversation_of(self, session: str | None, events: Events) -> Conversation:
        """Return the conversation for a message's session id. A new session gets a new conversation."""
        id = None if session is None else short_id(session)
        latest = self._latest
        if latest is not None and (id is None or latest.id == id):
            return latest
        found = self._conversations.pop(id, None)
        if found is None:
            if len(self._conversations) >= MAX_CONVERSATIONS:
                self._end_oldest(events)
            project = None if session is None or self._project is None else self._project(session)
            found = Conversation(id, project)
        self._conversations[id] = self._latest = found
        return found

    def _end_oldest(self, events: Events) -> None:
        oldest = self._conversations.pop(next(iter(self._conversations)))
        self._work.end(oldest, events, background=True)
        events += self._permissions.withdraw_all(oldest.id)

    def _asked_in(self, asked: m.CanUseToolRequest) -> dict[str, Any]:
        """Return the fields that name a question's conversation.

        The question does not name its conversation. Use the conversation of its tool call, or else the latest one.
        """
        place = None if asked.tool_use_id is None else self._work.operations.find(short_id(asked.tool_use_id))
        found = self._latest if place is None else self._conversations[place[0]]
        return {} if found is None else found.fields

    # --- conversation -------------------------------------------------------------------------------------------------

    def _assistant(self, message: m.AssistantMessage, events: Events) -> None:
        to = self._conversation_of(message.session_id, events)
        agent = self._speaker_of(message, to, events)
        at = message.timestamp if self._details else None
        if self._details:
            tokens, failed = _tokens(message.message.usage), True if message.error_reason else None
            answer = Answer(
                id=message.message.id, model=message.model, failed=failed, tokens=tokens, at=at, **to.fields
            )
            events.append(answer)
        for block in message.message.content:
            if isinstance(block, m.TextBlock):
                self._text(block.text, message, agent, to, events)
            elif isinstance(block, CALLS):
                self._work.call(block, agent, to, events, at)
                if block.name in self._asked_tools:
                    self._question_of(block, to, events)
            elif not self._work.api_result(block, agent, to, events) and self._details:
                self._block(block, message, agent, to, events)
        if self._details and message.error_reason:
            text = f"API error: {one_line(message.error_reason)}"
            self._notify(Notice(kind="error", text=text), message.session_id, events, agentId=agent)
        if self._details and message.aborted:
            self._notify(Notice(kind="cut_off", text="cut off"), message.session_id, events, agentId=agent)

    def _block(
        self, block: m.ContentBlock, message: m.AssistantMessage, agent: str | None, to: Conversation, events: Events
    ) -> None:
        """Add the events of a content block other than text, a call or a result."""
        if isinstance(block, m.ThinkingBlock):
            id = to.finish(agent, message.message.id, "thinking")
            events.append(Thinking(content=block.thinking, id=id, agentId=agent, **to.fields))
        elif isinstance(block, m.RedactedThinkingBlock):
            events.append(Thinking(content="", redacted=True, agentId=agent, **to.fields))
        else:
            text = block_name(block)
            self._notify(Notice(kind="block", text=text), message.session_id, events, agentId=agent)

    def _speaker_of(self, message: m.AssistantMessage | m.UserMessage, to: Conversation, events: Events) -> str | None:
        """Return the id of the subagent that wrote a message; None for the main agent. Announces a new subagent."""
        if message.parent_tool_use_id is None:
            return None
        to.tells_subagents = True
        name, summary = message.subagent_type, message.task_description
        return self._work.hear_of(message.parent_tool_use_id, name, summary, to, events)

    def _text(
        self, text: str, message: m.AssistantMessage, agent: str | None, to: Conversation, events: Events
    ) -> None:
        if not self._details and (agent is not None or not text or text.isspace()):
            return
        id = to.finish(agent, message.message.id, "text")
        response = ClaudeResponse(content=text, id=id, **to.fields)
        if self._details:
            failed = True if message.error_reason else None
            response = replace(response, agentId=agent, failed=failed, at=message.timestamp)
        events.append(response)
        if agent is not None:
            return
        if self._details:
            self._said.append(key_of(text.strip()))
        to.read_progress(text, self._rules, events, follows=True)
        for name, status in () if to.tells_subagents else find_mentions(text[-MAX_READ:]):
            begins: SubagentStatus = "running" if status == "running" else "started"
            mentioned = self._work.hear_of(name, name, None, to, events, begins)
            if status != "started":
                events += self._work.subagents.update((to.id, mentioned), status=status)

    def _stream_event(self, message: m.StreamEvent, events: Events) -> None:
        event = message.event
        if isinstance(event, m.ErrorEvent):
            self._notify(describe_message(message), message.session_id, events)
        if not self._partial or (message.parent_tool_use_id is not None and not self._details):
            return
        to = self._conversation_of(message.session_id, events)
        agent = None if message.parent_tool_use_id is None else short_id(message.parent_tool_use_id)
        if isinstance(event, m.ContentBlockDeltaEvent):
            self._delta(event, agent, to, events)
        elif isinstance(event, m.MessageStartEvent):
            self._messages += 1
            to.start_message(agent, short_id(event.message.id or f"message-{self._messages}"))
        elif isinstance(event, m.ContentBlockStartEvent):
            self._input_chars = 0
        elif isinstance(event, m.ContentBlockStopEvent) and self._details:
            id = to.block_id(agent, event.index)
            events.append(ClaudeResponse(content="", id=id, partial=True, agentId=agent, **to.fields))

    def _delta(self, event: m.ContentBlockDeltaEvent, agent: str | None, to: Conversation, events: Events) -> None:
        delta = event.delta
        if isinstance(delta, m.TextDelta):
            text, id = delta.text, to.block_id(agent, event.index)
            is_new = id not in to.streamed
            # The CLI writes no whole block if it streamed only white space.
            if not text or (is_new and text.isspace() and not self._details):
                return
            if is_new:
                to.stream(id, agent, "text")
            response = ClaudeResponse(
                content=text, conversationId=to.id, projectId=to.project, id=id, partial=True, agentId=agent
            )
            events.append(response)
        elif not self._details:
            pass
        elif isinstance(delta, m.ThinkingDelta) and delta.thinking:
            id = to.block_id(agent, event.index)
            if id not in to.streamed:
                to.stream(id, agent, "thinking")
            events.append(Thinking(content=delta.thinking, id=id, partial=True, agentId=agent, **to.fields))
        elif isinstance(delta, m.InputJsonDelta):
            self._input_chars += len(delta.partial_json)
            count = f"{self._input_chars:,} characters"
            events.append(Activity(what="writing a tool's input", detail=count, **to.fields))

    # --- tools and tasks ----------------------------------------------------------------------------------------------

    def _user(self, message: m.UserMessage, events: Events) -> None:
        to = self._conversation_of(message.session_id, events)
        agent = self._speaker_of(message, to, events)
        for result in message.tool_results:
            if self._work.result(result, message, agent, to, events):
                allowed = decision_of(result, message.tool_result_meta)
                events += self._permissions.withdraw_all(to.id, call=result.tool_use_id, allowed=allowed)
        self._prompt(message, agent, to, events)

    def _prompt(
        self, message: m.UserMessage, agent: str | None, to: Conversation, events: Events, *, is_sent: bool = False
    ) -> None:
        """Add the event of a prompt, unless it was shown when the host sent it or when the CLI gave it to a hook."""
        if not self._details and (not self._prompts_wanted or agent is not None or not self._is_new(message)):
            return
        if self._details and message.isReplay and not self._is_first(message):
            return
        content, text, id = message.content, message.text, message.uuid or None
        if not is_sent and not isinstance(content, str):
            content = [block for block in content if not isinstance(block, m.ToolResultBlock)]
        if message.isReplay and agent is None and isinstance(content, str):
            joined, text = text, to.repeat_prompt(text)
            content = text
            if joined != text and _take(joined, self._hooked):
                return
        parts = parts_of(content)
        if not has_content(parts) or (message.isReplay and _take(text, self._hooked, self._awaited)):
            return
        prompt = UserPrompt(
            content=text,
            id=None if id is None else short_id(id),
            attachments=sum(part.text is None for part in parts) or None,
            **to.fields,
        )
        if self._details:
            prompt = replace(prompt, parts=parts, agentId=agent)
        if self._details and not is_sent:
            origin: PromptOrigin | None = "interruption" if text.startswith(INTERRUPTED) else None
            origin = "cli" if message.isSynthetic or text.startswith(PRINTED) else origin
            during = True if message.priority == "next" else None
            prompt = replace(prompt, origin=origin, duringTurn=during, at=message.timestamp)
        events.append(prompt)

    def _is_new(self, message: m.UserMessage) -> bool:
        """Return True if this is a person's prompt, and the CLI is repeating it for the first time."""
        if not message.isReplay or message.isSynthetic or message.text.startswith(PRINTED):
            return False
        return self._is_first(message)

    def _is_first(self, message: m.UserMessage) -> bool:
        """Return True unless an earlier prompt had the same uuid."""
        is_first = (message.uuid or "") not in self._prompts
        if message.uuid:
            self._prompts.add(message.uuid)
        return is_first

    def expect_prompt(self, text: str) -> None:
        """Create no event when the CLI repeats this prompt, because a front end already shows it."""
        self._awaited.append(key_of(text))

    def _tool_result(self, message: m.ToolResultMessage | m.SystemToolResultMessage, events: Events) -> None:
        meant = as_stream_json(message)
        if self._details and isinstance(meant, m.SystemToolResultMessage):  # this message has no call id
            meant = m.UserMessage(message=m.MessageParam("user", [m.ToolResultBlock("", meant.content)]))
        if isinstance(meant, m.UserMessage):
            self._user(meant, events)

    def _task(self, message: Task, events: Events) -> None:
        self._work.task(message, self._conversation_of(message.session_id, events), events)
        self._other(message, events)

    # --- permissions --------------------------------------------------------------------------------------------------

    def _question_of(self, block: Any, to: Conversation, events: Events) -> None:
        """Turn a tool use into a permission question, because this stream's agent does not ask questions itself."""
        given: object = block.input
        made = m.PermissionRequestMessage(
            tool_name=block.name,
            input=cast("dict[str, Any]", given) if isinstance(given, dict) else {},
            extra={"tool_use_id": block.id},
        )
        events += self._permissions.ask(made, None, to.fields)

    def _agent_asks(self, events: Events) -> None:
        """Stop turning tool uses into questions, and withdraw the open ones, because the agent asked one itself."""
        if self._asked_tools:
            self._asked_tools = frozenset()
            for id in self._conversations:
                events += self._permissions.withdraw_all(id, without_request=True)

    def _control_request(self, message: m.ControlRequest, events: Events) -> None:
        if isinstance(message.request, m.CanUseToolRequest):
            self._agent_asks(events)
            events += self._permissions.ask(message.request, message.request_id, self._asked_in(message.request))
        elif self._details:
            self._request(message.request, events)
        if self._details:
            call = message.request.tool_use_id if isinstance(message.request, m.CanUseToolRequest) else None
            self._asked[_key(message.request_id)] = tag(message.request), call
            if len(self._asked) > MAX_OPERATIONS:
                del self._asked[next(iter(self._asked))]

    def _request(self, request: m.ControlRequestPayload, events: Events) -> None:
        """Add the event for a CLI request other than a permission question."""
        prompt = prompt_in(request)
        if prompt is not None and prompt.strip():
            if not _take(prompt, self._awaited):
                self._prompt(m.UserMessage.of(prompt), None, self._conversation_of(None, events), events)
            self._hooked.append(key_of(prompt))
        self._notify(describe_question(request), None, events)

    def _cancel_request(self, message: m.ControlCancelRequest, events: Events) -> None:
        asked = self._asked.pop(_key(message.request_id), None)
        if asked is not None:
            withdrawn = Notice(kind="question", text="no longer asked", level="warning", callId=asked[1])
            self._notify(withdrawn, None, events)
        if isinstance(message.request_id, (str, int, float)):
            events += self._permissions.withdraw(message.request_id)

    def _reply(self, message: m.ControlResponse, events: Events) -> None:
        """Process the CLI's answer to one of the host's requests."""
        if self._details and isinstance(message.response, m.ControlError):
            text = f"a request of the host failed: {message.response.error}"
            self._notify(Notice(kind="error", text=text), None, events)
        self._control_response(message, events)

    def _control_response(self, message: m.ControlResponse, events: Events) -> None:
        id, answer = message.request_id, message.response
        if id is not None:
            call = self._permissions.call_of(id)
            if call is not None and message.payload.get("behavior") == "deny":
                self._work.operations.deny(short_id(call))
            behavior = message.payload.get("behavior")
            allowed = behavior == "allow" if behavior in ("allow", "deny") else None
            events += self._permissions.withdraw(id, "answered", allowed)
        if isinstance(answer, (m.ControlSuccess, m.ControlError)):
            for request in answer.pending_permission_requests or ():
                if isinstance(request, m.ControlRequest):
                    self._control_request(request, events)

    def _permission_request(self, message: m.PermissionRequestMessage, events: Events) -> None:
        to = self._conversation_of(message.session_id, events)
        self._agent_asks(events)
        events += self._permissions.ask(message, message.uuid or None, to.fields)

    def _permission_denied(self, message: m.PermissionDeniedMessage, events: Events) -> None:
        self._work.operations.deny(short_id(message.tool_use_id))
        self._other(message, events)

    # --- turns and notices --------------------------------------------------------------------------------------------

    def _turn(self, result: m.ResultMessage, events: Events) -> None:
        used = self._meter.add(result)
        if used is None and not self._details:  # the CLI repeated an earlier result
            return
        to = self._conversation_of(result.session_id, events)
        self._work.end(to, events, ok=result.ok)
        events += self._permissions.withdraw_all(to.id, without_request=True)
        to.end_turn()
        failed = "interrupted" if result.cancelled else words_of(result) or result.subtype or ""
        has_cost = result.total_cost_usd is not None or result.model_usage_since_last_result is not None
        complete = TurnComplete(
            ok=result.ok,
            costUsd=round(used.cost_usd, 9) if has_cost and used is not None else None,
            durationMs=result.duration_ms,
            turns=result.num_turns,
            error=None if result.ok else failed,
            background=self._work.subagents.count(to.id) or None,
            **to.fields,
        )
        if self._details:
            text = result.result or ""
            if text.strip() and key_of(text.strip()) not in self._said and result.structured_output is None:
                events.append(ClaudeResponse(content=text, failed=None if result.ok else True, **to.fields))
            complete = replace(
                complete,
                reason=None if result.ok else why_failed(result),
                errors=[*(result.errors or ()), *([result.error.message] if result.error is not None else ())] or None,
                output=result.structured_output,
                sessionCostUsd=result.total_cost_usd,
                denied=len(result.permission_denials or ()) or None,
                tokens=_tokens(result.usage),
            )
        events.append(complete)

    def _init(self, message: m.InitMessage, events: Events) -> None:
        to = self._conversation_of(message.session_id, events)
        to.tells_subagents = to.tells_subagents or not SUBAGENT_TOOLS.isdisjoint(message.tool_names)
        if self._details:
            mode = message.permissionMode
            started = SessionStarted(
                model=message.model, folder=message.cwd, version=message.claude_code_version, permissionMode=mode
            )
            if started != self._started:  # the CLI sends this message in each turn, usually unchanged
                self._started = started
                events.append(replace(started, **to.fields))
            events.append(Activity(what="waiting for the model", **to.fields))

    def _interrupted(self, message: m.InterruptedMessage, events: Events) -> None:
        self._work.end(self._conversation_of(message.session_id, events), events)
        self._other(message, events)

    def _other(self, message: Any, events: Events) -> None:
        """Add the notice or the activity for a message of another type. Most types do not have one."""
        if not self._details and type(message) not in MAY_BE_FOR_ALL:
            return
        session = getattr(message, "session_id", None)
        session = session if isinstance(session, str) else None
        activity = describe_activity(message) if self._details else None
        if activity is not None:
            events.append(replace(activity, **self._conversation_of(session, events).fields))
        self._notify(describe_message(message), session, events)

    def _invalid(self, line: m.InvalidLine, events: Events, what: str = "line") -> None:
        if self._details:
            raw = line.raw.decode("utf-8", "backslashreplace")
            text = f"{what} {line.line_number}, byte {line.offset}: {line.reason}"
            self._notify(Notice(kind="invalid_line", text=text, detail=raw if raw.strip() else None), None, events)

    def _notify(self, notice: Notice | None, session: str | None, events: Events, **about: Any) -> None:
        """Add a notice, unless it is a detail and details are turned off."""
        if notice is not None and (self._details or notice.kind in FOR_ALL):
            to = self._conversation_of(session, events)
            events.append(replace(notice, **to.fields, **about))

    _handlers: ClassVar[dict[type, Callable[[Bridge, Any, Events], None]]] = {
        **dict.fromkeys((m.ResultMessage, *m.ResultMessage.__subclasses__()), _turn),
        **dict.fromkeys(get_args(Task), _task),
        m.AssistantMessage: _assistant,
        m.ControlCancelRequest: _cancel_request,
        m.ControlRequest: _control_request,
        m.ControlResponse: _reply,
        m.InitMessage: _init,
        m.InterruptedMessage: _interrupted,
        m.InvalidLine: _invalid,
        m.PermissionDeniedMessage: _permission_denied,
        m.PermissionRequestMessage: _permission_request,
        m.StreamEvent: _stream_event,
        m.SystemToolResultMessage: _tool_result,
        m.ToolResultMessage: _tool_result,
        m.UserMessage: _user,
    }


def _tokens(used: m.Usage | None) -> Tokens | None:
    if used is None:
        return None
    read, cached = used.input_tokens or 0, used.cache_read_input_tokens or 0
    return Tokens(input=read, cached=cached, output=used.output_tokens or 0)


def _take(text: str, *known: deque[Key]) -> bool:
    """Remove text from the first queue that contains it. Returns False if no queue contains it."""
    key = key_of(text)
    found = next((keys for keys in known if key in keys), None)
    if found is not None:
        found.remove(key)
    return found is not None


def _key(request_id: object) -> Key:
    """Return the key of a request id. An id of the wrong type counts as ""."""
    return key_of(request_id if isinstance(request_id, (str, int, float)) else "")
