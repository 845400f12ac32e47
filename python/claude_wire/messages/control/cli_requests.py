"""Control requests that the CLI sends to its host, and the payloads of the answers.

Each waits for one :class:`ControlResponse` with its ``request_id``, unless the CLI withdraws it with a
:class:`ControlCancelRequest`. When stdin closes first, the CLI treats an open permission question as failed.
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
    """The CLI asks whether a tool may be used; the tool waits for the answer.

    It comes after the assistant message with the ``tool_use`` block, and only when neither a rule nor the mode has
    decided; the CLI must be launched with ``--permission-prompt-tool stdio``. An interrupt withdraws it. An answer
    that is neither :class:`PermissionResultAllow` nor :class:`PermissionResultDeny` counts as an error of the tool.
    The texts may hold terminal escapes.
    """

    sent_by: ClassVar[Sender] = "agent"

    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for one of an MCP server."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""
    display_name: str | None = None
    """The name of the tool for people."""
    input: dict[str, Any]
    """The input that the tool would run with."""
    description: str | None = None
    """A description of the call, for people."""
    permission_suggestions: list[PermissionUpdate] | None = None
    """Changes of permissions to offer to the user. Pass the accepted ones to :meth:`allow`."""
    decision_reason: str | None = None
    """Why the CLI asks, for people."""
    blocked_path: str | None = None
    """The path outside of the session's directories, if that is why the CLI asks."""
    server_policy_ask_only: bool | None = None
    """Only for MCP tools. Observed: true for servers of the host, false for others."""
    # one of rule, mode, subcommandResults, permissionPromptTool, hook, asyncAgent, sandboxOverride, workingDir,
    # safetyCheck, classifier, other
    decision_reason_type: str | None = None
    """Why the CLI asks, as one word. New values may come."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call."""
    classifier_approvable: bool | None = None
    """False if a safety check wants a person, true if a classifier may decide; None if nothing was checked."""
    suppress_always_allow_rule: bool | None = None
    """True if the host must not offer to allow the tool for good."""
    default_to_no: bool | None = None
    """True if the host must not preselect the approval."""
    matched_ask_rule: MatchedAskRule | None = None
    """The user's own ``ask`` rule that forced the question."""
    title: str | None = None
    """A title for the question."""
    agent_id: str | None = None
    """The id of the subagent that asks."""
    requires_user_interaction: bool | None = None
    """True if the host must not offer a one-tap answer: a person has to open the session."""

    def allow(
        self,
        updated_input: dict[str, Any] | None = None,
        *,
        updated_permissions: list[PermissionUpdate] | None = None,
    ) -> PermissionResultAllow:
        """Answer: run the tool, with its own input or with ``updated_input``."""
        return PermissionResultAllow(
            updatedInput=self.input if updated_input is None else updated_input,
            updatedPermissions=updated_permissions,
            toolUseID=self.tool_use_id,
        )

    def deny(self, message: str, *, interrupt: bool | None = None) -> PermissionResultDeny:
        """Answer: do not run the tool. The model reads ``message``; ``interrupt`` also ends its turn."""
        return PermissionResultDeny(message=message, interrupt=interrupt, toolUseID=self.tool_use_id)


class HookCallbackRequest(
    ControlRequestBody[HookOutput | AsyncHookOutput], tag="hook_callback", kw_only=True, frozen=True
):
    """The CLI runs a hook of the host and waits for its output.

    Several may be open at once, one for each registered callback. Answer ``{}`` to change nothing.
    """

    sent_by: ClassVar[Sender] = "agent"

    callback_id: str
    """The id that the host chose in :class:`HookCallbackMatcher`."""
    input: HookInput
    """The event. Its ``hook_event_name`` selects the class."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call; for events that are not about a tool, another unique string."""

    @property
    def name(self) -> str | None:
        """The name of the event's tool (``input.tool_name``); None if the event has no tool."""
        name: Any = (
            self.input.get("tool_name") if isinstance(self.input, dict) else getattr(self.input, "tool_name", None)
        )
        return name if isinstance(name, str) else None

    @classmethod
    def parse_answer(cls, payload: dict[str, Any]) -> HookOutput | AsyncHookOutput:
        """Return an :class:`AsyncHookOutput` if the payload has ``async``, else a :class:`HookOutput`. The spellings
        ``continue_`` and ``async_`` are accepted, too.
        """
        payload = {{"continue_": "continue", "async_": "async"}.get(key, key): value for key, value in payload.items()}
        return parse_answer(AsyncHookOutput, payload) if payload.get("async") else parse_answer(HookOutput, payload)


