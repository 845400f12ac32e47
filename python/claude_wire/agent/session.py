"""The state of an agent's session (its command line, and the host's settings), and the state of a turn."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from functools import reduce
from time import monotonic
from typing import Any, cast
from uuid import uuid4

import msgspec

from claude_wire.agent.options import AgentOptions
from claude_wire.codec.encoder import encode
from claude_wire.messages import (
    HookCallbackMatcher,
    InitializeRequest,
    InitMcpServer,
    ModelUsage,
    PermissionDenial,
    ResultMessage,
    UserMessage,
)
from claude_wire.messages.hooks.events import hook_event
from claude_wire.support.plain_json import items_of

#: Limits for a host's MCP servers: their number, and the size in bytes (as JSON) of one server's info and tools.
MAX_SERVERS = 128
MAX_SERVER_BYTES = 4 * 1024 * 1024
#: Largest size in bytes (as JSON) of the settings that a host sets.
MAX_SETTINGS_BYTES = 1024 * 1024
#: Limits for names of tools that the host's answers allow: their number, and the characters of a name.
MAX_ALLOWED = 4096
MAX_NAME_CHARS = 256
#: The fields of ModelUsage that are added up: tokens, and US dollars.
_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "costUSD")
PERMISSION_MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")


class McpConnection:
    """The agent's connection to an MCP server that runs in the host."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        #: ``pending``, ``connected`` or ``failed``.
        self.status: str = "pending"
        #: The tools in the server's answer to ``tools/list``: ``name``, ``description``, ``inputSchema``.
        self.tools: list[dict[str, Any]] = []
        #: The server's answer to ``initialize``: ``serverInfo``, ``capabilities``, ``protocolVersion``.
        self.info: dict[str, Any] = {}
        #: The next JSON-RPC id. The CLI reserves 0 and 1 for the handshake, even if it does no handshake.
        self.next_id: int = 0

    def __repr__(self) -> str:
        return f"<McpConnection {self.name!r}: {self.status}, {len(self.tools)} tools>"

    def connected(self, listed: dict[str, Any]) -> None:
        """Store the answer to ``tools/list``. If info and tools are too large, set the status to ``failed``."""
        tools: list[object] = items_of(listed.get("tools"))
        self.tools = [cast("dict[str, Any]", tool) for tool in tools if isinstance(tool, dict)]
        self.status = "connected"
        if len(encode({"info": self.info, "tools": self.tools})) > MAX_SERVER_BYTES:
            self.info, self.tools, self.status = {}, [], "failed"

    @property
    def tool_names(self) -> list[str]:
        """The names of the server's tools for the model: ``mcp__calc__add``."""
        return [f"mcp__{self.name}__{tool.get('name')}" for tool in self.tools]


