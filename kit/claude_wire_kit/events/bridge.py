"""Messages in, events for a front end out. Sans-IO, and without a clock.

Knows messages of every dialect; not where they come from, nor where events go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias, cast, get_args

from claude_wire import messages as m
from claude_wire.dialects.frames import as_stream_json
from claude_wire.errors.turns import words_of
from claude_wire.messages.registry import ResultSubtype
from claude_wire.messages.union import require_message
from claude_wire.support import SUBAGENT_TOOLS, Ids, require_function, short_id
from claude_wire_kit.events.conversation import Conversation
from claude_wire_kit.events.events import ClaudeResponse, Notice, SubagentStatus, TurnComplete, UiEvent, UserPrompt
from claude_wire_kit.events.notices import NOTICES
from claude_wire_kit.events.permissions import Permissions, Settled
from claude_wire_kit.events.progress import MAX_READ, PROGRESS_RULES, ProgressRule
from claude_wire_kit.events.subagents import find_mentions
from claude_wire_kit.events.work import CALLS, Task, Work, decision_of
from claude_wire_kit.usage.meter import UsageMeter

__all__ = ["MAX_CONVERSATIONS", "Bridge"]

#: At most this many conversations are told apart. One more ends the one that was silent for longest.
MAX_CONVERSATIONS = 256
#: At most this many streamed blocks of a message wait for the whole block.
MAX_STREAMED = 64
#: What the CLI's own commands print begins with one of these.
PRINTED = ("<local-command-stdout>", "<local-command-stderr>")
#: Blocks of a prompt that are no attachments.
NO_ATTACHMENTS = (m.TextBlock, m.ToolResultBlock)

Events: TypeAlias = "list[UiEvent]"


class Bridge:
    """Turns the messages of one or several streams into events for a front end.

    ``add`` takes all messages in order, including control messages and messages of other dialects. The bridge keeps
    its state by session. A message without a session id belongs to the session of the message before. The events are
    those of :data:`~claude_wire_kit.events.UiEvent`; each has ``to_dict()`` and ``to_json()``.

    The state is limited in number and in bytes, as ``docs/limits.md`` lists. An id of more than 128 characters is
    replaced by its digest.

    Args:
        project: called once for each session, with its id. It returns the ``projectId`` of the session's events, or
            None for none.
        progress: the rules that find progress in text; empty for none.
        partial: also give deltas of text while it streams.
        prompts: also give the prompts that the CLI repeats.
        permissions_from_tools: names of tools. Each use of such a tool gives a permission question, until the agent
            asks its first question itself. The agent does not wait for the answer.
    """

    def __init__(
        self,
        project: Callable[[str], str | None] | None = None,
        progress: Iterable[ProgressRule] = PROGRESS_RULES,
        partial: bool = False,
        prompts: bool = False,
        permissions_from_tools: Iterable[str] = (),
    ) -> None:
        if project is not None:
            require_function("project", project, "the session id", awaited=False)
        self._project = project
        self._rules = tuple(progress)
        if not all(map(callable, self._rules)):
            raise TypeError("progress takes functions, such as those of PROGRESS_RULES")
        if isinstance(permissions_from_tools, (str, bool)):
            raise TypeError("permissions_from_tools takes the names of tools, such as ['Bash', 'Write']")
        # The tools whose uses are questions; none any more when the agent has asked by itself.
        self._asked_tools: frozenset[str] = frozenset(permissions_from_tools)
        self._partial = partial
        self._conversations: dict[str | None, Conversation] = {}
        # The conversation of the message before.
        self._latest: Conversation | None = None
        self._messages = 0
        # The uuids of prompts that were told: the CLI repeats a prompt each time that it is sent.
        self._prompts: Ids | None = Ids() if prompts else None
        self._work = Work(self._rules)
        self._permissions = Permissions()
        self._meter = UsageMeter()

    def __repr__(self) -> str:
        return (
            f"<Bridge: {len(self._conversations)} conversations; open: {len(self._work.operations)} operations, "
            f"{len(self._work.subagents)} subagents, {len(self._permissions)} permission questions>"
        )

    def add(self, message: m.Message | m.InvalidLine) -> list[UiEvent]:
        """Take the next message, and return the events that it gives, in order.

        Raises:
            TypeError: it is no message: a dict of ``Decoder(dict)``, a line, or a list of messages.
        """
        handler = self._handlers.get(type(message))
        if handler is None:
            require_message("a Bridge", message)
            return []
        events: Events = []
        handler(self, message, events)
        return events

    def end(self) -> list[UiEvent]:
        """End all that is open, because the stream has ended: operations, subagents and permission questions."""
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

        The session answers a question of :class:`~claude_wire_kit.events.Questions` itself: do not send what is
        returned.

        Args:
            request_id: of the :class:`~claude_wire_kit.events.PermissionRequest`.
            option: the index of the option by which the tool is allowed.
            message: why it is not allowed; the model reads it.
            updated_input: the input with which the tool runs in place of its own.

        Raises:
            AnswerError: there is no such question, or it is settled.
            ValueError: the question has no such option.
        """
        call = self._permissions.call_of(request_id)
        reply = self._permissions.answer(request_id, allow, option, message, updated_input)
        if not allow and call is not None:
            self._work.operations.deny(short_id(call))
        return reply

    def ask(self, request: m.CanUseToolRequest, settled: Settled) -> tuple[str, list[UiEvent]]:
        """Take a question that came without its control request, as :class:`~claude_wire_kit.events.Questions` does.

        Args:
            settled: called once: with the answer, or with None if the question needs none any more.

        Returns:
            The id of the question, and the events that it gives.
        """
        events: Events = []
        self._agent_asks(events)
        id = self._permissions.make_id()
        events += self._permissions.ask(request, id, *self._asked_in(request), settled)
        return id, events

    def withdraw(self, request_id: str | float) -> list[UiEvent]:
        """Settle a question without an answer. Returns the events that this gives: none if it was settled before."""
        return list(self._permissions.withdraw(request_id))

    # --- conversations ------------------------------------------------------------------------------------------------

    def _conversation_of(self, session: str | None, events: Events) -> Conversation:
        """The conversation of a message with this session id."""
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

    def _asked_in(self, asked: m.CanUseToolRequest) -> tuple[str | None, str | None]:
        """The conversation of a question, which does not name it: that of its tool call, or else the latest."""
        place = None if asked.tool_use_id is None else self._work.operations.find(short_id(asked.tool_use_id))
        found = self._latest if place is None else self._conversations[place[0]]
        return (None, None) if found is None else (found.id, found.project)

    # --- conversation -------------------------------------------------------------------------------------------------

    def _assistant(self, message: m.AssistantMessage, events: Events) -> None:
        to = self._conversation_of(message.session_id, events)
        agent = self._speaker_of(message, to, events)
        for block in message.message.content:
            if isinstance(block, m.TextBlock):
                if agent is None and block.text and not block.text.isspace():
                    self._text(block.text, message.message.id, to, events)
            elif isinstance(block, CALLS):
                self._work.call(block, agent, to, events)
                if block.name in self._asked_tools:
                    self._question_of(block, to, events)
            else:
                self._work.api_result(block, to, events)

    def _speaker_of(self, message: m.AssistantMessage | m.UserMessage, to: Conversation, events: Events) -> str | None:
        """Take note of the subagent that speaks. Returns its id, None for the main agent."""
        if message.parent_tool_use_id is None:
            return None
        to.tells_subagents = True
        name, summary = message.subagent_type, message.task_description
        return self._work.hear_of(message.parent_tool_use_id, name, summary, to, events)

    def _text(self, text: str, message: str | None, to: Conversation, events: Events) -> None:
        prefix = "" if message is None else f"{short_id(message)}."
        id = next((one for one in to.streamed if one.startswith(prefix)), None)
        if id is not None:
            del to.streamed[id]
        events.append(ClaudeResponse(content=text, conversationId=to.id, projectId=to.project, id=id))
        to.read_progress(text, self._rules, events, follows=True)
        for name, status in () if to.tells_subagents else find_mentions(text[-MAX_READ:]):
            begins: SubagentStatus = "running" if status == "running" else "started"
            agent = self._work.hear_of(name, name, None, to, events, begins)
            if status != "started":
                events += self._work.subagents.update((to.id, agent), status=status)

    def _stream_event(self, message: m.StreamEvent, events: Events) -> None:
        event = message.event
        if isinstance(event, m.ErrorEvent):
            self._notice(message, events)
        if not self._partial or message.parent_tool_use_id is not None:
            return
        to = self._conversation_of(message.session_id, events)
        if isinstance(event, m.MessageStartEvent):
            self._messages += 1
            to.message = short_id(event.message.id or f"message-{self._messages}")
            to.streamed.clear()
        elif isinstance(event, m.ContentBlockDeltaEvent) and isinstance(event.delta, m.TextDelta):
            text, id = event.delta.text, f"{to.message}.{event.index}"
            # The CLI writes no whole block if nothing but white space comes.
            if not text or (text.isspace() and id not in to.streamed):
                return
            if id not in to.streamed and len(to.streamed) >= MAX_STREAMED:
                del to.streamed[next(iter(to.streamed))]
            to.streamed[id] = None
            events.append(ClaudeResponse(content=text, conversationId=to.id, projectId=to.project, id=id, partial=True))

    # --- tools and tasks ----------------------------------------------------------------------------------------------

    def _user(self, message: m.UserMessage, events: Events) -> None:
        to = self._conversation_of(message.session_id, events)
        agent = self._speaker_of(message, to, events)
        for result in message.tool_results:
            if self._work.result(result, to, events, message.tool_result_meta, message.tool_use_result):
                allowed = decision_of(result, message.tool_result_meta)
                events += self._permissions.withdraw_all(to.id, call=result.tool_use_id, allowed=allowed)
        if self._prompts is not None and message.isReplay and agent is None:
            self._prompt(message, self._prompts, to, events)

    def _prompt(self, message: m.UserMessage, told: Ids, to: Conversation, events: Events) -> None:
        """Tell a prompt that the CLI repeats. It writes what its own commands print in the same way."""
        text, content = message.text, message.content
        if message.isSynthetic or text.startswith(PRINTED) or (message.uuid or "") in told:
            return
        if message.uuid:
            told.add(message.uuid)
        others = 0 if isinstance(content, str) else sum(not isinstance(block, NO_ATTACHMENTS) for block in content)
        if others or text.strip():
            prompt = UserPrompt(
                content=text,
                id=short_id(message.uuid) if message.uuid else None,
                attachments=others or None,
                conversationId=to.id,
                projectId=to.project,
            )
            events.append(prompt)

    def _tool_result(self, message: m.ToolResultMessage | m.SystemToolResultMessage, events: Events) -> None:
        meant = as_stream_json(message)
        if isinstance(meant, m.UserMessage):
            self._user(meant, events)

    def _task(self, message: Task, events: Events) -> None:
        self._work.task(message, self._conversation_of(message.session_id, events), events)

    # --- permissions --------------------------------------------------------------------------------------------------

    def _question_of(self, block: Any, to: Conversation, events: Events) -> None:
        """Make a question of a use of a tool, for a stream whose agent asks none."""
        given: object = block.input
        made = m.PermissionRequestMessage(
            tool_name=block.name,
            input=cast("dict[str, Any]", given) if isinstance(given, dict) else {},
            extra={"tool_use_id": block.id},
        )
        events += self._permissions.ask(made, None, to.id, to.project)

    def _agent_asks(self, events: Events) -> None:
        """The agent asks for permission itself: stop making questions from tool uses, and withdraw the open ones."""
        if self._asked_tools:
            self._asked_tools = frozenset()
            for id in self._conversations:
                events += self._permissions.withdraw_all(id, without_request=True)

    def _control_request(self, message: m.ControlRequest, events: Events) -> None:
        if isinstance(message.request, m.CanUseToolRequest):
            self._agent_asks(events)
            events += self._permissions.ask(message.request, message.request_id, *self._asked_in(message.request))

    def _cancel_request(self, message: m.ControlCancelRequest, events: Events) -> None:
        if isinstance(message.request_id, (str, int, float)):
            events += self._permissions.withdraw(message.request_id)

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
        events += self._permissions.ask(message, message.uuid or None, to.id, to.project)

    def _permission_denied(self, message: m.PermissionDeniedMessage, events: Events) -> None:
        self._work.operations.deny(short_id(message.tool_use_id))

    # --- turns and notices --------------------------------------------------------------------------------------------

    def _turn(self, result: m.ResultMessage, events: Events) -> None:
        used = self._meter.add(result)
        if used is None:  # it came before
            return
        to = self._conversation_of(result.session_id, events)
        self._work.end(to, events, ok=result.ok)
        events += self._permissions.withdraw_all(to.id, without_request=True)
        to.end_turn()
        failed = "interrupted" if result.cancelled else words_of(result) or result.subtype
        has_cost = result.total_cost_usd is not None or result.model_usage_since_last_result is not None
        complete = TurnComplete(
            ok=result.ok,
            costUsd=round(used.cost_usd, 9) if has_cost else None,
            durationMs=result.duration_ms,
            turns=result.num_turns,
            error=None if result.ok else failed,
            background=self._work.subagents.count(to.id) or None,
            conversationId=to.id,
            projectId=to.project,
        )
        events.append(complete)

    def _init(self, message: m.InitMessage, events: Events) -> None:
        to = self._conversation_of(message.session_id, events)
        to.tells_subagents = to.tells_subagents or not SUBAGENT_TOOLS.isdisjoint(message.tool_names)

    def _interrupted(self, message: m.InterruptedMessage, events: Events) -> None:
        self._work.end(self._conversation_of(message.session_id, events), events)

    def _notice(self, message: Any, events: Events) -> None:
        kind, words = NOTICES[type(message)]
        text, to = words(message), self._conversation_of(message.session_id, events)
        if text:
            events.append(Notice(kind=kind, text=text, conversationId=to.id, projectId=to.project))

    _handlers: ClassVar[dict[type, Callable[[Bridge, Any, Events], None]]] = {
        **dict.fromkeys(NOTICES, _notice),
        **dict.fromkeys((m.ResultMessage, *get_args(ResultSubtype)), _turn),
        **dict.fromkeys(get_args(Task), _task),
        m.AssistantMessage: _assistant,
        m.ControlCancelRequest: _cancel_request,
        m.ControlRequest: _control_request,
        m.ControlResponse: _control_response,
        m.InitMessage: _init,
        m.InterruptedMessage: _interrupted,
        m.PermissionDeniedMessage: _permission_denied,
        m.PermissionRequestMessage: _permission_request,
        m.StreamEvent: _stream_event,
        m.SystemToolResultMessage: _tool_result,
        m.ToolResultMessage: _tool_result,
        m.UserMessage: _user,
    }
