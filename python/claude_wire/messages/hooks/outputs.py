"""The outputs of hooks: a host's answers to ``hook_callback``.

An empty object has no effect. Keys of outputs are camelCase, and keys of inputs are snake_case. The tag
``hookEventName`` must be the event of the input.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast, get_args

from msgspec.structs import asdict

from claude_wire.messages.base import ByHand, Number, Wire
from claude_wire.messages.control.permissions import PermissionUpdate
from claude_wire.messages.unknown import OrUnknownObject, Unknown
from claude_wire.support.arguments import nearest, shown


class _ForEvent(Wire, tag_field="hookEventName", kw_only=True, frozen=True, metaclass=ByHand):
    """The base class of outputs for one event."""


class _WithContext(_ForEvent, kw_only=True, frozen=True):
    additionalContext: str | None = None
    """Text that the model reads."""


class _WatchPaths(_ForEvent, kw_only=True, frozen=True):
    watchPaths: list[str] | None = None
    """Files to watch; for each change, the CLI sends a :class:`FileChangedHookInput`."""


class _ElicitationOutput(_ForEvent, kw_only=True, frozen=True):
    # one of cancel, accept, decline
    action: str | None = None
    """The answer; None to use the user's answer."""
    content: dict[str, Any] | None = None
    """The completed form, if ``action`` is ``accept``."""


class CwdChangedHookSpecificOutput(_WatchPaths, tag="CwdChanged", kw_only=True, frozen=True):
    """Files to watch after a change of the working directory."""


class ElicitationHookSpecificOutput(_ElicitationOutput, tag="Elicitation", kw_only=True, frozen=True):
    """The answer to an MCP server's question. Without ``action``, the CLI asks the user."""


class ElicitationResultHookSpecificOutput(_ElicitationOutput, tag="ElicitationResult", kw_only=True, frozen=True):
    """An answer for the MCP server that replaces the user's answer."""


class FileChangedHookSpecificOutput(_WatchPaths, tag="FileChanged", kw_only=True, frozen=True):
    """Files to watch after a watched file changed."""


class MessageDisplayHookSpecificOutput(_ForEvent, tag="MessageDisplay", kw_only=True, frozen=True):
    """Text to show instead of a piece of an assistant message. The message itself does not change."""

    displayContent: str | None = None
    """The text to show instead of ``delta``; None to show ``delta``."""


class NotificationHookSpecificOutput(_WithContext, tag="Notification", kw_only=True, frozen=True):
    """Text to add to the conversation after a notification."""


class PermissionDeniedHookSpecificOutput(_ForEvent, tag="PermissionDenied", kw_only=True, frozen=True):
    """Whether the model may retry a denied tool call."""

    retry: bool | None = None
    """True allows the model to retry."""


class PermissionDecisionAllow(Wire, tag_field="behavior", tag="allow", kw_only=True, frozen=True):
    """The hook allows the tool."""

    updatedInput: dict[str, Any] | None = None
    """The tool's new input; None to keep the input."""
    updatedPermissions: list[PermissionUpdate] | None = None
    """Permission changes to make."""


class PermissionDecisionDeny(Wire, tag_field="behavior", tag="deny", kw_only=True, frozen=True):
    """The hook refuses the tool."""

    message: str | None = None
    """The reason, which the model reads as the tool's result."""
    interrupt: bool | None = None
    """True also stops the turn."""


PermissionDecision: TypeAlias = PermissionDecisionAllow | PermissionDecisionDeny | OrUnknownObject


class PermissionRequestHookSpecificOutput(_ForEvent, tag="PermissionRequest", kw_only=True, frozen=True):
    """The answer to a permission question. Otherwise, the CLI asks elsewhere, such as through ``can_use_tool``."""

    decision: PermissionDecision
    """Whether the tool may run."""


class PostModelSwitchHookSpecificOutput(_WithContext, tag="PostModelSwitch", kw_only=True, frozen=True):
    """Text for the new model, sent with its first request."""


class PostToolBatchHookSpecificOutput(_WithContext, tag="PostToolBatch", kw_only=True, frozen=True):
    """Text to add for the model after a batch of tool results."""


class PostToolUseFailureHookSpecificOutput(_WithContext, tag="PostToolUseFailure", kw_only=True, frozen=True):
    """Text to add for the model after a failed tool call's result."""


class PostToolUseHookSpecificOutput(_WithContext, tag="PostToolUse", kw_only=True, frozen=True):
    """Text to add to a tool's result, or a result that replaces it."""

    classifierContext: str | None = None
    """Text only for auto mode's permission classifier, at most 2000 UTF-16 units."""
    updatedToolOutput: Any = None
    """The result for the model, in place of the tool's result."""
    updatedMCPToolOutput: Any = None
    """An older form of ``updatedToolOutput``, only for MCP tools."""


class PreModelSwitchHookSpecificOutput(_ForEvent, tag="PreModelSwitch", kw_only=True, frozen=True):
    """Whether the CLI may switch the model."""

    # one of allow, deny, ask
    permissionDecision: str | None = None
    """Whether to switch; ``ask`` asks the user, and refuses if nobody can answer."""
    permissionDecisionReason: str | None = None


class PreToolUseHookSpecificOutput(_ForEvent, tag="PreToolUse", kw_only=True, frozen=True):
    """Whether the CLI may run a tool, and with which input."""

    # one of allow, deny, ask, defer
    permissionDecision: str | None = None
    """``ask`` asks the user; ``defer`` ends the run, and the result has the call in ``deferred_tool_use``."""
    permissionDecisionReason: str | None = None
    updatedInput: dict[str, Any] | None = None
    """The tool's new input, which replaces the whole input."""
    additionalContext: str | None = None
    """Text that the model reads."""


