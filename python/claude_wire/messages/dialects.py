"""DOC module dialects"""

from __future__ import annotations

from typing import Any, Literal

from claude_wire.messages._base import Wire, constant
from claude_wire.messages.content import ToolResultBlock
from claude_wire.messages.results import ErrorInfo
from claude_wire.messages.system import SystemMessage

__all__ = [
    "ConsolidationMessage",
    "ControlMessage",
    "InjectedMessage",
    "PermissionReply",
    "PermissionRequestMessage",
    "QueuedMessage",
    "SystemErrorMessage",
    "SystemToolResultMessage",
    "ToolResultMessage",
    "ToolResultPayload",
]


class ControlMessage(Wire, tag_field="type", tag="control", kw_only=True, frozen=True):
    """DOC ControlMessage"""

    # one of interrupt, status
    action: str


class QueuedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC QueuedMessage"""

    subtype: Literal["queued"] = constant("queued")
    position: int


class InjectedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC InjectedMessage"""

    subtype: Literal["injected"] = constant("injected")
    message_count: int
    content_length: int


class ConsolidationMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC ConsolidationMessage"""

    subtype: Literal["consolidation"] = constant("consolidation")
    entries_created: int
    entries_updated: int


class SystemToolResultMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC SystemToolResultMessage"""

    subtype: Literal["tool_result"] = constant("tool_result")
    tool_result: ToolResultBlock | None = None
    tool_use_id: str | None = None
    content: str | None = None


class SystemErrorMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC SystemErrorMessage"""

    subtype: Literal["error"] = constant("error")
    message: str | None = None
    error: ErrorInfo | None = None


class PermissionRequestMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC PermissionRequestMessage"""

    subtype: Literal["permission_request"] = constant("permission_request")
    tool_name: str | None = None
    input: dict[str, Any] | None = None


class PermissionReply(Wire, frozen=True):
    """DOC PermissionReply"""

    allow: bool


class ToolResultPayload(Wire, frozen=True):
    """DOC ToolResultPayload"""

    type: str
    text: str | None = None


class ToolResultMessage(Wire, tag_field="type", tag="tool_result", kw_only=True, frozen=True):
    """DOC ToolResultMessage"""

    tool_use_id: str
    result: ToolResultPayload
