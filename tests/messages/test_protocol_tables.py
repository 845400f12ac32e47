"""The message classes agree with the protocol tables on every entry and field: name, presence, type.

For a new version of the protocol, update the tables; the failures of this module then list the work to do. A class must
accept all the entries that it covers, so a field is required only if every entry requires it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union, get_args

import msgspec
import pytest

import claude_wire
from claude_wire import messages
from claude_wire.messages.base import NoOther, Wire
from claude_wire.messages.union import MESSAGES as STREAM
from claude_wire.messages.union import RESULT_BY_SUBTYPE, SYSTEM_BY_SUBTYPE
from each import each
from protocol_tables import (
    ALL_CLASSES,
    BLOCK_HINTS,
    BLOCKS,
    CLASSES,
    CLASSES_READ_AS_DICTS,
    PROTOCOL,
    REQUESTS,
    SHAPES,
    Spec,
    StructType,
    Walk,
    answer_hint,
    block_name,
    choose,
    claims_of,
    entry_name,
    fields_of,
    hint_of_block,
    hint_of_entry,
    parts_of,
    presence_of,
    structs_in,
    walk_of_all,
)

# --- every entry has its class ----------------------------------------------------------------------------------------


@each("entry", PROTOCOL, entry_name)
def test_every_entry_of_the_protocol_has_its_class(entry: Spec) -> None:
    hint = hint_of_entry(entry)
    if entry["fields"]:
        assert choose(structs_in(hint), {field["name"]: field for field in entry["fields"]}) is not None
    else:  # an answer without known fields: any object is accepted, also an empty one
        assert entry["at"] == "response.response"
        REQUESTS[entry["nested"]["answers"]].parse_answer({})


def test_every_message_and_request_says_which_side_sends_it() -> None:
    tables: dict[StructType, set[str]] = {}
    for entry in PROTOCOL:
        if entry.get("at") in (None, "request"):
            for cls in structs_in(hint_of_entry(entry)):
                tables.setdefault(cls, set()).add(entry["direction"])
    sides = {"cli_to_sdk": "agent", "sdk_to_cli": "host", "both": "both"}
    for cls, found in tables.items():
        assert cls.sent_by == (sides[found.pop()] if len(found) == 1 else "both"), cls


@each("entry", [entry for entry in BLOCKS if entry["kind"] != "enum"], block_name)
def test_every_block_event_delta_and_usage_has_its_class(entry: Spec) -> None:
    fields = {field["name"]: field for field in entry["fields"]}
    assert choose(structs_in(hint_of_block(entry)), fields) is not None


def test_every_named_shape_is_reached_from_an_entry() -> None:
    assert walk_of_all().shapes == SHAPES.keys()


def _reached() -> set[StructType]:
    """Return the classes in the union of all messages, in the answers to requests, and in their fields."""
    todo: list[Any] = [claude_wire.Message, *map(answer_hint, REQUESTS), *CLASSES_READ_AS_DICTS.values()]
    reached: set[StructType] = set()
    while todo:
        hint = todo.pop()
        for part in hint if isinstance(hint, list) else parts_of(hint):
            if isinstance(part, type) and issubclass(part, Wire) and part not in reached:
                reached.add(part)
                todo += [field.type for field in msgspec.structs.fields(part)]
    return reached


def _tagged() -> Iterator[StructType]:
    """Yield the classes with a tag or a subtype, without base classes."""
    for cls in ALL_CLASSES:
        if (
            cls is not NoOther
            and cls.__struct_config__.tag is not None
            and not cls.__subclasses__()
            and not cls.__name__.startswith("_")
        ):
            yield cls


def test_every_tagged_class_is_in_a_union() -> None:
    reached = _reached()
    assert [cls.__name__ for cls in _tagged() if cls not in reached] == []


#: Messages and requests that the CLI uses although no table contains them.
UNTABLED_CLASSES = {
    "CommandLifecycleMessage",
    "EndSessionRequest",
    "ExportConversationRequest",
    "GenerateSessionTitleRequest",
    "GetMemoryDialogRequest",
    "SetMcpPermissionModeOverrideRequest",
    "ReloadConnectorsRequest",
    "PromptDraftActivityRequest",
    "MessageRatedRequest",
    "McpOAuthCallbackUrlRequest",
    "McpClearAuthRequest",
    "McpAuthenticateRequest",
    "GetPlanRequest",
    "GetStatusRequest",
    "GetWorkspaceDiffRequest",
    "ModelFallbackMessage",
    "SessionTitleChangedMessage",
    "SetCwdRequest",
    "SetPromptSuggestionsPausedRequest",
    "SideQuestionRequest",
    "SubmitFeedbackRequest",
    "TaskListStatusesMessage",
    "TranscriptMirrorMessage",
    "UiInvalidateMessage",
    "UpdateEnvironmentVariablesMessage",
}


def test_every_tagged_class_has_its_entry_in_the_tables() -> None:
    assert {cls.__name__ for cls in _tagged() if cls not in CLASSES} == UNTABLED_CLASSES


def test_the_tables_have_entries_of_every_sort() -> None:
    assert {entry.get("at") for entry in PROTOCOL} == {
        *(None, "request", "request.input", "response.response", "response.response.hookSpecificOutput")
    }
    assert {entry["kind"] for entry in BLOCKS} == {
        *("block", "tool_result_item", "stream_event", "delta", "citation", "message", "usage", "enum")
    }


# --- presence ---------------------------------------------------------------------------------------------------------

#: Fields that may be absent although the tables require them, and why. The tables describe one version of the CLI, but
#: a class must also accept the lines of older versions and of other agents.
LESS_IS_TAKEN = {
    # older CLIs and some other programs omit these
    "CanUseToolRequest.tool_use_id": "a dialect has only tool_name, input and permission_suggestions",
    "ContextCategory.kind": "claude-agent-sdk does not know it",
    "GetContextUsageResponse.*": "an experimental answer, which may be cut down by `detail`",
    "GetHooksListingResponse.*": "a listing for display; every part may be missing",
    "GetUsageResponse.*": "an experimental answer",
    "InitializeResponse.*": "older CLIs lack some of the lists",
    "McpMessageResponse.mcp_response": "the CLI's answer in the other direction is {}",
    # an agent may acknowledge a request with an empty payload; lists are then empty
    "CancelAsyncMessageResponse.cancelled": "an acknowledgement has no payload",
    "GetTaskOutputResponse.*": "an acknowledgement has no payload",
    "ListPermissionRulesResponse.state": "an acknowledgement has no payload",
    "ReadFileResponse.*": "an acknowledgement has no payload",
    "ReloadPluginsResponse.error_count": "an acknowledgement has no payload",
    "ControlError.error": "a document has it optional",
    "RewindFilesResponse.canRewind": "an acknowledgement has no payload",
    "InterruptResponse.still_queued": "older CLIs answer with {}",
    "SubagentStartHookInput.agent_id": "optional in the base of all hook inputs",
    "SubagentStartHookInput.agent_type": "optional in the base of all hook inputs",
    "TaskUpdatedMessage.patch": "claude-agent-sdk takes the message without it",
    "TaskUpdatedMessage.task_id": "claude-agent-sdk takes the message without it",
    # dialects omit these fields of the API's objects
    "ApiErrorInfo.message": "inferred; never seen",
    "ApiErrorInfo.type": "inferred; never seen",
    "ApiMessage.role": "of an assistant's message only the content is sure",
    "MessageDeltaUsage.output_tokens": "of usage nothing is sure",
    "ModelUsage.*": "a dialect has the counts in snake_case",
    "ThinkingBlock.signature": "claude-agent-sdk alone requires it",
    "Usage.input_tokens": "of usage nothing is sure",
    "Usage.output_tokens": "of usage nothing is sure",
}

MESSAGES = {*STREAM.by_type.values(), *SYSTEM_BY_SUBTYPE.values(), *RESULT_BY_SUBTYPE.values()}


def _allowed(cls: StructType, name: str) -> set[str]:
    """Return the presences that accept a field in the form of every entry of its class."""
    specs = [claim.fields.get(name) for claim in claims_of(cls)]
    found = [spec for spec in specs if spec is not None]
    if name == "subtype" and cls in MESSAGES:
        return {"constant"}
    # If the typings of a version lack the field, that version of the CLI does not write it.
    required = all(spec is not None and spec["required"] and "absent_in_ts" not in spec for spec in specs)
    if name in ("uuid", "session_id") and cls in MESSAGES:
        required = False  # dialects omit them in every message
    nullable = [spec for spec in found if spec["nullable"]]
    if not nullable:
        return {"required" if required else "optional"}
    return {"null", "unset"} if any(spec["required"] for spec in nullable) else {"unset"}


@each("cls", CLASSES)
def test_every_field_has_its_wire_name_and_its_presence(cls: StructType) -> None:
    fields = fields_of(cls)
    wrong = {}
    for name in {name: None for claim in claims_of(cls) for name in claim.fields}:
        if name == cls.__struct_config__.tag_field:
            continue
        presence = presence_of(fields[name]) if name in fields else "missing"
        allowed = _allowed(cls, name)
        path = f"{cls.__name__}.{name}"
        if path in LESS_IS_TAKEN or f"{cls.__name__}.*" in LESS_IS_TAKEN:
            allowed = {"optional"} if allowed == {"required"} else allowed
        if path == "ToolResultBlock.content":
            allowed |= {"unset"}  # one document distinguishes null from absent here
        if presence not in allowed:
            wrong[path] = f"{presence}, not {' or '.join(sorted(allowed))}"
    assert not wrong


def test_every_exception_still_is_one() -> None:
    for path in LESS_IS_TAKEN:
        (cls,) = [cls for cls in CLASSES if cls.__name__ == path.partition(".")[0]]
        names = [path.partition(".")[2]]
        if names == ["*"]:
            names = [name for name in fields_of(cls) if _allowed(cls, name) == {"required"}]
        assert names
        for name in names:
            assert _allowed(cls, name) == {"required"}, path
            assert presence_of(fields_of(cls)[name]) == "optional", path


@each("cls", CLASSES)
def test_every_field_takes_the_null_that_an_entry_may_have(cls: StructType) -> None:
    for claim in claims_of(cls):
        for name, spec in claim.fields.items():
            if (spec["nullable"] or spec.get("py_nullable")) and name != cls.__struct_config__.tag_field:
                hint = fields_of(cls)[name].type
                assert hint is Any or type(None) in get_args(hint), f"{claim.where}: {name}"


@each("cls", CLASSES)
def test_every_constant_is_the_tables(cls: StructType) -> None:
    for claim in walk_of_all().claims[cls]:
        for name, spec in claim.fields.items():
            if name == cls.__struct_config__.tag_field:
                assert cls.__struct_config__.tag in spec["enum"]
            elif name in fields_of(cls) and presence_of(fields_of(cls)[name]) == "constant":
                assert spec["const"] == fields_of(cls)[name].default_factory()


# --- types ------------------------------------------------------------------------------------------------------------

#: Fields whose hint differs from the tables: the part of the table that the hint lacks, and why.
OTHER_HINTS = {
    "AgentDefinition.mcpServers": "string",  # Any: names or whole configurations, which are read as dicts
    "FallbackBlock.trigger": "BetaFallbackRefusalTrigger",  # Any: input blocks have any trigger
    "InitMessage.tools": "any",  # str: no line was found with another item
    "ServerToolUseBlock.input": "map",  # Any: input blocks have any input
}


def test_every_field_has_a_fitting_type() -> None:
    assert walk_of_all().misfits == OTHER_HINTS


# --- fields that no table contains ------------------------------------------------------------------------------------

#: Fields that the CLI or a dialect writes although no table contains them. They must be optional, because no table says
#: when they are present.
UNTABLED_FIELDS: dict[str, set[str]] = {
    "RateLimitInfo": {"unifiedWindows", "dailyCapPaused", "rateLimitGraceActive"},
    "AssistantMessage": {
        "api_error",
        "api_error_code",
        "api_error_origin",
        "api_error_params",
        "api_error_status",
        "api_error_type",
        "error_details",
        "is_api_error_message",
        "local_command_outcome",
        "local_command_run",
        "local_command_source",
        "refused_message_id",
        "thinking_display",
        "thinking_duration_ms",
        "tool_use_meta",
    },
    "CanUseToolRequest": {"server_policy_ask_only"},
    "CancelAsyncMessageResponse": {"message_uuid"},
    "CompactBoundaryMessage": {"logical_parent_uuid"},
    "CompactMetadata": {"cumulative_dropped_tokens"},
    "ControlCancelRequest": {"takes_late_allow", "tool_use_id"},
    "ControlResponse": {"live_only"},
    "ConversationResetMessage": {"user_message_from_human"},
    "FileSuggestionsResponse": {"cwd"},
    "GetContextUsageResponse": {"autocompactSource"},
    "HookProgressMessage": {"backgrounded"},
    "HookStartedMessage": {"label", "origin", "plugin_name"},
    "InformationalMessage": {
        "isMeta",
        "timestamp",
        "hook_no_verdict",
        "model_restriction",
        "prompt_submit_outcome",
        "saved_files",
        "saved_from",
    },
    "InitMessage": {
        "sandbox_enabled",
        "additional_directories",
        "analytics_disabled",
        "client_thinking",
        "cloud_session",
        "flag_restate_noop",
        "footer_indicator",
        "host_dropped_env",
        "mcp_server_errors",
        "memory_paths",
        "messaging_socket_path",
        "original_cwd",
        "per_turn_effort_active",
        "plugin_warnings",
        "powershell_path",
        "product_feedback_disabled",
        "scratchpad_path",
        "served_by_anthropic",
        "startup_timing",
        "synced_skills_path",
        "ultrathink_available",
        "ultrathink_typed_raises",
        "user_message_uuids",
        "worker_epoch",
    },
    "InitPlugin": {"source"},
    "InitializeResponse": {
        "analytics_disabled",
        "capabilities",
        "current_permission_mode",
        "feedback_mode",
        "hooks_when_unanswered_kept",
        "ide_rc_auto_enable_gate",
        "other_hook_ask_outranks_host",
        "pid",
        "remote_control_auto_connect_default",
        "remote_control_auto_enable",
        "remote_control_auto_on_by_default",
        "remote_control_available",
        "sandbox_enabled",
        "session_state",
        "user_output_styles_dir",
    },
    "KeepAlive": {"startup_mark"},
    "McpServerStatus": {"transport"},
    "ModelInfo": {"supportsThinkingOff"},
    "ModelRefusalFallbackMessage": {"api_refusal_cyber_verification", "saw_cyber_refusal"},
    "ModelUsage": {"input_tokens", "output_tokens"},
    "PermissionDeniedMessage": {"decision_reason_code"},
    "PreservedMessages": {"all_uuids"},
    "ReadFileResponse": {"requested_path"},
    "ResultMessage": {
        "api_error",
        "api_error_code",
        "api_error_origin",
        "api_error_type",
        "begun_message_ids",
        "first_request_cache_read_input_tokens",
        "first_request_input_tokens",
        "flag_fetch_kick",
        "frame_enqueued_wall_ms",
        "frame_intake_phases_ms",
        "frame_received_wall_ms",
        "handoff_intake_phases_ms",
        "input_attachments_detail",
        "interrupted_by_shutdown",
        "main_stream_chunk_count",
        "main_stream_count",
        "main_stream_event_count",
        "memory_check_detail",
        "message_normalization_detail",
        "message_undelivered",
        "model_usage_since_last_result",
        "policy_answer",
        "policy_answer_reason",
        "process_anon_mib_result",
        "process_anon_mib_turn_start",
        "process_cpu_ms_between_turns",
        "process_cpu_ms_streaming",
        "process_cpu_ms_turn",
        "process_garbage_collections",
        "process_peak_rss_mib",
        "process_rss_mib_result",
        "process_rss_mib_turn_start",
        "process_start_purge_delay_ms",
        "process_start_tuning",
        "process_turn_index",
        "process_turn_states",
        "process_turn_threads",
        "process_wall_ms_between_turns",
        "process_wall_ms_streaming",
        "process_wall_ms_turn",
        "request_build_detail",
        "restored_rewind",
        "resume_store_confirm_detail",
        "runner_exit",
        "safety_stops",
        "shell_cpu_ms_since_last_result",
        "shell_cpu_ms_turn",
        "shell_wall_ms_since_last_result",
        "stopped_by_permission_check",
        "subagent_stats",
        "text_post_count",
        "text_post_flush_timer_max_late_ms",
        "text_post_gap_over_500ms_count",
        "time_to_request_cpu_ms",
        "time_to_request_loop_lag_ms",
        "time_to_request_major_faults",
        "time_to_request_phases_ms",
        "tool_pool_build_count",
        "tool_pool_build_lapsed_count",
        "tool_pool_limit_ms",
        "tool_pool_moved_at_lapse_count",
        "tool_schema_build_detail",
        "turn_start_control_requests_ms",
        "turn_start_phases_ms",
        "turn_start_resume_kind",
        "turn_started_wall_ms",
        "user_message_server_received_wall_ms",
    },
    "SessionStateChangedMessage": {"sdk_host_only"},
    "StatusMessage": {"compact_output_chars", "resume_held_for_plan", "user_message_uuids"},
    "StreamEvent": {"abandoned_blocks", "api_message_id", "owed_rows", "text_runs_joined", "thinking_display"},
    "TaskNotificationMessage": {"owned_by_subagent", "handback", "handback_report", "summary_is_report"},
    "TaskNotificationOrigin": {"producer"},
    "TaskStartedMessage": {"owned_by_subagent", "awaited"},
    "ToolUseSummaryMessage": {"timestamp"},
    "UserMessage": {
        "interrupted_message_id",
        "plugin_prompt",
        "refused_message_id",
        "retracted_message_uuids",
        "tool_result_meta",
    },
}


@each("cls", CLASSES)
def test_every_other_field_is_listed_and_may_be_absent(cls: StructType) -> None:
    in_tables = {name for claim in claims_of(cls) for name in claim.fields}
    if cls in MESSAGES:
        in_tables |= {"uuid", "session_id"}  # dialects write them in only some messages
    name = "ResultMessage" if issubclass(cls, messages.ResultMessage) else cls.__name__
    own = fields_of(cls).keys() - in_tables
    assert own == UNTABLED_FIELDS.get(name, set())
    assert {presence_of(fields_of(cls)[field]) for field in own} <= {"optional", "unset"}


# --- the walk finds errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "spec", "problem"),
    [
        (str, {"type": "string"}, None),
        (int, {"type": "string"}, "string"),
        (str, {"type": "number", "num": "int"}, "number (int)"),
        (int, {"type": "number", "num": "int"}, None),
        (int, {"type": "number", "num": "float"}, "number (float)"),
        (Union[int, float, None], {"type": "number", "num": "float"}, None),
        (int, {"type": "bool"}, "bool"),
        (str, {"type": "any"}, "any"),
        (list[str], {"type": "array<string>"}, None),
        (list[int], {"type": "array<string>", "items": {"type": "string"}}, "string"),
        (str, {"type": "array<string>"}, "array"),
        (dict[str, Any], {"type": "map<string,any>"}, None),
        (dict[str, str], {"type": "map<string,any>"}, "any"),
        (list[Any], {"type": "map<string,any>"}, "map"),
        (Union[str, list[Any]], {"type": "union<string|array<any>>"}, None),
        (str, {"type": "union<string|array<any>>"}, "array"),
        (dict[str, Any], {"type": "object:ModelUsage"}, "ModelUsage"),
        (messages.ModelUsage, {"type": "object:NoSuchShape"}, "NoSuchShape"),
        (str, {"type": "date"}, "what is date?"),
        (messages.ModelUsage, {"type": "object:ModelUsage"}, None),
        (messages.McpServerProvenance, {"type": "object:ModelUsage"}, None),  # the test of presence finds this one
    ],
)
def test_a_hint_that_does_not_fit_is_found(hint: Any, spec: Spec, problem: str | None) -> None:
    assert Walk().fit(hint, {"name": "field", **spec}, "here") == problem


def test_a_union_without_a_class_for_the_tag_is_found() -> None:
    spec = {"type": "object", "fields": [{"name": "type", "type": "string", "enum": ["wibble"], "const": "wibble"}]}
    assert Walk().fit(BLOCK_HINTS["block"], spec, "here") == "object with fields"
