"""What the source of a message class says in words: its docstring, and the comments above its fields.

A comment ``#: …`` describes the field below it. ``# one of a, b`` lists the words that the CLI is known to write there.
The set stays open: no class refuses another word.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import NamedTuple

from claude_wire.messages.base import Wire

__all__ = ["FieldNote", "docstring", "field_notes"]


class FieldNote(NamedTuple):
    """The comments above a field."""

    description: str = ""
    #: Known words of an open set.
    words: tuple[str, ...] = ()


_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
_ONE_OF = re.compile(r"one of (?!those of )(.+)")
_SAME_AS = re.compile(r"one of those of (\w+)\.(\w+)")


def docstring(cls: type[Wire]) -> str:
    """The docstring of the class itself in Markdown, each paragraph on one line; empty if it has none."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    return _plain(text) if text and not text.startswith(f"{cls.__name__}(") else ""


def _plain(text: str) -> str:
    text = _ROLE.sub(r"`\1`", text).replace("``", "`")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def field_notes(cls: type[Wire]) -> dict[str, FieldNote]:
    """The notes of all fields that have some, those of base classes included, by the names of their attributes."""
    notes: dict[str, FieldNote] = {}
    for base in reversed(cls.__mro__):
        if base is not Wire and issubclass(base, Wire):
            notes.update(_notes_of_module(sys.modules[base.__module__]).get(base.__name__, {}))
    return notes


@cache
def _notes_of_module(module: ModuleType) -> Mapping[str, Mapping[str, FieldNote]]:
    source = inspect.getsource(module)
    lines = source.splitlines()
    found: dict[str, dict[str, FieldNote]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    note = _note(lines, statement.lineno - 1)
                    if note != FieldNote():
                        found.setdefault(node.name, {})[statement.target.id] = note
    return found


def _note(lines: list[str], at: int) -> FieldNote:
    first = at
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    comments = [line.strip() for line in lines[first:at]]
    described = " ".join(comment[2:].strip() for comment in comments if comment.startswith("#:"))
    text = " ".join(comment[1:].strip() for comment in comments if not comment.startswith("#:"))
    return FieldNote(_plain(described), _words(text))


def _words(text: str) -> tuple[str, ...]:
    if same := _SAME_AS.fullmatch(text):
        owner = next(cls for cls in _all_classes(Wire) if cls.__name__ == same[1])
        return field_notes(owner)[same[2]].words
    listed = _ONE_OF.fullmatch(text)
    return tuple(word.strip() for word in listed[1].split(",")) if listed else ()


def _all_classes(cls: type[Wire]) -> list[type[Wire]]:
    return [cls, *(found for child in cls.__subclasses__() for found in _all_classes(child))]
