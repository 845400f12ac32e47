"""The inputs of hooks about tools and permissions, and the base of all hook inputs."""

from __future__ import annotations

from typing import Any

from claude_wire.messages.base import Number, Wire
from claude_wire.messages.control.mcp import McpServerProvenance
from claude_wire.messages.control.permissions import PermissionUpdate


class HookEffort(Wire, frozen=True):
    """The reasoning effort that was in force when a hook ran."""

    level: str


class HookInputBase(Wire, tag_field="hook_event_name", kw_only=True, frozen=True):
    """The fields that all hook inputs share."""

    session_id: str
    transcript_path: str
    cwd: str
    prompt_id: str | None = None
    permission_mode: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    effort: HookEffort | None = None


class _ToolHookInput(HookInputBase, kw_only=True, frozen=True):
    tool_name: str
    tool_input: Any


class PreToolUseHookInput(_ToolHookInput, tag="PreToolUse", kw_only=True, frozen=True):
    """A tool is about to be used; the hook may allow, deny or change it.

    Comes after the assistant message with the ``tool_use`` block and before any permission question for it.
    ``tool_input`` is as the model wrote it.
    """

    tool_use_id: str | None = None
    mcp_server: McpServerProvenance | None = None


class PostToolUseHookInput(_ToolHookInput, tag="PostToolUse", kw_only=True, frozen=True):
    """A tool has been used and succeeded.

    ``tool_response`` is the tool's structured output, whose shape depends on the tool; ``duration_ms`` leaves out the
    time spent on permission questions and hooks.
    """

    tool_response: Any
    tool_use_id: str | None = None
    duration_ms: Number | None = None
    mcp_server: McpServerProvenance | None = None


class PostToolUseFailureHookInput(_ToolHookInput, tag="PostToolUseFailure", kw_only=True, frozen=True):
    """A tool was used and failed.

    Comes in place of :class:`PostToolUseHookInput`. ``error`` is display text such as ``Exit code 4``;
    ``is_interrupt`` is true for an interrupt, false for a failure of the tool itself.
    """

    tool_use_id: str
    error: str
    is_interrupt: bool | None = None
    duration_ms: Number | None = None
    mcp_server: McpServerProvenance | None = None


class PostToolBatchToolCall(Wire, kw_only=True, frozen=True):
    """One tool use of a finished batch.

    ``tool_response`` is the text for the model (often a plain string), unlike the structured one in
    :class:`PostToolUseHookInput`.
    """

    tool_name: str
    tool_input: Any
    tool_use_id: str
    tool_response: Any = None


class PostToolBatchHookInput(HookInputBase, tag="PostToolBatch", kw_only=True, frozen=True):
    """All tool uses of one assistant message are done, and the next API request is due.

    Comes once for the whole batch, even when it holds one call, and after the hooks of each single tool use.
    """

    tool_calls: list[PostToolBatchToolCall]


class PermissionDeniedHookInput(_ToolHookInput, tag="PermissionDenied", kw_only=True, frozen=True):
    """Auto mode has denied a tool use.

    The hook cannot undo the denial, but may let the model try again; see :class:`PermissionDeniedHookSpecificOutput`.
    """

    tool_use_id: str
    reason: str
    mcp_server: McpServerProvenance | None = None


class PermissionRequestHookInput(_ToolHookInput, tag="PermissionRequest", kw_only=True, frozen=True):
    """A permission question is being asked; the hook may answer it.

    Comes next to the ``can_use_tool`` request for the same tool use, which may be on the wire first. It carries no
    ``tool_use_id`` of its own: take the one of the request around it.
    """

    permission_suggestions: list[PermissionUpdate] | None = None
    mcp_server: McpServerProvenance | None = None
