"""The inputs of hooks about tools and permissions, and the base of all hook inputs."""

from __future__ import annotations

from typing import Any

from claude_wire.messages.base import Number, Wire
from claude_wire.messages.control.mcp import McpServerProvenance
from claude_wire.messages.control.permissions import PermissionUpdate


class HookEffort(Wire, frozen=True):
    """The reasoning effort that was in force when a hook ran."""

    level: str
    """The level of the turn, such as ``low``, ``medium``, ``high``, ``xhigh`` or ``max``."""


class HookInputBase(Wire, tag_field="hook_event_name", kw_only=True, frozen=True):
    """The fields that all hook inputs share."""

    session_id: str
    transcript_path: str
    """The path of the session's transcript, a ``.jsonl`` file."""
    cwd: str
    """The working directory."""
    prompt_id: str | None = None
    """A UUID that all events after one prompt share, up to the next prompt. None before the first prompt."""
    permission_mode: str | None = None
    agent_id: str | None = None
    """The id of the subagent; None in the main conversation."""
    agent_type: str | None = None
    """The type of the subagent, or the agent that ``--agent`` chose for the main conversation."""
    effort: HookEffort | None = None
    """The reasoning effort of the turn. None outside of turns, and for models without this setting."""


class _ToolHookInput(HookInputBase, kw_only=True, frozen=True):
    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for one of an MCP server."""
    tool_input: Any
    """The input of the call, as the model wrote it."""


class PreToolUseHookInput(_ToolHookInput, tag="PreToolUse", kw_only=True, frozen=True):
    """A tool is about to be used; the hook may allow, deny or change it.

    Comes after the assistant message with the ``tool_use`` block and before any permission question for it.
    """

    tool_use_id: str | None = None
    """The ``id`` of the tool call."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""


class PostToolUseHookInput(_ToolHookInput, tag="PostToolUse", kw_only=True, frozen=True):
    """A tool has been used and succeeded."""

    tool_response: Any
    """The result as structured data, any JSON; its form depends on the tool."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call."""
    duration_ms: Number | None = None
    """Milliseconds that the tool ran, without permission questions and hooks."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""


class PostToolUseFailureHookInput(_ToolHookInput, tag="PostToolUseFailure", kw_only=True, frozen=True):
    """A tool was used and failed.

    Comes in place of :class:`PostToolUseHookInput`.
    """

    tool_use_id: str
    """The ``id`` of the tool call."""
    error: str
    """The error as text for people, such as ``Exit code 4``."""
    is_interrupt: bool | None = None
    """True if an interrupt stopped the tool, false if the tool itself failed."""
    duration_ms: Number | None = None
    """Milliseconds that the tool ran, without permission questions and hooks."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""


class PostToolBatchToolCall(Wire, kw_only=True, frozen=True):
    """One tool use of a finished batch."""

    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for one of an MCP server."""
    tool_input: Any
    """The input of the call, as the model wrote it."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    tool_response: Any = None
    """The result as the model reads it: a string or blocks, unlike that of :class:`PostToolUseHookInput`."""


class PostToolBatchHookInput(HookInputBase, tag="PostToolBatch", kw_only=True, frozen=True):
    """All tool uses of one assistant message are done, and the next API request is due.

    Comes once for the whole batch, even when it holds one call, and after the hooks of each single tool use.
    """

    tool_calls: list[PostToolBatchToolCall]
    """The calls of the message, in order."""


class PermissionDeniedHookInput(_ToolHookInput, tag="PermissionDenied", kw_only=True, frozen=True):
    """Auto mode has denied a tool use.

    The hook cannot undo the denial, but may let the model try again; see :class:`PermissionDeniedHookSpecificOutput`.
    """

    tool_use_id: str
    """The ``id`` of the tool call."""
    reason: str
    """Why auto mode denied the call."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""


class PermissionRequestHookInput(_ToolHookInput, tag="PermissionRequest", kw_only=True, frozen=True):
    """A permission question is being asked; the hook may answer it.

    Comes next to the ``can_use_tool`` request for the same tool use, which may be on the wire first. It carries no
    ``tool_use_id`` of its own: take the one of the request around it.
    """

    permission_suggestions: list[PermissionUpdate] | None = None
    """Changes of permissions to offer to the user."""
    mcp_server: McpServerProvenance | None = None
    """The MCP server that serves the tool; None for other tools."""
