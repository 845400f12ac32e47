"""Generate the JSON files of the folder ``protocol``."""

# JSON values are Any; after isinstance, pyright still sees partially unknown types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from typing import Any

from protocol.corpus import corpus
from protocol.index import index
from protocol.tables import flags_table, run_table
from protocol.vocabulary import schemas

__all__ = ["as_text", "made_files"]


def made_files() -> dict[str, str]:
    """Return path within the folder -> text, for all files except README.md and the changelog."""
    sides = schemas()
    files: dict[str, Any] = {f"{side.name}.schema.json": side.schema for side in sides.values()}
    files |= {"index.json": index(sides), "flags.json": flags_table(), "run.json": run_table()}
    files |= {f"corpus/{name}.json": content for name, content in corpus(sides).items()}
    return {path: as_text(content) for path, content in files.items()}


def as_text(value: Any) -> str:
    """Format JSON with one value per line, so that diffs are small. Short lists and objects stay on one line."""
    return _text(value, "") + "\n"


def _text(value: Any, indent: str) -> str:
    plain = json.dumps(value, ensure_ascii=True)
    if len(indent) + len(plain) <= 100 or not isinstance(value, (dict, list)):
        return plain
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _text(item, inner) for item in value) + f"\n{indent}]"
