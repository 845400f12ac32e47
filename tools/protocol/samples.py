"""Generate values that a schema accepts: with only the required keys, with every key, or with every allowed null."""

# JSON values are Any; after isinstance, pyright still sees partially unknown types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from protocol.schema import UNKNOWN, Schema

__all__ = ["Form", "Samples", "misfit_for", "types_of"]

Form: TypeAlias = Literal["required", "every key", "null"]

#: JSON type -> a value of this type.
_PLAIN: dict[str, Any] = {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None}
#: A value for a schema that accepts any JSON.
_ANYTHING: Any = {"any": ["JSON", 1, None, {}]}


class Samples:
    """Generates values for the definitions (``$defs``) of one schema."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self.definitions = definitions

    def of(self, name: str, form: Form) -> dict[str, Any]:
        """Return an object that a definition accepts."""
        return self._object(name, form, (name,))

    def _object(self, name: str, form: Form, within: tuple[str, ...]) -> dict[str, Any]:
        schema = self.definitions[name]
        made: dict[str, Any] = {}
        for key, value in schema["properties"].items():
            if value is False:
                continue
            required = key in schema.get("required", ())
            if form == "null" and "null" in types_of(value, self.definitions) and len(within) == 1:
                made[key] = None
            elif required or (form == "every key" and len(within) < 3):
                made[key] = self._value(value, form, within, key)
        return made

    def _value(self, schema: Schema, form: Form, within: tuple[str, ...], key: str = "") -> Any:
        if "const" in schema:
            return schema["const"]
        for choice in (schema, *schema.get("anyOf", ())):
            if "$ref" in choice:
                name = choice["$ref"].rpartition("/")[2]
                return self._named(name, form, within)
        if "anyOf" in schema:
            return self._value(schema["anyOf"][0], form, within, key)
        if "type" not in schema:
            return _ANYTHING
        first = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
        if first == "array":
            return [self._value(schema.get("items", {}), form, within)] if form == "every key" else []
        if first == "object":
            inner = schema.get("additionalProperties", {})
            return {"a key": self._value(inner, form, within)} if form == "every key" else {}
        if first == "string" and "not" not in schema:
            return schema["examples"][0] if "examples" in schema else key or _PLAIN["string"]
        return _PLAIN[first]

    def _named(self, name: str, form: Form, within: tuple[str, ...]) -> Any:
        schema = self.definitions[name]
        if "anyOf" in schema:  # a union: take the first member that does not already contain this value
            members = [one["$ref"].rpartition("/")[2] for one in schema["anyOf"]]
            fresh = [one for one in members if one not in within and not one.startswith(UNKNOWN)]
            name = (fresh or members)[0]
        inner: Form = "required" if name in within else form
        return self._object(name, inner, (*within, name))


def types_of(schema: Any, definitions: dict[str, Schema]) -> set[str]:
    """Return the JSON types that a schema accepts."""
    if "$ref" in schema:
        return types_of(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return {one for choice in schema["anyOf"] for one in types_of(choice, definitions)}
    if "const" in schema:
        return {"string"}
    if "type" not in schema:
        return {"string", "number", "integer", "boolean", "null", "object", "array"}
    return {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])


def misfit_for(schema: Any, definitions: dict[str, Schema]) -> Any:
    """Return a value that a schema rejects; None if the schema accepts strings, numbers and booleans."""
    taken = types_of(schema, definitions)
    if "string" not in taken:
        return "a text"
    if "number" not in taken and "integer" not in taken:
        return 7
    return None if "boolean" in taken else True
