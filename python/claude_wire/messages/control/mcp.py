"""MCP servers: how to reach them, the state of their connections, and what they offer.

The configurations travel from the host to the CLI, the status rows come back. The JSON-RPC traffic of
servers that run inside the host is not here but in ``mcp_message`` requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from claude_wire.messages.base import Number, Wire


class McpServerProvenance(Wire, frozen=True):
    """The MCP server that serves a tool, and where its definition came from.

    ``source`` may have values not known today; ``sdk`` means a server that the host runs itself, and no configured
    server can claim it. To decide whether to trust a tool, use ``source``, not ``name``. Absent on tools that are not
    MCP tools.
    """

    name: str
    source: str


class McpServerToolPolicy(Wire, frozen=True):
    """The permission policy for one tool of an MCP server.

    ``org_max_permission`` is the ceiling an organisation's admin has set. On servers that the host runs (``sdk``)
    only ``always_ask`` and ``always_deny`` have an effect.
    """

    name: str
    # one of always_allow, always_ask, always_deny
    permission_policy: str | None = None
    # one of allow, ask, blocked
    org_max_permission: str | None = None


class McpStdioServerConfig(Wire, kw_only=True, frozen=True):
    """An MCP server that the CLI starts as a subprocess and talks to over its pipes.

    The only configuration whose ``type`` may be left out. ``timeout`` is the limit for one tool call in milliseconds,
    ignored below 1000; ``alwaysLoad`` keeps the server's tools in the prompt instead of behind tool search, and makes
    startup wait for the connection.
    """

    type: str | None = None
    command: str
    args: list[str] | None = None
    env: dict[str, str] | None = None
    timeout: Number | None = None
    alwaysLoad: bool | None = None


class _McpUrlServerConfig(Wire, tag_field="type", kw_only=True, frozen=True):
    url: str
    headers: dict[str, str] | None = None
    tools: list[McpServerToolPolicy] | None = None
    timeout: Number | None = None
    alwaysLoad: bool | None = None


class McpSSEServerConfig(_McpUrlServerConfig, tag="sse", kw_only=True, frozen=True):
    """An MCP server that the CLI reaches over server-sent events.

    ``timeout`` is the limit for one tool call in milliseconds, ignored below 1000. ``headers`` often hold
    credentials.
    """


class McpHttpServerConfig(_McpUrlServerConfig, tag="http", kw_only=True, frozen=True):
    """An MCP server that the CLI reaches over streamable HTTP.

    ``timeout`` is the limit for one tool call in milliseconds, ignored below 1000. ``headers`` often hold
    credentials.
    """


class McpSdkServerConfig(Wire, tag_field="type", tag="sdk", frozen=True):
    """An MCP server that runs inside the host, reached with ``mcp_message`` requests.

    ``name`` is the name the host registered. ``timeout`` is the limit for one tool call in milliseconds and counts
    only at the first registration.
    """

    name: str
    timeout: Number | None = None
    tools: list[McpServerToolPolicy] | None = None


class McpClaudeAIProxyServerConfig(Wire, tag_field="type", tag="claudeai-proxy", frozen=True):
    """A claude.ai connector, reached through its proxy. It appears only in status rows.

    A host cannot send it, because neither ``initialize`` nor ``mcp_set_servers`` accepts it. ``timeout`` is in
    milliseconds.
    """

    url: str
    id: str
    timeout: Number | None = None


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
    destructive: bool | None = None
    openWorld: bool | None = None


class McpToolInfo(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """One tool of a connected MCP server.

    ``meta`` (``_meta`` on the wire) carries only what a host needs to show the tool's ``ui://`` resource and is
    absent on all other tools.
    """

    name: str
    description: str | None = None
    annotations: McpToolAnnotations | None = None
    meta: dict[str, Any] | None = None


class McpServerStatus(Wire, kw_only=True, frozen=True):
    """One MCP server of the session and the state of its connection.

    ``serverInfo`` and ``tools`` come with the status ``connected``, ``error`` with ``failed``. ``name`` is the
    configured name, not the form used inside tool names. ``scope`` and ``source`` may have values not known today. To
    decide whether to trust a server, use ``source``.
    """

    name: str
    # one of pending, failed, connected, needs-auth, disabled
    status: str
    serverInfo: McpServerInfo | None = None
    error: str | None = None
    config: McpServerConfig | None = None
    scope: str | None = None
    source: str | None = None
    tools: list[McpToolInfo] | None = None
    transport: str | None = None


class SdkMcpServerConfig(Wire, frozen=True):
    """Settings for one host-run MCP server, in :attr:`InitializeRequest.sdkMcpServerConfigs`.

    The key in the map is the server's name, which must be in ``sdkMcpServers`` too. ``timeout`` is the limit for one
    tool call in milliseconds.
    """

    timeout: Number | None = None
    tools: list[McpServerToolPolicy] | None = None


class SdkMcpServerManifest(Wire, frozen=True):
    """A handshake result of a host-run MCP server, sent ahead to save round trips.

    Both members are the plain results of the MCP methods ``initialize`` and ``tools/list``. The CLI may use them
    once, for the first connection, or ignore them, so the host must still answer every ``mcp_message``;
    :attr:`InitializeResponse.sdk_mcp_manifests_parked` reports on each manifest.
    """

    initializeResult: dict[str, Any]
    toolsListResult: dict[str, Any] | None = None


class McpInputFile(Wire, frozen=True):
    """A file to stage for an ``mcp_call`` before the tool runs.

    ``name`` is what the arguments refer to as ``{{in:NAME}}``; ``lane_path`` is the path in the synced files, not on
    the CLI's disk.
    """

    name: str
    lane_path: str


class McpOutputFile(Wire, frozen=True):
    """A file to collect after an ``mcp_call`` and to write back to the synced files.

    ``name`` is what the arguments refer to as ``{{out:NAME}}``. With ``if_match`` the write lands only if the stored
    file still has that etag; without it the last writer wins.
    """

    name: str
    lane_path: str
    if_match: str | None = None


class McpResourceContent(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """One item of a resource read from an MCP server.

    Text is in ``text``, binary data in ``blob`` as base64. The content is the server's own and untrusted.
    """

    uri: str
    mimeType: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: dict[str, Any] | None = None
