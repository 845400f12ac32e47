"""Convert the declarations of a TypeScript SDK (``sdk.d.ts``) to sample messages, to compare them like recorded ones.

Together, the samples of a type have every field and every member of every union. The parser is tree-sitter, which pip
installs, so Node is not needed. Unlike TypeScript's compiler, tree-sitter does not resolve types from other packages.
The SDK imports only the API's types, which are in `IMPORTED`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, TypeAlias

from claude_wire_kit.commands.shared.failure import Failure
from drift.whole import WHOLE

__all__ = ["MAX_BYTES", "Anything", "Real", "Typings", "Word"]


class Anything(dict[str, Any]):
    """A value of a type such as ``unknown``, which allows everything."""


class Real(int):
    """A number that is always an integer, which TypeScript cannot express."""


class Word(str):
    """A value of a union of string literals, such as ``"plan" | "default"``."""

    __slots__ = ()


#: Type that the SDK imports from other packages -> a sample. Any other imported type is `Anything`.
IMPORTED: dict[str, Any] = {
    "BetaMessage": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []},
    "BetaRawMessageStreamEvent": {"type": "message_stop"},
    "BetaUsage": {"input_tokens": 1, "output_tokens": 1},
    "NonNullableUsage": {"input_tokens": 1, "output_tokens": 1},
    "MessageParam": {"role": "user", "content": ""},
    "UUID": "u",
}
#: Maximum bytes and steps. The SDK's typings have 0.6 MB and take 64,000 steps. Types that refer to each other could
#: take any number of steps.
MAX_BYTES, MAX_STEPS = 1 << 23, 1_000_000

#: The fields whose numbers are integers in the samples.
WHOLE_NAMES = frozenset(name for names in WHOLE.values() for name in names)
#: The sample of a number is a fraction: a field that accepts it also accepts integers.
_PLAIN = {"string": "s", "number": 0.5, "boolean": True, "null": None, "undefined": None, "void": None}


#: A node of tree-sitter's syntax tree. It is Any, because type checkers must not need tree-sitter.
Node: TypeAlias = Any


class Typings:
    """A parsed ``.d.ts``.

    Raises:
        Failure: the parser is not installed; or, from any method, the declarations need too many steps.
    """

    def __init__(self, source: bytes) -> None:
        if len(source) > MAX_BYTES:
            raise Failure(f"the typings have more than {MAX_BYTES:,} bytes")
        try:
            tree_sitter: Any = import_module("tree_sitter")
            grammar: Any = import_module("tree_sitter_typescript")
        except ImportError as error:
            raise Failure("--typings needs tree-sitter: pip install --group drift") from error
        language = tree_sitter.Language(grammar.language_typescript())
        self._root: Node = tree_sitter.Parser(language).parse(source).root_node
        self._open: list[str] = []
        #: The field whose type is being read.
        self._field = ""
        self._left = MAX_STEPS

    @cached_property
    def _declared(self) -> dict[str, Node]:
        """Return the declared type, or the body of the interface, with this name."""
        found: dict[str, Node] = {}
        todo = [self._root]
        while todo:
            node = todo.pop()
            if node.type in ("type_alias_declaration", "interface_declaration"):
                name, body = node.child_by_field_name("name"), node.child_by_field_name("value")
                body = body or node.child_by_field_name("body")
                if name and body:
                    found[_text(name)] = body
            elif node.type in ("program", "export_statement", "ambient_declaration"):
                todo += node.children
        return found

    def messages(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each type that the CLI writes or a host requests, with a sample message."""
        for root in ("SDKMessage", "StdoutMessage"):
            for name, sample in self._members(root):
                yield name, sample
        for name, sample in self._members("SDKControlRequestInner"):
            yield name, {"type": "control_request", "request_id": "r", "request": sample}
        for name, sample in self._members("HookInput"):
            call = {"subtype": "hook_callback", "callback_id": "c", "input": sample}
            yield name, {"type": "control_request", "request_id": "r", "request": call}

    def answers(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the type of each answer, the subtype of its request, and a sample payload."""
        for name, sample in self._members("SDKControlRequestInner"):
            answer = name.removesuffix("Request") + "Response"
            if name.endswith("Request") and answer in self._declared:
                for payload in self._named(answer):
                    if isinstance(payload, dict):
                        yield answer, str(sample.get("subtype")), payload

    def words(self, name: str) -> list[str]:
        """Return the strings of a type that lists strings; an empty list if there is no such type."""
        return [value for value in self._named(name) if isinstance(value, Word)] if name in self._declared else []

    def _members(self, root: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the samples of a union with the names of their members, including those of nested unions."""
        todo = [root] if root in self._declared else []
        done: set[str] = set()
        while todo:
            name = todo.pop(0)
            node = self._declared.get(name)
            if node is None or name in done:
                continue
            done.add(name)
            members = list(_union(node)) if node.type == "union_type" else []
            named = [_name(member) for member in members]
            if named and all(member in self._declared for member in named):
                todo += named
                continue
            for sample in self._named(name):
                if isinstance(sample, dict):
                    yield name, sample

    def _named(self, name: str) -> list[Any]:
        if name in IMPORTED:
            return [IMPORTED[name]]
        if name not in self._declared or name in self._open:
            return [Anything()]
        self._open.append(name)
        try:
            return self._samples(self._declared[name])
        finally:
            self._open.pop()

    def _samples(self, node: Node) -> list[Any]:
        """Return sample values of a type. Every member of a union and every field is in one of them."""
        self._spend(1)
        match node.type:
            case "union_type":
                return [sample for member in _union(node) for sample in self._samples(member)]
            case "object_type" | "interface_body":
                return self._objects(node)
            case "intersection_type":
                return self._merged([self._samples(part) for part in node.named_children])
            case "array_type" if node.named_children:
                return [self._samples(node.named_children[0])]
            case "readonly_type" | "parenthesized_type" if node.named_children:
                return self._samples(node.named_children[0])
            case "lookup_type" if len(node.named_children) == 2:
                holder, (key, *_) = (self._samples(part) for part in node.named_children)
                name = key if isinstance(key, str) else ""
                return [one[name] for one in holder if isinstance(one, dict) and name in one] or [Anything()]
            case "literal_type":
                text = _text(node)
                return [Word(text[1:-1])] if text[0] in "'\"" else [_literal(text)]
            case "predefined_type":
                word = _text(node)
                return [Real(1) if word == "number" and self._field in WHOLE_NAMES else _PLAIN.get(word, Anything())]
            case "generic_type":
                return self._generic(_name(node), list(node.named_children[-1].named_children))
            case "type_identifier" | "nested_type_identifier":
                return self._named(_name(node))
            case _:
                return [Anything()]

    def _generic(self, name: str, arguments: Sequence[Node]) -> list[Any]:
        match name:
            case "Array" if arguments:
                return [self._samples(arguments[0])]
            case "Record" if len(arguments) == 2:
                return [{"a key": sample} for sample in self._samples(arguments[1])]
            case "Partial" | "Readonly" | "NonNullable" if arguments:
                return self._samples(arguments[0])
            case _:
                return self._named(name)

    def _objects(self, node: Node) -> list[Any]:
        fields: dict[str, list[Any]] = {}
        for part in node.named_children:
            name, hint = part.child_by_field_name("name"), part.child_by_field_name("type")
            if part.type == "property_signature" and name and hint:
                # An optional field is in the samples with its declared type. Null is only a sample if it is declared.
                outer, self._field = self._field, _text(name).strip("'\"")
                fields[self._field] = self._samples(hint.named_children[0])
                self._field = outer
        if not fields:
            return [Anything()]
        most = max(map(len, fields.values()))
        self._spend(most * len(fields))
        return [{name: values[row % len(values)] for name, values in fields.items() if values} for row in range(most)]

    def _merged(self, parts: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the samples of an intersection type."""
        rows = max((len(part) for part in parts), default=0)
        merged: list[dict[str, Any]] = [{} for _ in range(rows)]
        for row, whole in enumerate(merged):
            for part in parts:
                whole.update(part[row % len(part)] if part and isinstance(part[row % len(part)], dict) else {})
            self._spend(len(parts) + len(whole))
        return list(merged)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise Failure("the typings name each other too often to be gone through")


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _name(node: Node) -> str:
    """Return the name of a type without its namespace and its type arguments."""
    return _text(node).partition("<")[0].rpartition(".")[2]


def _union(node: Node) -> Iterator[Node]:
    """Return the members of a union. The parser nests them: all but the last form a union in the left node."""
    todo = [node]
    while todo:
        member = todo.pop()
        if member.type == "union_type":
            todo += reversed(member.named_children)
        elif member.type != "comment":
            yield member


def _literal(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text in ("null", "undefined"):
        return None
    return float(text) if re.fullmatch(r"-?\d*\.\d+", text) else Real(1)
