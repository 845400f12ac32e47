"""DOC module cli_requests"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from claude_wire.messages._base import Wire
from claude_wire.messages.hook_outputs import AsyncHookOutput, HookOutput
from claude_wire.messages.hooks import HookInput
from claude_wire.messages.mcp import McpServerProvenance
from claude_wire.messages.permissions import (
    MatchedAskRule,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
)
from claude_wire.messages.request_body import ControlRequestBody, parse_answer
from claude_wire.messages.unknown import UnknownObject

__all__ = [
    "CanUseToolRequest",
    "ElicitationRequest",
    "ElicitationResponse",
    "HookCallbackRequest",
    "McpMessageRequest",
    "McpMessageResponse",
    "RequestUserDialogRequest",
    "UserDialogCancelled",
    "UserDialogCompleted",
    "UserDialogResult",
]


class CanUseToolRequest(ControlRequestBody[PermissionResult], tag="can_use_tool", kw_only=True, frozen=True):
    """DOC CanUseToolRequest"""

    tool_name: str
    mcp_server: McpServerProvenance | None = None
    input: dict[str, Any]
    permission_suggestions: list[PermissionUpdate] | None = None
    blocked_path: str | None = None
    decision_reason: str | None = None
    # one of rule, mode, subcommandResults, permissionPromptTool, hook, asyncAgent, sandboxOverride, workingDir,
    # safetyCheck, classifier, other
    decision_reason_type: str | None = None
    classifier_approvable: bool | None = None
    suppress_always_allow_rule: bool | None = None
    default_to_no: bool | None = None
    matched_ask_rule: MatchedAskRule | None = None
    title: str | None = None
    display_name: str | None = None
    tool_use_id: str | None = None
    agent_id: str | None = None
    description: str | None = None
    requires_user_interaction: bool | None = None

    def allow(
        self,
        updated_input: dict[str, Any] | None = None,
        *,
        updated_permissions: list[PermissionUpdate] | None = None,
    ) -> PermissionResultAllow:
        """Answer: run the tool, with this input if it is to be another than was asked for."""
        return PermissionResultAllow(
            updatedInput=self.input if updated_input is None else updated_input,
            updatedPermissions=updated_permissions,
            toolUseID=self.tool_use_id,
        )

    def deny(self, message: str, *, interrupt: bool | None = None) -> PermissionResultDeny:
        """Answer: do not run the tool. The model is told ``message``; ``interrupt`` also ends its turn."""
        return PermissionResultDeny(message=message, interrupt=interrupt, toolUseID=self.tool_use_id)


class HookCallbackRequest(
    ControlRequestBody[HookOutput | AsyncHookOutput], tag="hook_callback", kw_only=True, frozen=True
):
    """DOC HookCallbackRequest"""

    callback_id: str
    input: HookInput
    tool_use_id: str | None = None

    @classmethod
    def parse_answer(cls, payload: dict[str, Any]) -> HookOutput | AsyncHookOutput:
        """Type the answer by whether it has ``async``. ``continue_`` and ``async_``, as some hosts spell them, are taken too."""
        payload = {{"continue_": "continue", "async_": "async"}.get(key, key): value for key, value in payload.items()}
        return parse_answer(AsyncHookOutput if payload.get("async") else HookOutput, payload)


class McpMessageResponse(Wire, kw_only=True, frozen=True):
    """DOC McpMessageResponse"""

    mcp_response: dict[str, Any]


class McpMessageRequest(ControlRequestBody[McpMessageResponse], tag="mcp_message", kw_only=True, frozen=True):
    """DOC McpMessageRequest"""

    server_name: str
    message: dict[str, Any]


class ElicitationResponse(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """DOC ElicitationResponse"""

    # one of accept, decline, cancel
    action: str
    content: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class ElicitationRequest(ControlRequestBody[ElicitationResponse], tag="elicitation", kw_only=True, frozen=True):
    """DOC ElicitationRequest"""

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
    """DOC UserDialogCompleted"""

    result: Any


class UserDialogCancelled(Wire, tag_field="behavior", tag="cancelled", frozen=True):
    """DOC UserDialogCancelled"""


KnownUserDialogResult: TypeAlias = UserDialogCompleted | UserDialogCancelled
if TYPE_CHECKING:
    UserDialogResult: TypeAlias = KnownUserDialogResult | UnknownObject
else:
    UserDialogResult = KnownUserDialogResult


class RequestUserDialogRequest(
    ControlRequestBody[UserDialogResult], tag="request_user_dialog", kw_only=True, frozen=True
):
    """DOC RequestUserDialogRequest"""

    dialog_kind: str
    payload: dict[str, Any]
    tool_use_id: str | None = None
