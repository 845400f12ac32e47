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
    # one of rule, mode, subcommandResults, permissionPromptTool, hook, asyncAgent, sandboxOverride, workingDir,
    # safetyCheck, classifier, other
    decision_reason_type: str | None = None
    tool_use_id: str | None = None
    """The id of the tool call."""
    classifier_approvable: bool | None = None
    suppress_always_allow_rule: bool | None = None
    default_to_no: bool | None = None
    matched_ask_rule: MatchedAskRule | None = None
    title: str | None = None
    """A title for the question."""
    agent_id: str | None = None
    """The id of the subagent that asks."""
    requires_user_interaction: bool | None = None

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

    Several may be open at once, one for each registered callback. ``callback_id`` is one of the ids that the host
    chose in :class:`HookCallbackMatcher`; ``input`` describes the event. ``tool_use_id`` is the id of a tool use for
    tool events, and some other unique string for the rest. Answer ``{}`` to change nothing.
    """

    sent_by: ClassVar[Sender] = "agent"

    callback_id: str
    input: HookInput
    tool_use_id: str | None = None

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


class McpMessageRequest(ControlRequestBody[McpMessageResponse], tag="mcp_message", kw_only=True, frozen=True):
    """One MCP JSON-RPC message to or from a server that runs inside the host.

    The CLI sends it to reach the server, first of all for the handshake, which comes before its answer to
    ``initialize``; the host sends it to deliver the server's own requests and notifications, and then gets an empty
    answer. ``server_name`` is snake_case here, but ``serverName`` in the ``mcp_...`` requests for administration.
    """

    sent_by: ClassVar[Sender] = "both"

    server_name: str
    message: dict[str, Any]


class ElicitationResponse(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """The user's answer to an MCP server that asked for input.

    With ``accept``, ``content`` should match the requested schema. ``decline`` means that the user refused, ``cancel``
    that the user did not decide. A host that cannot ask should answer ``decline``.
    """

    # one of accept, decline, cancel
    action: str
    content: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class ElicitationRequest(ControlRequestBody[ElicitationResponse], tag="elicitation", kw_only=True, frozen=True):
    """An MCP server asks the user for input; the tool that asked waits for the answer.

    In the mode ``form`` the answer should match ``requested_schema``, whose keys ``property_order`` lists in the
    server's order; in the mode ``url`` the user is to open ``url``. Servers run by the host cannot ask this way: an
    ``elicitation/create`` sent in ``mcp_message`` is answered with ``Method not found``.
    """

    sent_by: ClassVar[Sender] = "agent"

    mcp_server_name: str
    message: str
    # one of form, url
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None
    property_order: list[str] | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None


class UserDialogCompleted(Wire, tag_field="behavior", tag="completed", kw_only=True, frozen=True):
    """The user has answered a dialog; the shape of ``result`` depends on its kind."""

    result: Any


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

    Sent only for kinds that the host listed in :attr:`InitializeRequest.supportedDialogKinds`. ``dialog_kind`` decides
    the shape of ``payload``. It may have values not known today: a host that does not know one must not answer at all.
    """

    sent_by: ClassVar[Sender] = "agent"

    dialog_kind: str
    payload: dict[str, Any]
    tool_use_id: str | None = None
