"""What an agent knows of its session, how it was started and what the host has set since, and of a turn.

Knows values only.
"""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

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

__all__ = [
    "MAX_SETTINGS_BYTES",
    "PERMISSION_MODES",
    "AgentSession",
    "McpConnection",
    "Spent",
    "TurnRecord",
    "added_up",
    "filled",
    "now",
]

#: The most MCP servers of a host, and the most bytes of what one says of itself and its tools, as JSON.
MAX_SERVERS = 128
MAX_SERVER_BYTES = 4 * 1024 * 1024
#: The most bytes of settings that a host sets, as JSON.
MAX_SETTINGS_BYTES = 1024 * 1024
#: The most names of tools that answers of the host may allow, and their characters.
MAX_ALLOWED = 4096
MAX_NAME_CHARS = 256
#: What a model has used, as its fields say: tokens, and US dollars.
_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "costUSD")
PERMISSION_MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")


class McpConnection:
    """An MCP server that runs in the host, as far as the agent is connected to it."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        #: ``pending``, ``connected`` or ``failed``.
        self.status: str = "pending"
        #: Its tools, as ``tools/list`` gives them: ``name``, ``description``, ``inputSchema``.
        self.tools: list[dict[str, Any]] = []
        #: What it answered to ``initialize``: ``serverInfo``, ``capabilities``, ``protocolVersion``.
        self.info: dict[str, Any] = {}
        #: The next JSON-RPC id. The CLI takes 0 and 1 for the handshake, also if there is none on the wire.
        self.next_id: int = 0

    def __repr__(self) -> str:
        return f"<McpConnection {self.name!r}: {self.status}, {len(self.tools)} tools>"

    def connected(self, listed: dict[str, Any]) -> None:
        """Take what it answered to ``tools/list``. A server has failed whose answers are larger than can be kept."""
        tools: Any = listed.get("tools")
        self.tools = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
        self.status = "connected"
        if len(encode({"info": self.info, "tools": self.tools})) > MAX_SERVER_BYTES:
            self.info, self.tools, self.status = {}, [], "failed"

    @property
    def tool_names(self) -> list[str]:
        """The names of its tools, as the model has them: ``mcp__calc__add``."""
        return [f"mcp__{self.name}__{tool.get('name')}" for tool in self.tools]


class AgentSession:
    """The session of an agent, at ``turn.session``."""

    def __init__(self, options: AgentOptions, model: str, version: str = "") -> None:
        #: The session's id: that of ``--session-id``, or a new one.
        self.id: str = options.session_id or str(uuid4())
        #: How the agent was started.
        self.options: AgentOptions = options
        #: The version of the agent, which hosts read in ``system/init``.
        self.version: str = version
        #: The working directory.
        self.cwd: str = os.getcwd()
        #: The model when nothing else is set, and to which ``set_model`` with null goes back.
        self.default_model: str = options.model or model
        self.model: str = self.default_model
        #: One of :data:`PERMISSION_MODES`; open.
        self.permission_mode: str = options.permission_mode or "default"
        #: Settings that the host has set for this session by ``apply_flag_settings``, by their keys.
        self.flag_settings: dict[str, Any] = {}
        #: Tokens for thinking that the host has set; None where it has set none, or wants the default again.
        self.max_thinking_tokens: int | None = None
        #: The MCP servers in the host, by name.
        self.mcp_servers: dict[str, McpConnection] = {}
        #: By MCP server, ``default`` or ``auto``: its tools are asked for although the mode would allow them.
        self.mcp_modes: dict[str, str] = {}
        #: When the session began, on the clock of ``time.monotonic()``.
        self.began: float = monotonic()
        #: The last ``initialize`` of the host; None if there was none.
        self.initialize: InitializeRequest | None = None
        #: The hooks of the host, by event.
        self.hooks: dict[str, list[HookCallbackMatcher]] = {}
        #: The JSON schema that structured output is to meet; None if none was asked for.
        self.schema: dict[str, Any] | None = _json_object(options.json_schema)
        #: Names of tools that may be used unasked: those of ``--allowed-tools``, and of answers that said so.
        self.allowed_tools: set[str] = set(options.allowed_tools or ())
        self.disallowed_tools: set[str] = set(options.disallowed_tools or ())
        #: Uuids of prompts that the session had before it was resumed: none of them begins a turn. The author fills it.
        self.answered: set[str] = set()
        #: What each model has used, and what all has cost in US dollars, since the session began. An agent that resumes
        #: a session begins at 0 as well, unless the author's ``lifespan`` sets them.
        self.used: dict[str, ModelUsage] = {}
        self.cost_usd: float = 0.0
        #: The author's own: it lives as long as the session.
        self.state: dict[str, Any] = {}
        for name in self._sdk_servers(options.mcp_config):
            self.mcp_servers[name] = McpConnection(name)

    def __repr__(self) -> str:
        return f"<AgentSession {self.id}: {self.model}, {self.permission_mode}>"

    def open(self, request: InitializeRequest) -> list[McpConnection]:
        """Take what ``initialize`` says. Returns the servers to shake hands with.

        A server whose manifest is there is connected without a handshake.
        """
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
        """Take servers of the host that are not there yet, up to :data:`MAX_SERVERS`. Returns these."""
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
        """A tool may be used unasked from now on. One too many is asked for each time."""
        if len(self.allowed_tools) < MAX_ALLOWED and len(name) <= MAX_NAME_CHARS:
            self.allowed_tools.add(name)

    def set_mcp_mode(self, server: str, mode: str | None) -> bool:
        """Keep a mode for the tools of an MCP server; None forgets it. False if there are too many."""
        if mode is None:
            self.mcp_modes.pop(server, None)
        elif server in self.mcp_modes or (len(self.mcp_modes) < MAX_SERVERS and len(server) <= MAX_NAME_CHARS):
            self.mcp_modes[server] = mode
        else:
            return False
        return True

    def may_use(self, name: str) -> bool | None:
        """Whether rules and mode decide about a tool: true, false, or None where somebody is to be asked."""
        if _has_rule(self.disallowed_tools, name):
            return False
        is_overridden = any(name.startswith(f"mcp__{server}__") for server in self.mcp_modes)
        bypasses = self.permission_mode == "bypassPermissions" and not is_overridden
        if bypasses or _has_rule(self.allowed_tools, name):
            return True
        return False if self.permission_mode == "dontAsk" else None

    def find_mcp_tool(self, name: str) -> tuple[McpConnection, str] | None:
        """The MCP server and the tool that ``mcp__SERVER__TOOL`` names; a server's name may have ``__`` in it."""
        servers = [server for server in self.mcp_servers.values() if name.startswith(f"mcp__{server.name}__")]
        if not servers:
            return None
        server = max(servers, key=lambda server: len(server.name))
        return server, name.removeprefix(f"mcp__{server.name}__")

    @staticmethod
    def _sdk_servers(config: object) -> list[str]:
        """The names of servers that run in the host, by ``--mcp-config``: JSON, or the path of a file with it."""
        names: list[str] = []
        for one in cast("list[Any]", config if isinstance(config, (list, tuple)) else [config]):
            servers = _json_object((_json_object(one) or {}).get("mcpServers")) or {}
            names += [name for name, server in servers.items() if (_json_object(server) or {}).get("type") == "sdk"]
        return names


