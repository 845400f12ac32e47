"""Writes the lists of names that follow from the message classes: ``make names``, after a class was added or renamed.

These are ``__all__`` of each module of ``claude_wire.messages``, the names that the package imports later, and
``KindName``. Type checkers need them in the source.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python" / "claude_wire"
MESSAGES = PACKAGE / "messages"


def listed(source: str, head: str) -> list[str]:
    """The strings in the brackets behind ``head``."""
    return re.findall(r'"([^"]+)"', source.partition(f"{head}[")[2].partition("]")[0])


def write(path: Path, head: str, names: list[str], *, indent: str = "") -> None:
    """Put these names into the brackets behind ``head``."""
    source = path.read_text()
    before, _, rest = source.partition(f"{head}[")
    if listed(source, head) != names:
        lines = "".join(f'{indent}    "{name}",\n' for name in names)
        path.write_text(f"{before}{head}[\n{lines}{indent}]{rest.partition(']')[2]}")
        print(path)


def public_names(source: str) -> list[str]:
    """The public classes of a module, and those functions and other names in its ``__all__`` that it still defines."""
    body = ast.parse(source).body
    classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    listed_names = listed(source, "__all__ = ")
    others = {name for name in listed_names if name in functions or re.search(rf"^ *{name}\b[^=\n]* = ", source, re.M)}
    return sorted(name for name in classes | others if not name.startswith("_"))


def main() -> None:
    for path in sorted(MESSAGES.rglob("*.py")):
        if "__all__ = [" in path.read_text() and path.name not in (
            "__init__.py",
            "base.py",
            "tolerant.py",
            "vocabulary.py",
        ):
            write(path, "__all__ = ", public_names(path.read_text()))
    sys.path.insert(0, str(PACKAGE.parent))
    from claude_wire.codec.kind_names import known_kinds

    write(PACKAGE / "codec" / "kind_names.py", "KindName: TypeAlias = Literal", sorted(known_kinds()))


if __name__ == "__main__":
    main()