class AgentSession:
    """An agent's session. The author's function reads it as ``turn.session``."""

    def __init__(self, options: AgentOptions, model: str, version: str = "") -> None:
        #: The session id: from ``--session-id``, or a random one.
        self.id: str = options.session_id or str(uuid4())
        #: The agent's command line.
        self.options: AgentOptions = options
        #: The agent's version, which hosts read in ``system/init``.
        self.version: str = version
        #: The working directory.
        self.cwd: str = os.getcwd()
        #: The first model; ``set_model`` with null restores it.
        self.default_model: str = options.model or model
        self.model: str = self.default_model
        #: One of :data:`PERMISSION_MODES`, or another mode from the command line.
        self.permission_mode: str = options.permission_mode or "default"
        #: Settings that the host set for this session by ``apply_flag_settings``.
        self.flag_settings: dict[str, Any] = {}
        #: The host's limit for thinking tokens (``set_max_thinking_tokens``); None: the default.
        self.max_thinking_tokens: int | None = None
        #: The MCP servers in the host, by name.
        self.mcp_servers: dict[str, McpConnection] = {}
        #: MCP server -> ``default`` or ``auto``. The tools of such a server need permission even if the session's mode
        #: allows all tools.
        self.mcp_modes: dict[str, str] = {}
        #: When the session started, in seconds of ``time.monotonic()``.
        self.began: float = monotonic()
        #: The host's last ``initialize``; None before the first.
        self.initialize: InitializeRequest | None = None
        #: The host's hooks, by event.
        self.hooks: dict[str, list[HookCallbackMatcher]] = {}
        #: The JSON schema for structured output; None without a schema.
        self.schema: dict[str, Any] | None = _json_object(options.json_schema)
        #: Names of tools that need no permission: from ``--allowed-tools``, and from the host's answers.
        self.allowed_tools: set[str] = set(options.allowed_tools or ())
        self.disallowed_tools: set[str] = set(options.disallowed_tools or ())
        #: Uuids of prompts that were answered before the session was resumed, and start no turn. The author's
        #: ``lifespan`` sets them.
        self.answered: set[str] = set()
        #: Model -> token counts since the start of the session. A resumed session also starts at 0, unless the author's
        #: ``lifespan`` sets the counts.
        self.used: dict[str, ModelUsage] = {}
        #: Total costs since the start of the session, in US dollars.
        self.cost_usd: float = 0.0
        #: The author's own values. The library does not use them.
        self.state: dict[str, Any] = {}
        for name in self._sdk_servers(options.mcp_config):
            self.mcp_servers[name] = McpConnection(name)

    def __repr__(self) -> str:
        return f"<AgentSession {self.id}: {self.model}, {self.permission_mode}>"

    def open(self, request: InitializeRequest) -> list[McpConnection]:
        """Store the content of ``initialize``. Return the servers that need a handshake: those without a manifest."""
        self.initialize = request
        self.hooks = {hook_event(name) or name: matchers for name, matchers in (request.hooks or {}).items()}
        if request.jsonSchema is not None:
            self.schema = request.jsonSchema
        manifests = request.sdkMcpServerManifests or {}
        self.add_servers((*(request.sdkMcpServers or ()), *manifests))
        for name, manifest in manifests.items():
            server = self.mcp_servers.get(name)
            if server is not None:
                server.info = manifest.initializeResult
                server.connected(manifest.toolsListResult or {})
                server.next_id = 2
        return [server for server in self.mcp_servers.values() if server.status == "pending"]

    def add_servers(self, names: Iterable[str]) -> list[McpConnection]:
        """Add new servers of the host, at most :data:`MAX_SERVERS` in all. Return the added ones."""
        added: list[McpConnection] = []
        for name in names:
            if name not in self.mcp_servers and len(self.mcp_servers) < MAX_SERVERS:
                self.mcp_servers[name] = McpConnection(name)
                added.append(self.mcp_servers[name])
        return added

    @property
    def init_servers(self) -> list[InitMcpServer]:
        """The MCP servers, as ``system/init`` lists them."""
        return [InitMcpServer(server.name, server.status, "sdk") for server in self.mcp_servers.values()]

    def allow(self, name: str) -> None:
        """Allow a tool without a question from now on. Ignored above :data:`MAX_ALLOWED` tools."""
        if len(self.allowed_tools) < MAX_ALLOWED and len(name) <= MAX_NAME_CHARS:
            self.allowed_tools.add(name)

    def set_mcp_mode(self, server: str, mode: str | None) -> bool:
        """Set the mode for the tools of an MCP server; None removes it. Return False if too many servers have one."""
        if mode is None:
            self.mcp_modes.pop(server, None)
        elif server in self.mcp_modes or (len(self.mcp_modes) < MAX_SERVERS and len(server) <= MAX_NAME_CHARS):
            self.mcp_modes[server] = mode
        else:
            return False
        return True

    def may_use(self, name: str) -> bool | None:
        """Decide about a tool by rules and mode: True, False, or None if the agent has to ask the host."""
        if _has_rule(self.disallowed_tools, name):
            return False
        is_overridden = any(name.startswith(f"mcp__{server}__") for server in self.mcp_modes)
        bypasses = self.permission_mode == "bypassPermissions" and not is_overridden
        if bypasses or _has_rule(self.allowed_tools, name):
            return True
        return False if self.permission_mode == "dontAsk" else None

    def find_mcp_tool(self, name: str) -> tuple[McpConnection, str] | None:
        """Find the MCP server and the tool for a name ``mcp__SERVER__TOOL``. SERVER may contain ``__``."""
        servers = [server for server in self.mcp_servers.values() if name.startswith(f"mcp__{server.name}__")]
        if not servers:
            return None
        server = max(servers, key=lambda server: len(server.name))
        return server, name.removeprefix(f"mcp__{server.name}__")

    @staticmethod
    def _sdk_servers(config: object) -> list[str]:
        """The names of servers in the host, from the values of ``--mcp-config``: JSON, or paths of JSON files."""
        names: list[str] = []
        for one in cast("list[Any]", config if isinstance(config, (list, tuple)) else [config]):
            servers = _json_object((_json_object(one) or {}).get("mcpServers")) or {}
            names += [name for name, server in servers.items() if (_json_object(server) or {}).get("type") == "sdk"]
        return names


