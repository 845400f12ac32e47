"""Hook outputs: the answers of a host to ``hook_callback``.

Every member is optional. An empty object has no effect, as if there were no hook. Member names are camelCase
(the inputs are snake_case), and the tag ``hookEventName`` must name the event being answered.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast, get_args

from msgspec.structs import asdict

from claude_wire.messages.base import ByHand, Number, Wire
from claude_wire.messages.control.permissions import PermissionUpdate
from claude_wire.messages.unknown import OrUnknownObject, Unknown
from claude_wire.support.arguments import nearest, shown


class _ForEvent(Wire, tag_field="hookEventName", kw_only=True, frozen=True, metaclass=ByHand):
    """The base of hook outputs that are specific to an event."""


class _WithContext(_ForEvent, kw_only=True, frozen=True):
    additionalContext: str | None = None
    """Text that the model reads."""


class _WatchPaths(_ForEvent, kw_only=True, frozen=True):
    watchPaths: list[str] | None = None
    """Files to watch: their changes come as :class:`FileChangedHookInput`."""


class _ElicitationOutput(_ForEvent, kw_only=True, frozen=True):
    # one of cancel, accept, decline
    action: str | None = None
    """The answer; without it, the user's answer counts."""
    content: dict[str, Any] | None = None
    """The filled form, with ``accept``."""


class CwdChangedHookSpecificOutput(_WatchPaths, tag="CwdChanged", kw_only=True, frozen=True):
    """The files to watch after a change of the working directory."""


class ElicitationHookSpecificOutput(_ElicitationOutput, tag="Elicitation", kw_only=True, frozen=True):
    """The answer to an MCP server's question, given in the user's place.

    Without ``action`` the user is asked.
    """


class ElicitationResultHookSpecificOutput(_ElicitationOutput, tag="ElicitationResult", kw_only=True, frozen=True):
    """A different answer for the MCP server than the one the user gave."""


class FileChangedHookSpecificOutput(_WatchPaths, tag="FileChanged", kw_only=True, frozen=True):
    """The files to watch after a watched file has changed."""


class MessageDisplayHookSpecificOutput(_ForEvent, tag="MessageDisplay", kw_only=True, frozen=True):
    """Other text to show in place of a piece of an assistant message.

    For the display only: the stored message and the model's context do not change.
    """

    displayContent: str | None = None
    """The text to show instead of ``delta``. Leave it out to show ``delta``."""


class NotificationHookSpecificOutput(_WithContext, tag="Notification", kw_only=True, frozen=True):
    """Text to add to the conversation after a notification."""


class PermissionDeniedHookSpecificOutput(_ForEvent, tag="PermissionDenied", kw_only=True, frozen=True):
    """Whether the model may try a denied tool use again."""

    retry: bool | None = None
    """True lets the model try the tool use again."""


class PermissionDecisionAllow(Wire, tag_field="behavior", tag="allow", kw_only=True, frozen=True):
    """A hook allows the tool of a permission question."""

    updatedInput: dict[str, Any] | None = None
    """The input that the tool runs with. Leave it out to keep the input."""
    updatedPermissions: list[PermissionUpdate] | None = None
    """Permissions to grant along with this call."""


class PermissionDecisionDeny(Wire, tag_field="behavior", tag="deny", kw_only=True, frozen=True):
    """A hook refuses the tool of a permission question."""

    message: str | None = None
    """The reason, which goes to the model as the result of the tool."""
    interrupt: bool | None = None
    """True also stops the turn."""


PermissionDecision: TypeAlias = PermissionDecisionAllow | PermissionDecisionDeny | OrUnknownObject


class PermissionRequestHookSpecificOutput(_ForEvent, tag="PermissionRequest", kw_only=True, frozen=True):
    """A hook's answer to a permission question.

    Without this output, the question goes on to the next one to decide, such as the host's ``can_use_tool``.
    """

    decision: PermissionDecision
    """Whether the tool may run."""


class PostModelSwitchHookSpecificOutput(_WithContext, tag="PostModelSwitch", kw_only=True, frozen=True):
    """Text for the new model, sent with the first request it serves."""


class PostToolBatchHookSpecificOutput(_WithContext, tag="PostToolBatch", kw_only=True, frozen=True):
    """Text for the model, added after a batch of tool results."""


class PostToolUseFailureHookSpecificOutput(_WithContext, tag="PostToolUseFailure", kw_only=True, frozen=True):
    """Text for the model, added after the result of a failed tool use."""


class PostToolUseHookSpecificOutput(_WithContext, tag="PostToolUse", kw_only=True, frozen=True):
    """Text to add to a tool's result, or another result in its place."""

    classifierContext: str | None = None
    """Text for auto mode's permission classifier only, at most 2000 UTF-16 units."""
    updatedToolOutput: Any = None
    """The result that the model reads instead of the tool's own."""
    updatedMCPToolOutput: Any = None
    """An older form of ``updatedToolOutput``, for MCP tools alone."""


class PreModelSwitchHookSpecificOutput(_ForEvent, tag="PreModelSwitch", kw_only=True, frozen=True):
    """Whether a switch of the model may go ahead."""

    # one of allow, deny, ask
    permissionDecision: str | None = None
    """Whether to switch. ``ask`` makes the user confirm; if nobody can be asked, it refuses."""
    permissionDecisionReason: str | None = None


