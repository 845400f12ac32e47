"""The protocol tables in ``data/protocol``, and a walk that finds the class for each of their entries.

The tables describe one version of the CLI and the dialects that the library also reads. This module does not repeat the
tables. It finds classes as the decoder does, by type, subtype and tag, and finds nested objects through the fields that
contain them. One class often covers several entries: a block that both sides send in different forms, or a message that
differs between dialects.
"""

from __future__ import annotations

import functools
import json
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from claude_wire import messages
from claude_wire.messages.base import NoOther, Wire, wire_fields
from claude_wire.messages.control import mcp
from claude_wire.messages.tolerant import Findings
from claude_wire.messages.union import MESSAGES, RESULT_BY_SUBTYPE, SYSTEM_BY_SUBTYPE
from folders import DATA

__all__ = [
    "ALL_CLASSES",
    "BLOCKS",
    "BLOCK_HINTS",
    "CLASSES",
    "CLASSES_READ_AS_DICTS",
    "PROTOCOL",
    "REQUESTS",
    "SHAPES",
    "Claim",
    "Spec",
    "StructType",
    "Walk",
    "answer_hint",
    "block_name",
    "choose",
    "claims_of",
    "entry_name",
    "fields_of",
    "hint_of_block",
    "hint_of_entry",
    "parts_of",
    "presence_of",
    "structs_in",
    "walk_of_all",
]


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
def fields_of(cls: StructType) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the fields of a class by wire name, without the tag and the field for unknown keys."""
    return {field.encode_name: field for field in wire_fields(cls)}


def _members(hint: Any) -> list[Any]:
    """Return the members of a union, without None and UNSET."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return [member for member in members if member not in (type(None), msgspec.UnsetType, NoOther)]


def structs_in(hint: Any) -> list[StructType]:
    return [member for member in _members(hint) if isinstance(member, type) and issubclass(member, Wire)]


def _inner(hint: Any, container: type) -> Any:
    """Return the item type of the list or dict in a hint; None if the hint has no such container."""
    for member in _members(hint):
        if member is container:
            return Any
        if get_origin(member) is container:
            return get_args(member)[-1]
    return None


def presence_of(field: msgspec.structs.FieldInfo) -> str:
    """``required``, ``null`` (always written), ``optional`` (left out when None), ``unset`` or ``constant``."""
    if field.required:
        return "required"
    if field.default is msgspec.UNSET:
        return "unset" if msgspec.UnsetType in get_args(field.type) else "broken"
    if field.default is None:
        return "optional" if field.type is Any or type(None) in get_args(field.type) else "broken"
    if field.default == "":
        return "optional"
    if field.default_factory is not msgspec.NODEFAULT:
        return "null" if field.default_factory() is None else "constant"
    return "broken"


# --- which class an entry has -----------------------------------------------------------------------------------------


def _by_tag(hint: Any) -> dict[str, StructType]:
    return {cls.__struct_config__.tag: cls for cls in structs_in(hint)}


def _hint(hint: Any, *path: str) -> Any:
    """Follow field names from a hint through nested classes, and return the type of the last field."""
    for step in path:
        (holder,) = [struct for struct in structs_in(hint) if step in fields_of(struct)]
        hint = fields_of(holder)[step].type
    return hint


REQUESTS = _by_tag(_hint(MESSAGES.by_type["control_request"], "request"))
HOOK_INPUTS = _by_tag(_hint(REQUESTS["hook_callback"], "input"))


def answer_hint(subtype: str) -> Any:
    """Return the payload type of the answer to a request, as ``ControlResponse.payload_as`` uses it."""
    return REQUESTS[subtype].answer_type() if subtype in REQUESTS else None


HOOK_OUTPUTS = _by_tag(_hint(answer_hint("hook_callback"), "hookSpecificOutput"))

_EVENT = _hint(MESSAGES.by_type["stream_event"], "event")
_DELTA = _by_tag(_EVENT)["content_block_delta"]
_ASSISTANT = MESSAGES.by_type["assistant"]
_RESULT = RESULT_BY_SUBTYPE["success"]