class TurnRecord:
    """The state of a turn: its prompts, and the values for its result."""

    def __init__(self, prompts: list[UserMessage], prompt: UserMessage, session_id: str) -> None:
        #: The prompt to answer: ``prompts``, joined into one.
        self.prompt: UserMessage = prompt
        #: The prompts that started the turn, as received.
        self.prompts: list[UserMessage] = prompts
        #: The session id in the turn's frames.
        self.session_id: str = session_id
        self.began: float = monotonic()
        #: Why the turn was stopped: ``interrupt``, ``now`` or ``ended``; None if it was not stopped.
        self.stopped: str | None = None
        #: Earlier prompts that called no model (``shouldQuery`` false).
        self.context: list[UserMessage] = []
        #: True after the first frames of the turn were written.
        self.opened: bool = False
        #: The uuids of prompts that joined the turn after it began.
        self.folded: list[str] = []

    @property
    def uuids(self) -> list[str]:
        """The uuids of the turn's prompts that have a uuid."""
        return [*(prompt.uuid for prompt in self.prompts if prompt.uuid), *self.folded]

    @property
    def milliseconds(self) -> int:
        """The duration of the turn so far."""
        return int((monotonic() - self.began) * 1000)


class Spent:
    """Token counts, costs and permission denials of a turn so far, including subagents."""

    def __init__(self) -> None:
        self.by_model: dict[str, ModelUsage] = {}
        self.denials: list[PermissionDenial] = []

    def add(self, used: ModelUsage, model: str) -> None:
        """Add token counts and costs of one model."""
        self.by_model[model] = add_usage(self.by_model.get(model), used)

    @property
    def total(self) -> ModelUsage:
        return reduce(add_usage, self.by_model.values(), ModelUsage(inputTokens=0, outputTokens=0, costUSD=0.0))


def add_usage(one: ModelUsage | None, other: ModelUsage) -> ModelUsage:
    if one is None:
        return other
    sums: dict[str, Any] = {name: (getattr(one, name) or 0) + (getattr(other, name) or 0) for name in _COUNTS}
    return ModelUsage(**sums)


def fill_missing(result: ResultMessage, given: dict[str, Any]) -> ResultMessage:
    """Return the result with these values in its fields that are None."""
    missing = {name: value for name, value in given.items() if getattr(result, name) is None}
    return msgspec.structs.replace(result, **missing)


def _has_rule(rules: set[str], name: str) -> bool:
    """True if the rules name the tool, or the tool's MCP server (``mcp__calc`` for ``mcp__calc__add``)."""
    return name in rules or any(rule.startswith("mcp__") and name.startswith(f"{rule}__") for rule in rules)


def now() -> str:
    """The current time in the CLI's format: ``2026-01-01T00:00:00.000Z``."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json_object(given: Any) -> dict[str, Any] | None:
    """Read a JSON object from a mapping, a JSON text, or the path of a JSON file. None for any other value."""
    if isinstance(given, str):
        text = given
        try:
            if not text.lstrip().startswith("{"):
                with open(text, encoding="utf-8") as file:
                    text = file.read()
            given = json.loads(text)
        except (OSError, ValueError):
            return None
    return dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else None
