"""Write the folder ``protocol``: ``make protocol``, or ``PYTHONPATH=tools python -m protocol [--check]``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from protocol.compare import compared, entry_name, loaded
from protocol.folder import as_text, made_files

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "protocol"


def differences(folder: Path, made: Mapping[str, str]) -> list[str]:
    """Return the names of the files that are missing, differ from the generated files, or are no longer generated."""
    kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*.json") if path.parent.name != "changelog"}
    changed = [name for name, text in made.items() if name not in kept or (folder / name).read_text("utf-8") != text]
    return [*changed, *sorted(kept - made.keys())]


def check(folder: Path, made: Mapping[str, str]) -> None:
    """Exit with an error message if a file is not up to date."""
    for name in differences(folder, made):
        sys.exit(f"protocol/{name} differs from the message classes: run `make protocol`")


def write(folder: Path, made: Mapping[str, str]) -> None:
    """Write the files that are not up to date. If the CLI version changed, also write a changelog entry."""
    _note_changes(folder, made)
    for name in differences(folder, made):
        if name in made:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(made[name], "utf-8")
        else:
            (folder / name).unlink()
        print(f"protocol/{name}")


def _note_changes(folder: Path, made: Mapping[str, str]) -> None:
    if not (folder / "index.json").exists():
        return
    old = loaded(folder)
    new = {name: json.loads(text) for name, text in made.items() if "/" not in name}
    if old["index.json"]["cli"] != new["index.json"]["cli"]:
        entry = compared(old, new)
        path = folder / "changelog" / entry_name(entry)
        path.parent.mkdir(exist_ok=True)
        path.write_text(as_text(entry), "utf-8")
        print(path.relative_to(folder.parent))


if __name__ == "__main__":
    (check if "--check" in sys.argv else write)(FOLDER, made_files())