#: Kind of an entry in blocks.json (plus its type if the kind is ambiguous) -> its type hint.
BLOCK_HINTS: dict[str, Any] = {
    "block": _inner(_hint(_ASSISTANT, "message", "content"), list),
    "tool_result_item": _inner(
        _hint(_by_tag(_inner(_hint(MESSAGES.by_type["user"], "message", "content"), list))["tool_result"], "content"),
        list,
    ),
    "stream_event": _EVENT,
    "delta": _hint(_DELTA, "delta"),
    "citation": _hint(_by_tag(_hint(_DELTA, "delta"))["citations_delta"], "citation"),
    "message message": _hint(_ASSISTANT, "message"),
    "message user_message_param": _hint(MESSAGES.by_type["user"], "message"),
    "usage usage": _hint(_ASSISTANT, "message", "usage"),
    "usage non_nullable_usage": _hint(_RESULT, "usage"),
    "usage message_delta_usage": _hint(_by_tag(_EVENT)["message_delta"], "usage"),
    "usage model_usage": _inner(_hint(_RESULT, "modelUsage"), dict),
    "usage task_usage": _hint(SYSTEM_BY_SUBTYPE["task_progress"], "usage"),
}


def hint_of_entry(entry: Spec) -> Any:
    """Return the class, or the union with the class, for an entry of protocol.json; None if there is none."""
    at = entry.get("at")
    nested = entry["nested"]
    if at == "request":
        return REQUESTS.get(entry["subtype"])
    if at == "request.input":
        return HOOK_INPUTS.get(nested["request.input.hook_event_name"])
    if at == "response.response.hookSpecificOutput":
        return HOOK_OUTPUTS.get(nested["response.response.hookSpecificOutput.hookEventName"])
    if at == "response.response":
        return answer_hint(nested["answers"])
    if entry["type"] == "system":
        return SYSTEM_BY_SUBTYPE.get(entry["subtype"])
    if entry["type"] == "result":
        return RESULT_BY_SUBTYPE.get(entry["subtype"])
    if entry["type"] == "(none)":
        return MESSAGES.class_of({nested["has"]: True}, Findings())
    return MESSAGES.by_type.get(entry["type"])


def entry_name(entry: Spec) -> str:
    parts = [entry["direction"], entry["type"], entry["subtype"]]
    parts += [f"{key}={value}" for key, value in entry["nested"].items() if value != entry["subtype"]]
    parts += [] if entry["status"] == "typed" else [entry["status"]]
    return " ".join(part for part in parts if part)


def hint_of_block(entry: Spec) -> Any:
    """Return the class, or the union with the class, for an entry of blocks.json; None if there is none."""
    return BLOCK_HINTS.get(entry["kind"]) or BLOCK_HINTS.get(f"{entry['kind']} {entry['type']}")


def block_name(entry: Spec) -> str:
    return " ".join(entry[key] for key in ("side", "kind", "type") if key in entry)


# --- the walk: which class has to take what ---------------------------------------------------------------------------

