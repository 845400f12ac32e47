"""The message classes say what the protocol's tables say: every entry, every field, its name, presence and type.

The tables in ``data/protocol`` describe one version of the CLI and the dialects that the library also reads. Nothing
here repeats them: classes are found as the decoder finds them, by type, subtype and tag, and nested objects through
the fields that hold them. A new version of the protocol is a new version of the tables; what this module then lists
is what there is to do.

One class often stands for several entries: a block for its form on either side of the conversation, a message for its
forms in several dialects. It has to take them all, so a field is required only if every entry requires it.
"""

from __future__ import annotations

import functools
import json
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
import pytest

import claude_wire
from claude_wire import messages
from claude_wire.messages.base import Wire
from claude_wire.messages.control import mcp
from claude_wire.messages.tolerant import Findings
from claude_wire.messages.union import BY_TYPE, RESULT_BY_SUBTYPE, SYSTEM_BY_SUBTYPE, message_class
from each import each
from folders import DATA

Spec = dict[str, Any]
StructType = type[Wire]

TABLES = DATA / "protocol"


@functools.cache
def _table(name: str) -> list[Spec]:
    table: list[Spec] = json.loads((TABLES / f"{name}.json").read_bytes())
    return table


PROTOCOL = _table("protocol")
BLOCKS = _table("blocks")
SHAPES = {shape["name"]: shape for shape in _table("shapes")}

# --- type hints -------------------------------------------------------------------------------------------------------


@functools.cache
def _fields(cls: StructType) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields of a class by their names on the wire, without its tag, and without the place for other keys."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(cls)}
    if cls.keeps_extra:
        del fields["extra"]
    return fields


def _members(hint: Any) -> list[Any]:
    """The alternatives of a hint, but for null and absent."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return [member for member in members if member not in (type(None), msgspec.UnsetType)]


def _structs(hint: Any) -> list[StructType]:
    return [member for member in _members(hint) if isinstance(member, type) and issubclass(member, Wire)]


def _inner(hint: Any, container: type) -> Any:
    """What is in the hint's list or dict; None if it has neither."""
    for member in _members(hint):
        if member is container:
            return Any
        if get_origin(member) is container:
            return get_args(member)[-1]
    return None


def _presence(field: msgspec.structs.FieldInfo) -> str:
    """``required``, ``null`` (always written), ``optional`` (left out when None), ``unset`` or ``constant``."""
    if field.required:
        return "required"
    if field.default is msgspec.UNSET:
        return "unset" if msgspec.UnsetType in get_args(field.type) else "broken"
    if field.default is None:
        return "optional" if field.type is Any or type(None) in get_args(field.type) else "broken"
    if field.default_factory is not msgspec.NODEFAULT:
        return "null" if field.default_factory() is None else "constant"
    return "broken"


# --- which class an entry has -----------------------------------------------------------------------------------------


def _by_tag(hint: Any) -> dict[str, StructType]:
    return {cls.__struct_config__.tag: cls for cls in _structs(hint)}


def _hint(hint: Any, *path: str) -> Any:
    """The hint of a field, of a field of the class it holds, and so on."""
    for step in path:
        (holder,) = [struct for struct in _structs(hint) if step in _fields(struct)]
        hint = _fields(holder)[step].type
    return hint


REQUESTS = _by_tag(_hint(BY_TYPE["control_request"], "request"))
HOOK_INPUTS = _by_tag(_hint(REQUESTS["hook_callback"], "input"))


def _answer(subtype: str) -> Any:
    """The type of the payload in the answer to a request, as ``ControlResponse.payload_as`` reads it."""
    if subtype not in REQUESTS:
        return None
    (base,) = REQUESTS[subtype].__orig_bases__
    answer = get_args(base)[0]
    return getattr(messages, answer) if isinstance(answer, str) else answer


HOOK_OUTPUTS = _by_tag(_hint(_answer("hook_callback"), "hookSpecificOutput"))

_EVENT = _hint(BY_TYPE["stream_event"], "event")
_DELTA = _by_tag(_EVENT)["content_block_delta"]
_ASSISTANT = BY_TYPE["assistant"]
_RESULT = RESULT_BY_SUBTYPE["success"]

