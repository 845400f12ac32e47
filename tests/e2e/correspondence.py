"""Map each field of a claude-agent-sdk message to the field of the claude_wire message decoded from the same line.

The SDK flattens some objects and keeps others as plain JSON. claude_wire has the fields of the wire. The table lists
every field of the classes that occur in these tests, so a field that is new in the SDK makes them fail.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from claude_agent_sdk import types as sdk
from msgspec import UNSET

from claude_wire import ControlRequest, ControlResponse
from claude_wire.messages import ControlCancelRequest

__all__ = ["FIELDS", "NOT_GIVEN", "differences"]

#: The path of the whole message as a dict.
WHOLE = ""

#: SDK class -> SDK field -> the path of the same value in the message of claude_wire.
FIELDS: dict[type, dict[str, str]] = {
    sdk.UserMessage: {
        "content": "message.content",
        "uuid": "uuid",
        "parent_tool_use_id": "parent_tool_use_id",
        "tool_use_result": "tool_use_result",
        "origin": "origin",
    },
    sdk.AssistantMessage: {
        "content": "message.content",
        "model": "message.model",
        "parent_tool_use_id": "parent_tool_use_id",
        "error": "error",
        "usage": "message.usage",
        "message_id": "message.id",
        "stop_reason": "message.stop_reason",
        "session_id": "session_id",
        "uuid": "uuid",
        "user_message_uuid": "user_message_uuid",
        "user_message_uuids": "user_message_uuids",
    },
    sdk.SystemMessage: {"subtype": "subtype", "data": WHOLE},
    sdk.TaskStartedMessage: {
        "subtype": "subtype",
        "data": WHOLE,
        "task_id": "task_id",
        "description": "description",
        "uuid": "uuid",
        "session_id": "session_id",
        "tool_use_id": "tool_use_id",
        "task_type": "task_type",
    },
    sdk.TaskProgressMessage: {
        "subtype": "subtype",
        "data": WHOLE,
        "task_id": "task_id",
        "description": "description",
        "usage": "usage",
        "uuid": "uuid",
        "session_id": "session_id",
        "tool_use_id": "tool_use_id",
        "last_tool_name": "last_tool_name",
    },
    sdk.TaskNotificationMessage: {
        "subtype": "subtype",
        "data": WHOLE,
        "task_id": "task_id",
        "status": "status",
        "output_file": "output_file",
        "summary": "summary",
        "uuid": "uuid",
        "session_id": "session_id",
        "tool_use_id": "tool_use_id",
        "usage": "usage",
    },
    sdk.TaskUpdatedMessage: {
        "subtype": "subtype",
        "data": WHOLE,
        "task_id": "task_id",
        "patch": "patch",
        "status": "patch.status",
        "session_id": "session_id",
        "uuid": "uuid",
    },
    sdk.HookEventMessage: {
        "subtype": "subtype",
        "data": WHOLE,
        "hook_event_name": "hook_event",
        "session_id": "session_id",
        "uuid": "uuid",
    },
    sdk.ResultMessage: {
        "subtype": "subtype",
        "duration_ms": "duration_ms",
        "duration_api_ms": "duration_api_ms",
        "is_error": "is_error",
        "num_turns": "num_turns",
        "session_id": "session_id",
        "stop_reason": "stop_reason",
        "total_cost_usd": "total_cost_usd",
        "usage": "usage",
        "result": "result",
        "structured_output": "structured_output",
        "model_usage": "modelUsage",
        "permission_denials": "permission_denials",
        "deferred_tool_use": "deferred_tool_use",
        "errors": "errors",
        "api_error_status": "api_error_status",
        "uuid": "uuid",
        "terminal_reason": "terminal_reason",
        "origin": "origin",
        "user_message_uuid": "user_message_uuid",
        "user_message_uuids": "user_message_uuids",
    },
    sdk.StreamEvent: {
        "uuid": "uuid",
        "session_id": "session_id",
        "event": "event",
        "parent_tool_use_id": "parent_tool_use_id",
        "user_message_uuid": "user_message_uuid",
        "user_message_uuids": "user_message_uuids",
    },
    sdk.TextBlock: {"text": "text"},
    sdk.ThinkingBlock: {"thinking": "thinking", "signature": "signature"},
    sdk.ToolUseBlock: {"id": "id", "name": "name", "input": "input"},
    sdk.ToolResultBlock: {"tool_use_id": "tool_use_id", "content": "content", "is_error": "is_error"},
}

#: Messages that the SDK handles itself and does not pass on to its users.
NOT_GIVEN = (ControlRequest, ControlResponse, ControlCancelRequest)


def _same_class(theirs: Any, ours: Any) -> bool:
    """Both libraries use the same class names, but claude_wire has one class for each subtype of system and result."""
    if isinstance(theirs, sdk.SystemMessage):
        return bool(ours.to_dict()["type"] == "system")
    return type(theirs).__name__ in (cls.__name__ for cls in type(ours).__mro__)


def _at(ours: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        ours = getattr(ours, name)
    return ours


def _absent(value: Any) -> Any:
    """For an absent field the SDK has None. claude_wire has UNSET where absent and null mean different things."""
    return None if value is UNSET else value


def differences(theirs: Any, ours: Any, where: str = "") -> list[str]:
    """Return the paths of all fields whose values differ between a message of the SDK and that of claude_wire."""
    where = where or type(theirs).__name__
    if dataclasses.is_dataclass(theirs):
        if not _same_class(theirs, ours):
            return [f"{where}: {type(theirs).__name__} is {type(ours).__name__}"]
        table = FIELDS[type(theirs)]
        assert [field.name for field in dataclasses.fields(theirs)] == list(table), type(theirs)
        return [
            found
            for name, path in table.items()
            for found in differences(getattr(theirs, name), _absent(_at(ours, path)), f"{where}.{name}")
        ]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = enumerate(zip(theirs, ours, strict=True))
        return [found for index, pair in pairs for found in differences(*pair, f"{where}[{index}]")]
    return _value_differences(theirs, ours, where)


def _value_differences(theirs: Any, ours: Any, where: str) -> list[str]:
    """Return the paths of the differences inside a value that the SDK keeps as plain JSON."""
    if hasattr(ours, "to_dict"):
        ours = ours.to_dict()
    if isinstance(theirs, dict) and isinstance(ours, dict):
        missing = [f"{where}.{key}: in one of both" for key in theirs.keys() ^ ours.keys()]
        return missing + [
            found
            for key in theirs.keys() & ours.keys()
            for found in _value_differences(theirs[key], ours[key], f"{where}.{key}")
        ]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = enumerate(zip(theirs, ours, strict=True))
        return [found for index, pair in pairs for found in _value_differences(*pair, f"{where}[{index}]")]
    return [] if type(theirs) is type(ours) and theirs == ours else [f"{where}: {theirs!r:.60} is {ours!r:.60}"]
