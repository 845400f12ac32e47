"""Warn that msgspec decodes or encodes where the native library should."""

from __future__ import annotations

from contextlib import suppress

from claude_wire.native.functions import choose

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
        choice = choose()
        if choice.why_not and not choice.is_asked_for:
            warn("decoded and encoded", choice.why_not)
        elif choice.functions and "new_writer" not in choice.functions:
            warn("encoded", "the native writer does not know the layout of this interpreter's strings or lists")


def warn(done: str, why: str) -> None:
    """Log that messages are decoded or encoded with msgspec."""
    # Import logging here, because importing it is slow. Do not use warnings.warn(): users can turn warnings into
    # exceptions, and lines would be lost.
    from logging import getLogger

    getLogger("claude_wire").warning("messages are %s with msgspec: %s", done, why)
