"""Control requests of the CLI to its host, and the payloads of the answers.

The host answers each request once, with a :class:`ControlResponse`, unless the CLI withdraws it with a
:class:`ControlCancelRequest`. If stdin closes before the answer to a permission question, the question fails.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from claude_wire.messages.base import Sender, Wire
from claude_wire.messages.control.mcp import McpServerProvenance
from claude_wire.messages.control.permissions import (
    MatchedAskRule,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
)
from claude_wire.messages.control.request_body import ControlRequestBody, parse_answer
from claude_wire.messages.hooks.inputs import HookInput
from claude_wire.messages.hooks.outputs import AsyncHookOutput, HookOutput
from claude_wire.messages.unknown import OrUnknownObject


class CanUseToolRequest(ControlRequestBody[PermissionResult], tag="can_use_tool", kw_only=True, frozen=True):
    """The CLI asks whether it may run a tool, and waits for the answer.

    The CLI asks after the assistant message with the ``tool_use`` block, if neither a rule nor the mode decides. The
    CLI must run with ``--permission-prompt-tool stdio``. An interrupt withdraws the question. If the answer is neither
    :class:`PermissionResultAllow` nor :class:`PermissionResultDeny`, the tool fails. The text fields may contain
    terminal escapes.
    """

    sent_by: ClassVar[Sender] = "agent"

    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for an MCP tool."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""
    display_name: str | None = None
    """The name of the tool for display."""
    input: dict[str, Any]
    """The input of the call."""
    description: str | None = None
    """A human-readable description of the call."""
    permission_suggestions: list[PermissionUpdate] | None = None
    """Permission changes to offer to the user; pass the accepted ones to :meth:`allow`."""
    decision_reason: str | None = None
    """Why the CLI asks, as human-readable text."""
    blocked_path: str | None = None
    """A path outside the session's directories, if the CLI asks because of the path."""
    server_policy_ask_only: bool | None = None
    """Only for MCP tools; observed: true for servers of the host, false for others."""
    # one of rule, mode, subcommandResults, permissionPromptTool, hook, asyncAgent, sandboxOverride, workingDir,
    # safetyCheck, classifier, other
    decision_reason_type: str | None = None
    """Why the CLI asks, as one word; other values are possible."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call."""
    classifier_approvable: bool | None = None
    """False if a safety check requires a person, true if a classifier may decide; None without a check."""
    suppress_always_allow_rule: bool | None = None
    """True if the host must not offer to allow the tool permanently."""
    default_to_no: bool | None = None
    """True if the host must not preselect "allow"."""
    matched_ask_rule: MatchedAskRule | None = None
    """The user's own ``ask`` rule that forced the question."""
    title: str | None = None
    """A title for the question."""
    agent_id: str | None = None
    """The id of the subagent that asks."""
    requires_user_interaction: bool | None = None
    """True if a person must open the session, so the host must not offer a one-tap answer."""

    def allow(
        self,
        updated_input: dict[str, Any] | None = None,
        *,
        updated_permissions: list[PermissionUpdate] | None = None,
    ) -> PermissionResultAllow:
        """Return the answer that allows the tool. ``updated_input``, if given, replaces the tool's input."""
        return PermissionResultAllow(
            updatedInput=self.input if updated_input is None else updated_input,
            updatedPermissions=updated_permissions,
            toolUseID=self.tool_use_id,
        )

    def deny(self, message: str, *, interrupt: bool | None = None) -> PermissionResultDeny:
        """Return the answer that refuses the tool. The model reads ``message``; ``interrupt`` also ends the turn."""
        return PermissionResultDeny(message=message, interrupt=interrupt, toolUseID=self.tool_use_id)


class HookCallbackRequest(
    ControlRequestBody[HookOutput | AsyncHookOutput], tag="hook_callback", kw_only=True, frozen=True
):
    """The CLI calls a hook of the host and waits for its output. The output ``{}`` changes nothing.

    Several such requests may be open at the same time, one for each registered callback.
    """

    sent_by: ClassVar[Sender] = "agent"

    callback_id: str
    """The id that the host chose in :class:`HookCallbackMatcher`."""
    input: HookInput
    """The event; its ``hook_event_name`` selects the class."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call; another unique string if the event has no tool."""

    @property
    def name(self) -> str | None:
        """``input.tool_name``; None if the event has no tool."""
        name: Any = (
            self.input.get("tool_name") if isinstance(self.input, dict) else getattr(self.input, "tool_name", None)
        )
        return name if isinstance(name, str) else None

    @classmethod
    def parse_answer(cls, payload: dict[str, Any]) -> HookOutput | AsyncHookOutput:
        """Return an :class:`AsyncHookOutput` if the payload has ``async``, else a :class:`HookOutput`.

        Also accept the keys ``continue_`` and ``async_``.
        """
        payload = {{"continue_": "continue", "async_": "async"}.get(key, key): value for key, value in payload.items()}
        return parse_answer(AsyncHookOutput, payload) if payload.get("async") else parse_answer(HookOutput, payload)