#: A stdio configuration may omit its tag, so the decoder reads server configurations as dicts. These classes are for
#: writing them.
CLASSES_READ_AS_DICTS: dict[str, list[StructType]] = {
    "McpServerConfigForProcessTransport": structs_in(
        Union[mcp.McpStdioServerConfig, mcp.McpSSEServerConfig, mcp.McpHttpServerConfig, mcp.McpSdkServerConfig]
    ),
    "McpServerStatusConfig": structs_in(
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
    """One form of an object that a class must accept."""

    where: str
    fields: dict[str, Spec]


def _normal(spec: Spec) -> Spec:
    """Return a field's specification with its parts. A few specifications have them only in the text of ``type``."""
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
    """Walk through the tables and the classes in parallel, and collect the forms that each class must accept."""

    def __init__(self) -> None:
        self.claims: dict[StructType, list[Claim]] = defaultdict(list)
        #: Fields with a wrong hint: "Class.field" -> the part of the table that the hint lacks.
        self.misfits: dict[str, str] = {}
        self.shapes: set[str] = set()
        self._seen: set[tuple[StructType, int]] = set()

    def object(self, hint: Any, fields: list[Spec], where: str) -> bool:
        """Visit an object with these fields at a place with this hint. Return False if the hint has no class for it."""
        named = {field["name"]: field for field in fields}
        cls = choose(structs_in(hint), named)
        if cls is None:
            return False
        if (cls, id(fields)) in self._seen:
            return True
        self._seen.add((cls, id(fields)))
        self.claims[cls].append(Claim(where, named))
        for name, spec in named.items():
            if name != cls.__struct_config__.tag_field and name in fields_of(cls):
                problem = self.fit(fields_of(cls)[name].type, spec, f"{where}.{name}")
                if problem:
                    self.misfits[f"{cls.__name__}.{name}"] = problem
        return True

    def fit(self, hint: Any, spec: Spec, where: str) -> str | None:
        """Return None if all values of ``spec`` fit the hint, else the part that does not fit."""
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
            return None if set(structs_in(hint)) == set(structs_in(BLOCK_HINTS["block"])) else "block"
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
            if spec["kind"] == "open":  # any object: a dict, or a union with an unknown object
                return None if _inner(hint, dict) or len(structs_in(hint)) > 1 else ref
        elif ref is not None and ref.endswith(" block"):
            (spec,) = [e for e in BLOCKS if e["type"] == ref.removesuffix(" block") and e["kind"] == "block"]
        elif ref is not None:
            # protocol.json lists the control envelopes under their own names.
            fits = ref == "SDKControlRequest" and structs_in(hint) == [MESSAGES.by_type["control_request"]]
            return None if fits else ref
        if "variants" in spec:
            problems = [self.fit(hint, variant, f"{where}/{index}") for index, variant in enumerate(spec["variants"])]
            return next(filter(None, problems), None)
        if "fields" in spec:
            return None if self.object(hint, spec["fields"], where) else ref or "object with fields"
        return None if _inner(hint, dict) or structs_in(hint) or Any in _members(hint) else "object"


def choose(structs: list[StructType], fields: dict[str, Spec]) -> StructType | None:
    """Choose the class for an object with these fields: by its tag, else the only class that has all the fields."""
    fitting = [cls for cls in structs if _tag_fits(cls, fields)]
    if len(fitting) > 1:
        fitting = [cls for cls in fitting if fields.keys() <= {*fields_of(cls), cls.__struct_config__.tag_field}]
    return fitting[0] if len(fitting) == 1 else None


def _tag_fits(cls: StructType, fields: dict[str, Spec]) -> bool:
    tag_field, tag = cls.__struct_config__.tag_field, cls.__struct_config__.tag
    return tag_field is None or tag in fields.get(tag_field, {}).get("enum", ())


@functools.cache
def walk_of_all() -> Walk:
    walk = Walk()
    for entry in PROTOCOL:
        if entry["fields"]:
            walk.object(hint_of_entry(entry), entry["fields"], entry_name(entry))
    for entry in BLOCKS:
        if entry["kind"] != "enum":
            walk.object(hint_of_block(entry), entry["fields"], block_name(entry))
    return walk


def claims_of(cls: StructType) -> list[Claim]:
    """Return the forms that a class must accept. All result classes share the forms of all results."""
    if issubclass(cls, messages.ResultMessage):
        results = [other for other in walk_of_all().claims if issubclass(other, messages.ResultMessage)]
        return [claim for other in results for claim in walk_of_all().claims[other]]
    return walk_of_all().claims[cls]


CLASSES = sorted(walk_of_all().claims, key=lambda cls: cls.__name__)


def _subclasses(cls: StructType) -> Iterator[StructType]:
    for subclass in cls.__subclasses__():
        if subclass.__module__.startswith("claude_wire.messages."):
            yield subclass
            yield from _subclasses(subclass)


ALL_CLASSES = sorted(set(_subclasses(Wire)), key=lambda cls: cls.__name__)


def parts_of(hint: Any) -> Iterator[Any]:
    yield hint
    for part in get_args(hint):
        yield from parts_of(part)
