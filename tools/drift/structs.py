"""Generate the source of Structs for everything new. A person then reviews, renames and moves them.

The source is a module that can be imported. A new field of a known class is in a subclass of that class, so it can be
tried without edits. The types are those of the recorded values. Only tags are required, because other sessions may lack
any other field. Text from the CLI is only in comments and literals, so it cannot become code.
"""

from __future__ import annotations

import keyword
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from claude_wire import messages
from claude_wire.messages.base import Wire
from claude_wire.support.text import is_seen, printable
from drift.typings import Anything, Real, Word
from drift.wire import Drift

__all__ = ["structs_source"]


class _Base(NamedTuple):
    """How to generate a class: the suffix of its name, its base class, and its tag field."""

    suffix: str
    base: str
    tag_field: str
    #: The fields of the base.
    inherited: frozenset[str] = frozenset()


def _fields_of(cls: type[Wire]) -> frozenset[str]:
    return frozenset(cls.__struct_encode_fields__) | {str(cls.__struct_config__.tag_field)}


_BASES = {
    "type": _Base("Message", "MessageBase", "type"),
    "subtype": _Base("Message", "SystemMessage", "subtype", _fields_of(messages.SystemMessage)),
    "result": _Base("Result", "ResultMessage", "subtype", _fields_of(messages.ResultMessage)),
    "block": _Base("Block", "Wire", "type"),
    "event": _Base("Event", "Wire", "type"),
    "delta": _Base("Delta", "Wire", "type"),
    "request": _Base("Request", "ControlRequestBody[dict[str, Any]]", "subtype"),
    "hook event": _Base("HookInput", "HookInputBase", "hook_event_name", _fields_of(messages.HookInputBase)),
    "object": _Base("Object", "Wire", ""),
}

#: Matches a key that can be the name of a field. It begins with a letter, and is a normal Python identifier.
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
#: Names that a field cannot have, because they would hide a type in the hints of later fields.
_IN_HINTS = frozenset(("Any", "Literal", "Number", "bool", "dict", "float", "int", "list", "msgspec", "str"))
#: Objects that are nested deeper than this get no class.
MAX_DEPTH = 10

_IMPORTS = """from __future__ import annotations

from typing import Any, Literal

import msgspec

from claude_wire.messages import *
from claude_wire.messages.base import MessageBase, Number, Wire, constant
from claude_wire.messages.control.request_body import ControlRequestBody
from claude_wire.messages.hooks.tool_inputs import HookInputBase
from claude_wire.messages.system import SystemMessage
"""


def structs_source(drifts: Iterable[Drift], title: str) -> str:
    """Return a module with Structs and fields for everything new in ``drifts``. ``title`` is its first line."""
    writer = _Writer()
    lacking: dict[type[Wire], dict[str, list[Drift]]] = defaultdict(lambda: defaultdict(list))
    others: list[str] = []
    kinds: dict[tuple[str, str, str], list[Drift]] = defaultdict(list)
    for drift in drifts:
        what, name, path, _ = drift.finding
        if drift.change == "new" and drift.owner is not None:
            lacking[drift.owner][name].append(drift)
        elif drift.change == "new" and what in _BASES and name:
            base = "result" if what == "subtype" and path == "result" else what
            kinds[base, name, "" if what != "object" else path].append(drift)
        elif drift.change == "new":
            others.append(f"# Without a Struct: {what} {name} {path} {drift.finding.reason}".rstrip())
    for (what, _, _), same in kinds.items():
        writer.kind(what, same)
    for owner, fields in lacking.items():
        writer.fields(owner, fields)
    comments = [printable(line, keep="") for line in (f"# {title}", *others)]
    elsewhere = [owner for owner in lacking if not hasattr(messages, owner.__name__)]
    imports = _IMPORTS + "".join(f"from {owner.__module__} import {owner.__name__}\n" for owner in elsewhere)
    return "\n".join([*comments, imports, *writer.classes])


def _values(drifts: Iterable[Drift]) -> list[Any]:
    return [value for drift in drifts for value in drift.values]


