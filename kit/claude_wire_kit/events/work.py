"""Turn tool calls, their results and tasks into operations, subagents and progress."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from claude_wire import messages as m
from claude_wire.support import SUBAGENT_TOOLS, fields_of, items_of, one_line, short_id
from claude_wire_kit.events.changes import asked_change, done_change
from claude_wire_kit.events.content import parts_of, plain_json
from claude_wire_kit.events.conversation import Conversation
from claude_wire_kit.events.events import Operation, OperationState, Part, SubagentProgress, SubagentStatus, UiEvent
from claude_wire_kit.events.operations import Operations
from claude_wire_kit.events.progress import ProgressRule, find_step
from claude_wire_kit.events.subagents import Subagents, status_of
from claude_wire_kit.events.tools import cut, described, text_in

#: The blocks that call tools: one class for tools that the CLI runs, two for tools that the API runs.
CALLS = (m.ToolUseBlock, m.ServerToolUseBlock, m.McpToolUseBlock)
#: If the user interrupts a call, its result begins with this text.
REJECTED = "The user doesn't want to "
#: ``source`` of a permission decision -> words for it.
DECIDERS = {"config": "the settings", "hook": "a hook"}

_EXIT_CODE = re.compile(r"Exit code (\d{1,3})(?:\n|$)")

Events: TypeAlias = "list[UiEvent]"
Task: TypeAlias = m.TaskStartedMessage | m.TaskProgressMessage | m.TaskUpdatedMessage | m.TaskNotificationMessage


class Work:
    """Creates the tool call and subagent events of all conversations. The methods append them to ``events``.

    Args:
        rules: the rules that find progress in text.
        details: add each call's input and result to its events.
    """

    def __init__(self, rules: tuple[ProgressRule, ...], *, details: bool = False) -> None:
        self._rules = rules
        self._details = details
        self.operations: Operations = Operations()
        self.subagents: Subagents = Subagents(self.operations)

    def hear_of(
        self,
        agent: str,
        name: str | None,
        summary: str | None,
        to: Conversation,
        events: Events,
        status: SubagentStatus = "started",
    ) -> str:
        """Add a subagent that a message mentions, unless it is known, and return its id."""
        id = short_id(agent)
        begun = SubagentProgress(
            agentId=id,
            name=one_line(name or "subagent"),
            status=status,
            summary=None if summary is None else cut(summary),
            **to.fields,
        )
        events += self.subagents.begin(begun)
        return id

    def call(self, block: Any, agent: str | None, to: Conversation, events: Events, at: str | None = None) -> None:
        """Process a tool call.

        Args:
            agent: the id of the subagent that made the call; None for the main agent.
            at: the time of the message, for details.
        """
        id, name = short_id(block.id), block.name
        kind, title, path, command = described(name, block.input)
        started = Operation(
            id=id,
            kind="mcp" if isinstance(block, m.McpToolUseBlock) else kind,
            title=title,
            path=path,
            command=command,
            state="started",
            agentId=agent,
            name=name if self._details else None,
            input=block.input if self._details else None,
            change=(asked_change(name, block.input) or None) if self._details else None,
            at=at,
            **to.fields,
        )
        events += self.operations.start(started)
        if agent is None:
            to.tell_progress(to.todos.call(id, name, block.input), events)
        else:
            events += self.subagents.update((to.id, agent), tool=one_line(name))
        if name in SUBAGENT_TOOLS:
            to.tells_subagents = True
            summary = text_in(block.input, "description")
            self.hear_of(id, text_in(block.input, "subagent_type"), summary, to, events)

    def result(
        self, result: m.ToolResultBlock, message: m.UserMessage, agent: str | None, to: Conversation, events: Events
    ) -> bool:
        """Process the result of a tool that the CLI ran. Returns True if the call was open."""
        id, text = short_id(result.tool_use_id), _text_of(result.content or None)
        call = self.operations.get((to.id, id))
        if call is None and not self._details:
            return False
        meta = _about(result, message.tool_result_meta)
        told = self._told(id, agent, to) if self._details else None
        if told is not None:
            told = msgspec.structs.replace(
                told,
                content=parts_of(result.content or ()),
                change=done_change(message.tool_use_result) or None,
                exitCode=_exit_code(text) if call is not None and call.kind == "command" and result.is_error else None,
                decision=_describe_decision(fields_of(meta.get("permission_decision"))),
                at=message.timestamp,
            )
        self._end(id, _state_of(result, text, meta), to, events, told)
        if call is None:
            return False
        if call.agentId is None:
            to.tell_progress(to.todos.result(id, text, message.tool_use_result), events)
            if call.kind == "command":
                to.read_progress(text, self._rules, events)
        return True

    def api_result(self, block: Any, agent: str | None, to: Conversation, events: Events) -> bool:
        """Process a block if it is the result of a tool that the API ran. Returns False for other blocks."""
        fields = fields_of(block)
        id = fields.get("tool_use_id", getattr(block, "tool_use_id", None))
        if not isinstance(id, str):
            return False
        content = fields.get("content", getattr(block, "content", None))
        failed = getattr(block, "is_error", None) or getattr(content, "error_code", None) is not None
        told = None
        if self._details:
            text = plain_json(fields or block.to_dict())
            told = msgspec.structs.replace(self._told(short_id(id), agent, to), content=[Part(text=text)])
        self._end(short_id(id), "failed" if failed else "succeeded", to, events, told)
        return True

    def _told(self, id: str, agent: str | None, to: Conversation) -> Operation:
        """Return an operation for a result whose call is not known."""
        return Operation(id=id, kind="other", title="", state="succeeded", agentId=agent, **to.fields)

    def task(self, message: Task, to: Conversation, events: Events) -> None:
        """Process a message about a task. A task that is not a subagent, such as a command, only reports progress."""
        if message.task_id is None:
            return
        place = self.subagents.place_of(to.id, message.task_id, getattr(message, "tool_use_id", None))
        if isinstance(message, m.TaskStartedMessage):
            if message.task_type == "local_agent" or message.subagent_type is not None:
                to.tells_subagents = True
                self.hear_of(place[1], message.subagent_type, message.description, to, events)
                self.subagents.set_task(place, message.task_id, message.is_backgrounded)
        elif isinstance(message, m.TaskProgressMessage):
            tool = None if message.last_tool_name is None else one_line(message.last_tool_name)
            events += self.subagents.update(place, tool=tool, summary=cut(message.summary or message.description))
            to.tell_progress(find_step(message.description, self._rules), events)
        elif isinstance(message, m.TaskUpdatedMessage):
            if message.patch is not None:
                self.subagents.set_task(place, None, message.patch.is_backgrounded)
                if status_of(message.patch.status) != "running":
                    events += self.subagents.update(place, status=status_of(message.patch.status))
        else:
            events += self.subagents.update(place, status=status_of(message.status), summary=cut(message.summary))

    def end(self, to: Conversation, events: Events, *, ok: bool = False, background: bool = False) -> None:
        """End a conversation's open calls and subagents, because its turn is over.

        Args:
            ok: whether the turn succeeded.
            background: also end background subagents and their calls.
        """
        events += self.subagents.end_all(to.id, "completed" if ok else "stopped", background=background)
        runs = self.subagents.is_running
        events += self.operations.end_all(to.id, lambda agent: agent is None or not runs((to.id, agent)))

    def _end(
        self, id: str, state: OperationState, to: Conversation, events: Events, told: Operation | None = None
    ) -> None:
        events += self.subagents.end_call((to.id, id), "completed" if state == "succeeded" else "failed")
        events += self.operations.end((to.id, id), state, told)


def _text_of(content: str | Iterable[m.ContentBlock] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.text for block in content if isinstance(block, m.TextBlock))


def decision_of(result: m.ToolResultBlock, meta: object) -> bool | None:
    """Return True if a call was allowed, False if it was denied, or None if the message does not say.

    Args:
        meta: the message's ``tool_result_meta``, a list with an entry for each call.
    """
    return _is_allowed(result, _about(result, meta))


def _about(result: m.ToolResultBlock, meta: object) -> dict[str, Any]:
    """Return the entry of ``tool_result_meta`` for a result's call."""
    for each in map(fields_of, items_of(meta)):
        if each.get("id") == result.tool_use_id:
            return each
    return {}


