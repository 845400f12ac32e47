"""The native functions that Python calls without cffi, in a tenth of the time, and whether this process has them."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any, NamedTuple

from claude_wire.native.library import lib

#: Environment variable with the engine. ``native`` is the default. ``functions`` is ``native``, but CPython's functions
#: count references, as for an interpreter with an unknown layout. ``msgspec`` uses no native function of this module.
ENGINE_VARIABLE = "CLAUDE_WIRE_ENGINE"
#: The newest Python that the native functions are tested with.
NEWEST_TESTED = (3, 13)


class Choice(NamedTuple):
    """Which native functions this process uses."""

    #: The functions by name. Empty if msgspec must decode and encode.
    functions: dict[str, Any]
    #: Why there are no functions; empty if there are.
    why_not: str = ""
    #: True if the environment asked for msgspec.
    is_asked_for: bool = False
    #: True if CPython's functions count references.
    by_functions: bool = False


@cache
def choose() -> Choice:
    """Choose the native functions by the environment and the interpreter.

    If a process has several interpreters, only the first one that calls this gets the functions.

    Raises:
        ValueError: the environment variable has another value.
    """
    asked = os.environ.get(ENGINE_VARIABLE) or "native"
    if asked not in ("native", "functions", "msgspec"):
        raise ValueError(f"{ENGINE_VARIABLE} must be native, functions or msgspec, not {asked!r}")
    if asked == "msgspec":
        return Choice({}, f"${ENGINE_VARIABLE} says so", is_asked_for=True)
    why_not = _why_unsupported()
    if why_not:
        return Choice({}, why_not)
    found: dict[str, Any] = {}
    status = lib.cw_python(id(found), asked == "functions")
    if status < 0:
        return Choice({}, "the native library's test of this interpreter failed")
    if not found.pop("claim")():
        return Choice({}, "another interpreter of this process has the native reader")
    return Choice(found, by_functions=status == lib.CW_COUNTED_BY_FUNCTIONS)


def _why_unsupported() -> str:
    """Return why the native library must not test this interpreter; empty if it may."""
    if sys.implementation.name != "cpython":
        return f"this interpreter is {sys.implementation.name}, not CPython"
    if sys.version_info[:2] > NEWEST_TESTED:
        return "Python {}.{} is newer than {}.{}, the newest tested".format(*sys.version_info[:2], *NEWEST_TESTED)
    if "free-threading" in sys.version:  # sysconfig knows as well, but importing it is slow
        return "this is a free-threaded build of Python"
    if sys.platform not in ("linux", "darwin") or sys.maxsize < 2**32:
        return "the native reader needs 64-bit Linux or macOS"
    return ""


def functions() -> dict[str, Any]:
    """Return the functions by name. Empty if msgspec must decode.

    Raises:
        ValueError: the environment variable has another value.
    """
    return choose().functions


def functions_if_any() -> dict[str, Any]:
    """Return the functions; empty if the environment variable has an unknown value. Decoding reports that error."""
    try:
        return functions()
    except ValueError:
        return {}