class TurnRecord:
    """A turn: the prompts that it is for, and what its result will say."""

    def __init__(self, prompts: list[UserMessage], prompt: UserMessage, session_id: str) -> None:
        #: What is to be answered: the prompt, or several that waited, joined.
        self.prompt: UserMessage = prompt
        #: The prompts that it began with, as they came.
        self.prompts: list[UserMessage] = prompts
        #: The id that its frames carry.
        self.session_id: str = session_id
        self.began: float = monotonic()
        #: Why it was stopped: ``interrupt``, ``now`` or ``ended``; None if it was not.
        self.stopped: str | None = None
        #: Prompts that came before it and asked no model.
        self.context: list[UserMessage] = []
        #: Whether its first frames are written.
        self.opened: bool = False
        #: The uuids of prompts that were put into it later.
        self.folded: list[str] = []

    @property
    def uuids(self) -> list[str]:
        """The uuids of its prompts, of those that have one."""
        return [*(prompt.uuid for prompt in self.prompts if prompt.uuid), *self.folded]

    @property
    def milliseconds(self) -> int:
        """How long it has lasted."""
        return int((monotonic() - self.began) * 1000)


class Spent:
    """What a turn has used so far, its subagents included."""

    def __init__(self) -> None:
        self.by_model: dict[str, ModelUsage] = {}
        self.denials: list[PermissionDenial] = []

    def add(self, used: ModelUsage, model: str) -> None:
        """Add what one model has used."""
        self.by_model[model] = added_up(self.by_model.get(model), used)

    @property
    def total(self) -> ModelUsage:
        """What all models together have used."""
        return reduce(added_up, self.by_model.values(), ModelUsage(inputTokens=0, outputTokens=0, costUSD=0.0))


def added_up(one: ModelUsage | None, other: ModelUsage) -> ModelUsage:
    """The sums of what a model has used."""
    if one is None:
        return other
    sums: dict[str, Any] = {name: (getattr(one, name) or 0) + (getattr(other, name) or 0) for name in _COUNTS}
    return ModelUsage(**sums)


def filled(result: ResultMessage, given: dict[str, Any]) -> ResultMessage:
    """The result with these values where it has none of its own."""
    missing = {name: value for name, value in given.items() if getattr(result, name) is None}
    return msgspec.structs.replace(result, **missing)


def _has_rule(rules: set[str], name: str) -> bool:
    """True if there is a rule for a tool, or for the MCP server that the tool belongs to (``mcp__calc``)."""
    return name in rules or any(rule.startswith("mcp__") and name.startswith(f"{rule}__") for rule in rules)


def now() -> str:
    """The time as the CLI writes it: ``2026-01-01T00:00:00.000Z``."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json_object(given: Any) -> dict[str, Any] | None:
    """A JSON object: given as such, as its text, or as the path of a file with it. None if it is none."""
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
