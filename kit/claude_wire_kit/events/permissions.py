"""Keep the permission questions that are waiting for a person, and create the messages that answer them.

An agent asks with a ``can_use_tool`` request, or in another dialect with a ``permission_request``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from claude_wire.codec import encode
from claude_wire.errors import AnswerError, EncodeError
from claude_wire.messages import (
    AddDirectories,
    AddRules,
    CanUseToolRequest,
    ControlResponse,
    PermissionReply,
    PermissionRequestMessage,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionRuleValue,
    PermissionUpdate,
    RemoveDirectories,
    RemoveRules,
    ReplaceRules,
    SetMode,
)
from claude_wire.support import Ids, Key, key_of, printable, require_int, short_id
from claude_wire_kit.events.events import CancelReason, PermissionCancelled, PermissionRequest
from claude_wire_kit.events.tools import call_name

#: Limits for open questions: how many, and how many bytes of JSON. Above a limit, the oldest question is dropped.
MAX_QUESTIONS = 1024
MAX_QUESTION_BYTES = 16 * 1024 * 1024

#: The assumed size of a question whose input is nested too deeply for JSON. It is above the limit, so the question is
#: dropped. Its answer could not be encoded.
TOO_DEEP = 1 << 62

#: The id of a request as received.
RequestId: TypeAlias = "str | float | UnsetType | None"

#: Called with the answer to a question, or with None if nobody needs an answer any more.
Settled: TypeAlias = "Callable[[PermissionResultAllow | PermissionResultDeny | None], None]"


class _Question(NamedTuple):
    asked: CanUseToolRequest | PermissionRequestMessage
    #: The id of the request as received. The answer needs it.
    id: RequestId
    event: PermissionRequest
    #: The permission updates for all options except the first one.
    updates: list[PermissionUpdate]
    size: int
    settled: Settled | None

    @property
    def tool_use_id(self) -> str | None:
        return _call_id(self.asked)


class Permissions:
    """The open questions, in the order in which they were asked.

    Args:
        details: add the question in words and the CLI's reason to the events.
    """

    def __init__(self, *, details: bool = False) -> None:
        self._details = details
        self._open: dict[Key, _Question] = {}
        self._size: int = 0
        self._settled = Ids()
        self._made = 0

    def __len__(self) -> int:
        return len(self._open)

    def make_id(self) -> str:
        """Return an id for a question without one. It differs from all ids that the agent has used."""
        while True:
            self._made += 1
            id = f"permission-{self._made}"
            if id not in self._open and id not in self._settled:
                return id

    def ask(
        self,
        asked: CanUseToolRequest | PermissionRequestMessage,
        id: RequestId,
        fields: dict[str, Any],
        settled: Settled | None = None,
    ) -> Iterator[PermissionRequest | PermissionCancelled]:
        """Add a question, and yield its event. Yields nothing if the question was asked before.

        Args:
            id: the id of the request as received. A question without an id gets one from :meth:`make_id`.
            fields: the fields that name the conversation.
            settled: see :data:`Settled`.
        """
        shown = self.make_id() if id is None or id is UNSET else id
        key = _key(shown)
        if key in self._open or self._settled.has_key(key):
            return
        updates: list[PermissionUpdate] = []
        if isinstance(asked, CanUseToolRequest):
            updates = [
                update
                for update in asked.permission_suggestions or ()
                if not (asked.suppress_always_allow_rule and isinstance(update, AddRules))
            ]
        size = _size(asked, id)
        event = describe_permission(asked, details=self._details)
        event = msgspec.structs.replace(
            event,
            requestId=short_id(shown) if isinstance(shown, str) else shown,
            input={} if size == TOO_DEEP else event.input,
            options=["allow once", *map(suggestion, updates)],
            **fields,
        )
        question = self._open[key] = _Question(asked, id, event, updates, size, settled)
        self._size += question.size
        yield event
        if question.size > MAX_QUESTION_BYTES:
            yield self._cancel(key, "dropped")
        while len(self._open) > MAX_QUESTIONS or self._size > MAX_QUESTION_BYTES:
            yield self._cancel(next(iter(self._open)), "dropped")

    def withdraw(
        self, id: str | float, reason: CancelReason = "withdrawn", allowed: bool | None = None
    ) -> Iterator[PermissionCancelled]:
        """Settle an open question that was answered or withdrawn elsewhere."""
        key = _key(id)
        if key in self._open:
            yield self._cancel(key, reason, allowed)

    def withdraw_all(
        self,
        conversation: str | None,
        *,
        without_request: bool = False,
        call: str | None = None,
        allowed: bool | None = None,
    ) -> Iterator[PermissionCancelled]:
        """Settle the questions of a conversation, and yield their events.

        Args:
            without_request: only the questions that did not come from a control request.
            call: only the questions about the tool call with this id.
            allowed: whether the call was allowed, if that is known.
        """
        over = [
            key
            for key, one in self._open.items()
            if one.event.conversationId == conversation
            and (call is None or one.tool_use_id == call)
            and not (without_request and isinstance(one.asked, CanUseToolRequest))
        ]
        for key in over:
            yield self._cancel(key, "withdrawn" if call is None else "answered", allowed)

    def call_of(self, id: str | float) -> str | None:
        """Return the id of an open question's tool call, or None if the question does not name it."""
        question = self._open.get(_key(id))
        return None if question is None else question.tool_use_id

    def answer(
        self, id: str | float, allow: bool, option: int, message: str, updated_input: dict[str, Any] | None
    ) -> ControlResponse | PermissionReply:
        """Settle a question, and return the message that answers it. See ``Bridge.answer``."""
        key = _key(id)
        question = self._open.get(key)
        if question is None:
            raise AnswerError(self._settled.has_key(key))
        require_int("option", option, 0)
        if option > len(question.updates):
            raise ValueError(f"option must be at most {len(question.updates)} for this question, not {option}")
        asked = question.asked
        self._remove(key)
        if isinstance(asked, PermissionRequestMessage):
            return PermissionReply(allow, updatedInput=updated_input if allow else None)
        result: PermissionResultAllow | PermissionResultDeny
        if allow:
            updates = [question.updates[option - 1]] if option else None
            result = asked.allow(updated_input, updated_permissions=updates)
        else:
            result = asked.deny(message)
        if question.settled is not None:
            question.settled(result)
        return ControlResponse.success(question.id, result)

    def _cancel(self, key: Key, reason: CancelReason, allowed: bool | None = None) -> PermissionCancelled:
        question = self._remove(key)
        if question.settled is not None:
            question.settled(None)
        event = question.event
        return PermissionCancelled(
            requestId=event.requestId,
            reason=reason,
            allowed=allowed,
            conversationId=event.conversationId,
            projectId=event.projectId,
        )

    def _remove(self, key: Key) -> _Question:
        question = self._open.pop(key)
        self._size -= question.size
        self._settled.add_key(key)
        return question