class SessionStartHookSpecificOutput(_WithContext, tag="SessionStart", kw_only=True, frozen=True):
    """Additions to a new or resumed session."""

    initialUserMessage: str | None = None
    """The first prompt."""
    sessionTitle: str | None = None
    watchPaths: list[str] | None = None
    """Files to watch; for each change, the CLI sends a :class:`FileChangedHookInput`."""
    reloadSkills: bool | None = None
    """True makes the CLI reload skills, because the hook installed some."""


class SetupHookSpecificOutput(_WithContext, tag="Setup", kw_only=True, frozen=True):
    """Text to add for the model after a setup hook."""


class StopHookSpecificOutput(_WithContext, tag="Stop", kw_only=True, frozen=True):
    """Feedback that makes the model continue its turn.

    If the hook always gives feedback, the turn never ends: check ``stop_hook_active``.
    """


class SubagentStartHookSpecificOutput(_WithContext, tag="SubagentStart", kw_only=True, frozen=True):
    """Text for a new subagent."""


class SubagentStopHookSpecificOutput(_WithContext, tag="SubagentStop", kw_only=True, frozen=True):
    """Feedback that makes a subagent continue.

    If the hook always gives feedback, the subagent never ends: check ``stop_hook_active``.
    """


class UserPromptExpansionHookSpecificOutput(_WithContext, tag="UserPromptExpansion", kw_only=True, frozen=True):
    """Text to add to the prompt that a command expands to."""

    suppressOriginalPrompt: bool | None = None
    """With ``decision`` ``block``, true hides the prompt in the message to the user."""


class UserPromptSubmitHookSpecificOutput(_WithContext, tag="UserPromptSubmit", kw_only=True, frozen=True):
    """Text to add to a submitted prompt, and a title for the session."""

    sessionTitle: str | None = None
    suppressOriginalPrompt: bool | None = None
    """With ``decision`` ``block``, true hides the prompt in the message to the user."""


class WorktreeCreateHookSpecificOutput(_ForEvent, tag="WorktreeCreate", kw_only=True, frozen=True):
    """The worktree that the hook created."""

    worktreePath: str
    """The absolute path of the worktree."""


#: The part of a hook's output that depends on the event.
HookSpecificOutput: TypeAlias = (
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
    | OrUnknownObject
)


class HookOutput(Wire, kw_only=True, rename={"continue_": "continue"}, frozen=True, metaclass=ByHand):
    """The output of a hook that has finished. An empty object changes nothing."""

    continue_: bool | None = None
    """``continue`` on the wire; False stops the turn."""
    suppressOutput: bool | None = None
    """True hides the hook's output from the user."""
    stopReason: str | None = None
    """Text for the user if the turn stops."""
    # one of approve, block
    decision: str | None = None
    """``block`` stops the event's action, such as a tool call; ``approve`` is obsolete."""
    systemMessage: str | None = None
    """Text for the user, not for the model."""
    terminalSequence: str | None = None
    """A terminal escape sequence for the CLI to print: only for titles and notifications, such as OSC 9 or BEL."""
    reason: str | None = None
    """Why ``decision`` is ``block``."""
    hookSpecificOutput: HookSpecificOutput | None = None
    """The fields for this event, such as ``permissionDecision`` of ``PreToolUse``."""


class AsyncHookOutput(Wire, kw_only=True, rename={"async_": "async"}, frozen=True, metaclass=ByHand):
    """The output of a hook that continues in the background. The CLI does not wait for it."""

    async_: bool
    """``async`` on the wire; always true, unlike in a :class:`HookOutput`."""
    asyncTimeout: Number | None = None
    """Time limit for the hook, in milliseconds."""


#: The fields of ``hookSpecificOutput``. The CLI ignores them at the top level of an output, except ``decision``.
_SPECIFIC = {name for cls in get_args(HookSpecificOutput) for name in cls.__struct_encode_fields__} - {"decision"}


def ineffective(output: HookOutput | AsyncHookOutput | dict[str, Any]) -> str:
    """Describe the first part of a hook's output that the CLI would ignore, and the remedy. Empty if there is none.

    Without this check, a hook that makes a mistake in denying a tool would allow the tool. An :class:`UnknownObject`
    is not checked, because a later CLI may support it.
    """
    given: dict[str, Any] = output if isinstance(output, dict) else asdict(output)
    misplaced = sorted(_SPECIFIC & given.keys())
    if misplaced:
        return f"{misplaced[0]} belongs in hookSpecificOutput, beside hookEventName"
    specific = given.get("hookSpecificOutput")
    permission = _member(specific, "decision")
    return (
        _wrong_word("decision", given.get("decision"), "approve", "block")
        or _wrong_word("permissionDecision", _member(specific, "permissionDecision"), "allow", "deny", "ask", "defer")
        or _wrong_word("the behavior of decision", _member(permission, "behavior", permission), "allow", "deny")
    )


def _member(part: Any, name: str, otherwise: Any = None) -> Any:
    """Return a member of a message or a dict. For any other value, return ``otherwise``."""
    if isinstance(part, Unknown):
        return None
    plain: Any = part.to_dict() if isinstance(part, Wire) else part
    return cast("dict[str, Any]", plain).get(name) if isinstance(plain, dict) else otherwise


def _wrong_word(name: str, word: object, *words: str) -> str:
    if word is None or word in words:
        return ""
    hint = nearest(word, words) if isinstance(word, str) else ""
    return f"{name} must be one of {', '.join(map(repr, words))}, not {shown(word)}{hint}"
