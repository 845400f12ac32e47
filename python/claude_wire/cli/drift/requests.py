"""Requests of a host, to see what a CLI answers.

`REQUESTS` are those that the CLI answers without asking anybody: all that are typed, but those that need a network.
`every_request` has the others too, with as little in them as they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin

import msgspec

from claude_wire import (
    ApplyFlagSettingsRequest,
    BackgroundTasksRequest,
    CancelAsyncMessageRequest,
    FileSuggestionsRequest,
    GetBinaryVersionRequest,
    GetContextUsageRequest,
    GetHooksListingRequest,
    GetSessionCostRequest,
    GetSettingsRequest,
    GetTaskOutputRequest,
    GetUsageRequest,
    InterruptRequest,
    ListModelsRequest,
    ListPermissionRulesRequest,
    McpCallRequest,
    McpMessageRequest,
    McpReadResourceRequest,
    McpReconnectRequest,
    McpSetServersRequest,
    McpStatusRequest,
    McpToggleRequest,
    ReadFileRequest,
    RegisterRepoRootRequest,
    ReloadOutputStylesRequest,
    ReloadPluginsRequest,
    ReloadSkillsRequest,
    RenameSessionRequest,
    RewindFilesRequest,
    SeedReadStateRequest,
    SetColorRequest,
    SetHasSubscribersRequest,
    SetMaxThinkingTokensRequest,
    SetModelRequest,
    SetPermissionModeRequest,
    StopTaskRequest,
    UpdateSettingsRequest,
)
from claude_wire.messages import ControlRequestPayload, EndSessionRequest, InitializeRequest
from claude_wire.messages.control import cli_requests
from claude_wire.messages.control.request_body import ControlRequestBody

__all__ = ["NO_REQUEST", "REQUESTS", "every_request"]

#: The subtype of a request that no CLI knows. How it is refused tells which others a CLI does not know.
NO_REQUEST = "no_such_request"

NOBODY = "00000000-0000-4000-8000-000000000000"

REQUESTS: Sequence[Any] = [
    GetBinaryVersionRequest(),
    GetContextUsageRequest(detail="summary"),
    GetSessionCostRequest(),
    GetUsageRequest(skip_behaviors=True),
    ListModelsRequest(),
    SetModelRequest(model="claude-haiku-4-5"),
    SetModelRequest(model=None),
    SetMaxThinkingTokensRequest(max_thinking_tokens=1000),
    SetPermissionModeRequest(mode="acceptEdits"),
    SetPermissionModeRequest(mode="no such mode"),
    SetPermissionModeRequest(mode="bypassPermissions"),
    GetSettingsRequest(),
    ApplyFlagSettingsRequest(settings={"permissions": {"allow": ["Bash(ls)"]}}),
    UpdateSettingsRequest(source="localSettings", settings={"outputStyle": "Concise"}),
    UpdateSettingsRequest(source="localSettings", settings={"permissions": {"deny": ["Bash(rm *)"]}}),
    ListPermissionRulesRequest(),
    GetHooksListingRequest(),
    ReadFileRequest(path="notes.txt"),
    ReadFileRequest(path="notes.txt", max_bytes=6, encoding="base64"),
    ReadFileRequest(path="/etc/hostname-none"),
    FileSuggestionsRequest(query="notes"),
    SeedReadStateRequest(path="notes.txt", mtime=1),
    RewindFilesRequest(user_message_id=NOBODY, dry_run=True),
    CancelAsyncMessageRequest(message_uuid=NOBODY),
    InterruptRequest(),
    StopTaskRequest(task_id="nobody"),
    BackgroundTasksRequest(),
    GetTaskOutputRequest(task_id="nobody"),
    McpStatusRequest(),
    McpMessageRequest(server_name="nobody", message={"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    McpSetServersRequest(servers={}),
    McpReconnectRequest(serverName="nobody"),
    McpToggleRequest(serverName="nobody", enabled=True),
    McpCallRequest(tool="mcp__nobody__nothing"),
    McpReadResourceRequest(serverName="nobody", uri="ui://nothing"),
    ReloadSkillsRequest(),
    ReloadPluginsRequest(),
    ReloadOutputStylesRequest(),
    RegisterRepoRootRequest(directory="below"),
    RegisterRepoRootRequest(directory="nowhere"),
    SetHasSubscribersRequest(has_subscribers=True),
    RenameSessionRequest(title="A new title"),
    SetColorRequest(color="red"),
]


class NoRequest(ControlRequestBody[dict[str, Any]], tag=NO_REQUEST, frozen=True):
    """A request that no CLI knows."""


def every_request() -> Iterator[ControlRequestBody[Any]]:
    """`NoRequest`, and one or more of each kind that a host has, but `initialize`; the last ends the session."""
    yield NoRequest()
    yield from REQUESTS
    done = {InitializeRequest, EndSessionRequest, *map(type, REQUESTS)}
    for cls in get_args(ControlRequestPayload):
        if cls not in done and cls.__module__ != cli_requests.__name__:
            needed = {field.name: _little(field.type) for field in msgspec.structs.fields(cls) if field.required}
            yield cls(**needed)
    yield EndSessionRequest()


def _little(hint: Any) -> Any:
    """A value of a type that means nothing."""
    values: dict[Any, Any] = {str: "nobody", bool: True, int: 1}
    return values.get(hint) or ({} if get_origin(hint) is dict else [])
