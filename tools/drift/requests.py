"""The control requests that a host can send, to see how a CLI answers them.

`REQUESTS` lists the requests that the CLI answers without a network. `every_request` also yields all other requests,
with only the required fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin

import msgspec

from claude_wire import messages
from claude_wire.messages.control.request_body import ControlRequestBody

__all__ = ["NO_REQUEST", "REQUESTS", "every_request"]

#: A subtype that no CLI knows. The CLI refuses other unknown requests with the same error.
NO_REQUEST = "no_such_request"

NOBODY = "00000000-0000-4000-8000-000000000000"

REQUESTS: Sequence[Any] = [
    messages.GetBinaryVersionRequest(),
    messages.GetContextUsageRequest(detail="summary"),
    messages.GetSessionCostRequest(),
    messages.GetUsageRequest(skip_behaviors=True),
    messages.ListModelsRequest(),
    messages.SetModelRequest(model="claude-haiku-4-5"),
    messages.SetModelRequest(model=None),
    messages.SetMaxThinkingTokensRequest(max_thinking_tokens=1000),
    messages.SetPermissionModeRequest(mode="acceptEdits"),
    messages.SetPermissionModeRequest(mode="no such mode"),
    messages.SetPermissionModeRequest(mode="bypassPermissions"),
    messages.GetSettingsRequest(),
    messages.ApplyFlagSettingsRequest(settings={"permissions": {"allow": ["Bash(ls)"]}}),
    messages.UpdateSettingsRequest(source="localSettings", settings={"outputStyle": "Concise"}),
    messages.UpdateSettingsRequest(source="localSettings", settings={"permissions": {"deny": ["Bash(rm *)"]}}),
    messages.ListPermissionRulesRequest(),
    messages.GetHooksListingRequest(),
    messages.ReadFileRequest(path="notes.txt"),
    messages.ReadFileRequest(path="notes.txt", max_bytes=6, encoding="base64"),
    messages.ReadFileRequest(path="/etc/hostname-none"),
    messages.FileSuggestionsRequest(query="notes"),
    messages.SeedReadStateRequest(path="notes.txt", mtime=1),
    messages.RewindFilesRequest(user_message_id=NOBODY, dry_run=True),
    messages.CancelAsyncMessageRequest(message_uuid=NOBODY),
    messages.InterruptRequest(),
    messages.StopTaskRequest(task_id="nobody"),
    messages.BackgroundTasksRequest(),
    messages.GetTaskOutputRequest(task_id="nobody"),
    messages.McpStatusRequest(),
    messages.McpMessageRequest(server_name="nobody", message={"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    messages.McpSetServersRequest(servers={}),
    messages.McpReconnectRequest(serverName="nobody"),
    messages.McpToggleRequest(serverName="nobody", enabled=True),
    messages.McpCallRequest(tool="mcp__nobody__nothing"),
    messages.McpReadResourceRequest(serverName="nobody", uri="ui://nothing"),
    messages.ReloadSkillsRequest(),
    messages.ReloadPluginsRequest(),
    messages.ReloadOutputStylesRequest(),
    messages.RegisterRepoRootRequest(directory="below"),
    messages.RegisterRepoRootRequest(directory="nowhere"),
    messages.SetHasSubscribersRequest(has_subscribers=True),
    messages.RenameSessionRequest(title="A new title"),
    messages.SetColorRequest(color="red"),
]


class NoRequest(ControlRequestBody[dict[str, Any]], tag=NO_REQUEST, frozen=True):
    """A control request that no CLI knows."""


def every_request() -> Iterator[ControlRequestBody[Any]]:
    """Yield `NoRequest`, then at least one of each host request except `initialize`. The last one ends the session."""
    yield NoRequest()
    yield from REQUESTS
    done = {messages.InitializeRequest, messages.EndSessionRequest, *map(type, REQUESTS)}
    for cls in get_args(messages.ControlRequestPayload):
        if cls not in done and cls.sent_by != "agent":
            needed = {field.name: _little(field.type) for field in msgspec.structs.fields(cls) if field.required}
            yield cls(**needed)
    yield messages.EndSessionRequest()


def _little(hint: Any) -> Any:
    """Return a small, arbitrary value of the given type."""
    values: dict[Any, Any] = {str: "nobody", bool: True, int: 1}
    return values.get(hint) or ({} if get_origin(hint) is dict else [])
