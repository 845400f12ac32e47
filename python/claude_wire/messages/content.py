"""DOC module content"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Wire
from claude_wire.messages.media import DocumentBlock, ImageBlock, SearchResultBlock
from claude_wire.messages.server_tools import (
    AdvisorToolResultBlock,
    BashCodeExecutionToolResultBlock,
    Caller,
    CodeExecutionToolResultBlock,
    McpToolListingBlock,
    McpToolResultBlock,
    McpToolUseBlock,
    ServerToolUseBlock,
    TextEditorCodeExecutionToolResultBlock,
    ToolReferenceBlock,
    ToolSearchToolResultBlock,
    WebFetchToolResultBlock,
    WebSearchToolResultBlock,
)
from claude_wire.messages.text import CacheControl, TextBlock
from claude_wire.messages.unknown import UnknownBlock, UnknownObject

__all__ = [
    "BrowserStateBlock",
    "BrowserStateChange",
    "BrowserStateChangeDownloadCompleted",
    "BrowserStateChangeDownloadFailed",
    "BrowserStateChangeDownloadStarted",
    "BrowserStateChangeTabOpened",
    "BrowserStateTabEntry",
    "CompactionBlock",
    "ContainerUploadBlock",
    "ContentBlock",
    "FallbackBlock",
    "FallbackInfo",
    "RedactedThinkingBlock",
    "ThinkingBlock",
    "ToolAdditionBlock",
    "ToolChange",
    "ToolChangeMcpToolReference",
    "ToolChangeMcpToolsetReference",
    "ToolChangeToolReference",
    "ToolRemovalBlock",
    "ToolResultBlock",
    "ToolUseBlock",
]


class ThinkingBlock(Wire, tag_field="type", tag="thinking", frozen=True):
    """DOC ThinkingBlock"""

    thinking: str
    signature: str | None = None


class RedactedThinkingBlock(Wire, tag_field="type", tag="redacted_thinking", frozen=True):
    """DOC RedactedThinkingBlock"""

    data: str


class ToolUseBlock(Wire, tag_field="type", tag="tool_use", frozen=True):
    """DOC ToolUseBlock"""

    id: str
    name: str
    input: Any
    caller: Caller | None = None
    toolset_name: str | None | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET


class ToolResultBlock(Wire, tag_field="type", tag="tool_result", frozen=True):
    """DOC ToolResultBlock"""

    tool_use_id: str
    content: str | list[ContentBlock] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None | UnsetType = UNSET
    toolset_name: str | None | UnsetType = UNSET


class ContainerUploadBlock(Wire, tag_field="type", tag="container_upload", frozen=True):
    """DOC ContainerUploadBlock"""

    file_id: str
    cache_control: CacheControl | None | UnsetType = UNSET


class CompactionBlock(Wire, tag_field="type", tag="compaction", kw_only=True, frozen=True):
    """DOC CompactionBlock"""

    content: str | None | UnsetType = UNSET
    encrypted_content: str | None | UnsetType = UNSET
    signature: str | None | UnsetType = UNSET
    tool_changes: list[ContentBlock] | None | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET


class FallbackInfo(Wire, frozen=True):
    """DOC FallbackInfo"""

    model: str


class FallbackBlock(Wire, tag_field="type", tag="fallback", rename={"from_": "from"}, frozen=True):
    """DOC FallbackBlock"""

    from_: FallbackInfo
    to: FallbackInfo
    trigger: Any = None


class ToolChangeToolReference(Wire, tag_field="type", tag="tool_reference", frozen=True):
    """DOC ToolChangeToolReference"""

    name: str


class ToolChangeMcpToolReference(Wire, tag_field="type", tag="mcp_tool_reference", frozen=True):
    """DOC ToolChangeMcpToolReference"""

    name: str
    server_name: str


class ToolChangeMcpToolsetReference(Wire, tag_field="type", tag="mcp_toolset_reference", frozen=True):
    """DOC ToolChangeMcpToolsetReference"""

    server_name: str


KnownToolChange: TypeAlias = ToolChangeToolReference | ToolChangeMcpToolReference | ToolChangeMcpToolsetReference
if TYPE_CHECKING:
    ToolChange: TypeAlias = KnownToolChange | UnknownObject
else:
    ToolChange = KnownToolChange


class ToolAdditionBlock(Wire, tag_field="type", tag="tool_addition", frozen=True):
    """DOC ToolAdditionBlock"""

    tool: ToolChange
    cache_control: CacheControl | None | UnsetType = UNSET


class ToolRemovalBlock(Wire, tag_field="type", tag="tool_removal", frozen=True):
    """DOC ToolRemovalBlock"""

    tool: ToolChange
    cache_control: CacheControl | None | UnsetType = UNSET


class BrowserStateTabEntry(Wire, kw_only=True, frozen=True):
    """DOC BrowserStateTabEntry"""

    tab_id: str
    title: str
    url: str
    active: bool | None = None


class BrowserStateChangeTabOpened(Wire, tag_field="type", tag="tab_opened", frozen=True):
    """DOC BrowserStateChangeTabOpened"""

    tab_id: str


class BrowserStateChangeDownloadStarted(Wire, tag_field="type", tag="download_started", frozen=True):
    """DOC BrowserStateChangeDownloadStarted"""

    download_id: str
    url: str


class BrowserStateChangeDownloadCompleted(Wire, tag_field="type", tag="download_completed", kw_only=True, frozen=True):
    """DOC BrowserStateChangeDownloadCompleted"""

    download_id: str
    url: str
    path: str | None | UnsetType = UNSET
    size_bytes: int | None | UnsetType = UNSET


class BrowserStateChangeDownloadFailed(Wire, tag_field="type", tag="download_failed", frozen=True):
    """DOC BrowserStateChangeDownloadFailed"""

    download_id: str
    url: str
    error: str | None | UnsetType = UNSET


KnownBrowserStateChange: TypeAlias = (
    BrowserStateChangeTabOpened
    | BrowserStateChangeDownloadStarted
    | BrowserStateChangeDownloadCompleted
    | BrowserStateChangeDownloadFailed
)
if TYPE_CHECKING:
    BrowserStateChange: TypeAlias = KnownBrowserStateChange | UnknownObject
else:
    BrowserStateChange = KnownBrowserStateChange


class BrowserStateBlock(Wire, tag_field="type", tag="browser_state", frozen=True):
    """DOC BrowserStateBlock"""

    tabs: list[BrowserStateTabEntry]
    cache_control: CacheControl | None | UnsetType = UNSET
    state_changes: list[BrowserStateChange] | None | UnsetType = UNSET


KnownContentBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ServerToolUseBlock
    | WebSearchToolResultBlock
    | WebFetchToolResultBlock
    | AdvisorToolResultBlock
    | CodeExecutionToolResultBlock
    | BashCodeExecutionToolResultBlock
    | TextEditorCodeExecutionToolResultBlock
    | ToolSearchToolResultBlock
    | McpToolUseBlock
    | McpToolResultBlock
    | ContainerUploadBlock
    | CompactionBlock
    | FallbackBlock
    | McpToolListingBlock
    | ImageBlock
    | DocumentBlock
    | SearchResultBlock
    | ToolResultBlock
    | ToolAdditionBlock
    | ToolRemovalBlock
    | ToolReferenceBlock
    | BrowserStateBlock
)
if TYPE_CHECKING:
    ContentBlock: TypeAlias = KnownContentBlock | UnknownBlock
else:
    ContentBlock = KnownContentBlock
