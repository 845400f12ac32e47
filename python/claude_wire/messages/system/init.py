"""The start of a turn: the session as it is, and its plugins."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire, constant
from claude_wire.messages.system.base import SystemMessage


class InitMcpServer(Wire, frozen=True):
    """An MCP server as the session starts; ``status`` is an open set."""

    name: str
    status: str
    source: str | None = None


class InitPlugin(Wire, kw_only=True, frozen=True):
    """A plugin loaded into the session, and where from."""

    name: str
    path: str
    source: str | None = None
    version: str | None = None


class PluginManagedLock(Wire, frozen=True):
    """The managed setting that forces a plugin on or off."""

    plugin_enabled: bool
    name: str
    marketplace: str | None = None


class PluginError(Wire, kw_only=True, frozen=True):
    """A plugin that could not be loaded, and why."""

    plugin: str
    type: str
    message: str
    path: str | None = None
    managed_lock: PluginManagedLock | None = None


class InitMessage(SystemMessage, kw_only=True, frozen=True):
    """Describes the session: directory, model, tools, permission mode, commands and more.

    It comes at the start of every turn, not once per process, and the newest one holds: model and session may have
    changed. ``permissionMode`` and ``apiKeySource`` are camelCase and open sets. Older CLIs and dialects leave out
    many fields; ``models`` is the 2.1.7 CLI's dialect, ``timestamp`` the ``permission_request`` dialect. The CLI names
    its tools; dialects may describe them in objects: :attr:`tool_names` has the names of either.
    """

    subtype: Literal["init"] = constant("init")
    cwd: str | None = None
    tools: list[str | dict[str, Any]] | None = None
    mcp_servers: list[InitMcpServer] | None = None
    model: str | None = None
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    slash_commands: list[str] | None = None
    terminal_slash_commands: list[str] | None = None
    # one of user, none, ANTHROPIC_API_KEY, apiKeyHelper, /login managed key, project, org, temporary, oauth
    apiKeySource: str | None = None
    claude_code_version: str | None = None
    output_style: str | None = None
    agents: list[str] | None = None
    skills: list[str] | None = None
    plugins: list[InitPlugin] | None = None
    capabilities: list[str] | None = None
    analytics_disabled: bool | None = None
    product_feedback_disabled: bool | None = None
    served_by_anthropic: bool | None = None
    memory_paths: dict[str, Any] | None = None
    original_cwd: str | None = None
    additional_directories: list[str] | None = None
    messaging_socket_path: str | None = None
    # one of off, cooldown, on
    fast_mode_state: str | None = None
    # one of unknown, free, preference, extra_usage_disabled, network_error, not_first_party, disabled_by_env,
    # model_not_allowed, sdk_opt_in_required, pending
    fast_mode_disabled_reason: str | None = None
    per_turn_effort_active: bool | None = None
    ultrathink_available: bool | None = None
    ultrathink_typed_raises: bool | None = None
    # one of default, focus
    view_mode: str | None = None
    user_message_uuids: list[str] | None = None
    betas: list[str] | None = None
    plugin_errors: list[PluginError] | None = None
    # one of low, medium, high, xhigh, max
    effort: str | UnsetType | None = UNSET
    timestamp: str | None = None
    models: list[Any] | None = None
    startup_timing: dict[str, Any] | None = None
    plugin_warnings: list[dict[str, Any]] | None = None
    mcp_server_errors: list[dict[str, Any]] | None = None
    footer_indicator: dict[str, Any] | None = None
    scratchpad_path: str | None = None
    synced_skills_path: str | None = None
    worker_epoch: int | None = None
    powershell_path: str | None = None
    host_dropped_env: list[dict[str, Any]] | None = None
    client_thinking: dict[str, Any] | None = None
    flag_restate_noop: bool | None = None
    cloud_session: dict[str, Any] | None = None
    # whether shell commands run in a sandbox; the string "unknown" if the CLI cannot tell
    sandbox_enabled: bool | str | None = None

    @property
    def tool_names(self) -> list[str]:
        """The names of all tools, in order; a tool without one is left out."""
        names = (tool if isinstance(tool, str) else tool.get("name") for tool in self.tools or ())
        return [name for name in names if isinstance(name, str)]


class PluginInstallMessage(SystemMessage, kw_only=True, frozen=True):
    """How the installation of plugins at the start gets on.

    ``name`` is there when the message is about one plugin, ``error`` when it failed.
    """

    subtype: Literal["plugin_install"] = constant("plugin_install")
    # one of completed, failed, started, installed
    status: str
    name: str | None = None
    error: str | None = None
