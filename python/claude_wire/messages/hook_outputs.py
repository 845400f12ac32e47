"""DOC module hook_outputs"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from claude_wire.messages._base import Number, Wire
from claude_wire.messages.permissions import PermissionUpdate
from claude_wire.messages.unknown import UnknownObject

__all__ = [
    "AsyncHookOutput",
    "CwdChangedHookSpecificOutput",
    "ElicitationHookSpecificOutput",
    "ElicitationResultHookSpecificOutput",
    "FileChangedHookSpecificOutput",
    "HookOutput",
    "HookSpecificOutput",
    "MessageDisplayHookSpecificOutput",
    "NotificationHookSpecificOutput",
    "PermissionDecision",
    "PermissionDecisionAllow",
    "PermissionDecisionDeny",
    "PermissionDeniedHookSpecificOutput",
    "PermissionRequestHookSpecificOutput",
    "PostModelSwitchHookSpecificOutput",
    "PostToolBatchHookSpecificOutput",
    "PostToolUseFailureHookSpecificOutput",
    "PostToolUseHookSpecificOutput",
    "PreModelSwitchHookSpecificOutput",
    "PreToolUseHookSpecificOutput",
    "SessionStartHookSpecificOutput",
    "SetupHookSpecificOutput",
    "StopHookSpecificOutput",
    "SubagentStartHookSpecificOutput",
    "SubagentStopHookSpecificOutput",
    "UserPromptExpansionHookSpecificOutput",
    "UserPromptSubmitHookSpecificOutput",
    "WorktreeCreateHookSpecificOutput",
]


class CwdChangedHookSpecificOutput(Wire, tag_field="hookEventName", tag="CwdChanged", kw_only=True, frozen=True):
    """DOC CwdChangedHookSpecificOutput"""

    watchPaths: list[str] | None = None


class ElicitationHookSpecificOutput(Wire, tag_field="hookEventName", tag="Elicitation", kw_only=True, frozen=True):
    """DOC ElicitationHookSpecificOutput"""

    # one of cancel, accept, decline
    action: str | None = None
    content: dict[str, Any] | None = None


class ElicitationResultHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="ElicitationResult", kw_only=True, frozen=True
):
    """DOC ElicitationResultHookSpecificOutput"""

    # one of cancel, accept, decline
    action: str | None = None
    content: dict[str, Any] | None = None


class FileChangedHookSpecificOutput(Wire, tag_field="hookEventName", tag="FileChanged", kw_only=True, frozen=True):
    """DOC FileChangedHookSpecificOutput"""

    watchPaths: list[str] | None = None


class MessageDisplayHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="MessageDisplay", kw_only=True, frozen=True
):
    """DOC MessageDisplayHookSpecificOutput"""

    displayContent: str | None = None


class NotificationHookSpecificOutput(Wire, tag_field="hookEventName", tag="Notification", kw_only=True, frozen=True):
    """DOC NotificationHookSpecificOutput"""

    additionalContext: str | None = None


class PermissionDeniedHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="PermissionDenied", kw_only=True, frozen=True
):
    """DOC PermissionDeniedHookSpecificOutput"""

    retry: bool | None = None


class PermissionDecisionAllow(Wire, tag_field="behavior", tag="allow", kw_only=True, frozen=True):
    """DOC PermissionDecisionAllow"""

    updatedInput: dict[str, Any] | None = None
    updatedPermissions: list[PermissionUpdate] | None = None


class PermissionDecisionDeny(Wire, tag_field="behavior", tag="deny", kw_only=True, frozen=True):
    """DOC PermissionDecisionDeny"""

    message: str | None = None
    interrupt: bool | None = None


KnownPermissionDecision: TypeAlias = PermissionDecisionAllow | PermissionDecisionDeny
if TYPE_CHECKING:
    PermissionDecision: TypeAlias = KnownPermissionDecision | UnknownObject
else:
    PermissionDecision = KnownPermissionDecision


class PermissionRequestHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="PermissionRequest", kw_only=True, frozen=True
):
    """DOC PermissionRequestHookSpecificOutput"""

    decision: PermissionDecision


class PostModelSwitchHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="PostModelSwitch", kw_only=True, frozen=True
):
    """DOC PostModelSwitchHookSpecificOutput"""

    additionalContext: str | None = None


class PostToolBatchHookSpecificOutput(Wire, tag_field="hookEventName", tag="PostToolBatch", kw_only=True, frozen=True):
    """DOC PostToolBatchHookSpecificOutput"""

    additionalContext: str | None = None


class PostToolUseFailureHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="PostToolUseFailure", kw_only=True, frozen=True
):
    """DOC PostToolUseFailureHookSpecificOutput"""

    additionalContext: str | None = None


class PostToolUseHookSpecificOutput(Wire, tag_field="hookEventName", tag="PostToolUse", kw_only=True, frozen=True):
    """DOC PostToolUseHookSpecificOutput"""

    additionalContext: str | None = None
    classifierContext: str | None = None
    updatedToolOutput: Any = None
    updatedMCPToolOutput: Any = None


class PreModelSwitchHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="PreModelSwitch", kw_only=True, frozen=True
):
    """DOC PreModelSwitchHookSpecificOutput"""

    # one of allow, deny, ask
    permissionDecision: str | None = None
    permissionDecisionReason: str | None = None


class PreToolUseHookSpecificOutput(Wire, tag_field="hookEventName", tag="PreToolUse", kw_only=True, frozen=True):
    """DOC PreToolUseHookSpecificOutput"""

    # one of allow, deny, ask, defer
    permissionDecision: str | None = None
    permissionDecisionReason: str | None = None
    updatedInput: dict[str, Any] | None = None
    additionalContext: str | None = None


class SessionStartHookSpecificOutput(Wire, tag_field="hookEventName", tag="SessionStart", kw_only=True, frozen=True):
    """DOC SessionStartHookSpecificOutput"""

    additionalContext: str | None = None
    initialUserMessage: str | None = None
    sessionTitle: str | None = None
    watchPaths: list[str] | None = None
    reloadSkills: bool | None = None


class SetupHookSpecificOutput(Wire, tag_field="hookEventName", tag="Setup", kw_only=True, frozen=True):
    """DOC SetupHookSpecificOutput"""

    additionalContext: str | None = None


class StopHookSpecificOutput(Wire, tag_field="hookEventName", tag="Stop", kw_only=True, frozen=True):
    """DOC StopHookSpecificOutput"""

    additionalContext: str | None = None


class SubagentStartHookSpecificOutput(Wire, tag_field="hookEventName", tag="SubagentStart", kw_only=True, frozen=True):
    """DOC SubagentStartHookSpecificOutput"""

    additionalContext: str | None = None


class SubagentStopHookSpecificOutput(Wire, tag_field="hookEventName", tag="SubagentStop", kw_only=True, frozen=True):
    """DOC SubagentStopHookSpecificOutput"""

    additionalContext: str | None = None


class UserPromptExpansionHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="UserPromptExpansion", kw_only=True, frozen=True
):
    """DOC UserPromptExpansionHookSpecificOutput"""

    additionalContext: str | None = None
    suppressOriginalPrompt: bool | None = None


class UserPromptSubmitHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="UserPromptSubmit", kw_only=True, frozen=True
):
    """DOC UserPromptSubmitHookSpecificOutput"""

    additionalContext: str | None = None
    sessionTitle: str | None = None
    suppressOriginalPrompt: bool | None = None


class WorktreeCreateHookSpecificOutput(
    Wire, tag_field="hookEventName", tag="WorktreeCreate", kw_only=True, frozen=True
):
    """DOC WorktreeCreateHookSpecificOutput"""

    worktreePath: str


KnownHookSpecificOutput: TypeAlias = (
    CwdChangedHookSpecificOutput
    | ElicitationHookSpecificOutput
    | ElicitationResultHookSpecificOutput
    | FileChangedHookSpecificOutput
    | MessageDisplayHookSpecificOutput
    | NotificationHookSpecificOutput
    | PermissionDeniedHookSpecificOutput
    | PermissionRequestHookSpecificOutput
    | PostModelSwitchHookSpecificOutput
    | PostToolBatchHookSpecificOutput
    | PostToolUseFailureHookSpecificOutput
    | PostToolUseHookSpecificOutput
    | PreModelSwitchHookSpecificOutput
    | PreToolUseHookSpecificOutput
    | SessionStartHookSpecificOutput
    | SetupHookSpecificOutput
    | StopHookSpecificOutput
    | SubagentStartHookSpecificOutput
    | SubagentStopHookSpecificOutput
    | UserPromptExpansionHookSpecificOutput
    | UserPromptSubmitHookSpecificOutput
    | WorktreeCreateHookSpecificOutput
)
if TYPE_CHECKING:
    HookSpecificOutput: TypeAlias = KnownHookSpecificOutput | UnknownObject
else:
    HookSpecificOutput = KnownHookSpecificOutput


class HookOutput(Wire, kw_only=True, rename={"continue_": "continue"}, frozen=True):
    """DOC HookOutput"""

    continue_: bool | None = None
    suppressOutput: bool | None = None
    stopReason: str | None = None
    # one of approve, block
    decision: str | None = None
    systemMessage: str | None = None
    terminalSequence: str | None = None
    reason: str | None = None
    hookSpecificOutput: HookSpecificOutput | None = None


class AsyncHookOutput(Wire, kw_only=True, rename={"async_": "async"}, frozen=True):
    """DOC AsyncHookOutput"""

    async_: bool
    asyncTimeout: Number | None = None
