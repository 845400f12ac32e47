"""Check that the package stays easy to find one's way in: ``rooms.py [FOLDER]``, where FOLDER is the package.

No module has more than 500 lines, and no folder more than 12 modules. Only the native library's name begins with an
underscore. A package's ``__init__`` hands names on, and defines none of its own. pyproject.toml says which folder may
import which (``tool.importlinter``).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "claude_wire"
MAX_LINES = 500
MAX_MODULES = 12
#: maturin makes it, and chooses its name.
GENERATED = "native/_native"
#: How a package hands on names that are imported when they are first asked for.
LAZY_NAMES = {"__getattr__", "__dir__"}


def faults(package: Path) -> Iterator[str]:
    """What is wrong in a package: the file, and what to do about it."""
    generated = package / GENERATED
    folders: dict[Path, int] = {}
    for path in sorted(package.rglob("*.py")):
        if generated in path.parents:
            continue
        place = path.relative_to(package.parent)
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield f"{place} has {lines} lines, more than {MAX_LINES}: split it by what its parts are about"
        if path.name == "__init__.py":
            yield from (f"{place}:{line} defines {name}: move it into a module" for line, name in defined(text))
            named = path.parent.name
        else:
            folders[place.parent] = folders.get(place.parent, 0) + 1
            named = path.stem
        if named.startswith("_") and not named.endswith("__"):
            yield f"{place} begins with an underscore: name it without; `__all__` says what is public"
    for folder, count in folders.items():
        if count > MAX_MODULES:
            yield f"{folder} has {count} modules, more than {MAX_MODULES}: make folders in it"


def defined(text: str) -> Iterator[tuple[int, str]]:
    """The classes and functions that a module defines, with their lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name not in LAZY_NAMES:
            yield node.lineno, node.name


def main() -> None:
    """Print what is wrong, and exit with 1 if anything is."""
    package = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE
    found = list(faults(package))
    for fault in found:
        print(fault)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
