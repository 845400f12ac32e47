"""The message fields whose numbers are always integers, and why.

TypeScript and recordings do not show whether a number can be a fraction, so this list does. A field that is an ``int``
in the message classes must be listed here, and only if a fraction makes no sense for it. Measurements (times, memory,
costs, shares) are ``Number`` fields.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["WHOLE"]

#: Reason -> the names of the fields.
WHOLE: Mapping[str, set[str]] = {
    "things are counted": {
        *("attachments", "background", "completedSteps", "denied", "totalSteps", "turns"),
        *("attempt", "cleared_thinking_turns", "cleared_tool_uses", "compact_output_chars", "content_length", "count"),
        *("deletions", "entries_archived", "entries_created", "entries_updated", "error_count", "hookCount"),
        *("hooks_when_unanswered_kept", "includedCommands", "includedSkills", "insertions", "iterations", "maxTurns"),
        *("main_stream_chunk_count", "main_stream_count", "main_stream_event_count", "max_retries", "message_count"),
        *("new_lines", "num_lines", "num_turns", "old_lines", "policyHookCount", "queued_messages"),
        *("queued_turn_count", "request_count", "safety_stops", "session_count", "skippedLinks", "spawn_depth"),
        *("text_post_count", "text_post_gap_over_500ms_count", "time_to_request_major_faults", "tool_uses"),
        *("tool_pool_build_count", "tool_pool_build_lapsed_count", "tool_pool_moved_at_lapse_count", "totalCommands"),
        *("totalSkills", "total_lines", "total_lines_added", "total_lines_removed", "webSearchRequests"),
        *("web_fetch_requests", "web_search_requests"),
    },
    # The CLI's own schema declares these as integers, including estimates.
    "tokens are counted": {
        *("assistantMessageTokens", "attachmentTokens", "autoCompactThreshold", "autoCompactWindow", "callTokens"),
        *("cacheCreationEphemeral1hInputTokens", "cacheCreationEphemeral5mInputTokens", "cacheCreationInputTokens"),
        *("cacheReadInputTokens", "cache_creation_input_tokens", "cache_missed_input_tokens", "contextWindow"),
        *("cache_read_input_tokens", "cleared_input_tokens", "ephemeral_1h_input_tokens", "estimated_tokens"),
        *("ephemeral_5m_input_tokens", "estimated_tokens_delta", "first_request_cache_read_input_tokens"),
        *("first_request_input_tokens", "inputTokens", "input_tokens", "maxOutputTokens", "maxTokens"),
        *("max_thinking_tokens", "outputTokens", "output_tokens", "rawMaxTokens", "raw_max_tokens", "resultTokens"),
        *("redirectedContextTokens", "thinkingTokens", "thinking_tokens", "tokens", "tokens_at_start", "tokens_over"),
        *("toolCallTokens", "toolResultTokens", "totalTokens", "total_tokens", "unattributedTokens"),
        *("cached", "input", "output", "userMessageTokens"),
    },
    "bytes are counted": {"max_bytes", "size_bytes", "total_bytes"},
    "a place in a list or a text": {
        *("document_index", "end_block_index", "end_char_index", "end_page_number", "index", "new_start", "old_start"),
        *("position", "process_turn_index", "result_index", "search_result_index", "start_block_index"),
        *("start_char_index", "start_line", "start_page_number"),
    },
    "a status of HTTP or of a process": {"api_error_status", "error_status", "exitCode", "exit_code", "return_code"},
    "a name": {"pid", "process_start_tuning", "verifiedPeerPid", "worker_epoch"},
}