def _is_allowed(result: m.ToolResultBlock, meta: dict[str, Any]) -> bool | None:
    decision = fields_of(meta.get("permission_decision")).get("decision")
    if decision == "reject" or meta.get("non_execution_kind") == "permission-rule":
        return False
    return True if decision == "accept" or not result.is_error else None


def _state_of(result: m.ToolResultBlock, text: str, meta: dict[str, Any]) -> OperationState:
    """Return how a call ended.

    Args:
        meta: the entry of ``tool_result_meta`` for the call.
    """
    if not result.is_error:
        return "succeeded"
    if _is_allowed(result, meta) is False or meta.get("non_execution_kind") == "user-rejected":
        return "denied"
    is_stopped = meta.get("non_execution_kind") == "interrupted" or text.startswith(REJECTED)
    return "interrupted" if is_stopped else "failed"


def _exit_code(text: str) -> int | None:
    """Return the exit code in the output of a failed command. The CLI writes it at the beginning."""
    found = _EXIT_CODE.match(text)
    return None if found is None else int(found[1])


def _describe_decision(decided: dict[str, Any]) -> str | None:
    """Say in words who allowed or denied a call, from its ``permission_decision``."""
    if not decided:
        return None
    verb = {"accept": "Allowed", "reject": "Denied"}.get(str(decided.get("decision")), "Decided")
    source = str(decided.get("source") or "")
    by = DECIDERS.get(source) or ("the user" if source.startswith("user") else source)
    return f"{verb} by {by}" if by else verb
