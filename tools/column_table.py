"""Describe the columns of ``claude_wire.columns`` in Markdown, for the site's page columns.md."""

from __future__ import annotations

from typing import get_args

from claude_wire.columns.tables import TableName, columns_of, spec


def described() -> str:
    """Return a table with a row for each column: its name, its tables, its type, and where its value is in a line."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for table in get_args(TableName):
        for column in spec(table, columns_of(table)).decode().splitlines():
            if not column.startswith("!"):
                name, kind, rule, *arguments = column.split()
                found.setdefault((name, kind, _in_words(rule, arguments)), []).append(table)
    lines = ["| column | tables | type | value |", "|---|---|---|---|"]
    for (name, kind, value), tables in found.items():
        where = "all" if len(tables) == len(get_args(TableName)) else ", ".join(tables)
        lines.append(f"| `{name}` | {where} | {kind} | {value} |")
    return "\n".join(lines)


def _in_words(rule: str, arguments: list[str]) -> str:
    """Return what ``rust/src/columns/spec.rs`` says about a rule, with the rule's arguments."""
    paths = " or ".join(f"`{path}`" for path in arguments)
    words: dict[str, list[str]] = {}
    if rule == "if":
        for word, path in zip(arguments[::2], arguments[1::2], strict=True):
            words.setdefault(word, []).append(f"`{path}`")
    return {
        "path": "the name of the file; null for bytes",
        "offset": "the bytes of the file before the line",
        "index": "the number of the block in its line, from 0",
        "if": "; ".join(f"`{word}` if the line has {' or '.join(keys)}" for word, keys in words.items()),
        "first": paths,
        "kind": f"{paths}; `text` if the content is a string",
        "joined": f"{paths}: the string, or the texts of the list's text blocks, joined",
    }[rule]