class McpMessageResponse(Wire, kw_only=True, frozen=True):
    """The reply of an MCP server in the host.

    A JSON-RPC notification has no reply, but its control request needs an answer: send
    ``{"jsonrpc": "2.0", "result": {}}``.
    """

    mcp_response: dict[str, Any] | None = None
    """The JSON-RPC reply."""


class McpMessageRequest(ControlRequestBody[McpMessageResponse], tag="mcp_message", kw_only=True, frozen=True):
    """A JSON-RPC message to or from an MCP server that runs in the host.

    The CLI sends messages to the server, beginning with the handshake, even before it answers ``initialize``. The host
    sends the server's requests and notifications, and gets an empty answer.
    """

    sent_by: ClassVar[Sender] = "both"

    server_name: str
    """The name that the host registered in ``initialize``."""
    message: dict[str, Any]
    """The JSON-RPC message: a request, a notification or a response."""


class ElicitationResponse(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """The user's answer to an MCP server. A host that cannot ask its user should answer ``decline``."""

    # one of accept, decline, cancel
    action: str
    """``decline`` if the user refused, ``cancel`` if the user did not decide."""
    content: dict[str, Any] | None = None
    """The completed form, if ``action`` is ``accept``; should match ``requested_schema``."""
    meta: dict[str, Any] | None = None
    """``_meta`` on the wire: data for the server."""


class ElicitationRequest(ControlRequestBody[ElicitationResponse], tag="elicitation", kw_only=True, frozen=True):
    """An MCP server asks the user for input, and its tool waits for the answer.

    Servers in the host cannot ask: the CLI answers their ``elicitation/create`` with ``Method not found``.
    """

    sent_by: ClassVar[Sender] = "agent"

    mcp_server_name: str
    """The name of the MCP server that asks."""
    message: str
    """The question, as text for the user."""
    # one of form, url
    mode: str | None = None
    """How the user answers: in a form or on a web page."""
    url: str | None = None
    """The page to open in ``url`` mode."""
    elicitation_id: str | None = None
    """The id that :class:`ElicitationCompleteMessage` repeats; only in ``url`` mode."""
    requested_schema: dict[str, Any] | None = None
    """The JSON schema of the answer in ``form`` mode."""
    property_order: list[str] | None = None
    """The keys of ``requested_schema`` in the server's order."""
    title: str | None = None
    """A title for the question."""
    display_name: str | None = None
    """The name of the tool or server for display."""
    description: str | None = None
    """A human-readable description of the question."""


class UserDialogCompleted(Wire, tag_field="behavior", tag="completed", kw_only=True, frozen=True):
    """The user answered the dialog."""

    result: Any
    """The answer as JSON, in a format that depends on ``dialog_kind``."""


class UserDialogCancelled(Wire, tag_field="behavior", tag="cancelled", frozen=True):
    """The user dismissed the dialog, and the CLI does not ask again.

    Send no answer for a kind of dialog that the host cannot show.
    """


#: The answer to ``request_user_dialog``.
UserDialogResult: TypeAlias = UserDialogCompleted | UserDialogCancelled | OrUnknownObject


class RequestUserDialogRequest(
    ControlRequestBody[UserDialogResult], tag="request_user_dialog", kw_only=True, frozen=True
):
    """The CLI asks the host to show a dialog and waits for the user's choice.

    The CLI uses only kinds in :attr:`InitializeRequest.supportedDialogKinds`.
    """

    sent_by: ClassVar[Sender] = "agent"

    dialog_kind: str
    """The kind of dialog; a host must not answer an unknown kind."""
    payload: dict[str, Any]
    """The content of the dialog, in a format that depends on ``dialog_kind``."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call that the dialog is about."""
