"""The inputs of hooks about tools and permissions, and the base class of all hook inputs."""

from __future__ import annotations

from typing import Any

from claude_wire.messages.base import Number, Wire
from claude_wire.messages.control.mcp import McpServerProvenance
from claude_wire.messages.control.permissions import PermissionUpdate


class HookEffort(Wire, frozen=True):
    """The reasoning effort at the time of the event."""

    level: str
    """The level of the turn, such as ``low``, ``medium``, ``high``, ``xhigh`` or ``max``."""


class HookInputBase(Wire, tag_field="hook_event_name", kw_only=True, frozen=True):
    """The base class of hook inputs."""

    session_id: str
    transcript_path: str
    """The path of the session's transcript, a ``.jsonl`` file."""
    cwd: str
    """The working directory."""
    prompt_id: str | None = None
    """A UUID that all events between two prompts share; None before the first prompt."""
    permission_mode: str | None = None
    agent_id: str | None = None
    """The id of the subagent; None in the main conversation."""
    agent_type: str | None = None
    """The type of the subagent, or the agent that ``--agent`` chose for the main conversation."""
    effort: HookEffort | None = None
    """The reasoning effort of the turn; None outside a turn, and for models without this setting."""


class _ToolHookInput(HookInputBase, kw_only=True, frozen=True):
    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for an MCP tool."""
    tool_input: Any
    """The input of the call, as the model wrote it."""


class PreToolUseHookInput(_ToolHookInput, tag="PreToolUse", kw_only=True, frozen=True):
    """The CLI is about to run a tool. The hook may allow, deny or change the call.

    The hook runs after the assistant message with the ``tool_use`` block, and before a permission question.
    """

    tool_use_id: str | None = None
    """The ``id`` of the tool call."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""


class PostToolUseHookInput(_ToolHookInput, tag="PostToolUse", kw_only=True, frozen=True):
    """A tool succeeded."""

    tool_response: Any
    """The result as JSON, in a format that depends on the tool."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call."""
    duration_ms: Number | None = None
    """How long the tool ran in milliseconds, excluding permission questions and hooks."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""


class PostToolUseFailureHookInput(_ToolHookInput, tag="PostToolUseFailure", kw_only=True, frozen=True):
    """A tool failed. The CLI sends this input instead of :class:`PostToolUseHookInput`."""

    tool_use_id: str
    """The ``id`` of the tool call."""
    error: str
    """The error as human-readable text, such as ``Exit code 4``."""
    is_interrupt: bool | None = None
    """True if an interrupt stopped the tool, False if the tool itself failed."""
    duration_ms: Number | None = None
    """How long the tool ran in milliseconds, excluding permission questions and hooks."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""


class PostToolBatchToolCall(Wire, kw_only=True, frozen=True):
    """A tool call of a finished batch."""

    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for an MCP tool."""
    tool_input: Any
    """The input of the call, as the model wrote it."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    tool_response: Any = None
    """The result for the model: a string or blocks, unlike in :class:`PostToolUseHookInput`."""


class PostToolBatchHookInput(HookInputBase, tag="PostToolBatch", kw_only=True, frozen=True):
    """All tool calls of an assistant message have ended, and the CLI is about to send the next API request.

    The CLI sends this input once for all calls (at least one), after the hooks for each call.
    """

    tool_calls: list[PostToolBatchToolCall]
    """The calls of the message, in order."""


class PermissionDeniedHookInput(_ToolHookInput, tag="PermissionDenied", kw_only=True, frozen=True):
    """Auto mode denied a tool call.

    The hook can allow the model to retry (:class:`PermissionDeniedHookSpecificOutput`), but cannot allow the call.
    """

    tool_use_id: str
    """The ``id`` of the tool call."""
    reason: str
    """Why auto mode denied the call."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""


class PermissionRequestHookInput(_ToolHookInput, tag="PermissionRequest", kw_only=True, frozen=True):
    """The CLI asks for permission to run a tool. The hook may answer.

    The CLI also sends ``can_use_tool`` for the same call, perhaps first. The ``tool_use_id`` is in the
    :class:`HookCallbackRequest`.
    """

    permission_suggestions: list[PermissionUpdate] | None = None
    """Permission changes to offer to the user."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""