#: What an entry of blocks.json is, by its kind (and where that leaves several, its type).
BLOCK_HINTS: dict[str, Any] = {
    "block": _inner(_hint(_ASSISTANT, "message", "content"), list),
    "tool_result_item": _inner(
        _hint(_by_tag(_inner(_hint(BY_TYPE["user"], "message", "content"), list))["tool_result"], "content"), list
    ),
    "stream_event": _EVENT,
    "delta": _hint(_DELTA, "delta"),
    "citation": _hint(_by_tag(_hint(_DELTA, "delta"))["citations_delta"], "citation"),
    "message message": _hint(_ASSISTANT, "message"),
    "message user_message_param": _hint(BY_TYPE["user"], "message"),
    "usage usage": _hint(_ASSISTANT, "message", "usage"),
    "usage non_nullable_usage": _hint(_RESULT, "usage"),
    "usage message_delta_usage": _hint(_by_tag(_EVENT)["message_delta"], "usage"),
    "usage model_usage": _inner(_hint(_RESULT, "modelUsage"), dict),
    "usage task_usage": _hint(SYSTEM_BY_SUBTYPE["task_progress"], "usage"),
}


def _hint_of_entry(entry: Spec) -> Any:
    """The class, or the union with the class, that an entry of protocol.json describes; None if there is none."""
    at = entry.get("at")
    nested = entry["nested"]
    if at == "request":
        return REQUESTS.get(entry["subtype"])
    if at == "request.input":
        return HOOK_INPUTS.get(nested["request.input.hook_event_name"])
    if at == "response.response.hookSpecificOutput":
        return HOOK_OUTPUTS.get(nested["response.response.hookSpecificOutput.hookEventName"])
    if at == "response.response":
        return _answer(nested["answers"])
    if entry["type"] == "system":
        return SYSTEM_BY_SUBTYPE.get(entry["subtype"])
    if entry["type"] == "result":
        return RESULT_BY_SUBTYPE.get(entry["subtype"])
    if entry["type"] == "(none)":
        return message_class({nested["has"]: True}, Findings())
    return BY_TYPE.get(entry["type"])


def _entry_name(entry: Spec) -> str:
    parts = [entry["direction"], entry["type"], entry["subtype"]]
    parts += [f"{key}={value}" for key, value in entry["nested"].items() if value != entry["subtype"]]
    parts += [] if entry["status"] == "typed" else [entry["status"]]
    return " ".join(part for part in parts if part)


def _hint_of_block(entry: Spec) -> Any:
    """The class, or the union with the class, that an entry of blocks.json describes; None if there is none."""
    return BLOCK_HINTS.get(entry["kind"]) or BLOCK_HINTS.get(f"{entry['kind']} {entry['type']}")


def _block_name(entry: Spec) -> str:
    return " ".join(entry[key] for key in ("side", "kind", "type") if key in entry)


# --- the walk: which class has to take what ---------------------------------------------------------------------------

#: A stdio configuration may leave its tag out, so servers are read as dicts; these classes are for writing them.
CLASSES_READ_AS_DICTS: dict[str, list[StructType]] = {
    "McpServerConfigForProcessTransport": _structs(
        Union[mcp.McpStdioServerConfig, mcp.McpSSEServerConfig, mcp.McpHttpServerConfig, mcp.McpSdkServerConfig]
    ),
    "McpServerStatusConfig": _structs(
        Union[
            mcp.McpStdioServerConfig,
            mcp.McpSSEServerConfig,
            mcp.McpHttpServerConfig,
            mcp.McpSdkServerConfig,
            mcp.McpClaudeAIProxyServerConfig,
        ]
    ),
}


class Claim(NamedTuple):
    """One form of an object that a class has to take."""

    where: str
    fields: dict[str, Spec]


def _normal(spec: Spec) -> Spec:
    """A field's specification with its parts, which a few have only in the spelling of ``type``."""
    kind = spec.get("type", "object")
    if "items" in spec or "values" in spec or "anyOf" in spec or "fields" in spec or "variants" in spec:
        return spec
    for container, part in (("array", "items"), ("map", "values"), ("union", "anyOf")):
        if kind.startswith(f"{container}<"):
            inside = kind[len(container) + 1 : -1]
            if part == "anyOf":
                return {**spec, part: [{"type": alternative} for alternative in inside.split("|")]}
            return {**spec, part: {"type": inside.removeprefix("string,") if part == "values" else inside}}
    if kind.startswith("object:"):
        return {**spec, "type": "object", "ref": kind.removeprefix("object:")}
    return spec


