"""For mkdocs: entries of the reference for all message classes of a module, each with a table of its fields; and names
where docstrings have roles.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import FunctionType
from typing import Any, get_args

import msgspec

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from claude_wire.messages.base import Wire, wire_fields  # noqa: E402  # behind the path, as the next
from protocol.source import FieldNote, field_notes  # noqa: E402  # mkdocs loads this file by its name

#: Has the public names of each module of messages.
REGISTRY = ROOT / "python" / "claude_wire" / "messages" / "registry.py"

#: What of a class has a signature.
METHODS = (FunctionType, classmethod, staticmethod)

#: The packages whose classes have a table of their fields.
WITH_FIELDS = ("claude_wire.messages", "claude_wire.transcripts.records", "claude_wire_kit.events")

#: ``:class:`~claude_wire.Decoder``` as Markdown leaves it.
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc|obj):<code>(~?)(?:!?)([\w.]+)</code>")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put entries in the place of ``::: module.*``: one for each public name that the page has no entry for."""

    def entries(found: re.Match[str]) -> str:
        paths = [f"::: {found[1]}.{name}" for name in public_names(found[1])]
        return "\n\n".join(path for path in paths if f"{path}\n" not in markdown)

    markdown = re.sub(r"^::: (\S+)\.\*$", entries, markdown, flags=re.M)
    return re.sub(r"^::: (\S+)\.(\w+)$", _with_fields, markdown, flags=re.M)


def _with_fields(entry: re.Match[str]) -> str:
    """The entry of a message class, with the table of its fields; any other as it is."""
    cls = getattr(importlib.import_module(entry[1]), entry[2]) if entry[1].startswith(WITH_FIELDS) else None
    if not (isinstance(cls, type) and issubclass(cls, Wire) and wire_fields(cls)):
        return entry[0]
    # The table has all that the signature has, and the docstrings of fields.
    methods = [name for name, value in vars(cls).items() if isinstance(value, METHODS) and not name.startswith("_")]
    hidden = "|".join([*cls.__struct_fields__, *methods])
    return "\n\n".join(
        [
            f"{entry[0]}\n    options:\n      show_signature: false\n      filters: ['!^_', '!^({hidden})$']",
            fields_table(cls),
            *(f"{entry[0]}.{name}\n    options:\n      heading_level: 4" for name in methods),
        ]
    )


def fields_table(cls: type[Wire]) -> str:
    """Return a table in Markdown: of each field its key, its type, whether it is there, and what it means."""
    hints = {name: hint for base in reversed(cls.__mro__) for name, hint in inspect.get_annotations(base).items()}
    notes = field_notes(cls)
    rows = ["| field | type | in the JSON | |", "|---|---|---|---|"]
    for field in wire_fields(cls):
        key = "" if field.name == field.encode_name else f" (`{field.encode_name}`)"
        hint = hints[field.name]
        rows.append(f"| `{field.name}`{key} | `{hint}` | {_presence(field)} | {_meaning(notes.get(field.name))} |")
    return "\n".join(rows)


def _presence(field: msgspec.structs.FieldInfo) -> str:
    """Whether a key is there, by the rules of ``messages/base.py``."""
    if msgspec.UnsetType in get_args(field.type):
        return "may be absent; null is something else"
    if field.required:
        return "always"
    return "may be absent" if field.default_factory is msgspec.NODEFAULT else "always"


def _meaning(note: FieldNote | None) -> str:
    if note is None:
        return ""
    words = "One of " + ", ".join(f"`{word}`" for word in note.words) + "." if note.words else ""
    return f"{note.description} {words}".strip().replace("|", "\\|")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Take what the search needs in a site on disk from the site itself; the theme has it on another host."""
    return output.replace("https://unpkg.com/iframe-worker/shim", "../" * page.url.count("/") + "iframe-worker.js")


def public_names(module: str) -> list[str]:
    """Return the public names of a module of messages, as the registry has them, or else its ``__all__``."""
    names = re.search(rf"^from {re.escape(module)} import \(([^)]*)\)", REGISTRY.read_text(encoding="utf-8"), re.M)
    if names is None:
        path = ROOT / ("kit" if module.startswith("claude_wire_kit") else "python") / f"{module.replace('.', '/')}.py"
        names = re.search(r"^__all__ = \[([^]]*)\]", path.read_text(encoding="utf-8"), re.M)
    return re.findall(r"\w+", names[1] if names else "")


def on_page_content(html: str, **_: Any) -> str:
    """Show the name alone where a role stands, and one colon where two open an indented block."""
    html = ROLE.sub(lambda found: f"<code>{found[2].rpartition('.')[2] if found[1] else found[2]}</code>", html)
    return re.sub(r"(?<=[\w>)])::(</p>)", r":\1", html).replace("<p>::</p>", "")
