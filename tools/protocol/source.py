"""Read the docstrings of message classes and of their fields from the source.

A string after a field describes it, and editors show it. ``# one of a, b`` above a field lists the words that the CLI
is known to write there. The set stays open: no class refuses another word.
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
    """The docstring of a field, and the comment above it."""

    description: str = ""
    #: Known words of an open set.
    words: tuple[str, ...] = ()


_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
_ONE_OF = re.compile(r"one of (?!those of )(.+)")
_SAME_AS = re.compile(r"one of those of (\w+)\.(\w+)")


def docstring(cls: type[Wire]) -> str:
    """Return the docstring of the class in Markdown, with one line per paragraph; empty if it has none."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    return markdown(text) if text and not text.startswith(f"{cls.__name__}(") else ""


def markdown(text: str) -> str:
    """Return reStructuredText from a docstring as Markdown, with one line per paragraph."""
    text = _ROLE.sub(r"`\1`", text).replace("``", "`")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def field_notes(cls: type[Wire]) -> dict[str, FieldNote]:
    """Return attribute name -> note, for all fields with a note, including those of base classes."""
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
    """Return the text of a statement that is a string; empty for other statements."""
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
