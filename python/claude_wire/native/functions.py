"""The native functions that Python calls without cffi, in a tenth of the time, and whether this process has them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from typing import Any

from claude_wire.native.library import lib

#: Environment variable with the engine. ``native`` is the default. ``functions`` is ``native``, but CPython's functions
#: count references, as for an interpreter with an unknown layout. ``msgspec`` uses no native function of this module.
ENGINE_VARIABLE = "CLAUDE_WIRE_ENGINE"
#: The newest Python that the native functions are tested with.
NEWEST_TESTED = (3, 13)

_ASKED_FOR = f"${ENGINE_VARIABLE} says so"


@cache
def choose() -> tuple[dict[str, Any], str]:
    """Return the native functions by name, and a reason.

    If there are no functions, msgspec must decode and encode, for this reason. Otherwise the reason says how the
    functions differ from the usual ones; empty if they do not.

    Raises:
        ValueError: the environment variable has another value.
    """
    asked = os.environ.get(ENGINE_VARIABLE) or "native"
    if asked not in ("native", "functions", "msgspec"):
        raise ValueError(f"{ENGINE_VARIABLE} must be native, functions or msgspec, not {asked!r}")
    why_not = _ASKED_FOR if asked == "msgspec" else _why_unsupported()
    if why_not:
        return {}, why_not
    found: dict[str, Any] = {}
    status = lib.cw_python(id(found), asked == "functions")
    if status < 0:
        return {}, "the native library's test of this interpreter failed"
    if not found.pop("claim")():
        return {}, "another interpreter of this process has the native reader"
    return found, "CPython's functions count references" if status else ""


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

    If a process has several interpreters, only the first one that calls this gets the functions.

    Raises:
        ValueError: the environment variable has another value.
    """
    return choose()[0]


def functions_if_any() -> dict[str, Any]:
    """Like :func:`functions`, but empty for a wrong value of the environment variable: decoding reports the error."""
    try:
        return functions()
    except ValueError:
        return {}


_is_warned = False


def warn_of_msgspec() -> None:
    """Log a warning, once, if native functions are missing and the environment does not ask for msgspec.

    Call this when the process decodes or encodes for the first time: at import, a program has not set up its logs.
    """
    global _is_warned
    if _is_warned:
        return
    _is_warned = True  # first, because a handler of logs may encode messages
    with suppress(ValueError):  # decoding reports the error
        found, why_not = choose()
        if not found and why_not != _ASKED_FOR:
            warn("decoded and encoded", why_not)
        elif found and "new_writer" not in found:
            warn("encoded", "the native writer does not know the layout of this interpreter's strings or lists")


def warn(done: str, why: str) -> None:
    """Log that messages are decoded or encoded with msgspec."""
    # Import logging here, because importing it is slow. Do not use warnings.warn(): users can turn warnings into
    # exceptions, and lines would be lost.
    from logging import getLogger

    getLogger("claude_wire").warning("messages are %s with msgspec: %s", done, why)
