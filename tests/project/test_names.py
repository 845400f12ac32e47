"""`make names` changes nothing where nothing was added or renamed: it keeps each public name, functions included."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path

from each import each
from folders import ROOT

MESSAGES = ROOT / "python" / "claude_wire" / "messages"
SKIPPED = ("__init__.py", "base.py", "tolerant.py", "vocabulary.py")  # lists in an order of their own
MODULES = [path for path in sorted(MESSAGES.rglob("*.py")) if path.name not in SKIPPED]

spec = util.spec_from_file_location("names", ROOT / "tools" / "names.py")
assert spec
assert spec.loader
names = util.module_from_spec(spec)
sys.modules["names"] = names
spec.loader.exec_module(names)


@each("path", [path for path in MODULES if "__all__ = [" in path.read_text()], lambda path: path.stem)
def test_the_lists_of_public_names_are_those_that_the_tool_writes(path: Path) -> None:
    source = path.read_text()
    assert names.listed(source, "__all__ = ") == names.public_names(source)
