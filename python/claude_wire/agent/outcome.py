"""Convert the return value of the author's function to the turn's result.

The table is in docs/agent.md, "Return a result".
"""

# Plain JSON has no types: after isinstance(value, dict), pyright still does not know the type of the values.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from claude_wire.codec.encoder import encode_value
from claude_wire.messages import (
    ResultErrorDuringExecution,
    ResultErrorMaxStructuredOutputRetries,
    ResultMessage,
    ResultSuccess,
)
from claude_wire.messages.base import to_plain
from claude_wire.support.arguments import type_of
from claude_wire.support.extras import install_extra
from claude_wire.support.text import one_line

#: Maximum length of an error text from jsonschema in characters. The text may contain a whole value or schema.
MAX_CHARS = 400


def result_of(returned: object, last_text: str, schema: Mapping[str, Any] | None) -> ResultMessage:
    """Return the turn's result for a function's return value, still without the turn's counts and costs.

    Raises:
        TypeError: the value cannot be a result.
        ImportError, ValueError: the schema cannot be used.
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
        output: Any = to_plain(returned)
        text = encode_value(output).decode()
        problem = None if schema is None else misfit(json.loads(text), schema)
        if problem is None:
            return ResultSuccess(
                is_error=False,
                result=text,
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
    """Return the result of a turn that failed or was stopped."""
    return ResultErrorDuringExecution(is_error=True, errors=[error], terminal_reason=reason)


def misfit(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Validate a JSON value against a JSON schema. Return the problem and where it is, or None if the value is valid.

    The check never fetches documents, so a ``$ref`` to another document cannot be resolved. ``format`` is not checked.

    Raises:
        ImportError: the package jsonschema is missing.
        ValueError: the schema is not valid, has a ``$ref`` that cannot be resolved, or refers to itself endlessly.
    """
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError, best_match
        from jsonschema.validators import validator_for
        from referencing import Registry
    except ImportError:
        problem = f"a host's JSON schema needs jsonschema: {install_extra('agent')}"
        raise ImportError(problem, name="jsonschema") from None
    try:
        kind: Any = validator_for(schema, Draft202012Validator)
        kind.check_schema(schema)
        error: Any = best_match(kind(schema, registry=Registry()).iter_errors(value))
    except SchemaError as wrong:
        problem = f"{wrong.json_path}: {wrong.message}"
    except RecursionError:
        problem = "it refers to itself without end, or is nested too deeply"
    except Exception as wrong:  # a reference that cannot be resolved, or any other error in the host's schema
        problem = str(wrong) or type(wrong).__name__
    else:
        return None if error is None else one_line(f"{error.json_path}: {error.message}", MAX_CHARS)
    raise ValueError(f"the host's JSON schema cannot be used: {one_line(problem, MAX_CHARS)}")


def content_of(returned: Any) -> tuple[str | list[Any], Any]:
    """Convert the return value of a tool's function to content for the model, and JSON for programs (None for text)."""
    if returned is None:
        return "", None
    if isinstance(returned, str):
        return returned, None
    plain: Any = to_plain(returned)
    if isinstance(plain, list) and all(isinstance(one, dict) and isinstance(one.get("type"), str) for one in plain):
        return cast("list[Any]", returned), None
    return encode_value(plain).decode(), plain
