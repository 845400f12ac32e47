"""Compare two versions of the folder, and print the changelog entry: ``python -m protocol.compare OLD NEW``."""

# JSON values are Any; after isinstance, pyright still sees partially unknown types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from protocol.schema import UNKNOWN

__all__ = ["compared", "entry_name", "loaded"]

_ABOUT = (
    "The differences between the last folder for CLI {0} and the first folder for CLI {1}. "
    "A difference that was noticed late may be older than {1}."
)
#: The keys to compare in an index entry.
_COMPARED = ("group", "sent_by", "kind", "tags", "answer")
#: Keys of a schema that do not change what it accepts.
_WORDS = ("description", "examples")
#: The beginning of references to definitions for unknown tags.
_OTHER = f"#/$defs/{UNKNOWN}"


def entry_name(entry: Mapping[str, Any]) -> str:
    """Return the file name of a changelog entry."""
    return f"{entry['from']}-{entry['to']}.json"


def compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a changelog entry. Each argument maps a folder's file names to their JSON.

    A new definition is listed without its fields. The entry ignores changed descriptions, and fields whose set of words
    or tags became open or closed.
    """
    before, after = _definitions(old), _definitions(new)
    versions = old["index.json"]["cli"], new["index.json"]["cli"]
    changed: dict[str, dict[str, Any]] = {}
    for name in sorted(before.keys() & after.keys()):
        for change in _changes(before[name], after[name]):
            changed.setdefault(json.dumps(change), {**change, "in": []})["in"].append(name)
    return {
        "from": versions[0],
        "to": versions[1],
        "about": _ABOUT.format(*versions),
        "added": [_named(after[name]) for name in sorted(after.keys() - before.keys())],
        "removed": [_named(before[name]) for name in sorted(before.keys() - after.keys())],
        "changed": list(changed.values()),
        "flags": list(_of_lists(_flags(old), _flags(new))),
    }


def _definitions(files: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return name -> index entry, with the definition from the entry's first schema added as ``schema``."""
    paths = files["index.json"]["schemas"]
    return {
        entry["name"]: {**entry, "schema": files[paths[entry["schemas"][0]]]["$defs"][entry["name"]]}
        for entry in files["index.json"]["definitions"]
    }


def _named(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("name", "group", "kind") if key in entry}


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in _COMPARED:
        if old.get(key) != new.get(key):
            yield {"change": key, "from": old.get(key), "to": new.get(key)}
    before, after = old["schema"], new["schema"]
    yield from _of_lists(_plain(before["properties"]), _plain(after["properties"]))
    for name in sorted(before["properties"].keys() & after["properties"].keys()):
        required = name in before.get("required", ()), name in after.get("required", ())
        if required[0] != required[1]:
            yield {"change": "required" if required[1] else "optional", "field": name}
    words = old.get("open_words", {}), new.get("open_words", {})
    for name in sorted(words[0].keys() & words[1].keys()):
        more, fewer = (sorted(set(words[a][name]) - set(words[b][name])) for a, b in ((1, 0), (0, 1)))
        if more or fewer:
            yield {"change": "words", "field": name, "added": more, "removed": fewer}


def _of_lists(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the changes from the fields of one object to those of another, or from one list of flags to another."""
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield {"change": "new", "field": name, "to": new[name]}
        elif name not in new:
            yield {"change": "gone", "field": name, "from": old[name]}
        elif old[name] != new[name]:
            yield {"change": "type", "field": name, "from": old[name], "to": new[name]}


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return schemas of properties without their descriptions, examples and references to ``AnyOther…`` definitions."""

    def bare(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        plain = {key: bare(item) for key, item in value.items() if key not in _WORDS}
        if "anyOf" in plain:
            choices = [bare(one) for one in plain.pop("anyOf") if not str(one.get("$ref")).startswith(_OTHER)]
            plain |= choices[0] if len(choices) == 1 else {"anyOf": choices}
        return plain

    return {name: bare(value) for name, value in properties.items()}


def _flags(files: Mapping[str, Any]) -> dict[str, Any]:
    return {flag["flag"]: flag["value"] for flag in files["flags.json"]["flags"]}


def loaded(folder: Path) -> dict[str, Any]:
    """Return file name -> JSON, for the schemas and tables of a folder."""
    return {path.name: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}


if __name__ == "__main__":
    print(json.dumps(compared(*map(loaded, map(Path, sys.argv[1:3]))), indent=1))
