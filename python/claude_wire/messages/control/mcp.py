"""MCP servers: their configurations, connections and tools.

A host sends configurations, and the CLI reports the state of each server. For JSON-RPC messages of a server in the
host, see :class:`McpMessageRequest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from claude_wire.messages.base import Number, Wire


class McpServerProvenance(Wire, frozen=True):
    """The MCP server of a tool, and where the server is configured."""

    name: str
    """The name, which any server may choose; to decide whether to trust a tool, use ``source``."""
    source: str
    """``sdk`` for a server of the host, or where it is configured, such as ``project``."""


class McpServerToolPolicy(Wire, frozen=True):
    """The permission policy for one tool of an MCP server."""

    name: str
    """The name of the tool, without the server."""
    # one of always_allow, always_ask, always_deny
    permission_policy: str | None = None
    """The host's decision; ``always_allow`` has no effect on servers of the host."""
    # one of allow, ask, blocked
    org_max_permission: str | None = None
    """The maximum that the organization's administrator allows; without effect on servers of the host."""


class McpStdioServerConfig(Wire, kw_only=True, frozen=True):
    """An MCP server that the CLI starts as a subprocess."""

    type: str | None = None
    """``stdio`` or None; only this configuration may omit its type."""
    command: str
    """The program to start."""
    args: list[str] | None = None
    """The arguments of the program."""
    env: dict[str, str] | None = None
    """Variables to add to the program's environment."""
    timeout: Number | None = None
    """Time limit for a tool call in milliseconds; values below 1000 are ignored."""
    alwaysLoad: bool | None = None
    """True waits for the server at startup, and keeps its tools in the prompt instead of tool search."""


class _McpUrlServerConfig(Wire, tag_field="type", kw_only=True, frozen=True):
    url: str
    headers: dict[str, str] | None = None
    """HTTP headers to send, often with credentials."""
    tools: list[McpServerToolPolicy] | None = None
    """The permission policies of individual tools."""
    timeout: Number | None = None
    """Time limit for a tool call in milliseconds; values below 1000 are ignored."""
    alwaysLoad: bool | None = None
    """True waits for the server at startup, and keeps its tools in the prompt instead of tool search."""


class McpSSEServerConfig(_McpUrlServerConfig, tag="sse", kw_only=True, frozen=True):
    """An MCP server that the CLI reaches over server-sent events."""


class McpHttpServerConfig(_McpUrlServerConfig, tag="http", kw_only=True, frozen=True):
    """An MCP server that the CLI reaches over streamable HTTP."""


class McpSdkServerConfig(Wire, tag_field="type", tag="sdk", frozen=True):
    """An MCP server in the host. The CLI reaches it with a :class:`McpMessageRequest`."""

    name: str
    """The name that the host registered."""
    timeout: Number | None = None
    """Time limit for a tool call in milliseconds; only the first registration sets it."""
    tools: list[McpServerToolPolicy] | None = None
    """The permission policies of individual tools."""


class McpClaudeAIProxyServerConfig(Wire, tag_field="type", tag="claudeai-proxy", frozen=True):
    """A claude.ai connector, reached through its proxy. Only the CLI sends one, in :class:`McpServerStatus`."""

    url: str
    """The address of the proxy."""
    id: str
    """The id of the connector."""
    timeout: Number | None = None
    """Time limit for a tool call in milliseconds; values below 1000 are ignored."""


if TYPE_CHECKING:
    McpServerConfig: TypeAlias = (
        McpStdioServerConfig
        | McpSSEServerConfig
        | McpHttpServerConfig
        | McpSdkServerConfig
        | McpClaudeAIProxyServerConfig
        | dict[str, Any]
    )
else:
    #: The configuration of an MCP server. To send a configuration, use one of the classes or a dict. A received
    #: configuration is always a dict, because a stdio configuration may omit the tag ``type``.
    McpServerConfig = dict[str, Any]


