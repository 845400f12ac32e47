"""The recipes of docs/how-to/tables.md, loaded from the page."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from folders import ROOT
from pages import blocks

__all__ = ["PAGE", "recipe"]

PAGE = ROOT / "docs" / "how-to" / "tables.md"


def recipe(name: str) -> Any:
    """Return the page's block ``NAME.py`` as a module."""
    (block,) = (block for block in blocks(PAGE) if block.title == f"{name}.py")
    module = ModuleType(name)
    exec(compile(block.text, f"{PAGE.name}: {name}", "exec"), module.__dict__)
    return module