class Walk:
    """Goes through the tables and the classes side by side, and notes what each class has to take."""

    def __init__(self) -> None:
        self.claims: dict[StructType, list[Claim]] = defaultdict(list)
        #: Fields whose hint does not fit: "Class.field" -> what the table has and the hint has not.
        self.misfits: dict[str, str] = {}
        self.shapes: set[str] = set()
        self._seen: set[tuple[StructType, int]] = set()

    def object(self, hint: Any, fields: list[Spec], where: str) -> bool:
        """An object with these fields, where a value of that hint stands. False if the hint has no class for it."""
        named = {field["name"]: field for field in fields}
        cls = _choose(_structs(hint), named)
        if cls is None:
            return False
        if (cls, id(fields)) in self._seen:
            return True
        self._seen.add((cls, id(fields)))
        self.claims[cls].append(Claim(where, named))
        for name, spec in named.items():
            if name != cls.__struct_config__.tag_field and name in _fields(cls):
                problem = self.fit(_fields(cls)[name].type, spec, f"{where}.{name}")
                if problem:
                    self.misfits[f"{cls.__name__}.{name}"] = problem
        return True

    def fit(self, hint: Any, spec: Spec, where: str) -> str | None:
        """Whether values by ``spec`` fit the hint: None, or what does not."""
        spec = _normal(spec)
        kind = spec.get("type", "object").partition("<")[0].partition(":")[0]
        members = _members(hint)
        if kind == "any":
            return None if Any in members else "any"
        if kind == "string":
            fits = str in members or any(get_origin(m) is Literal and spec.get("const") in get_args(m) for m in members)
            return None if fits else "string"
        if kind in ("number", "int"):
            fits = int in members and (float in members or spec.get("num") != "float")
            return None if fits else f"number ({spec.get('num', kind)})"
        if kind == "bool":
            fits = bool in members or any(
                get_origin(m) is Literal and spec.get("const") in get_args(m) for m in members
            )
            return None if fits else "bool"
        if kind in ("array", "map"):
            inner = _inner(hint, list if kind == "array" else dict)
            if inner is None:
                return kind
            part = spec["items" if kind == "array" else "values"]
            return self.fit(inner, part, f"{where}[]")
        if kind == "block":
            return None if set(_structs(hint)) == set(_structs(BLOCK_HINTS["block"])) else "block"
        if kind == "union":
            problems = [self.fit(hint, alternative, where) for alternative in spec["anyOf"]]
            return next(filter(None, problems), None)
        return self._fit_object(hint, spec, where) if kind == "object" else f"what is {kind}?"

    def _fit_object(self, hint: Any, spec: Spec, where: str) -> str | None:
        ref = spec.get("ref")
        if ref in CLASSES_READ_AS_DICTS:
            if _inner(hint, dict) is None:
                return ref
            hint = Union[tuple(CLASSES_READ_AS_DICTS[ref])]
        if ref is not None and ref in SHAPES:
            self.shapes.add(ref)
            spec = SHAPES[ref]
            where = ref
            if spec["kind"] == "open":  # any object: a dict, or what decodes to an unknown object
                return None if _inner(hint, dict) or len(_structs(hint)) > 1 else ref
        elif ref is not None and ref.endswith(" block"):
            (spec,) = [e for e in BLOCKS if e["type"] == ref.removesuffix(" block") and e["kind"] == "block"]
        elif ref is not None:
            # The control envelopes stand under their own names in protocol.json.
            fits = ref == "SDKControlRequest" and _structs(hint) == [BY_TYPE["control_request"]]
            return None if fits else ref
        if "variants" in spec:
            problems = [self.fit(hint, variant, f"{where}/{index}") for index, variant in enumerate(spec["variants"])]
            return next(filter(None, problems), None)
        if "fields" in spec:
            return None if self.object(hint, spec["fields"], where) else ref or "object with fields"
        return None if _inner(hint, dict) or _structs(hint) or Any in _members(hint) else "object"


def _choose(structs: list[StructType], fields: dict[str, Spec]) -> StructType | None:
    """The class of an object with these fields: by its tag, and if several classes have none, the one with them all."""
    fitting = [cls for cls in structs if _tag_fits(cls, fields)]
    if len(fitting) > 1:
        fitting = [cls for cls in fitting if fields.keys() <= {*_fields(cls), cls.__struct_config__.tag_field}]
    return fitting[0] if len(fitting) == 1 else None


def _tag_fits(cls: StructType, fields: dict[str, Spec]) -> bool:
    tag_field, tag = cls.__struct_config__.tag_field, cls.__struct_config__.tag
    return tag_field is None or tag in fields.get(tag_field, {}).get("enum", ())


