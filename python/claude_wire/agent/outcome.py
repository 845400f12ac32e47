"""What an author's function has returned, as the result of its turn. Knows values and results, not turns.

The table is in docs/agent.md, "Return a result".
"""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from claude_wire.codec.encoder import encode_value
from claude_wire.foundation.arguments import type_of
from claude_wire.messages import (
    ResultErrorDuringExecution,
    ResultErrorMaxStructuredOutputRetries,
    ResultMessage,
    ResultSuccess,
)

__all__ = ["content_of", "failure", "misfit", "result_of"]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
#: How deep a schema is followed.
MOST_DEPTH = 64


def result_of(returned: object, last_text: str, schema: Mapping[str, Any] | None) -> ResultMessage:
    """The result for what a function has returned, without what its turn knows.

    Raises:
        TypeError: it returned what is no result.
    """
    if returned is None or isinstance(returned, str):
        return ResultSuccess(
            is_error=False,
            result=last_text if returned is None else returned,
            stop_reason="end_turn",
            terminal_reason="completed",
        )
    if isinstance(returned, ResultMessage):
        return msgspec.structs.replace(returned, is_error=not returned.ok) if returned.is_error is None else returned
    if isinstance(returned, (Mapping, msgspec.Struct)):
        output: Any = msgspec.to_builtins(returned)
        problem = None if schema is None else misfit(output, schema)
        if problem is None:
            return ResultSuccess(
                is_error=False,
                result=encode_value(output).decode(),
                structured_output=output,
                stop_reason="end_turn",
                terminal_reason="completed",
            )
        return ResultErrorMaxStructuredOutputRetries(
            is_error=True,
            errors=[f"the structured output does not fit the schema: {problem}"],
            terminal_reason="structured_output_retry_exhausted",
        )
    raise TypeError(
        f"the agent's function returned {type_of(returned)}; return None, a str, a dict, a Struct or a ResultMessage"
    )


def failure(error: str, reason: str | None = None) -> ResultMessage:
    """The result of a turn that has failed, or was stopped."""
    return ResultErrorDuringExecution(is_error=True, errors=[error], terminal_reason=reason)


def misfit(value: Any, schema: Any, place: str = "$", depth: int = 0) -> str | None:
    """What in a value does not fit a JSON schema, and where; None if it fits.

    Looks at ``type``, ``enum``, ``const``, ``properties``, ``required``, ``additionalProperties``, ``items``,
    ``anyOf``, ``oneOf``, ``allOf`` and the limits of numbers and lengths. Other keywords, ``$ref`` and ``pattern``
    among them, let everything pass.
    """
    if schema is False:
        return f"{place} is not allowed"
    if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
        return None
    rules = cast("Mapping[str, Any]", schema)
    wanted = rules.get("type")
    kinds: list[Any] = wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{place} is no {' or '.join(map(str, kinds))}"
    if "enum" in rules and value not in rules["enum"]:
        return f"{place} is none of the values allowed"
    if "const" in rules and value != rules["const"]:
        return f"{place} is not the value required"
    for name, size in (("Length", str), ("Items", list), ("Properties", dict)):
        if isinstance(value, size) and not rules.get(f"min{name}", 0) <= len(value) <= rules.get(f"max{name}", 1e18):
            return f"{place} is too short or too long"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most = rules.get("minimum", value), rules.get("maximum", value)
        if not least <= value <= most:
            return f"{place} is out of range"
    parts: list[tuple[Any, Any, str]] = [(value, one, place) for one in rules.get("allOf", ())]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        known: Any = rules.get("properties", {})
        for name in rules.get("required", ()):
            if name not in members:
                return f"{place}.{name} is missing"
        others = rules.get("additionalProperties", True)
        parts += [(one, known.get(name, others), f"{place}.{name}") for name, one in members.items()]
    elif isinstance(value, list):
        items = rules.get("items", True)
        parts += [(one, items, f"{place}[{number}]") for number, one in enumerate(value)]
    for one, rule, where in parts:
        problem = misfit(one, rule, where, depth + 1)
        if problem is not None:
            return problem
    for choice in ("anyOf", "oneOf"):
        choices: Any = rules.get(choice)
        if choices and all(misfit(value, one, place, depth + 1) is not None for one in choices):
            return f"{place} fits none of {choice}"
    return None


def _is(value: Any, kind: Any) -> bool:
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))


def content_of(returned: Any) -> tuple[str | list[Any], Any]:
    """What a tool's function has returned, for the model and for programs."""
    if returned is None:
        return "", None
    if isinstance(returned, str):
        return returned, None
    plain: Any = msgspec.to_builtins(returned)
    if isinstance(plain, list) and all(_is_block(one) for one in plain):
        return cast("list[Any]", returned), None
    return encode_value(plain).decode(), plain


def _is_block(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("type"), str)
