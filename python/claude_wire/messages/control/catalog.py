"""The commands, subagents, models and plugins of a session, and its account.

The classes are the rows of the answers to ``initialize``, ``list_models``, ``reload_skills`` and ``reload_plugins``,
and the definitions that a host sends to add subagents and plugins. Keys are camelCase.
"""

from __future__ import annotations

from typing import Any

from claude_wire.messages.base import Number, Wire, null


class SlashCommand(Wire, kw_only=True, frozen=True):
    """A command or skill that a prompt can call as ``/name``.

    ``name`` has no leading slash. ``builtin`` is true for the CLI's own commands and absent for those of a user,
    project, plugin or MCP server; two rows may share a name, and then ``/name`` runs the one marked builtin.
    """

    name: str
    description: str
    argumentHint: str
    aliases: list[str] | None = None
    builtin: bool | None = None


class AgentInfo(Wire, frozen=True):
    """One type of subagent that the session can start.

    ``model`` is an alias, a model id, or ``inherit`` for the model of the parent; absent means the default subagent
    model when one is configured, else the parent's.
    """

    name: str
    description: str
    model: str | None = None


class ModelInfo(Wire, kw_only=True, frozen=True):
    """One row of the list of models the session can be switched to.

    ``value`` is what ``set_model`` takes and may be an alias such as ``opus``; ``resolvedModel`` is the current model
    id. An absent ``supports...`` flag means that it is not known.
    """

    value: str
    resolvedModel: str | None = None
    displayName: str
    description: str
    supportsEffort: bool | None = None
    supportedEffortLevels: list[str] | None = None
    supportsAdaptiveThinking: bool | None = None
    supportsFastMode: bool | None = None
    supportsAutoMode: bool | None = None
    supportsThinkingOff: bool | None = None


class AccountInfo(Wire, kw_only=True, frozen=True):
    """The account that the CLI is logged in to, and the API that it uses.

    With an API key there is no email, organization or subscription, only where the key came from (``apiKeySource``,
    for instance the name of an environment variable). With another provider than ``firstParty`` the other members are
    absent.
    """

    email: str | None = None
    organization: str | None = None
    subscriptionType: str | None = None
    tokenSource: str | None = None
    apiKeySource: str | None = None
    # one of firstParty, bedrock, vertex, foundry, anthropicAws, anthropicGoogleCloud, mantle, gateway
    apiProvider: str | None = None


class AgentDefinition(Wire, kw_only=True, frozen=True):
    """A subagent that the host defines, sent in :attr:`InitializeRequest.agents`.

    ``description`` tells the model when to use it, ``prompt`` is its system prompt. Absent ``tools`` means all tools
    of the parent; ``model`` may be an alias, an id or ``inherit``. ``maxTurns`` counts API round trips,
    ``autoCompactWindow`` is in tokens and can only lower the inherited window. ``effort`` is a level name or an
    integer; an item of ``mcpServers`` is a server's name or an object of inline configurations.
    """

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
    """A plugin directory to load; ``local`` is the only type there is.

    With ``skipMcpDiscovery`` the CLI loads the plugin's skills, hooks, agents and commands but not its MCP servers,
    for a host that connects those itself.
    """

    path: str
    skipMcpDiscovery: bool | None = None


class LoadedPlugin(Wire, kw_only=True, frozen=True):
    """One plugin that is loaded in the session.

    ``path`` is ``builtin`` for plugins that come with the CLI. ``version`` is what the plugin's manifest says,
    unchecked, and absent when it says none.
    """

    name: str
    path: str
    source: str | None = None
    version: str | None = None


class PluginCacheImpact(Wire, frozen=True):
    """The changes to the list of tools that a held plugin reload would make.

    Comes only in a :class:`ReloadPluginsResponse` with ``held`` true. ``lsp_tool_change`` is null when the LSP tool
    stays as it is; its ``may-`` values mean that the CLI could not see the pending plugins in full.
    """

    mcp_servers_added: list[str]
    mcp_servers_removed: list[str]
    # one of adds, may-add, removes, may-remove
    lsp_tool_change: str | None = null()


class SettingsParseError(Wire, frozen=True):
    """Why a settings file was skipped. Nothing in that file applies.

    ``path`` is the dotted path of the wrong member, empty if the whole file is wrong; ``file`` is the file.
    """

    path: str
    message: str
    file: str | None = None