def _camel(name: str) -> str:
    """Convert a name on the wire to a part of a class name."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    return "".join(word[0].upper() + word[1:] for word in words) or "Unnamed"


class _Writer:
    def __init__(self) -> None:
        #: The source of each class. A class comes after the classes of its fields.
        self.classes: list[str] = []
        self._names: set[str] = set()
        self._depth = 0

    def kind(self, what: str, drifts: Sequence[Drift]) -> None:
        """Write a class for a new type, subtype, block, event, request or other object."""
        base = _BASES[what]
        values = cast("list[dict[str, Any]]", _values(drifts))
        heads = [base.base]
        lines = [f"    # {printable(drifts[0].finding.path, keep='')}: {drifts[0].where}"]
        # The name in a finding is shortened and escaped, so take it from a recorded value.
        name = str(values[0].get(base.tag_field, drifts[0].finding.name))
        if what in ("subtype", "result"):
            lines.append(f"    subtype: Literal[{name!r}] = constant({name!r})")
        elif base.tag_field:
            heads += [f"tag_field={base.tag_field!r}", f"tag={name!r}"]
        cls = self._name(_camel(name).removesuffix(base.suffix) + base.suffix)
        lines += self._fields(cls, values, {*base.inherited, base.tag_field})
        self._class(cls, heads, "To be described.", lines)

    def fields(self, owner: type[Wire], fields: dict[str, list[Drift]]) -> None:
        """Write a subclass of a known class with its new fields."""
        cls = self._name(f"New{owner.__name__}")
        lines: list[str] = []
        for name, drifts in fields.items():
            places = ", ".join(sorted({drift.finding.path for drift in drifts}))
            lines.append(f"    # {printable(places, keep='')}: {drifts[0].where}")
            lines += self._field(cls, name, _values(drifts))
        self._class(cls, [owner.__name__], f"Fields for {owner.__name__}.", lines)

    def _name(self, name: str) -> str:
        name = name if name.isidentifier() else f"X{name}"
        while name in self._names or hasattr(messages, name):
            name += "_"
        self._names.add(name)
        return name

    def _class(self, name: str, heads: Sequence[str], docstring: str, lines: Sequence[str]) -> None:
        arguments = ", ".join([*heads, "kw_only=True", "frozen=True"])
        self.classes.append("\n".join([f"\nclass {name}({arguments}):", f'    """{docstring}"""', "", *lines, ""]))

    def _fields(self, cls: str, values: Sequence[dict[str, Any]], known: Iterable[str] = ()) -> list[str]:
        names = dict.fromkeys(name for value in values for name in value if name not in known)
        return [
            line
            for name in names
            for line in self._field(cls, name, [value[name] for value in values if name in value])
        ]

    def _field(self, cls: str, name: str, values: Sequence[Any]) -> list[str]:
        words = sorted({value for value in values if isinstance(value, Word)})
        lines = [f"    # one of {printable(', '.join(words), keep='')}"] if words else []
        hint = self._hint(cls + _camel(name), values)
        hint = hint if hint == "Any" or hint.endswith("| None") else f"{hint} | None"
        taken = keyword.iskeyword(name) or hasattr(Wire, name) or name in _IN_HINTS
        if _PLAIN_NAME.fullmatch(name) and not taken:
            return [*lines, f"    {name}: {hint} = None"]
        if not is_seen(name) or set(name) & {'"', "\\"}:
            return [f"    # msgspec takes no such name: {name!r}"]
        attribute = f"named_{len(self._names)}_" + "_".join(re.findall(r"[A-Za-z0-9]+", name))
        self._names.add(attribute)
        return [*lines, f"    {attribute}: {hint} = msgspec.field(name={name!r}, default=None)"]

    def _hint(self, cls: str, values: Sequence[Any]) -> str:
        """Return the type hint of these values. ``cls`` is the class name to use for objects among them."""
        given = [value for value in values if value is not None]
        if not given or self._depth == MAX_DEPTH or any(isinstance(value, Anything) for value in given):
            return "Any"
        self._depth += 1
        hints: dict[str, None] = {}
        if any(isinstance(value, bool) for value in given):
            hints["bool"] = None
        if numbers := [value for value in given if isinstance(value, (int, float)) and not isinstance(value, bool)]:
            hints["Number" if any(isinstance(value, (float, Real)) for value in numbers) else "int"] = None
        if any(isinstance(value, str) for value in given):
            hints["str"] = None
        if lists := cast("list[list[Any]]", [value for value in given if isinstance(value, list)]):
            hints[f"list[{self._hint(cls, [item for one in lists for item in one])}]"] = None
        if objects := cast("list[dict[str, Any]]", [value for value in given if isinstance(value, dict)]):
            hints[self._object(cls, objects)] = None
        self._depth -= 1
        return " | ".join([*hints, *(["None"] if len(given) < len(values) else [])])

    def _object(self, cls: str, objects: Sequence[dict[str, Any]]) -> str:
        names = {name for one in objects for name in one}
        # If keys are not identifiers, the object is a mapping with data as keys: paths, ids, names of tools.
        if not names or not all(_PLAIN_NAME.fullmatch(name) for name in names):
            return "dict[str, Any]"
        cls = self._name(cls)
        self._class(cls, ["Wire"], "A part of the class below.", self._fields(cls, objects))
        return cls