def _key(id: str | float) -> Key:
    """Return the key of an id, either as received or as shortened in an event."""
    return key_of(short_id(id) if isinstance(id, str) else id)


def _call_id(asked: CanUseToolRequest | PermissionRequestMessage) -> str | None:
    """Return the id of a question's tool call, or None if the question does not name it."""
    if isinstance(asked, CanUseToolRequest):
        return asked.tool_use_id
    call = (asked.extra or {}).get("tool_use_id")
    return call if isinstance(call, str) else None


def describe_permission(asked: CanUseToolRequest | PermissionRequestMessage, *, details: bool) -> PermissionRequest:
    """Return the event for a question. The caller adds the id and the options."""
    if isinstance(asked, CanUseToolRequest):
        tool, input = asked.tool_name, asked.input
        text, name = asked.description or asked.title, asked.display_name or tool
        question, reason, path = asked.title, asked.decision_reason, asked.blocked_path
    else:
        tool, input = asked.call or ("(no tool that can be read)", asked.extra or {})
        text, name = None, asked.tool_name or asked.name or "a tool"
        question = reason = path = None
    event = PermissionRequest(
        requestId="", tool=tool, description=None if text is None else printable(text), input=input, options=[]
    )
    if not details:
        return event
    question = printable(question) if question else f"may {call_name(name)} run?"
    return msgspec.structs.replace(event, question=question, reason=reason, path=path, callId=_call_id(asked))


def _size(asked: CanUseToolRequest | PermissionRequestMessage, id: RequestId) -> int:
    try:
        return len(encode(asked)) + (len(id) if isinstance(id, str) else 0)
    except EncodeError:
        return TOO_DEEP


def suggestion(update: PermissionUpdate) -> str:
    """Describe a permission update on one line. The text is not cut, because a person must see all of it."""
    match update:
        case AddRules(rules=rules, behavior=behavior, destination=destination):
            text = f"{behavior} {_rules(rules)}"
        case ReplaceRules(rules=rules, behavior=behavior, destination=destination):
            text = f"{behavior} only {_rules(rules)}"
        case RemoveRules(rules=rules, behavior=behavior, destination=destination):
            text = f"no longer {behavior} {_rules(rules)}"
        case SetMode(mode=mode, destination=destination):
            text = f"switch to permission mode {mode}"
        case AddDirectories(directories=directories, destination=destination):
            text = f"work in {', '.join(directories)}"
        case RemoveDirectories(directories=directories, destination=destination):
            text = f"no longer work in {', '.join(directories)}"
        case _:
            try:
                return printable(json.dumps(update, ensure_ascii=False), keep="")
            except RecursionError:
                return "(nested too deeply)"
    return printable(f"{text} ({destination})", keep="")


def _rules(rules: list[PermissionRuleValue]) -> str:
    return ", ".join(rule.toolName + (f"({rule.ruleContent})" if rule.ruleContent else "") for rule in rules)
