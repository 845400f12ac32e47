"""Generate ``flags.json``, the CLI's flags and their types, and ``run.json``, the states of a prompt in a run."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from claude_wire import PROTOCOL_VERSION, ClaudeOptions
from claude_wire.flags import kinds
from claude_wire.flags.flags import Flags, flag_of
from claude_wire.protocol import run
from protocol.source import markdown

__all__ = ["flags_table", "run_table"]

#: Kind of a flag -> the JSON Schema of its value, and how to write the value on the command line.
_TYPES: dict[kinds.Kind, tuple[Any, str]] = {
    kinds.BOOL: ({"type": "boolean"}, "the flag alone; left out if false"),
    kinds.BOOL_OR_TEXT: ({"type": ["boolean", "string"]}, "the flag alone, or followed by a string"),
    kinds.TEXT: ({"type": "string"}, "unchanged"),
    kinds.INT: ({"type": "integer"}, "in decimal digits"),
    kinds.NUMBER: ({"type": "number"}, "as in JSON"),
    kinds.LIST: ({"type": "array", "items": {"type": "string"}}, "joined by commas"),
    kinds.PATH: ({"type": "string"}, "a path"),
    kinds.PATHS: ({"type": "array", "items": {"type": "string"}}, "a path; the flag is repeated for each path"),
    kinds.JSON: ({"type": ["object", "string"]}, "as JSON text"),
    kinds.FILE_OR_JSON: ({"type": ["object", "string"]}, "as JSON text, or the path of a file with JSON"),
    kinds.FILES_OR_JSON: (
        {"type": ["object", "string", "array"], "items": {"type": ["object", "string"]}},
        "as JSON text, or the path of a file with JSON; the flag is repeated for each value",
    ),
}


def flags_table() -> dict[str, Any]:
    """Return the CLI's flags that a host may set, in the order in which the library writes them."""
    described = _attributes(ClaudeOptions)
    flags: list[dict[str, Any]] = []
    for field in dataclasses.fields(Flags):
        flag = flag_of(field)
        if flag is None:
            continue
        schema, written = _TYPES[flag.kind]
        bounds = {"minimum": flag.least, "exclusiveMinimum": flag.above}
        limits: dict[str, Any] = {key: bound for key, bound in bounds.items() if bound is not None}
        if flag.known:
            words = {"enum": list(flag.known)}
            schema = {**schema, "items": {**schema["items"], **words}} if "items" in schema else {**schema, **words}
        flags.append(
            {
                "flag": flag.name,
                "field": field.name,
                "value": {**schema, **limits},
                "written": written,
                "joined": flag.joined,
                "value_optional": flag.optional,
                "variadic": flag.variadic,
                "description": described[field.name],
            }
        )
    return {
        "cli": PROTOCOL_VERSION,
        "always": ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"],
        "joined": "Write such a flag as one argument, --flag=value. Do the same if a value begins with a dash.",
        "variadic": "The CLI reads all arguments up to the next flag as values: put another flag or -- after them.",
        "enum": "The CLI refuses other words. A newer CLI may accept more.",
        "flags": flags,
    }


def _attributes(cls: type) -> dict[str, str]:
    """Return attribute -> its description in the docstring's section ``Attributes``, as Markdown."""
    text = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", text, re.MULTILINE)
    return {name: markdown(said) for name, said in found}


def run_table() -> dict[str, Any]:
    """Return a prompt's states, the events that change the state, and the rules that turn messages into events."""
    text = inspect.cleandoc(run.__doc__ or "")
    about, table, rules = re.split(r"^=+ +=+$", text, flags=re.MULTILINE)
    states: dict[str, str] = {}
    for line in table.strip().splitlines():
        name, _, said = line.partition(" ")
        if name:
            states[name] = said.strip()
        else:
            states[next(reversed(states))] += f" {said.strip()}"
    listed = [markdown(rule.strip()) for rule in re.split(r"^\* ", rules, flags=re.MULTILINE)[1:]]
    return {
        "cli": PROTOCOL_VERSION,
        # Omit the last paragraph, which introduces the table, and paragraphs with links to this project's pages.
        "about": [markdown(one) for one in about.strip().split("\n\n")[:-1] if "docs/" not in one],
        "first": run.State.SENT.name,
        "states": {
            state.name: {"final": not run.TRANSITIONS[state], "description": markdown(states[state.name])}
            for state in run.State
        },
        "events": [event.name for event in run.Event],
        "transitions": {
            state.name: {event.name: to.name for event, to in events.items()}
            for state, events in run.TRANSITIONS.items()
        },
        "otherwise": "An event that a state does not list changes nothing.",
        "rules": listed,
        "settle_seconds": run.SETTLE_SECONDS,
    }
