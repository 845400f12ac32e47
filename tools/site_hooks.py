"""Hooks for mkdocs: they add the message classes of a module to the reference, each with a table of its fields.

They also replace each :data:`MARK` by tables or lists that follow from code or data, and Sphinx roles in docstrings,
such as ``:class:`~claude_wire.Decoder```, by the plain name.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, get_args

import msgspec

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tools"), str(ROOT / "benches")]  # last: tests and benches have modules of one name

import column_table  # noqa: E402  # after sys.path is set
import conform_tables  # noqa: E402  # after sys.path is set
import generate  # noqa: E402  # after sys.path is set
import json_forms  # noqa: E402  # after sys.path is set
import page as bench_page  # noqa: E402  # after sys.path is set
from claude_wire.messages.base import Wire, wire_fields  # noqa: E402  # after sys.path is set
from claude_wire_kit.supervisor import frames  # noqa: E402  # after sys.path is set
from protocol.source import FieldNote, field_notes  # noqa: E402  # after sys.path is set

#: The file that lists each message module's public names.
REGISTRY = ROOT / "python" / "claude_wire" / "messages" / "registry.py"

#: The types of class attributes that get an entry below the table of fields.
BELOW_FIELDS = (FunctionType, classmethod, staticmethod, property)

#: The packages whose classes get a table of their fields.
WITH_FIELDS = ("claude_wire.messages", "claude_wire.transcripts", "claude_wire_kit.events")

#: A role such as ``:class:`~claude_wire.Decoder``` after Markdown has converted it to HTML.
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc|obj):<code>(~?)(?:!?)([\w.]+)</code>")

#: The paragraph that a reader of the Markdown sees in place of a generated part. The last words are the part's name.
MARK = re.compile(r"^\*Only the site shows this part \(`make docs`\): (.+)\.\*$", re.M)

#: Name in a mark -> function that returns the Markdown that replaces the mark.
GENERATED: dict[str, Callable[[], str]] = {
    "kinds of messages": lambda: generate.kinds_of_messages(ROOT),
    "kinds of requests": lambda: generate.kinds_of_requests(ROOT),
    "benchmarks": lambda: bench_page.all_numbers(bench_page.load(ROOT / "docs" / "benchmarks.json")),
    "json of commands": json_forms.described,
    "columns": column_table.described,
    "scenarios": conform_tables.scenarios,
    "exceptions of hosts": conform_tables.exceptions,
    "supervisor commands": lambda: structs_table(frames.Command),
    "supervisor frames": lambda: structs_table(frames.Frame),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks, expand the short forms for several entries, and add the field tables.

    ``::: module.{A, B}`` is short for an entry for each name, and ``::: module.*`` for an entry for each public name of
    the module that does not have an entry on the page yet.
    """

    def listed(found: re.Match[str]) -> str:
        return "\n\n".join(f"::: {found[1]}.{name}" for name in re.findall(r"\w+", found[2]))

    def entries(found: re.Match[str]) -> str:
        paths = [f"::: {found[1]}.{name}" for name in public_names(found[1])]
        return "\n\n".join(path for path in paths if f"{path}\n" not in markdown)

    markdown = MARK.sub(lambda found: GENERATED[found[1]](), markdown)
    markdown = re.sub(r"^::: (\S+)\.\{([^}]*)\}$", listed, markdown, flags=re.M)
    markdown = re.sub(r"^::: (\S+)\.\*$", entries, markdown, flags=re.M)
    return re.sub(r"^::: (\S+)\.(\w+)$", _with_fields, markdown, flags=re.M)


