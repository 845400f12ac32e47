"""What the CLI is busy with, and what it has done beside the conversation."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Number, constant, null
from claude_wire.messages.system.base import SystemMessage


class StatusMessage(SystemMessage, kw_only=True, frozen=True):
    """What the CLI is busy with, or a new permission mode.

    ``requesting`` comes before a request to the API and is not closed; ``compacting`` is closed by a null ``status``,
    with the outcome in ``compact_result``. A change of permission mode comes with a null ``status`` too, and
    ``permissionMode``. ``running`` and ``queued_messages`` answer a status request in miriad-code's dialect.
    """

    subtype: Literal["status"] = constant("status")
    # one of compacting, requesting
    status: str | None = null()
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    # one of success, failed
    compact_result: str | None = None
    compact_error: str | None = None
    running: bool | None = None
    queued_messages: int | None = None
    user_message_uuids: list[str] | None = None
    compact_output_chars: int | None = None
    resume_held_for_plan: bool | None = None


class ControlRequestProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """A control request of the host, ``request_id``, is being worked on; its response is still to come.

    The retry fields come only with ``status`` ``api_retry``, and ``error_status`` is then null when no HTTP answer
    came.
    """

    subtype: Literal["control_request_progress"] = constant("control_request_progress")
    request_id: str
    # one of api_retry, started
    status: str
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: Number | None = None
    error_status: int | UnsetType | None = UNSET


class LocalCommandOutputMessage(SystemMessage, kw_only=True, frozen=True):
    """What a slash command that runs in the CLI printed."""

    subtype: Literal["local_command_output"] = constant("local_command_output")
    content: str


class ThinkingTokensMessage(SystemMessage, kw_only=True, frozen=True):
    """An estimate of the thinking tokens so far, just before each delta of a thinking block.

    For a progress display only; the true count is in the usage.
    """

    subtype: Literal["thinking_tokens"] = constant("thinking_tokens")
    estimated_tokens: int
    estimated_tokens_delta: int
    user_message_uuid: str | None = None


class ElicitationCompleteMessage(SystemMessage, kw_only=True, frozen=True):
    """An elicitation that an MCP server began is complete.

    ``elicitation_id`` is that of the request.
    """

    subtype: Literal["elicitation_complete"] = constant("elicitation_complete")
    mcp_server_name: str
    elicitation_id: str


class PermissionDeniedMessage(SystemMessage, kw_only=True, frozen=True):
    """A tool call was refused without asking the host.

    It comes before the tool result that says so to the model, and is advice only: ``permission_denials`` in the
    result is the record.
    """

    subtype: Literal["permission_denied"] = constant("permission_denied")
    tool_name: str
    tool_use_id: str
    agent_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None
    message: str
    decision_reason_code: str | None = None
