"""Generate code from the message classes: ``make generate``.

It writes two files. ``messages/registry.py`` has the union of all messages, the names of all kinds, and the public
names, which a type checker must find in the source. ``messages/control/payload.py`` has the union of all control
requests. With ``--check`` it writes nothing, and fails if a file is out of date. The site calls it for the lists in
``docs/reference/protocol.md``.

The script parses the source of the classes and does not import them. So it also works when the generated files still
have the old name of a class.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
MESSAGES = Path("python/claude_wire/messages")
PACKAGE = "claude_wire.messages"
#: Modules without message classes: base classes and helpers, and the generated modules.
OTHERS = {"base", "control.payload", "hooks.events", "places", "registry", "tolerant", "union", "vocabulary"}


@dataclass(frozen=True)
class Class:
    """The syntax tree of one class in ``claude_wire.messages``."""

    module: str
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def base(self) -> str:
        """The first base class's name, without type parameters."""
        base = self.node.bases[0] if self.node.bases else ast.Name("object")
        return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)

    @property
    def tag(self) -> str:
        tags = [keyword.value for keyword in self.node.keywords if keyword.arg == "tag"]
        return str(tags[0].value or "") if tags and isinstance(tags[0], ast.Constant) else ""

    @property
    def answer(self) -> str:
        base = self.node.bases[0]
        return ast.unparse(base.slice) if isinstance(base, ast.Subscript) else ""

    @cached_property
    def values(self) -> dict[str, str]:
        """The string constants in the assignments of the class body, such as ``sent_by`` and ``subtype``."""
        values: dict[str, str] = {}
        for statement in self.node.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value:
                target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                texts = [node.value for node in ast.walk(statement.value) if isinstance(node, ast.Constant)]
                values.update({ast.unparse(target): text for text in texts if isinstance(text, str)})
        return values


class Registry:
    """All message classes and type aliases in the source below ``root``."""

    def __init__(self, root: Path) -> None:
        self.classes: dict[str, Class] = {}
        self.aliases: dict[str, ast.expr] = {}
        #: Each module's public names.
        self.names: dict[str, list[str]] = {}
        for path in sorted((root / MESSAGES).rglob("*.py")):
            module = ".".join(path.relative_to(root / MESSAGES).with_suffix("").parts)
            if path.name != "__init__.py" and (module not in OTHERS or module == "base"):
                self._read(module, ast.parse(path.read_text(encoding="utf-8")))
        for names in self.names.values():  # claude_wire.errors exports the exceptions
            names[:] = [
                n for n in names if n not in self.classes or "ClaudeWireError" not in self._bases(self.classes[n])
            ]
        self.messages = self._leaves("MessageBase")
        self.requests = self._leaves("ControlRequestBody")
        self.by_base = {
            base: [cls for cls in self.messages if cls.base == base and cls.tag + cls.values.get("subtype", "")]
            for base in ("MessageBase", "SystemMessage", "ResultMessage")
        }

    def _read(self, module: str, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = Class(module, node)
            elif isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.annotation) == "TypeAlias":
                self.aliases[ast.unparse(node.target)] = node.value
            else:
                continue
            name = node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.target)
            if module not in OTHERS and not name.startswith(("_", "OrUnknown")):
                self.names.setdefault(module, []).append(name)

    def _leaves(self, base: str) -> list[Class]:
        """Return the classes that derive from ``base`` and have no subclasses."""
        bases = {cls.base for cls in self.classes.values()}
        return [cls for cls in self.classes.values() if cls.name not in bases and base in self._bases(cls)]

    def _bases(self, cls: Class) -> Iterator[str]:
        while True:
            yield cls.base
            if cls.base not in self.classes:
                return
            cls = self.classes[cls.base]

    def value(self, cls: Class, name: str) -> str:
        """Return the string that the class, or the nearest base, assigns to ``name``."""
        classes = (self.classes[base] for base in (cls.name, *self._bases(cls)) if base in self.classes)
        return next(cls.values[name] for cls in classes if name in cls.values)

    def tags(self, alias: str) -> list[str]:
        names = [node.id for node in ast.walk(self.aliases[alias]) if isinstance(node, ast.Name)]
        return [self.classes[name].tag for name in names if name in self.classes]

    def kinds(self) -> list[list[str]]:
        """Return the names of all kinds and kind groups, in one list per group."""
        parts = {
            "system": [cls.values["subtype"] for cls in self.by_base["SystemMessage"]],
            "result": [cls.values["subtype"] for cls in self.by_base["ResultMessage"]],
            "stream_event": self.tags("Event"),
            "stream_event/content_block_start": self.tags("ContentBlock"),
            "stream_event/content_block_delta": self.tags("Delta"),
            "control_request": [cls.tag for cls in self.requests],
            "control_response": self.tags("ControlAnswer"),
        }
        types = ["system", "result", *(cls.tag for cls in self.by_base["MessageBase"])]
        return [sorted(types), *([f"{kind}/{part}" for part in sorted(parts[kind])] for kind in parts)]


