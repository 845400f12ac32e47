"""The content blocks of user and assistant messages.

The union :data:`ContentBlock` also has the blocks defined in ``text``, ``media`` and ``server_tools``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire
from claude_wire.messages.blocks.media import DocumentBlock, ImageBlock, SearchResultBlock
from claude_wire.messages.blocks.server_tools import (
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
from claude_wire.messages.blocks.text import CacheControl, TextBlock
from claude_wire.messages.unknown import OrUnknownBlock, OrUnknownObject


class ThinkingBlock(Wire, tag_field="type", tag="thinking", frozen=True):
    """The model's reasoning, with a signature that proves that the model wrote it.

    Both fields are empty in a ``content_block_start`` event.
    """

    thinking: str
    """The reasoning; empty if it is not shown."""
    signature: str | None = None
    """Opaque; send it back unchanged."""


class RedactedThinkingBlock(Wire, tag_field="type", tag="redacted_thinking", frozen=True):
    """Reasoning that the API returns only in encrypted form."""

    data: str
    """Opaque; send it back unchanged."""


class ToolUseBlock(Wire, tag_field="type", tag="tool_use", frozen=True):
    """The model calls a tool that the CLI or the host runs."""

    id: str
    """The id of the call; its result and its subagent's messages repeat the id."""
    name: str
    """The name of the tool."""
    input: Any
    """The input, an object in practice; ``{}`` in a ``content_block_start`` event."""
    caller: Caller | None = None
    """The caller: the model, or code in the API's container."""
    toolset_name: str | UnsetType | None = UNSET
    """The toolset that the tool belongs to, if any."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class ToolResultBlock(Wire, tag_field="type", tag="tool_result", frozen=True):
    """The result of a tool call, inside a user message.

    The CLI writes the block after the tool ran or was refused. :attr:`UserMessage.tool_use_result` may have the same
    result as structured data.
    """

    tool_use_id: str
    """The ``id`` of the tool call."""
    content: str | list[ContentBlock] | UnsetType | None = UNSET
    """The result: text, blocks or null."""
    is_error: bool | None = None
    """True if the tool failed or was refused; may be absent on success."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""
    toolset_name: str | UnsetType | None = UNSET
    """The toolset that the called tool belongs to, if any."""


class ContainerUploadBlock(Wire, tag_field="type", tag="container_upload", frozen=True):
    """A file put into the container of the API's code execution tool."""

    file_id: str
    """The file's id in the Files API."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class CompactionBlock(Wire, tag_field="type", tag="compaction", kw_only=True, frozen=True):
    """The API's summary that replaces earlier messages. Send it back unchanged.

    A compaction by the CLI itself is a :class:`CompactBoundaryMessage`.
    """

    content: str | UnsetType | None = UNSET
    """The summary; null if the API could not make one."""
    encrypted_content: str | UnsetType | None = UNSET
    """Opaque; send it back unchanged."""
    signature: str | UnsetType | None = UNSET
    """Opaque; send it back unchanged."""
    tool_changes: list[ContentBlock] | UnsetType | None = UNSET
    """The tools that the summarized messages added or removed."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class FallbackInfo(Wire, frozen=True):
    """One of the two models of a :class:`FallbackBlock`."""

    model: str
    """The id of the model; in ``from_``, possibly the name that the request used."""


class FallbackBlock(Wire, tag_field="type", tag="fallback", rename={"from_": "from"}, frozen=True):
    """Marks where in a message one model declined and another took over. The block has no deltas."""

    from_: FallbackInfo
    """The model that declined; the key on the wire is ``from``."""
    to: FallbackInfo
    """The model that writes the rest of the message."""
    trigger: Any = None
    """Why the first model declined."""


class ToolChangeToolReference(Wire, tag_field="type", tag="tool_reference", frozen=True):
    """Names a tool that the request itself declares."""

    name: str


class ToolChangeMcpToolReference(Wire, tag_field="type", tag="mcp_tool_reference", frozen=True):
    """Names one tool of an MCP server that the API is connected to."""

    name: str
    server_name: str


class ToolChangeMcpToolsetReference(Wire, tag_field="type", tag="mcp_toolset_reference", frozen=True):
    """Names all tools of an MCP server that the API is connected to."""

    server_name: str


ToolChange: TypeAlias = (
    ToolChangeToolReference | ToolChangeMcpToolReference | ToolChangeMcpToolsetReference | OrUnknownObject
)


class ToolAdditionBlock(Wire, tag_field="type", tag="tool_addition", frozen=True):
    """Gives the model one more tool for the rest of the conversation."""

    tool: ToolChange
    """A reference, or a whole tool definition, which decodes as an unknown object."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class ToolRemovalBlock(Wire, tag_field="type", tag="tool_removal", frozen=True):
    """Removes a tool for the rest of the conversation."""

    tool: ToolChange
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class BrowserStateTabEntry(Wire, kw_only=True, frozen=True):
    """One open tab of a browser that a tool drives."""

    tab_id: str
    """The id of the tab, unique among the open tabs."""
    title: str
    """The title of the page; may be empty."""
    url: str
    """The address of the page; may be empty."""
    active: bool | None = None
    """True for the tab in front; if tabs are open, exactly one is in front."""


class BrowserStateChangeTabOpened(Wire, tag_field="type", tag="tab_opened", frozen=True):
    """A tab was opened since the last report about the browser."""

    tab_id: str
    """The id of the tab in ``tabs``."""


class BrowserStateChangeDownloadStarted(Wire, tag_field="type", tag="download_started", frozen=True):
    """The browser began to download a file."""

    download_id: str
    """The id of the download; the report of its completion or failure repeats the id."""
    url: str
    """The address of the file, after all redirects."""


class BrowserStateChangeDownloadCompleted(Wire, tag_field="type", tag="download_completed", kw_only=True, frozen=True):
    """A download completed."""

    download_id: str
    url: str
    """The address of the file, after all redirects."""
    path: str | UnsetType | None = UNSET
    """The downloaded file; null or absent if unknown."""
    size_bytes: int | UnsetType | None = UNSET
    """The size of the file in bytes; null or absent if unknown."""


class BrowserStateChangeDownloadFailed(Wire, tag_field="type", tag="download_failed", frozen=True):
    """A download failed."""

    download_id: str
    url: str
    """The address of the file, after all redirects."""
    error: str | UnsetType | None = UNSET
    """Why the download failed; null or absent if the reason is unknown."""


BrowserStateChange: TypeAlias = (
    BrowserStateChangeTabOpened
    | BrowserStateChangeDownloadStarted
    | BrowserStateChangeDownloadCompleted
    | BrowserStateChangeDownloadFailed
    | OrUnknownObject
)


class BrowserStateBlock(Wire, tag_field="type", tag="browser_state", frozen=True):
    """The open tabs of a browser and what changed in it, inside a tool result."""

    tabs: list[BrowserStateTabEntry]
    """All open tabs, not only the changed ones."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""
    state_changes: list[BrowserStateChange] | UnsetType | None = UNSET
    """Tabs and downloads that the tool call opened or changed; absent if there are none."""


#: A content block of a host or an agent; :class:`UnknownBlock` if no class fits.
ContentBlock: TypeAlias = (
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
    | OrUnknownBlock
)