class McpServerInfo(Wire, frozen=True):
    """The name and version that an MCP server reports."""

    name: str
    version: str


class McpToolAnnotations(Wire, frozen=True):
    """An MCP server's own statements about the effects of a tool; empty if the server makes none.

    MCP calls the fields ``readOnlyHint``, ``destructiveHint`` and ``openWorldHint``.
    """

    readOnly: bool | None = None
    """Whether the tool changes nothing."""
    destructive: bool | None = None
    """Whether the tool may destroy something."""
    openWorld: bool | None = None
    """Whether the tool uses more than the server's own data, such as the web."""


class McpToolInfo(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """One tool of a connected MCP server."""

    name: str
    """The name of the tool, without the server."""
    description: str | None = None
    """The server's description of the tool."""
    annotations: McpToolAnnotations | None = None
    """The server's statements about the effects of the tool."""
    meta: dict[str, Any] | None = None
    """``_meta`` on the wire: data for showing the tool's ``ui://`` resource; None for other tools."""


class McpServerStatus(Wire, kw_only=True, frozen=True):
    """An MCP server of the session, and the state of its connection."""

    name: str
    """The configured name; tool names may contain it in another form."""
    # one of pending, failed, connected, needs-auth, disabled
    status: str
    """The state of the connection."""
    serverInfo: McpServerInfo | None = None
    """The name and version that the server reported, if it is connected."""
    error: str | None = None
    """Why the connection failed, if ``status`` is ``failed``."""
    config: McpServerConfig | None = None
    """The configuration of the server."""
    scope: str | None = None
    """The level of the configuration, such as ``project``, ``user`` or ``dynamic``."""
    source: str | None = None
    """``sdk`` for a server of the host, ``plugin``, or the scope; use this to decide whether to trust a server."""
    tools: list[McpToolInfo] | None = None
    """The tools of the server, if it is connected."""
    transport: str | None = None
    """The connection to the server; observed: ``stdio``, ``http``, ``sdk``."""


class SdkMcpServerConfig(Wire, frozen=True):
    """Settings of an MCP server in the host, in :attr:`InitializeRequest.sdkMcpServerConfigs`."""

    timeout: Number | None = None
    """Time limit for a tool call in milliseconds; only the first registration sets it."""
    tools: list[McpServerToolPolicy] | None = None
    """The permission policies of individual tools."""


class SdkMcpServerManifest(Wire, frozen=True):
    """The handshake result of an MCP server in the host, sent early to save round trips.

    The CLI may use the manifest for the first connection, or ignore it, so the host must still answer each
    ``mcp_message``. :attr:`InitializeResponse.sdk_mcp_manifests_parked` reports what happened to each manifest.
    """

    initializeResult: dict[str, Any]
    """The server's result of the MCP method ``initialize``, unchanged."""
    toolsListResult: dict[str, Any] | None = None
    """The server's result of the MCP method ``tools/list``, unchanged."""


class McpInputFile(Wire, frozen=True):
    """A file to copy to the CLI's disk before an ``mcp_call``."""

    name: str
    """The file's name in ``{{in:NAME}}`` of the arguments."""
    lane_path: str
    """The path within the synced files."""


class McpOutputFile(Wire, frozen=True):
    """A file to copy to the synced files after an ``mcp_call``."""

    name: str
    """The file's name in ``{{out:NAME}}`` of the arguments."""
    lane_path: str
    """The path within the synced files."""
    if_match: str | None = None
    """The etag that the stored file must have; None overwrites any file."""


class McpResourceContent(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """One item of an MCP server's resource. The content is untrusted."""

    uri: str
    """The URI of the item, such as ``ui://panel``."""
    mimeType: str | None = None
    """The type of the content, such as ``text/html``."""
    text: str | None = None
    """The content, if it is text."""
    blob: str | None = None
    """The content in base64, if it is binary."""
    meta: dict[str, Any] | None = None
    """``_meta`` on the wire: the server's own data about the item."""