def _with_fields(entry: re.Match[str]) -> str:
    """Return a message class's entry with the field table. Return other entries unchanged."""
    cls = getattr(importlib.import_module(entry[1]), entry[2]) if entry[1].startswith(WITH_FIELDS) else None
    if not (isinstance(cls, type) and issubclass(cls, Wire) and wire_fields(cls)):
        return entry[0]
    # The table replaces the signature and the docstrings of the fields.
    below = [name for name, value in vars(cls).items() if isinstance(value, BELOW_FIELDS) and not name.startswith("_")]
    hidden = "|".join([*cls.__struct_fields__, *below])
    return "\n\n".join(
        [
            f"{entry[0]}\n    options:\n      show_signature: false\n      filters: ['!^_', '!^({hidden})$']",
            fields_table(cls),
            *(f"{entry[0]}.{name}\n    options:\n      heading_level: 4" for name in below),
        ]
    )


def fields_table(cls: type[Wire]) -> str:
    """Return a Markdown table with each field's key, type, presence in the JSON and meaning."""
    hints = {name: hint for base in reversed(cls.__mro__) for name, hint in inspect.get_annotations(base).items()}
    notes = field_notes(cls)
    rows = ["| field | type | in the JSON | meaning |", "|---|---|---|---|"]
    for field in wire_fields(cls):
        key = "" if field.name == field.encode_name else f" (`{field.encode_name}`)"
        hint = hints[field.name]
        rows.append(f"| `{field.name}`{key} | `{hint}` | {_presence(field)} | {_meaning(notes.get(field.name))} |")
    return "\n".join(rows)


def structs_table(union: Any) -> str:
    """Return a Markdown table of a union: each Struct's tag (or its name in small letters), fields and docstring.

    For readers who do not use Python, the table replaces a class by its name on the wire, and ``None`` by ``null``.
    """

    def name(cls: Any) -> str:
        return f"`{cls.__struct_config__.tag or cls.__name__.lower()}`"

    rows = ["| name | fields | meaning |", "|---|---|---|"]
    for cls in get_args(union):
        fields = ", ".join(f"`{field.encode_name}`" for field in msgspec.structs.fields(cls))
        meaning = " ".join((inspect.getdoc(cls) or "").partition("\n\nAttributes:")[0].split())
        meaning = re.sub(r":class:`(\w+)`", lambda found: name(getattr(frames, found[1])), meaning)
        rows.append(f"| {name(cls)} | {fields} | {meaning.replace('None', '`null`')} |")
    return "\n".join(rows)


def _presence(field: msgspec.structs.FieldInfo) -> str:
    """Say whether a key is always in the JSON, by the rules of ``messages/base.py``."""
    if msgspec.UnsetType in get_args(field.type):
        return "may be absent or null, which differ"
    if field.required:
        return "always"
    return "may be absent" if field.default_factory is msgspec.NODEFAULT else "always"


def _meaning(note: FieldNote | None) -> str:
    if note is None:
        return ""
    words = "Known values: " + ", ".join(f"`{word}`" for word in note.words) + "." if note.words else ""
    return f"{note.description} {words}".strip().replace("|", "\\|")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load the search script from the site itself. The theme would load it from another host."""
    return output.replace("https://unpkg.com/iframe-worker/shim", "../" * page.url.count("/") + "iframe-worker.js")


def public_names(module: str) -> list[str]:
    """Return a module's public names: for a message module the names in the registry, else ``__all__``."""
    names = re.search(rf"^from {re.escape(module)} import \(([^)]*)\)", REGISTRY.read_text(encoding="utf-8"), re.M)
    if names is None:
        path = ROOT / ("kit" if module.startswith("claude_wire_kit") else "python") / f"{module.replace('.', '/')}.py"
        names = re.search(r"^__all__ = \[([^]]*)\]", path.read_text(encoding="utf-8"), re.M)
    return re.findall(r"\w+", names[1] if names else "")


def on_page_content(html: str, **_: Any) -> str:
    """Replace roles by names, and the ``::`` before an indented block by one colon."""
    html = ROLE.sub(lambda found: f"<code>{found[2].rpartition('.')[2] if found[1] else found[2]}</code>", html)
    return re.sub(r"(?<=[\w>)])::(</p>)", r":\1", html).replace("<p>::</p>", "")