HEAD = "`make generate` writes this file from the message classes."


def wrapped(words: Iterable[str], between: str) -> str:
    """Join the words into lines of at most 120 characters."""
    return textwrap.fill(between.join(words), 120, initial_indent="    ", subsequent_indent="    ")


def imports(names: dict[str, list[str]]) -> str:
    return "".join(
        f"from {PACKAGE}.{module} import (\n{wrapped(sorted(names[module]), ', ')},\n)\n" for module in sorted(names)
    )


def union(name: str, classes: Iterable[Class], *others: str) -> str:
    return f"{name}: TypeAlias = (\n{wrapped([*(cls.name for cls in classes), *others], ' | ')}\n)\n"


def strings(groups: Iterable[Iterable[str]]) -> str:
    """Return a list of strings as source. Each group begins on a new line, so a new name changes few lines."""
    lines = [wrapped([f'"{word}"' for word in group], ", ") for group in groups]
    return "[\n" + "".join(f"{line},\n" for line in lines) + "]\n"


def registry_source(registry: Registry) -> str:
    names = {**registry.names, "control.payload": ["ControlRequestPayload"]}
    by_base = registry.by_base
    return f'''"""All messages: their union, their kinds and their names. {HEAD}"""

# This file is generated: it is neither linted nor formatted.
# ruff: noqa
# fmt: off

from __future__ import annotations

from typing import Literal, TypeAlias

{imports(names)}
#: Messages that their ``type`` alone identifies.
{union("TypedMessage", by_base["MessageBase"])}
#: Messages of type ``system``, identified by their ``subtype``.
{union("SystemSubtype", by_base["SystemMessage"])}
#: Messages of type ``result``, identified by their ``subtype``. Any other subtype is a plain ``ResultMessage``.
{union("ResultSubtype", by_base["ResultMessage"])}
#: The types that a line can decode to.
Message: TypeAlias = TypedMessage | SystemSubtype | ResultSubtype | ResultMessage | PermissionReply | UnknownMessage

#: The names that ``only`` accepts: the kinds of all lines, and groups of kinds such as ``"system"``.
KindName: TypeAlias = Literal{strings(registry.kinds())}
__all__ = {strings([["Message"], *(sorted(names[module]) for module in sorted(names))])}'''


def payload_source(registry: Registry) -> str:
    names: dict[str, list[str]] = {"unknown": ["OrUnknownRequest"]}
    for cls in registry.requests:
        names.setdefault(cls.module, []).append(cls.name)
    return f'''"""The union of all control requests. {HEAD}"""

# This file is generated: it is neither linted nor formatted.
# ruff: noqa
# fmt: off

from __future__ import annotations

from typing import TypeAlias

{imports(names)}
#: The payload of a control request, in either direction.
{union("ControlRequestPayload", registry.requests, "OrUnknownRequest")}'''


def kinds_of_messages(root: Path) -> str:
    """Return the lists of all messages for the site, in Markdown."""
    registry = Registry(root)
    kinds = {cls.tag: cls for cls in registry.by_base["MessageBase"]}
    kinds |= {f"system/{cls.values['subtype']}": cls for cls in registry.by_base["SystemMessage"]}
    kinds |= {f"result/{cls.values['subtype']}": cls for cls in registry.by_base["ResultMessage"]}
    return _by_sender(registry, kinds)


def kinds_of_requests(root: Path) -> str:
    """Return the lists of all control requests for the site, in Markdown."""
    registry = Registry(root)
    return _by_sender(registry, {f"control_request/{cls.tag}": cls for cls in registry.requests})


def _by_sender(registry: Registry, rows: Mapping[str, Class]) -> str:
    """Return a list for each sender with the sorted kinds, their classes and the answer types."""

    def in_words(cls: Class) -> str:
        typed = cls in registry.requests and cls.answer != "dict[str, Any]"
        return f"`{cls.name}`, answered by `{cls.answer}`" if typed else f"`{cls.name}`"

    found = []
    for value, sender in {"agent": "the agent", "host": "the host", "both": "either"}.items():
        kinds = [kind for kind in sorted(rows) if registry.value(rows[kind], "sent_by") == value]
        if kinds:
            found += [f"Sent by {sender}:\n", *(f"- `{kind}`: {in_words(rows[kind])}" for kind in kinds), ""]
    return "\n".join(found)


def sources(root: Path) -> dict[Path, str]:
    """Return path -> content for the files to write."""
    registry = Registry(root)
    return {
        MESSAGES / "registry.py": registry_source(registry),
        MESSAGES / "control" / "payload.py": payload_source(registry),
    }


def main(root: Path, *, check: bool = False) -> None:
    for path, text in sources(root).items():
        if (root / path).exists() and (root / path).read_text(encoding="utf-8") == text:
            continue
        if check:
            sys.exit(f"{path} differs from the message classes: run `make generate`")
        (root / path).write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main(ROOT, check="--check" in sys.argv)
