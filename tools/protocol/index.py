"""Generate ``index.json``: each definition's group, kind, tags, sender, required keys, open sets and description."""

# JSON values are Any; after isinstance, pyright still sees partially unknown types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from claude_wire import PROTOCOL_VERSION
from claude_wire.messages import ControlRequestBody, ControlRequestPayload
from claude_wire.messages.base import MessageBase, NoOther, Wire, wire_fields
from claude_wire.transcripts.records.base import Record
from protocol.schema import UNKNOWN, Schema, subtype_of
from protocol.source import docstring, field_notes
from protocol.vocabulary import SENDERS, LineSchema, Name, answer_classes, unions

__all__ = ["index"]

#: Union -> the group of its members, and the part of their kinds before the tag.
_GROUPS = {
    "ControlRequestPayload": ("request", "control_request/"),
    "ContentBlock": ("block", ""),
    "Event": ("event", "stream_event/"),
    "Delta": ("delta", "stream_event/content_block_delta/"),
    "HookInput": ("hook_input", ""),
    "HookSpecificOutput": ("hook_output", ""),
    "Attachment": ("attachment", ""),
}

_HEAD = {
    "cli": PROTOCOL_VERSION,
    "schemas": {name: f"{name}.schema.json" for name in ("output", "input", "records")},
    "groups": {
        "message": "A line of the CLI's output or input.",
        "request": "The object `request` of a `control_request`. `answer` lists the definitions of its answer.",
        "answer": "The object `response.response` of a successful `control_response`.",
        "block": "A content block in a message of the user or the model.",
        "event": "The object `event` of a `stream_event`.",
        "delta": "The object `delta` of a `content_block_delta`.",
        "hook_input": "The object `input` of a `hook_callback`.",
        "hook_output": "The object `hookSpecificOutput` in the answer to a `hook_callback`.",
        "record": "A line of a transcript.",
        "attachment": "The object `attachment` of a record of type `attachment`.",
        "part": "Any other object within one of these.",
    },
    "open": "Every object may have more keys. `open_words` lists string fields and their known words. `open_unions` "
    "lists fields with a union, and the union's definition. Newer CLIs may add words and tags.",
}


def index(sides: Mapping[Name, LineSchema]) -> dict[str, Any]:
    """Return the index: some general facts, and an entry for each definition."""
    classes: dict[str, type[Wire]] = {}
    kinds: dict[str, str] = {}
    for side in sides.values():
        classes.update(side.definitions.classes)
        kinds.update({cls.__name__: kind for kind, cls in side.lines.items()})
    groups = _groups(classes)
    entries: list[dict[str, Any]] = []
    for name, cls in sorted(classes.items()):
        group, prefix = groups[name]
        schemas = _schemas_with(name, sides)
        senders = sorted({SENDERS[schema] for schema in schemas})
        sender = senders[0] if len(senders) == 1 else "both"
        entry: dict[str, Any] = {"name": name, "group": group, "schemas": schemas, "sent_by": sender}
        if tags := _tags(cls):
            entry["tags"] = tags
            if group in ("message", "record"):
                entry["kind"] = kinds[name]
            elif prefix:
                entry["kind"] = prefix + next(iter(tags.values()))
        entry |= _fields(cls, sides[schemas[0]].schema["$defs"][name])
        if issubclass(cls, ControlRequestBody):
            entry["answer"] = [one.__name__ for one in answer_classes(cls)]
        entry["when"] = docstring(cls)
        entries.append(entry)
    return {**_HEAD, "unions": dict(_unions(sides)), "definitions": entries}


def _schemas_with(name: str, sides: Mapping[Name, LineSchema]) -> list[Name]:
    """Return the names of the schemas that contain this definition."""
    return [side.name for side in sides.values() if name in side.definitions.schemas]


def _groups(classes: Mapping[str, type[Wire]]) -> dict[str, tuple[str, str]]:
    groups: dict[str, tuple[str, str]] = dict.fromkeys(classes, ("part", ""))
    for members, union in unions().items():
        if union in _GROUPS:
            groups.update({cls.__name__: _GROUPS[union] for cls in members})
    for name, cls in classes.items():
        if issubclass(cls, MessageBase):
            groups[name] = ("message", "")
        elif issubclass(cls, Record):
            groups[name] = ("record", "")
    for request in get_args(ControlRequestPayload):
        for cls in answer_classes(request):
            if groups.get(cls.__name__) == ("part", ""):
                groups[cls.__name__] = ("answer", "")
    return {name: group for name, group in groups.items() if name in classes}


def _tags(cls: type[Wire]) -> dict[str, str]:
    tags: dict[str, str] = {}
    if cls.__struct_config__.tag_field is not None and isinstance(cls.__struct_config__.tag, str):
        tags[cls.__struct_config__.tag_field] = cls.__struct_config__.tag
    if (subtype := subtype_of(cls)) is not None:
        tags["subtype"] = subtype
    return tags


def _fields(cls: type[Wire], schema: Schema) -> dict[str, Any]:
    notes = field_notes(cls)
    words = {f.encode_name: list(notes[f.name].words) for f in wire_fields(cls) if f.name in notes}
    open_words = {name: known for name, known in words.items() if known}
    open_unions = {key: ref for key, value in schema["properties"].items() if (ref := _union_in(value))}
    return {
        "required": schema.get("required", []),
        **({"open_words": open_words} if open_words else {}),
        **({"open_unions": open_unions} if open_unions else {}),
    }


def _union_in(schema: Any) -> str:
    """Return the open union in a field's schema, even if it is in a list or an object; empty if there is no union."""
    if not isinstance(schema, dict):
        return ""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return name if name in unions().values() else name if name.startswith(UNKNOWN) else ""
    inner = [*schema.get("anyOf", []), schema.get("items"), schema.get("additionalProperties")]
    return next(filter(None, map(_union_in, inner)), "")


def _unions(sides: Mapping[Name, LineSchema]) -> Iterator[tuple[str, Any]]:
    named = {name: members for members, name in unions().items()}
    for name in sorted(named):
        schemas = _schemas_with(name, sides)
        if schemas:
            configs = {cls.__name__: cls.__struct_config__ for cls in named[name] if cls is not NoOther}
            tag_field = next(iter(configs.values())).tag_field
            tags = {str(config.tag): cls for cls, config in configs.items()}
            yield name, {"schemas": schemas, "tag": tag_field, "members": dict(sorted(tags.items()))}
