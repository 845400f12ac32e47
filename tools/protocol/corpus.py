"""Generate the corpus: byte streams, and what a decoder must return for each of their lines.

Cases whose names begin with a kind are generated from the schemas. ``streams`` and ``parts`` have handwritten cases for
splitting a stream into lines, for invalid lines and for unknown parts. A test feeds all cases to ``Decoder``.
"""

# JSON values are Any; after isinstance, pyright still sees partially unknown types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from typing import Any

from protocol.cases import Case, kind_of, line_case
from protocol.parts import MISFIT_PARTS, UNKNOWN_PARTS
from protocol.recorded import recorded_lines
from protocol.samples import Form, Samples, misfit_for
from protocol.streams import STREAMS
from protocol.vocabulary import NAMES, LineSchema, Name, answer_classes, answered, unions

__all__ = ["corpus"]

_ABOUT = (
    "Feed `text` (as UTF-8) or the decoded `base64` to a decoder, then close it. `expect` lists its results in order. "
    "`offset` is the byte offset of the line in the stream. `line` is its number: the first is 1, blank lines count."
)
_FORMS: tuple[Form, ...] = ("required", "every key", "null")


def corpus(sides: Mapping[Name, LineSchema]) -> dict[str, Any]:
    """Return the corpus as file name -> content."""
    files: dict[str, list[Case]] = {
        "output": list(_valid(sides["output"])),
        "input": list(_valid(sides["input"])),
        "records": list(_valid(sides["records"])),
        "unknown": list(map(_part, UNKNOWN_PARTS)),
        "misfit": [*map(_part, MISFIT_PARTS), *(case for side in sides.values() for case in _misfits(side))],
        "streams": STREAMS,
    }
    kinds = {case["expect"][0]["kind"] for name in NAMES for case in files[name]}
    files["recorded"] = list(_recorded(kinds))
    made: dict[str, Any] = {name: {"about": _ABOUT, "cases": cases} for name, cases in files.items()}
    answers = [case for side in sides.values() for case in _answers(side)]
    about = "`payload` is `response.response` in an answer. `request` is the subtype of the answered request."
    return {**made, "answers": {"about": about, "cases": answers}}


# --- lines of each kind -----------------------------------------------------------------------------------------------

#: Union -> a line that contains a member of this union. None is replaced by the member.
_AROUND: dict[Name, dict[str, Any]] = {
    "output": {
        "ContentBlock": {"type": "assistant", "message": {"role": "assistant", "content": [None]}},
        "Event": {"type": "stream_event", "event": None},
        "Delta": {"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": None}},
        "ControlRequestPayload": {"type": "control_request", "request_id": "1", "request": None},
        "HookInput": {
            "type": "control_request",
            "request_id": "1",
            "request": {"subtype": "hook_callback", "callback_id": "hook_0", "input": None},
        },
    },
    "input": {
        "ContentBlock": {"type": "user", "message": {"role": "user", "content": [None]}},
        "ControlRequestPayload": {"type": "control_request", "request_id": "1", "request": None},
    },
    "records": {"Attachment": {"type": "attachment", "uuid": "1", "attachment": None}},
}


def _around(line: Any, member: Any) -> Any:
    if isinstance(line, dict):
        return {key: _around(value, member) for key, value in line.items()}
    if isinstance(line, list):
        return [_around(value, member) for value in line]
    return member if line is None else line


def _members(side: LineSchema, union: str) -> list[str]:
    members = next(members for members, name in unions().items() if name == union)
    return [cls.__name__ for cls in side.definitions.classes.values() if cls in members]


def _samples(side: LineSchema, name: str) -> Iterator[tuple[Form, dict[str, Any]]]:
    """Yield the different samples of a definition: with only the required keys, with every key, and with nulls."""
    seen: list[dict[str, Any]] = []
    for form in _FORMS:
        value = Samples(side.schema["$defs"]).of(name, form)
        if value not in seen:
            seen.append(value)
            yield form, value


def _valid(side: LineSchema) -> Iterator[Case]:
    for kind, cls in side.lines.items():
        for form, value in _samples(side, cls.__name__):
            yield line_case(f"{kind}: {form}", side.name, value, "valid", **{"class": cls.__name__})
    for union, line in _AROUND[side.name].items():
        for name in _members(side, union):
            for form, value in _samples(side, name):
                yield line_case(f"{name}: {form}", side.name, _around(line, value), "valid")