@functools.cache
def _walk() -> Walk:
    walk = Walk()
    for entry in PROTOCOL:
        if entry["fields"]:
            walk.object(_hint_of_entry(entry), entry["fields"], _entry_name(entry))
    for entry in BLOCKS:
        if entry["kind"] != "enum":
            walk.object(_hint_of_block(entry), entry["fields"], _block_name(entry))
    return walk


def _claims(cls: StructType) -> list[Claim]:
    """What a class has to take. Results are one class in many forms: what one of them has, the others may have."""
    if issubclass(cls, messages.ResultMessage):
        results = [other for other in _walk().claims if issubclass(other, messages.ResultMessage)]
        return [claim for other in results for claim in _walk().claims[other]]
    return _walk().claims[cls]


# --- every entry has its class ----------------------------------------------------------------------------------------


@each("entry", PROTOCOL, _entry_name)
def test_every_entry_of_the_protocol_has_its_class(entry: Spec) -> None:
    hint = _hint_of_entry(entry)
    if entry["fields"]:
        assert _choose(_structs(hint), {field["name"]: field for field in entry["fields"]}) is not None
    else:  # the answer to a request that is known by its keys at best: anything goes, and so does nothing
        assert entry["at"] == "response.response"
        REQUESTS[entry["nested"]["answers"]].parse_answer({})


@each("entry", [entry for entry in BLOCKS if entry["kind"] != "enum"], _block_name)
def test_every_block_event_delta_and_usage_has_its_class(entry: Spec) -> None:
    fields = {field["name"]: field for field in entry["fields"]}
    assert _choose(_structs(_hint_of_block(entry)), fields) is not None


def test_every_named_shape_is_reached_from_an_entry() -> None:
    assert _walk().shapes == SHAPES.keys()


def _reached() -> set[StructType]:
    """The classes in the union of all messages and in the answers to requests, and those in their fields."""
    todo: list[Any] = [claude_wire.Message, *map(_answer, REQUESTS), *CLASSES_READ_AS_DICTS.values()]
    reached: set[StructType] = set()
    while todo:
        hint = todo.pop()
        for part in hint if isinstance(hint, list) else _parts(hint):
            if isinstance(part, type) and issubclass(part, Wire) and part not in reached:
                reached.add(part)
                todo += [field.type for field in msgspec.structs.fields(part)]
    return reached


def _tagged() -> Iterator[StructType]:
    """The classes that a tag or a subtype stands for, without the bases of others."""
    for cls in ALL_CLASSES:
        if cls.__struct_config__.tag is not None and not cls.__subclasses__() and not cls.__name__.startswith("_"):
            yield cls


def test_every_tagged_class_is_in_a_union() -> None:
    reached = _reached()
    assert [cls.__name__ for cls in _tagged() if cls not in reached] == []


