"""The names of kinds that ``only`` takes, and which of them the protocol has.

Knows messages and their tags. :data:`KindName` is for type checkers; a test compares it with the messages.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from claude_wire.codec.kinds import Kind
from claude_wire.codec.objects import SURROGATE
from claude_wire.support.arguments import nearest, shown, type_of

__all__ = ["KindName", "kind_names", "known_kinds"]

KindName: TypeAlias = Literal[
    "active_goal",
    "assistant",
    "auth",
    "auth_status",
    "command_lifecycle",
    "control",
    "control_cancel_request",
    "control_request",
    "control_request/apply_flag_settings",
    "control_request/background_tasks",
    "control_request/can_use_tool",
    "control_request/cancel_async_message",
    "control_request/elicitation",
    "control_request/end_session",
    "control_request/export_conversation",
    "control_request/file_suggestions",
    "control_request/generate_session_title",
    "control_request/get_binary_version",
    "control_request/get_context_usage",
    "control_request/get_hooks_listing",
    "control_request/get_memory_dialog",
    "control_request/get_plan",
    "control_request/get_session_cost",
    "control_request/get_settings",
    "control_request/get_status",
    "control_request/get_task_output",
    "control_request/get_usage",
    "control_request/get_workspace_diff",
    "control_request/hook_callback",
    "control_request/initialize",
    "control_request/interrupt",
    "control_request/list_models",
    "control_request/list_permission_rules",
    "control_request/mcp_authenticate",
    "control_request/mcp_call",
    "control_request/mcp_clear_auth",
    "control_request/mcp_message",
    "control_request/mcp_oauth_callback_url",
    "control_request/mcp_read_resource",
    "control_request/mcp_reconnect",
    "control_request/mcp_set_servers",
    "control_request/mcp_status",
    "control_request/mcp_toggle",
    "control_request/message_rated",
    "control_request/prompt_draft_activity",
    "control_request/read_file",
    "control_request/register_repo_root",
    "control_request/reload_connectors",
    "control_request/reload_output_styles",
    "control_request/reload_plugins",
    "control_request/reload_skills",
    "control_request/rename_session",
    "control_request/request_user_dialog",
    "control_request/rewind_files",
    "control_request/seed_read_state",
    "control_request/set_color",
    "control_request/set_cwd",
    "control_request/set_has_subscribers",
    "control_request/set_max_thinking_tokens",
    "control_request/set_mcp_permission_mode_override",
    "control_request/set_model",
    "control_request/set_permission_mode",
    "control_request/set_prompt_suggestions_paused",
    "control_request/side_question",
    "control_request/stop_task",
    "control_request/submit_feedback",
    "control_request/update_settings",
    "control_response",
    "control_response/error",
    "control_response/success",
    "conversation_reset",
    "keep_alive",
    "prompt_suggestion",
    "rate_limit_event",
    "result",
    "result/cancelled",
    "result/error",
    "result/error_during_execution",
    "result/error_max_budget_usd",
    "result/error_max_structured_output_retries",
    "result/error_max_turns",
    "result/success",
    "stream_event",
    "stream_event/content_block_delta",
    "stream_event/content_block_delta/citations_delta",
    "stream_event/content_block_delta/compaction_delta",
    "stream_event/content_block_delta/input_json_delta",
    "stream_event/content_block_delta/signature_delta",
    "stream_event/content_block_delta/text_delta",
    "stream_event/content_block_delta/thinking_delta",
    "stream_event/content_block_start",
    "stream_event/content_block_start/advisor_tool_result",
    "stream_event/content_block_start/bash_code_execution_tool_result",
    "stream_event/content_block_start/browser_state",
    "stream_event/content_block_start/code_execution_tool_result",
    "stream_event/content_block_start/compaction",
    "stream_event/content_block_start/container_upload",
    "stream_event/content_block_start/document",
    "stream_event/content_block_start/fallback",
    "stream_event/content_block_start/image",
    "stream_event/content_block_start/mcp_tool_listing",
    "stream_event/content_block_start/mcp_tool_result",
    "stream_event/content_block_start/mcp_tool_use",
    "stream_event/content_block_start/redacted_thinking",
    "stream_event/content_block_start/search_result",
    "stream_event/content_block_start/server_tool_use",
    "stream_event/content_block_start/text",
    "stream_event/content_block_start/text_editor_code_execution_tool_result",
    "stream_event/content_block_start/thinking",
    "stream_event/content_block_start/tool_addition",
    "stream_event/content_block_start/tool_reference",
    "stream_event/content_block_start/tool_removal",
    "stream_event/content_block_start/tool_result",
    "stream_event/content_block_start/tool_search_tool_result",
    "stream_event/content_block_start/tool_use",
    "stream_event/content_block_start/web_fetch_tool_result",
    "stream_event/content_block_start/web_search_tool_result",
    "stream_event/content_block_stop",
    "stream_event/error",
    "stream_event/message_delta",
    "stream_event/message_start",
    "stream_event/message_stop",
    "stream_event/ping",
    "system",
    "system/api_retry",
    "system/background_tasks_changed",
    "system/commands_changed",
    "system/compact_boundary",
    "system/consolidation",
    "system/control_request_progress",
    "system/elicitation_complete",
    "system/error",
    "system/files_persisted",
    "system/hook_progress",
    "system/hook_response",
    "system/hook_started",
    "system/informational",
    "system/init",
    "system/injected",
    "system/interrupted",
    "system/local_command_output",
    "system/memory_recall",
    "system/mirror_error",
    "system/model_fallback",
    "system/model_refusal_fallback",
    "system/model_refusal_no_fallback",
    "system/notification",
    "system/permission_denied",
    "system/permission_request",
    "system/plugin_install",
    "system/queued",
    "system/session_state_changed",
    "system/session_title_changed",
    "system/session_writes_lost",
    "system/status",
    "system/task_list_statuses",
    "system/task_notification",
    "system/task_progress",
    "system/task_started",
    "system/task_updated",
    "system/thinking_tokens",
    "system/tool_result",
    "system/ui_invalidate",
    "system/worker_shutting_down",
    "tool_progress",
    "tool_result",
    "tool_use_summary",
    "transcript_mirror",
    "update_environment_variables",
    "user",
]


@functools.cache
def known_kinds() -> frozenset[str]:
    """The names of all kinds that the protocol has, and of the groups of kinds such as ``"system"``."""
    # Imported at the first call: a program that names no kinds need not wait for it.
    from claude_wire.messages.blocks.content import ContentBlock
    from claude_wire.messages.control.envelopes import ControlAnswer, ControlRequestPayload
    from claude_wire.messages.conversation.events import Delta, Event
    from claude_wire.messages.union import BY_TYPE, RESULT_BY_SUBTYPE, SYSTEM_BY_SUBTYPE

    def tags(union: object) -> list[str]:
        configs = (getattr(cls, "__struct_config__", None) for cls in get_args(union))
        return [config.tag for config in configs if config is not None and isinstance(config.tag, str)]

    parts = {
        "system": SYSTEM_BY_SUBTYPE,
        "result": RESULT_BY_SUBTYPE,
        "stream_event": tags(Event),
        "stream_event/content_block_start": tags(ContentBlock),
        "stream_event/content_block_delta": tags(Delta),
        "control_request": tags(ControlRequestPayload),
        "control_response": tags(ControlAnswer),
    }
    return frozenset([*BY_TYPE, "system", "result", *(f"{kind}/{part}" for kind in parts for part in parts[kind])])


def kind_names(only: Iterable[str | Kind], known: frozenset[str] | None = None) -> frozenset[str]:
    """Checks what ``only`` was given, and returns the names. ``known`` are those that there are, if not the protocol's.

    Raises:
        TypeError: one of them is neither a str nor a Kind, or there is one instead of several.
        ValueError: the protocol has no kind of that name, or a Kind has no type, or an empty tag, or one with a slash.
    """
    if isinstance(only, (str, Kind)):
        raise TypeError(f"only takes a set of kinds, not one: only={{{shown(only)}}}")
    if isinstance(only, type) or not isinstance(only, Iterable):
        raise TypeError(f"only takes a set of kinds, such as only={{'result'}}, not {type_of(only)}")
    known = known_kinds() if known is None else known
    names: list[str] = []
    for kind in only:
        if isinstance(kind, Kind):
            names.append(_name_of(kind))
        elif not isinstance(kind, str):
            raise TypeError(f"only takes names of kinds, such as 'result' or 'system/init', not {type_of(kind)}")
        elif kind not in known:
            raise ValueError(
                f"only: there is no kind {shown(kind)}{_nearest(kind, known)}; one that this version does "
                "not know is given by its tags: Kind('type', 'subtype')"
            )
        else:
            names.append(kind)
    return frozenset(names)


def _nearest(name: str, known: frozenset[str]) -> str:
    """The kind that was meant: one that ends like it (``text_delta``, ``init``), or whose name is like it."""
    end = name.rpartition("/")[2]
    found = [kind for kind in known if kind.rpartition("/")[2] == end]
    return nearest(found[0], found) if len(found) == 1 else nearest(name, known)


def _name_of(kind: Kind) -> str:
    parts = [part for part in kind if part is not None]
    whole = list(kind[: len(parts)]) == parts and parts
    if not whole or not all(isinstance(part, str) and part and "/" not in part and "\n" not in part for part in parts):
        raise ValueError(f"only: {shown(kind)} names no kind: it has no type, or a tag that is empty or has a slash")
    if SURROGATE.search(str(kind)):
        raise ValueError(f"only: {shown(kind)} names no kind: it has half of a surrogate pair")
    return str(kind)