def _recorded(kinds: Set[str]) -> Iterator[Case]:
    """Yield a case for each of these kinds that has a recorded line."""
    for schema, kind, line in recorded_lines():
        if kind not in kinds:
            continue
        value = json.loads(line)
        expected = {"verdict": "valid", **kind_of(value), "line": 1, "offset": 0}
        yield {"name": f"{kind}, recorded", "schema": schema, "text": line.decode() + "\n", "expect": [expected]}


# --- lines with a wrong value -----------------------------------------------------------------------------------------


def _spoilt(side: LineSchema, name: str, seen: set[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield samples of a definition in which one key has a wrong value.

    Many definitions share keys. So an optional key is skipped if ``seen`` has the same key with the same schema; other
    optional keys are added to ``seen``.
    """
    seen = set() if seen is None else seen
    definitions = side.schema["$defs"]
    whole = Samples(definitions).of(name, "required")
    for key, schema in definitions[name]["properties"].items():
        if schema is False or "const" in schema or "not" in schema:
            continue  # with another tag, the value would belong to another class
        same = f"{key} { {word: part for word, part in schema.items() if word not in ('description', 'examples')} }"
        if key in whole:
            yield f"without {key}", {other: value for other, value in whole.items() if other != key}
        elif same in seen:
            continue
        else:
            seen.add(same)
        wrong = misfit_for(schema, definitions)
        if wrong is not None:
            yield f"{key} of another type", {**whole, key: wrong}


def _misfits(side: LineSchema) -> Iterator[Case]:
    seen: set[str] = set()
    for kind, cls in side.lines.items():
        for how, value in _spoilt(side, cls.__name__, seen):
            part = {"part": "line", "at": ""}
            yield line_case(f"{kind}: {how}", side.name, value, "misfit", parts=[part])
    for union, line in _AROUND[side.name].items():
        part = {"part": _PARTS[union], "at": _place(line)}
        seen.clear()
        for name in _members(side, union):
            for how, value in _spoilt(side, name, seen):
                yield line_case(f"{name}: {how}", side.name, _around(line, value), "misfit", parts=[part])


_PARTS = {
    "ContentBlock": "block",
    "Event": "event",
    "Delta": "delta",
    "ControlRequestPayload": "request",
    "HookInput": "hook_input",
    "Attachment": "object",
}


def _place(line: Any) -> str:
    """Return the JSON pointer to the None in one of the lines of ``_AROUND``."""
    steps = line.items() if isinstance(line, dict) else enumerate(line) if isinstance(line, list) else ()
    for step, value in steps:
        if value is None:
            return f"/{step}"
        if found := _place(value):
            return f"/{step}{found}"
    return ""


def _part(row: tuple[str, Name, Any, list[tuple[str, str]]]) -> Case:
    name, schema, value, parts = row
    found = [{"part": part, "at": at} for part, at in parts]
    verdict = "misfit" if row in MISFIT_PARTS else "unknown"
    return line_case(name, schema, value, verdict if found else "valid", **({"parts": found} if found else {}))


# --- answers ----------------------------------------------------------------------------------------------------------


def _answers(side: LineSchema) -> Iterator[Case]:
    """Yield cases for the payloads of this side's answers."""
    definitions = side.schema["$defs"]
    for request in answered(side.name):
        subtype = str(request.__struct_config__.tag)
        names = [cls.__name__ for cls in answer_classes(request)]
        for name in names:
            head = {"schema": side.name, "request": subtype, "definition": name}
            for form, value in _samples(side, name):
                yield {"name": f"{name}: {form}", **head, "payload": value, "verdict": "valid"}
            for how, value in _spoilt(side, name):
                if value:  # an empty payload is a valid answer to any request
                    yield {"name": f"{name}: {how}", **head, "payload": value, "verdict": "misfit"}
            for member in _members(side, "HookSpecificOutput") if name == "HookOutput" else ():
                for form, value in _samples(side, member):
                    payload = {"hookSpecificOutput": value}
                    yield {"name": f"{member}: {form}", **head, "payload": payload, "verdict": "valid"}
            if len(names) == 1 and not definitions[name].get("required"):
                yield {"name": f"{name}: empty", **head, "payload": {}, "verdict": "valid"}