#: What the CLI writes or takes though no table has it.
UNTABLED_CLASSES = {
    "CommandLifecycleMessage",
    "EndSessionRequest",
    "ExportConversationRequest",
    "GenerateSessionTitleRequest",
    "GetMemoryDialogRequest",
    "GetPlanRequest",
    "GetStatusRequest",
    "GetWorkspaceDiffRequest",
    "ModelFallbackMessage",
    "SessionTitleChangedMessage",
    "SetCwdRequest",
    "SetPromptSuggestionsPausedRequest",
    "SideQuestionRequest",
    "SubmitFeedbackRequest",
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

#: Where a class takes less than its entries promise, and why. Anything else has the presence of the tables, which are
#: one CLI's: the class has to take what older ones and other agents write, too.
LESS_IS_TAKEN = {
    # what older CLIs and some writers leave out
    "CanUseToolRequest.tool_use_id": "a dialect has only tool_name, input and permission_suggestions",
    "ContextCategory.kind": "claude-agent-sdk does not know it",
    "GetContextUsageResponse.*": "an experimental answer, which may be cut down by `detail`",
    "GetHooksListingResponse.*": "a listing for display; every part may be missing",
    "GetUsageResponse.*": "an experimental answer",
    "InitializeResponse.*": "older CLIs lack some of the lists",
    "McpMessageResponse.mcp_response": "the CLI's answer in the other direction is {}",
    "InterruptResponse.still_queued": "older CLIs answer with {}",
    "SubagentStartHookInput.agent_id": "optional in the base of all hook inputs",
    "SubagentStartHookInput.agent_type": "optional in the base of all hook inputs",
    "TaskUpdatedMessage.patch": "claude-agent-sdk takes the message without it",
    "TaskUpdatedMessage.task_id": "claude-agent-sdk takes the message without it",
    # what dialects leave out of the API's objects
    "ApiErrorInfo.message": "inferred; never seen",
    "ApiErrorInfo.type": "inferred; never seen",
    "ApiMessage.role": "of an assistant's message only the content is sure",
    "MessageDeltaUsage.output_tokens": "of usage nothing is sure",
    "ModelUsage.*": "a dialect has the counts in snake_case",
    "ThinkingBlock.signature": "claude-agent-sdk alone requires it",
    "Usage.input_tokens": "of usage nothing is sure",
    "Usage.output_tokens": "of usage nothing is sure",
}

#: Optional and nullable, but null says no more than absent: the 2.1.7 CLI writes it where others write nothing.
NULL_IS_NONE = {"AssistantMessage.error", "AuthStatusMessage.error"}

MESSAGES = {*BY_TYPE.values(), *SYSTEM_BY_SUBTYPE.values(), *RESULT_BY_SUBTYPE.values()}


def _allowed(cls: StructType, name: str) -> set[str]:
    """The presences that take a field as all entries of its class have it."""
    specs = [claim.fields.get(name) for claim in _claims(cls)]
    found = [spec for spec in specs if spec is not None]
    if name == "subtype" and cls in MESSAGES:
        return {"constant"}
    # Versions of the typings without the field are versions of the CLI without it.
    required = all(spec is not None and spec["required"] and "absent_in_ts" not in spec for spec in specs)
    if name in ("uuid", "session_id") and cls in MESSAGES:
        required = False  # dialects leave them out everywhere
    nullable = [spec for spec in found if spec["nullable"]]
    if not nullable:
        return {"required" if required else "optional"}
    return {"null", "unset"} if any(spec["required"] for spec in nullable) else {"unset"}


CLASSES = sorted(_walk().claims, key=lambda cls: cls.__name__)


@each("cls", CLASSES)
def test_every_field_has_its_wire_name_and_its_presence(cls: StructType) -> None:
    fields = _fields(cls)
    wrong = {}
    for name in {name: None for claim in _claims(cls) for name in claim.fields}:
        if name == cls.__struct_config__.tag_field:
            continue
        presence = _presence(fields[name]) if name in fields else "missing"
        allowed = _allowed(cls, name)
        path = f"{cls.__name__}.{name}"
        if path in LESS_IS_TAKEN or f"{cls.__name__}.*" in LESS_IS_TAKEN:
            allowed = {"optional"} if allowed == {"required"} else allowed
        if path in NULL_IS_NONE:
            allowed = {"optional"}
        if presence not in allowed:
            wrong[path] = f"{presence}, not {' or '.join(sorted(allowed))}"
    assert not wrong


def test_every_exception_still_is_one() -> None:
    for path in LESS_IS_TAKEN:
        (cls,) = [cls for cls in CLASSES if cls.__name__ == path.partition(".")[0]]
        names = [path.partition(".")[2]]
        if names == ["*"]:
            names = [name for name in _fields(cls) if _allowed(cls, name) == {"required"}]
        assert names
        for name in names:
            assert _allowed(cls, name) == {"required"}, path
            assert _presence(_fields(cls)[name]) == "optional", path
    for path in NULL_IS_NONE:
        (cls,) = [cls for cls in CLASSES if cls.__name__ == path.partition(".")[0]]
        assert _allowed(cls, path.partition(".")[2]) == {"unset"}


@each("cls", CLASSES)
def test_every_field_takes_the_null_that_an_entry_may_have(cls: StructType) -> None:
    for claim in _claims(cls):
        for name, spec in claim.fields.items():
            if (spec["nullable"] or spec.get("py_nullable")) and name != cls.__struct_config__.tag_field:
                hint = _fields(cls)[name].type
                assert hint is Any or type(None) in get_args(hint), f"{claim.where}: {name}"


@each("cls", CLASSES)
def test_every_constant_is_the_tables(cls: StructType) -> None:
    for claim in _walk().claims[cls]:
        for name, spec in claim.fields.items():
            if name == cls.__struct_config__.tag_field:
                assert cls.__struct_config__.tag in spec["enum"]
            elif name in _fields(cls) and _presence(_fields(cls)[name]) == "constant":
                assert spec["const"] == _fields(cls)[name].default_factory()


# --- types ------------------------------------------------------------------------------------------------------------

#: Fields whose hint is another than the tables', and why.
OTHER_HINTS = {
    "AgentDefinition.mcpServers": "string",  # Any: names or whole configurations, which are read as dicts
    "FallbackBlock.trigger": "BetaFallbackRefusalTrigger",  # Any: input blocks have any trigger
    "InitMessage.tools": "any",  # str: the dialect with a list of unknown items shows none of them
    "ServerToolUseBlock.input": "map",  # Any: input blocks have any input
}


def test_every_field_has_a_fitting_type() -> None:
    assert _walk().misfits == OTHER_HINTS


# --- fields that no table has -----------------------------------------------------------------------------------------

#: What the CLI or a dialect writes though no table has it. Such a field may be absent: nothing says when it is there.
UNTABLED_FIELDS: dict[str, set[str]] = {
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
        "hook_no_verdict",
        "model_restriction",
        "prompt_submit_outcome",
        "saved_files",
        "saved_from",
    },
    "InitMessage": {
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
    "TaskNotificationMessage": {"handback", "handback_report", "summary_is_report"},
    "TaskNotificationOrigin": {"producer"},
    "TaskStartedMessage": {"awaited"},
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
    in_tables = {name for claim in _claims(cls) for name in claim.fields}
    if cls in MESSAGES:
        in_tables |= {"uuid", "session_id"}  # of dialects, some messages have them and some do not
    name = "ResultMessage" if issubclass(cls, messages.ResultMessage) else cls.__name__
    own = _fields(cls).keys() - in_tables
    assert own == UNTABLED_FIELDS.get(name, set())
    assert {_presence(_fields(cls)[field]) for field in own} <= {"optional", "unset"}


# --- all classes ------------------------------------------------------------------------------------------------------


def _subclasses(cls: StructType) -> Iterator[StructType]:
    for subclass in cls.__subclasses__():
        if subclass.__module__.startswith("claude_wire.messages."):
            yield subclass
            yield from _subclasses(subclass)


ALL_CLASSES = sorted(set(_subclasses(Wire)), key=lambda cls: cls.__name__)


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in get_args(hint):
        yield from _parts(part)


def test_every_class_of_the_tables_is_among_all_classes() -> None:
    assert set(CLASSES) <= set(ALL_CLASSES)
    assert not [name for name, times in Counter(cls.__name__ for cls in ALL_CLASSES).items() if times > 1]


@each("cls", ALL_CLASSES)
def test_no_field_can_hold_memory_that_is_not_its_own(cls: StructType) -> None:
    for field in msgspec.structs.fields(cls):
        assert not {msgspec.Raw, memoryview, bytes, bytearray} & set(_parts(field.type)), field.name


@each("cls", ALL_CLASSES)
def test_every_class_is_immutable_and_left_out_of_garbage_collection(cls: StructType) -> None:
    config = cls.__struct_config__
    assert (config.frozen, config.gc, config.omit_defaults) == (True, False, True)
    assert not config.forbid_unknown_fields
    assert not config.array_like


PUBLIC = sorted(set(messages.__all__))


def _is_class(value: object) -> bool:
    return isinstance(value, type) and type(value) is not types.GenericAlias  # which Python 3.10 takes for a class


@each("name", [name for name in PUBLIC if _is_class(getattr(messages, name))], str)
def test_every_public_class_says_what_it_is(name: str) -> None:
    cls = getattr(messages, name)
    assert getattr(claude_wire, name) is cls
    assert (vars(cls).get("__doc__") or "").strip().endswith((".", "::", '"', "`"))


def test_every_class_of_the_tables_is_public() -> None:
    assert {cls.__name__ for cls in CLASSES} <= set(PUBLIC)


def test_no_name_is_public_twice() -> None:
    assert len(PUBLIC) == len(messages.__all__)


# --- the walk can tell ------------------------------------------------------------------------------------------------


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
        (messages.McpServerProvenance, {"type": "object:ModelUsage"}, None),  # its presence test finds no field of it
    ],
)
def test_a_hint_that_does_not_fit_is_found(hint: Any, spec: Spec, problem: str | None) -> None:
    assert Walk().fit(hint, {"name": "field", **spec}, "here") == problem


def test_a_union_without_a_class_for_the_tag_is_found() -> None:
    spec = {"type": "object", "fields": [{"name": "type", "type": "string", "enum": ["wibble"], "const": "wibble"}]}
    assert Walk().fit(BLOCK_HINTS["block"], spec, "here") == "object with fields"