class McpMessageResponse(Wire, kw_only=True, frozen=True):
    """The JSON-RPC reply of a host-run MCP server.

    A JSON-RPC notification has no reply, yet the request that carried it wants an answer: send ``{"jsonrpc": "2.0",
    "result": {}}``.
    """

    mcp_response: dict[str, Any] | None = None
    """The JSON-RPC reply."""


class McpMessageRequest(ControlRequestBody[McpMessageResponse], tag="mcp_message", kw_only=True, frozen=True):
    """One MCP JSON-RPC message to or from a server that runs inside the host.

    The CLI sends it to reach the server, first of all for the handshake, which comes before its answer to
    ``initialize``; the host sends it to deliver the server's own requests and notifications, and then gets an empty
    answer. ``server_name`` is snake_case here, but ``serverName`` in the ``mcp_...`` requests for administration.
    """

    sent_by: ClassVar[Sender] = "both"

    server_name: str
    """The name of the server, as registered in ``initialize``."""
    message: dict[str, Any]
    """The JSON-RPC message: a request, a notification or a response."""


class ElicitationResponse(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """The user's answer to an MCP server that asked for input.

    A host that cannot ask should answer ``decline``.
    """

    # one of accept, decline, cancel
    action: str
    """``decline`` if the user refused, ``cancel`` if the user did not decide."""
    content: dict[str, Any] | None = None
    """The filled form, with ``accept``. It should match the requested schema."""
    meta: dict[str, Any] | None = None
    """``_meta`` on the wire: data for the server."""


class ElicitationRequest(ControlRequestBody[ElicitationResponse], tag="elicitation", kw_only=True, frozen=True):
    """An MCP server asks the user for input; the tool that asked waits for the answer.

    Servers run by the host cannot ask this way: an ``elicitation/create`` sent in ``mcp_message`` is answered with
    ``Method not found``.
    """

    sent_by: ClassVar[Sender] = "agent"

    mcp_server_name: str
    """The name of the MCP server that asks."""
    message: str
    """The question, as text for the user."""
    # one of form, url
    mode: str | None = None
    """How the user answers: in a form, or at a web page."""
    url: str | None = None
    """The page to open, in the mode ``url``."""
    elicitation_id: str | None = None
    """The id of the question; :class:`ElicitationCompleteMessage` repeats it. Only in the mode ``url``."""
    requested_schema: dict[str, Any] | None = None
    """The JSON schema of the answer, in the mode ``form``."""
    property_order: list[str] | None = None
    """The keys of ``requested_schema`` in the server's order."""
    title: str | None = None
    """A title for the question."""
    display_name: str | None = None
    """The name of the tool or server for people."""
    description: str | None = None
    """A description of the question, for people."""


class UserDialogCompleted(Wire, tag_field="behavior", tag="completed", kw_only=True, frozen=True):
    """The user has answered a dialog."""

    result: Any
    """The answer, any JSON; its form depends on ``dialog_kind``."""


class UserDialogCancelled(Wire, tag_field="behavior", tag="cancelled", frozen=True):
    """The user has dismissed a dialog.

    The CLI does not ask again. For a kind of dialog that the host cannot show, send nothing.
    """


#: The answer to request_user_dialog.
UserDialogResult: TypeAlias = UserDialogCompleted | UserDialogCancelled | OrUnknownObject


class RequestUserDialogRequest(
    ControlRequestBody[UserDialogResult], tag="request_user_dialog", kw_only=True, frozen=True
):
    """The CLI asks the host to show a dialog and waits for the user's choice.

    Sent only for kinds that the host listed in :attr:`InitializeRequest.supportedDialogKinds`.
    """

    sent_by: ClassVar[Sender] = "agent"

    dialog_kind: str
    """The kind of dialog. A host must not answer a kind that it does not know."""
    payload: dict[str, Any]
    """The content of the dialog; its form depends on ``dialog_kind``."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call that the dialog is about."""
