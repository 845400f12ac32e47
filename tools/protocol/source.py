"""Read the docstrings of message classes and of their fields from the source code.

A string after a field is the field's docstring. A comment ``# one of a, b`` above a field lists the words that the CLI
is known to write there. Classes also accept other words.
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

__all__ = ["FieldNote", "docstring", "field_notes", "markdown"]


class FieldNote(NamedTuple):
    """A field's docstring, and the words in the comment above the field."""

    description: str = ""
    #: The words that the CLI is known to write. Newer CLIs may write others.
    words: tuple[str, ...] = ()


_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
_ONE_OF = re.compile(r"one of (?!those of )(.+)")
_SAME_AS = re.compile(r"one of those of (\w+)\.(\w+)")


def docstring(cls: type[Wire]) -> str:
    """Return the class's docstring as Markdown, with one line per paragraph; empty if the class has none."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    return markdown(text) if text and not text.startswith(f"{cls.__name__}(") else ""


def markdown(text: str) -> str:
    """Convert a docstring from reStructuredText to Markdown, with one line per paragraph."""
    text = _ROLE.sub(r"`\1`", text).replace("``", "`")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def field_notes(cls: type[Wire]) -> dict[str, FieldNote]:
    """Return attribute name -> note, for all fields that have a note, including inherited fields."""
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
            for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    note = FieldNote(_docstring_in(after), _words_above(lines, statement.lineno - 1))
                    if note != FieldNote():
                        found.setdefault(node.name, {})[statement.target.id] = note
    return found


def _docstring_in(statement: ast.stmt | None) -> str:
    """Return the docstring if the statement is a string; empty for any other statement."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return markdown(inspect.cleandoc(str(statement.value.value)))
    return ""


def _words_above(lines: list[str], at: int) -> tuple[str, ...]:
    first = at
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return _words(" ".join(line.strip()[1:].strip() for line in lines[first:at]))


def _words(text: str) -> tuple[str, ...]:
    if same := _SAME_AS.fullmatch(text):
        owner = next(cls for cls in _all_classes(Wire) if cls.__name__ == same[1])
        return field_notes(owner)[same[2]].words
    listed = _ONE_OF.fullmatch(text)
    return tuple(word.strip() for word in listed[1].split(",")) if listed else ()


def _all_classes(cls: type[Wire]) -> list[type[Wire]]:
    return [cls, *(found for child in cls.__subclasses__() for found in _all_classes(child))]
