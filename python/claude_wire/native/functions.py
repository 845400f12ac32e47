"""The native functions that Python calls without cffi, in a tenth of the time."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from claude_wire.native.library import lib

#: Environment variable with the engine: ``native``, the default, or ``msgspec``, which uses none of these functions.
ENGINE_VARIABLE = "CLAUDE_WIRE_ENGINE"


@cache
def functions() -> dict[str, Any]:
    """Return the functions by name. Empty if msgspec must decode, or if this interpreter is not supported.

    If a process has several interpreters, only the first one that calls this gets the functions.

    Raises:
        ValueError: the environment variable has another value.
    """
    asked = os.environ.get(ENGINE_VARIABLE) or "native"
    if asked not in ("native", "msgspec"):
        raise ValueError(f"{ENGINE_VARIABLE} must be native or msgspec, not {asked!r}")
    found: dict[str, Any] = {}
    if asked == "msgspec" or lib.cw_python(id(found)) or not found.pop("claim")():
        return {}
    return found


def functions_if_any() -> dict[str, Any]:
    """Like :func:`functions`, but empty for a wrong value of the environment variable: decoding reports the error."""
    try:
        return functions()
    except ValueError:
        return {}
