"""The content blocks of messages of users, models and tools.

The open union :data:`ContentBlock` also has the blocks of ``text``, ``media`` and ``server_tools``.
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
    """The model's reasoning before it answers, with a signature that proves its origin.

    ``signature`` must be sent back unchanged. ``thinking`` may be empty where the reasoning is not shown, and
    both are empty in a streamed block start.
    """

    thinking: str
    """The reasoning; empty where it is not shown."""
    signature: str | None = None
    """Opaque; send it back unchanged."""


class RedactedThinkingBlock(Wire, tag_field="type", tag="redacted_thinking", frozen=True):
    """Reasoning that is withheld from the reader. ``data`` is opaque, and must be sent back unchanged."""

    data: str


class ToolUseBlock(Wire, tag_field="type", tag="tool_use", frozen=True):
    """The model calls a tool that the CLI or the host runs.

    ``id`` comes back as ``tool_use_id`` in the :class:`ToolResultBlock`, and as ``parent_tool_use_id`` on all messages
    of a subagent that the call started. ``input`` is an object in practice but may be any JSON; in a streamed block
    start it is ``{}``, and input deltas follow.
    """

    id: str
    """The id of the call, which its result names."""
    name: str
    """The name of the tool."""
    input: Any
    """The input of the tool, an object in practice."""
    caller: Caller | None = None
    toolset_name: str | UnsetType | None = UNSET
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class ToolResultBlock(Wire, tag_field="type", tag="tool_result", frozen=True):
    """The result of a tool call, inside a user message.

    The CLI writes this block after the tool has run or was refused. After a refusal ``is_error`` is true; on success
    ``is_error`` may be absent. ``content`` is a string, a list of blocks, null, or absent (``UNSET``). The
    ``tool_use_result`` of the :class:`UserMessage` around the block may have the same result in a structured form.
    """

    tool_use_id: str
    """The id of the call that this is the result of."""
    content: str | list[ContentBlock] | UnsetType | None = UNSET
    """The result: a text, or blocks."""
    is_error: bool | None = None
    """True if the tool failed or was refused."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    toolset_name: str | UnsetType | None = UNSET


class ContainerUploadBlock(Wire, tag_field="type", tag="container_upload", frozen=True):
    """A file put into the container of the API's code execution tool, by its Files API id."""

    file_id: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class CompactionBlock(Wire, tag_field="type", tag="compaction", kw_only=True, frozen=True):
    """The API's summary that replaces earlier messages. Send it back unchanged.

    A null ``content`` means that the summary failed. ``encrypted_content`` and ``signature`` are opaque. A compaction
    by the CLI itself is a :class:`CompactBoundaryMessage`.
    """

    content: str | UnsetType | None = UNSET
    encrypted_content: str | UnsetType | None = UNSET
    signature: str | UnsetType | None = UNSET
    tool_changes: list[ContentBlock] | UnsetType | None = UNSET
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class FallbackInfo(Wire, frozen=True):
    """One of the two models of a :class:`FallbackBlock`."""

    model: str


class FallbackBlock(Wire, tag_field="type", tag="fallback", rename={"from_": "from"}, frozen=True):
    """Marks where one model declined and another took over, in the middle of a message.

    The model in ``to`` writes everything that follows. The wire key of ``from_`` is ``from``. The block has no
    deltas; ``trigger`` says why the first model declined.
    """

    from_: FallbackInfo
    to: FallbackInfo
    trigger: Any = None


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
    """The model has one more tool for the rest of the conversation.

    ``tool`` is a reference, or a whole tool definition, which decodes as an unknown object.
    """

    tool: ToolChange
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class ToolRemovalBlock(Wire, tag_field="type", tag="tool_removal", frozen=True):
    """The model no longer has a tool, for the rest of the conversation."""

    tool: ToolChange
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class BrowserStateTabEntry(Wire, kw_only=True, frozen=True):
    """One open tab of a browser that a tool drives."""

    tab_id: str
    title: str
    url: str
    active: bool | None = None


class BrowserStateChangeTabOpened(Wire, tag_field="type", tag="tab_opened", frozen=True):
    """A tab was opened since the last report about the browser."""

    tab_id: str


class BrowserStateChangeDownloadStarted(Wire, tag_field="type", tag="download_started", frozen=True):
    """The browser began to download a file."""

    download_id: str
    url: str


class BrowserStateChangeDownloadCompleted(Wire, tag_field="type", tag="download_completed", kw_only=True, frozen=True):
    """A download is done. ``path`` and ``size_bytes`` are null or absent if they are not known."""

    download_id: str
    url: str
    path: str | UnsetType | None = UNSET
    size_bytes: int | UnsetType | None = UNSET


class BrowserStateChangeDownloadFailed(Wire, tag_field="type", tag="download_failed", frozen=True):
    """A download failed. ``error`` says why, if that is known."""

    download_id: str
    url: str
    error: str | UnsetType | None = UNSET


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
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    state_changes: list[BrowserStateChange] | UnsetType | None = UNSET


#: A content block of either side, known or not.
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
