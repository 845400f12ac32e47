"""DOC module mcp"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from claude_wire.messages._base import Number, Wire

__all__ = [
    "McpClaudeAIProxyServerConfig",
    "McpHttpServerConfig",
    "McpInputFile",
    "McpOutputFile",
    "McpResourceContent",
    "McpSSEServerConfig",
    "McpSdkServerConfig",
    "McpServerConfig",
    "McpServerInfo",
    "McpServerProvenance",
    "McpServerStatus",
    "McpServerToolPolicy",
    "McpStdioServerConfig",
    "McpToolAnnotations",
    "McpToolInfo",
    "SdkMcpServerConfig",
    "SdkMcpServerManifest",
]


class McpServerProvenance(Wire, frozen=True):
    """DOC McpServerProvenance"""

    name: str
    source: str


class McpServerToolPolicy(Wire, frozen=True):
    """DOC McpServerToolPolicy"""

    name: str
    # one of always_allow, always_ask, always_deny
    permission_policy: str | None = None
    # one of allow, ask, blocked
    org_max_permission: str | None = None


class McpStdioServerConfig(Wire, kw_only=True, frozen=True):
    """DOC McpStdioServerConfig"""

    type: str | None = None
    command: str
    args: list[str] | None = None
    env: dict[str, str] | None = None
    timeout: Number | None = None
    alwaysLoad: bool | None = None


class McpSSEServerConfig(Wire, tag_field="type", tag="sse", kw_only=True, frozen=True):
    """DOC McpSSEServerConfig"""

    url: str
    headers: dict[str, str] | None = None
    tools: list[McpServerToolPolicy] | None = None
    timeout: Number | None = None
    alwaysLoad: bool | None = None


class McpHttpServerConfig(Wire, tag_field="type", tag="http", kw_only=True, frozen=True):
    """DOC McpHttpServerConfig"""

    url: str
    headers: dict[str, str] | None = None
    tools: list[McpServerToolPolicy] | None = None
    timeout: Number | None = None
    alwaysLoad: bool | None = None


class McpSdkServerConfig(Wire, tag_field="type", tag="sdk", frozen=True):
    """DOC McpSdkServerConfig"""

    name: str
    timeout: Number | None = None
    tools: list[McpServerToolPolicy] | None = None


class McpClaudeAIProxyServerConfig(Wire, tag_field="type", tag="claudeai-proxy", frozen=True):
    """DOC McpClaudeAIProxyServerConfig"""

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
    #: The configuration of an MCP server. To be sent it may be one of the classes or a dict; it always decodes to a dict,
    #: since a stdio configuration may leave ``type`` out, and nothing else tells it from the others.
    McpServerConfig = dict[str, Any]


class McpServerInfo(Wire, frozen=True):
    """DOC McpServerInfo"""

    name: str
    version: str


class McpToolAnnotations(Wire, frozen=True):
    """DOC McpToolAnnotations"""

    readOnly: bool | None = None
    destructive: bool | None = None
    openWorld: bool | None = None


class McpToolInfo(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """DOC McpToolInfo"""

    name: str
    description: str | None = None
    annotations: McpToolAnnotations | None = None
    meta: dict[str, Any] | None = None


class McpServerStatus(Wire, kw_only=True, frozen=True):
    """DOC McpServerStatus"""

    name: str
    # one of pending, failed, connected, needs-auth, disabled
    status: str
    serverInfo: McpServerInfo | None = None
    error: str | None = None
    config: McpServerConfig | None = None
    scope: str | None = None
    source: str | None = None
    tools: list[McpToolInfo] | None = None


class SdkMcpServerConfig(Wire, frozen=True):
    """DOC SdkMcpServerConfig"""

    timeout: Number | None = None
    tools: list[McpServerToolPolicy] | None = None


class SdkMcpServerManifest(Wire, frozen=True):
    """DOC SdkMcpServerManifest"""

    initializeResult: dict[str, Any]
    toolsListResult: dict[str, Any] | None = None


class McpInputFile(Wire, frozen=True):
    """DOC McpInputFile"""

    name: str
    lane_path: str


class McpOutputFile(Wire, frozen=True):
    """DOC McpOutputFile"""

    name: str
    lane_path: str
    if_match: str | None = None


class McpResourceContent(Wire, kw_only=True, rename={"meta": "_meta"}, frozen=True):
    """DOC McpResourceContent"""

    uri: str
    mimeType: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: dict[str, Any] | None = None