class PreToolUseHookSpecificOutput(_ForEvent, tag="PreToolUse", kw_only=True, frozen=True):
    """Whether and with what input a tool may be used."""

    # one of allow, deny, ask, defer
    permissionDecision: str | None = None
    """``ask`` lets the user decide; ``defer`` ends the run with the call in ``deferred_tool_use``."""
    permissionDecisionReason: str | None = None
    updatedInput: dict[str, Any] | None = None
    """The input that the tool runs with. It replaces the whole input."""
    additionalContext: str | None = None
    """Text that the model reads."""


class SessionStartHookSpecificOutput(_WithContext, tag="SessionStart", kw_only=True, frozen=True):
    """Additions to a session that begins."""

    initialUserMessage: str | None = None
    """A prompt to begin with."""
    sessionTitle: str | None = None
    watchPaths: list[str] | None = None
    """Files to watch: their changes come as :class:`FileChangedHookInput`."""
    reloadSkills: bool | None = None
    """True makes the CLI search again for skills, to find those that the hook has installed."""


class SetupHookSpecificOutput(_WithContext, tag="Setup", kw_only=True, frozen=True):
    """Text for the model, added after a setup hook."""


class StopHookSpecificOutput(_WithContext, tag="Stop", kw_only=True, frozen=True):
    """Feedback for the model instead of the end of its turn.

    Any feedback makes the model continue. If the hook always gives feedback, the turn never ends: check
    ``stop_hook_active``.
    """


class SubagentStartHookSpecificOutput(_WithContext, tag="SubagentStart", kw_only=True, frozen=True):
    """Text for a subagent that has just been started."""


class SubagentStopHookSpecificOutput(_WithContext, tag="SubagentStop", kw_only=True, frozen=True):
    """Feedback for a subagent instead of its end.

    Any feedback makes the subagent continue. If the hook always gives feedback, its turn never ends: check
    ``stop_hook_active``.
    """


class UserPromptExpansionHookSpecificOutput(_WithContext, tag="UserPromptExpansion", kw_only=True, frozen=True):
    """Text to add to a prompt that a command was expanded into."""

    suppressOriginalPrompt: bool | None = None
    """With ``decision`` ``block``, true hides the prompt in the message about the block."""


class UserPromptSubmitHookSpecificOutput(_WithContext, tag="UserPromptSubmit", kw_only=True, frozen=True):
    """Text to add to a submitted prompt, and a title for the session."""

    sessionTitle: str | None = None
    suppressOriginalPrompt: bool | None = None
    """With ``decision`` ``block``, true hides the prompt in the message about the block."""


class WorktreeCreateHookSpecificOutput(_ForEvent, tag="WorktreeCreate", kw_only=True, frozen=True):
    """The worktree that the hook has created."""

    worktreePath: str
    """The absolute path of the worktree."""


#: The event-specific part of a hook's answer.
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
    """The answer of a hook that has finished.

    An empty object changes nothing.
    """

    continue_: bool | None = None
    """``continue`` on the wire. False stops the turn."""
    suppressOutput: bool | None = None
    """True hides the output of the hook from the user."""
    stopReason: str | None = None
    """Shown to the user when the turn is stopped."""
    # one of approve, block
    decision: str | None = None
    """``block`` stops the action that the event reports, such as a tool call. ``approve`` is an old form."""
    systemMessage: str | None = None
    """Shown to the user, not to the model."""
    terminalSequence: str | None = None
    """A terminal escape sequence for the CLI to print, such as OSC 9 or BEL. Only titles and notifications."""
    reason: str | None = None
    """Why ``decision`` is ``block``."""
    hookSpecificOutput: HookSpecificOutput | None = None
    """The fields that only this kind of event has, such as ``permissionDecision`` of ``PreToolUse``."""


class AsyncHookOutput(Wire, kw_only=True, rename={"async_": "async"}, frozen=True, metaclass=ByHand):
    """The answer of a hook that goes on in the background, so that the CLI does not wait."""

    async_: bool
    """``async`` on the wire. Always true: it distinguishes this answer from a :class:`HookOutput`."""
    asyncTimeout: Number | None = None
    """Milliseconds that the hook may run."""


#: The fields of all hook-specific outputs. At the top level the CLI ignores all of them except ``decision``.
_SPECIFIC = {name for cls in get_args(HookSpecificOutput) for name in cls.__struct_encode_fields__} - {"decision"}


def ineffective(output: HookOutput | AsyncHookOutput | dict[str, Any]) -> str:
    """Describe the parts of a hook's answer that the CLI would ignore, and the remedy. Empty if there are none.

    If the CLI ignored part of an answer, a hook that is to refuse a tool would not refuse it. An
    :class:`UnknownObject` is not checked: a later CLI may know it.
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
    """Return a member of a JSON object, given as a message or a dict; ``otherwise`` for anything else."""
    if isinstance(part, Unknown):
        return None
    plain: Any = part.to_dict() if isinstance(part, Wire) else part
    return cast("dict[str, Any]", plain).get(name) if isinstance(plain, dict) else otherwise


def _wrong_word(name: str, word: object, *words: str) -> str:
    if word is None or word in words:
        return ""
    hint = nearest(word, words) if isinstance(word, str) else ""
    return f"{name} must be one of {', '.join(map(repr, words))}, not {shown(word)}{hint}"
