"""The union of all messages, and which class each ``type`` and ``subtype`` has.

A new message type is one new Struct in its module and one line here.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast, get_args

from claude_wire.messages import dialects, notices
from claude_wire.messages.base import Wire
from claude_wire.messages.control.envelopes import (
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
)
from claude_wire.messages.conversation import results
from claude_wire.messages.conversation.messages import AssistantMessage, StreamEvent, UserMessage
from claude_wire.messages.invalid import InvalidLine
from claude_wire.messages.system import compaction, hooks, init, retries, status, tasks
from claude_wire.messages.system import session as session_notices
from claude_wire.messages.tolerant import Findings
from claude_wire.messages.unknown import UnknownMessage
from claude_wire.messages.vocabulary import Vocabulary, by_subtype
from claude_wire.support.arguments import type_of

__all__ = ["Message"]

#: Messages that their ``type`` alone tells apart.
TypedMessage: TypeAlias = (
    AssistantMessage
    | UserMessage
    | StreamEvent
    | ControlRequest
    | ControlResponse
    | ControlCancelRequest
    | notices.KeepAlive
    | notices.ToolProgressMessage
    | notices.AuthStatusMessage
    | notices.ToolUseSummaryMessage
    | notices.RateLimitEvent
    | notices.PromptSuggestionMessage
    | notices.ConversationResetMessage
    | notices.ActiveGoalMessage
    | notices.CommandLifecycleMessage
    | notices.TranscriptMirrorMessage
    | notices.AuthMessage
    | notices.UpdateEnvironmentVariablesMessage
    | dialects.ControlMessage
    | dialects.ToolResultMessage
)

#: Messages of type ``system``, told apart by their ``subtype``.
SystemSubtype: TypeAlias = (
    init.InitMessage
    | status.StatusMessage
    | compaction.CompactBoundaryMessage
    | retries.ApiRetryMessage
    | status.ControlRequestProgressMessage
    | retries.ModelRefusalFallbackMessage
    | retries.ModelRefusalNoFallbackMessage
    | retries.ModelFallbackMessage
    | status.LocalCommandOutputMessage
    | hooks.HookStartedMessage
    | hooks.HookProgressMessage
    | hooks.HookResponseMessage
    | init.PluginInstallMessage
    | status.ThinkingTokensMessage
    | session_notices.SessionStateChangedMessage
    | session_notices.SessionTitleChangedMessage
    | session_notices.WorkerShuttingDownMessage
    | session_notices.CommandsChangedMessage
    | session_notices.NotificationMessage
    | session_notices.InformationalMessage
    | session_notices.UiInvalidateMessage
    | session_notices.FilesPersistedMessage
    | session_notices.SessionWritesLostMessage
    | session_notices.MemoryRecallMessage
    | status.ElicitationCompleteMessage
    | status.PermissionDeniedMessage
    | session_notices.MirrorErrorMessage
    | tasks.TaskStartedMessage
    | tasks.TaskProgressMessage
    | tasks.TaskUpdatedMessage
    | tasks.TaskListStatusesMessage
    | tasks.TaskNotificationMessage
    | tasks.BackgroundTasksChangedMessage
    | dialects.QueuedMessage
    | dialects.InjectedMessage
    | dialects.ConsolidationMessage
    | dialects.InterruptedMessage
    | dialects.SystemToolResultMessage
    | dialects.SystemErrorMessage
    | dialects.PermissionRequestMessage
)

#: Messages of type ``result``, told apart by their ``subtype``; any other subtype is a plain ``ResultMessage``.
ResultSubtype: TypeAlias = (
    results.ResultSuccess
    | results.ResultErrorDuringExecution
    | results.ResultErrorMaxTurns
    | results.ResultErrorMaxBudgetUsd
    | results.ResultErrorMaxStructuredOutputRetries
    | results.ResultError
    | results.ResultCancelled
)

#: What a line decodes to.
Message: TypeAlias = (
    TypedMessage | SystemSubtype | ResultSubtype | results.ResultMessage | dialects.PermissionReply | UnknownMessage
)


#: The classes of all that a stream of messages gives.
_GIVEN: tuple[type, ...] = (*get_args(Message), InvalidLine)
_GIVEN_SET = frozenset(_GIVEN)


def require_message(taker: str, message: object) -> None:
    """Refuse what no stream of messages gives: it would be passed over in silence.

    Raises:
        TypeError: it is a dict, a list, a line, or a part of a message.
    """
    if type(message) in _GIVEN_SET or isinstance(message, _GIVEN):
        return
    if isinstance(message, dict):
        raise TypeError(f"{taker} takes messages; a Decoder(dict) gives dicts, of which it knows nothing")
    raise TypeError(f"{taker} takes the messages of a stream, one at a time, not {type_of(message)}")


class _Messages(Vocabulary):
    def without_type(self, value: dict[str, Any]) -> type[Wire] | str:
        return dialects.PermissionReply if "type" not in value and "allow" in value else "no type"


SYSTEM_BY_SUBTYPE: dict[str, type[Wire]] = by_subtype(get_args(SystemSubtype))
RESULT_BY_SUBTYPE: dict[str, type[Wire]] = by_subtype(get_args(ResultSubtype))

#: The messages of a stream.
MESSAGES = _Messages(
    get_args(TypedMessage),
    {"system": SYSTEM_BY_SUBTYPE, "result": RESULT_BY_SUBTYPE},
    {"result": results.ResultMessage},
)
BY_TYPE: dict[str, type[Wire]] = MESSAGES.by_type


def message_class(value: dict[str, Any], findings: Findings) -> type[Wire] | str:
    """Return the class for a top-level object by its type and subtype, or the reason why there is none.

    Raises:
        Ambiguous: one of them has two values.
    """
    return MESSAGES.class_of(value, findings)


def build_message(value: dict[str, Any], findings: Findings) -> Message:
    """Build a message out of a plain object.

    Raises:
        Ambiguous: a tag has two values.
    """
    return cast("Message", MESSAGES.build(value, findings))
