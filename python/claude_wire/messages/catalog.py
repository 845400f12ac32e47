"""DOC module catalog"""

from __future__ import annotations

from typing import Any

from claude_wire.messages._base import Number, Wire, null

__all__ = [
    "AccountInfo",
    "AgentDefinition",
    "AgentInfo",
    "LoadedPlugin",
    "ModelInfo",
    "PluginCacheImpact",
    "SdkPluginConfig",
    "SettingsParseError",
    "SlashCommand",
]


class SlashCommand(Wire, kw_only=True, frozen=True):
    """DOC SlashCommand"""

    name: str
    description: str
    argumentHint: str
    aliases: list[str] | None = None
    builtin: bool | None = None


class AgentInfo(Wire, frozen=True):
    """DOC AgentInfo"""

    name: str
    description: str
    model: str | None = None


class ModelInfo(Wire, kw_only=True, frozen=True):
    """DOC ModelInfo"""

    value: str
    resolvedModel: str | None = None
    displayName: str
    description: str
    supportsEffort: bool | None = None
    supportedEffortLevels: list[str] | None = None
    supportsAdaptiveThinking: bool | None = None
    supportsFastMode: bool | None = None
    supportsAutoMode: bool | None = None


class AccountInfo(Wire, kw_only=True, frozen=True):
    """DOC AccountInfo"""

    email: str | None = None
    organization: str | None = None
    subscriptionType: str | None = None
    tokenSource: str | None = None
    apiKeySource: str | None = None
    # one of firstParty, bedrock, vertex, foundry, anthropicAws, anthropicGoogleCloud, mantle, gateway
    apiProvider: str | None = None


class AgentDefinition(Wire, kw_only=True, frozen=True):
    """DOC AgentDefinition"""

    description: str
    tools: list[str] | None = None
    disallowedTools: list[str] | None = None
    prompt: str
    model: str | None = None
    mcpServers: list[Any] | None = None
    criticalSystemReminder_EXPERIMENTAL: str | None = None
    skills: list[str] | None = None
    initialPrompt: str | None = None
    maxTurns: int | None = None
    autoCompactWindow: int | None = None
    background: bool | None = None
    omitClaudeMd: bool | None = None
    # one of user, project, local
    memory: str | None = None
    effort: str | Number | None = None
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    observer: str | None = None
    observerMessage: str | None = None


class SdkPluginConfig(Wire, tag_field="type", tag="local", frozen=True):
    """DOC SdkPluginConfig"""

    path: str
    skipMcpDiscovery: bool | None = None


class LoadedPlugin(Wire, kw_only=True, frozen=True):
    """DOC LoadedPlugin"""

    name: str
    path: str
    source: str | None = None
    version: str | None = None


class PluginCacheImpact(Wire, frozen=True):
    """DOC PluginCacheImpact"""

    mcp_servers_added: list[str]
    mcp_servers_removed: list[str]
    # one of adds, may-add, removes, may-remove
    lsp_tool_change: str | None = null()


class SettingsParseError(Wire, frozen=True):
    """DOC SettingsParseError"""

    path: str
    message: str
    file: str | None = None
