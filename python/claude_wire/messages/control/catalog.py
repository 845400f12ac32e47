"""Commands, subagents, models, plugins and the account of a session. Keys are camelCase.

The answers to ``initialize``, ``list_models``, ``reload_skills`` and ``reload_plugins`` list them. A host sends
:class:`AgentDefinition` and :class:`SdkPluginConfig` to add subagents and plugins.
"""

from __future__ import annotations

from typing import Any

from claude_wire.messages.base import Number, Wire, null


class SlashCommand(Wire, kw_only=True, frozen=True):
    """A command or skill that a prompt can call as ``/name``.

    If two commands have the same name, ``/name`` runs the builtin one.
    """

    name: str
    """The name without the slash."""
    description: str
    argumentHint: str
    """A hint about the arguments, such as ``[name]``; empty if there is none."""
    aliases: list[str] | None = None
    """Other names of the command."""
    builtin: bool | None = None
    """True for the CLI's own commands; None for a command of a user, project, plugin or MCP server."""


class AgentInfo(Wire, frozen=True):
    """A type of subagent that the session can start."""

    name: str
    """The name of the agent type, such as ``Explore``."""
    description: str
    """When to use the agent."""
    model: str | None = None
    """An alias, an id or ``inherit`` (the parent's model); None for the configured default, else the parent's model."""


class ModelInfo(Wire, kw_only=True, frozen=True):
    """A model that the session can switch to. None in a ``supports…`` field means that the CLI does not know."""

    value: str
    """The name for ``set_model``, which may be an alias such as ``opus``."""
    resolvedModel: str | None = None
    """The id of the model that ``value`` currently selects."""
    displayName: str
    description: str
    """A description for display, sometimes with prices."""
    supportsEffort: bool | None = None
    """Whether the reasoning effort can be set."""
    supportedEffortLevels: list[str] | None = None
    """The levels of effort, such as ``low`` and ``max``."""
    supportsAdaptiveThinking: bool | None = None
    """Whether the model can decide how much to think."""
    supportsFastMode: bool | None = None
    """Whether the model supports fast mode."""
    supportsAutoMode: bool | None = None
    """Whether the model supports the permission mode ``auto``."""
    supportsThinkingOff: bool | None = None
    """Whether thinking can be switched off."""


class AccountInfo(Wire, kw_only=True, frozen=True):
    """The account that the CLI is logged in to, and the API that it uses."""

    email: str | None = None
    """The address of the account; None with an API key."""
    organization: str | None = None
    """The name of the organization; None with an API key."""
    subscriptionType: str | None = None
    """The plan, such as ``max``; None with an API key."""
    tokenSource: str | None = None
    """Where the login token comes from, such as ``CLAUDE_CODE_OAUTH_TOKEN`` or ``none``."""
    apiKeySource: str | None = None
    """Where the API key comes from, such as ``ANTHROPIC_API_KEY``; None with a login."""
    # one of firstParty, bedrock, vertex, foundry, anthropicAws, anthropicGoogleCloud, mantle, gateway
    apiProvider: str | None = None
    """The API provider; unless the provider is ``firstParty``, all other fields are None."""


class AgentDefinition(Wire, kw_only=True, frozen=True):
    """A subagent that the host defines, sent in :attr:`InitializeRequest.agents`."""

    description: str
    """When to use the agent, as text for the model."""
    tools: list[str] | None = None
    """The names of the agent's tools; None for all tools of the parent."""
    disallowedTools: list[str] | None = None
    """The names of tools that the agent must not have; ``mcp__SERVER`` for all tools of a server."""
    prompt: str
    """The agent's system prompt."""
    model: str | None = None
    """An alias, an id or ``inherit`` (the parent's model); None for the configured default, else the parent's model."""
    mcpServers: list[Any] | None = None
    """The agent's MCP servers: names, or objects of inline configurations."""
    criticalSystemReminder_EXPERIMENTAL: str | None = None
    """A reminder to add to the agent's system prompt; experimental."""
    skills: list[str] | None = None
    """The names of skills to load into the agent's context."""
    initialPrompt: str | None = None
    """The first prompt, if the agent runs the main conversation."""
    maxTurns: int | None = None
    """The maximum number of API round trips."""
    autoCompactWindow: int | None = None
    """The number of tokens at which the agent compacts, if lower than the parent's."""
    background: bool | None = None
    """True always runs the agent as a background task."""
    omitClaudeMd: bool | None = None
    """True omits the user's and the project's ``CLAUDE.md`` files from a subagent's context."""
    # one of user, project, local
    memory: str | None = None
    """The level of the agent's memory files, such as ``user`` for ``~/.claude/agent-memory``."""
    effort: str | Number | None = None
    """The agent's reasoning effort: a level such as ``high``, or an integer."""
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    """The agent's permission mode."""
    observer: str | None = None
    """At most four agent types, separated by commas, that watch the agent in the background."""
    observerMessage: str | None = None
    """Text to add to each report for an observer."""


class SdkPluginConfig(Wire, tag_field="type", tag="local", frozen=True):
    """A plugin to load from a directory."""

    path: str
    """The folder of the plugin."""
    skipMcpDiscovery: bool | None = None
    """True skips the plugin's MCP servers, for a host that connects them itself."""


class LoadedPlugin(Wire, kw_only=True, frozen=True):
    """A plugin of the session."""

    name: str
    path: str
    """The folder of the plugin; ``builtin`` for a plugin that is part of the CLI."""
    source: str | None = None
    """The plugin with its marketplace, such as ``plug@inline``."""
    version: str | None = None
    """The version in the plugin's ``plugin.json``, if any."""


class PluginCacheImpact(Wire, frozen=True):
    """How a reload of plugins would change the tools. Only in a :class:`ReloadPluginsResponse` with ``held`` true."""

    mcp_servers_added: list[str]
    """The MCP servers that the reload would add, such as ``plugin:PLUGIN:SERVER``."""
    mcp_servers_removed: list[str]
    """The MCP servers that the reload would remove."""
    # one of adds, may-add, removes, may-remove
    lsp_tool_change: str | None = null()
    """The change to the LSP tool, or null; ``may-…`` if the CLI could not read the plugins completely."""


class SettingsParseError(Wire, frozen=True):
    """Why the CLI skipped a whole settings file."""

    path: str
    """The dotted path of the wrong key; empty if the whole file is wrong."""
    message: str
    """The error as human-readable text."""
    file: str | None = None
