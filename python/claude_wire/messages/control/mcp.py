"""MCP servers: how to reach them, the state of their connections, and what they offer.

The configurations travel from the host to the CLI, the status rows come back. The JSON-RPC traffic of
servers that run inside the host is not here but in ``mcp_message`` requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from claude_wire.messages.base import Number, Wire


class McpServerProvenance(Wire, frozen=True):
    """The MCP server that serves a tool, and where its definition came from.

    Absent on tools that are not MCP tools.
    """

    name: str
    """The name of the server. It proves nothing: to decide whether to trust a tool, use ``source``."""
    source: str
    """``sdk`` for a server of the host, else where it is configured, such as ``project``. New values may come."""


class McpServerToolPolicy(Wire, frozen=True):
    """The permission policy for one tool of an MCP server."""

    name: str
    """The name of the tool, without the server."""
    # one of always_allow, always_ask, always_deny
    permission_policy: str | None = None
    """What the host decides for the tool. Servers of the host ignore ``always_allow``."""
    # one of allow, ask, blocked
    org_max_permission: str | None = None
    """The most that the administrator of the organization allows. Servers of the host ignore it."""


class McpStdioServerConfig(Wire, kw_only=True, frozen=True):
    """An MCP server that the CLI starts as a subprocess and talks to over its pipes."""

    type: str | None = None
    """``stdio`` or None: only this configuration may leave out its type."""
    command: str
    """The program to start."""
    args: list[str] | None = None
    """The arguments of the program."""
    env: dict[str, str] | None = None
    """Variables to add to the environment of the program."""
    timeout: Number | None = None
    """Milliseconds that one tool call may take; values below 1000 are ignored."""
    alwaysLoad: bool | None = None
    """True keeps the tools in the prompt, not behind tool search, and waits for the server at startup."""


class _McpUrlServerConfig(Wire, tag_field="type", kw_only=True, frozen=True):
    url: str
    headers: dict[str, str] | None = None
    """HTTP headers to send. They often hold credentials."""
    tools: list[McpServerToolPolicy] | None = None
    """The permission policies of single tools."""
    timeout: Number | None = None
    """Milliseconds that one tool call may take; values below 1000 are ignored."""
    alwaysLoad: bool | None = None
    """True keeps the tools in the prompt, not behind tool search, and waits for the server at startup."""


class McpSSEServerConfig(_McpUrlServerConfig, tag="sse", kw_only=True, frozen=True):
    """An MCP server that the CLI reaches over server-sent events."""


class McpHttpServerConfig(_McpUrlServerConfig, tag="http", kw_only=True, frozen=True):
    """An MCP server that the CLI reaches over streamable HTTP."""


class McpSdkServerConfig(Wire, tag_field="type", tag="sdk", frozen=True):
    """An MCP server that runs inside the host, reached with ``mcp_message`` requests."""

    name: str
    """The name that the host registered."""
    timeout: Number | None = None
    """Milliseconds that one tool call may take. Counts only at the first registration."""
    tools: list[McpServerToolPolicy] | None = None
    """The permission policies of single tools."""


class McpClaudeAIProxyServerConfig(Wire, tag_field="type", tag="claudeai-proxy", frozen=True):
    """A claude.ai connector, reached through its proxy. It appears only in status rows.

    A host cannot send it, because neither ``initialize`` nor ``mcp_set_servers`` accepts it.
    """

    url: str
    """The address of the proxy."""
    id: str
    """The id of the connector."""
    timeout: Number | None = None
    """Milliseconds that one tool call may take; values below 1000 are ignored."""


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
    #: The configuration of an MCP server. To send one, use one of the classes or a dict. A received one is always a
    #: dict, because a stdio configuration may lack ``type``, and nothing else distinguishes it from the others.
    McpServerConfig = dict[str, Any]


class McpServerInfo(Wire, frozen=True):
    """The name and version that an MCP server reported when it was connected."""

    name: str
    version: str


class McpToolAnnotations(Wire, frozen=True):
    """An MCP server's own statements about the effects of one of its tools.

    An empty object is usual: a server that annotates nothing still gets one. The names differ from MCP's own
    ``readOnlyHint``, ``destructiveHint`` and ``openWorldHint``.
    """

    readOnly: bool | None = None
    """Whether the tool changes nothing."""
    destructive: bool | None = None
    """Whether the tool may destroy something."""
    openWorld: bool | None = None
    """Whether the tool reaches beyond the server's own data, such as to the web."""


class McpToolInfo(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """One tool of a connected MCP server."""

    name: str
    """The name of the tool, without the server."""
    description: str | None = None
    """The server's description of the tool."""
    annotations: McpToolAnnotations | None = None
    """The server's statements about the effects of the tool."""
    meta: dict[str, Any] | None = None
    """``_meta`` on the wire. Only what a host needs to show the tool's ``ui://`` resource; None for other tools."""


class McpServerStatus(Wire, kw_only=True, frozen=True):
    """One MCP server of the session and the state of its connection."""

    name: str
    """The configured name; names of tools may have another form of it."""
    # one of pending, failed, connected, needs-auth, disabled
    status: str
    """The state of the connection."""
    serverInfo: McpServerInfo | None = None
    """The name and version that the server reported, if it is connected."""
    error: str | None = None
    """Why the connection failed, with the status ``failed``."""
    config: McpServerConfig | None = None
    """The configuration of the server."""
    scope: str | None = None
    """The level of the configuration, such as ``project``, ``user`` or ``dynamic``. New values may come."""
    source: str | None = None
    """``sdk`` for a server of the host, ``plugin``, or the scope. To decide whether to trust a server, use this."""
    tools: list[McpToolInfo] | None = None
    """The tools of the server, if it is connected."""
    transport: str | None = None
    """How the server is reached. Observed: ``stdio``, ``http``, ``sdk``."""


class SdkMcpServerConfig(Wire, frozen=True):
    """Settings for one host-run MCP server, in :attr:`InitializeRequest.sdkMcpServerConfigs`.

    The key in the map is the server's name, which must be in ``sdkMcpServers`` too.
    """

    timeout: Number | None = None
    """Milliseconds that one tool call may take. Counts only at the first registration."""
    tools: list[McpServerToolPolicy] | None = None
    """The permission policies of single tools."""


class SdkMcpServerManifest(Wire, frozen=True):
    """A handshake result of a host-run MCP server, sent ahead to save round trips.

    The CLI may use it once, for the first connection, or ignore it, so the host must still answer every
    ``mcp_message``; :attr:`InitializeResponse.sdk_mcp_manifests_parked` reports on each manifest.
    """

    initializeResult: dict[str, Any]
    """The server's result of the MCP method ``initialize``, unchanged."""
    toolsListResult: dict[str, Any] | None = None
    """The server's result of the MCP method ``tools/list``, unchanged."""


class McpInputFile(Wire, frozen=True):
    """A file to stage for an ``mcp_call`` before the tool runs."""

    name: str
    """The name by which arguments refer to the file, as ``{{in:NAME}}``."""
    lane_path: str
    """The path in the synced files, not on the CLI's disk."""


class McpOutputFile(Wire, frozen=True):
    """A file to collect after an ``mcp_call`` and to write back to the synced files."""

    name: str
    """The name by which arguments refer to the file, as ``{{out:NAME}}``."""
    lane_path: str
    """The path in the synced files, not on the CLI's disk."""
    if_match: str | None = None
    """The etag that the stored file must still have. None overwrites any file."""


class McpResourceContent(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """One item of a resource read from an MCP server. The content is the server's own and untrusted."""

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
