"""Find a dialect by name."""

from __future__ import annotations

from typing import Literal

from claude_wire.dialects.auto import AUTO
from claude_wire.dialects.classic import CLASSIC
from claude_wire.dialects.dialect import BY_NAME, Dialect
from claude_wire.dialects.json_rpc import JSON_RPC
from claude_wire.dialects.miriad import MIRIAD
from claude_wire.dialects.stream_json import STREAM_JSON, STREAM_JSON_2_1_7
from claude_wire.support.arguments import shown, type_of

__all__ = ["BY_NAME", "dialect_of"]

BY_NAME.update((dialect.name, dialect) for dialect in (STREAM_JSON, STREAM_JSON_2_1_7, CLASSIC, MIRIAD, JSON_RPC, AUTO))


def dialect_of(given: Dialect | Literal["auto"]) -> Dialect:
    """Return the dialect for a ``dialect`` argument.

    Raises:
        TypeError: the argument is neither a dialect nor a str.
        ValueError: the argument is a str other than ``"auto"``.
    """
    if isinstance(given, Dialect):
        return given
    if given == "auto":
        return AUTO
    names = "STREAM_JSON, STREAM_JSON_2_1_7, CLASSIC, MIRIAD or JSON_RPC of claude_wire.dialects"
    if isinstance(given, str):
        raise ValueError(f"dialect must be {names}, or 'auto', not {shown(given)}")
    raise TypeError(f"dialect must be {names}, or 'auto', not {type_of(given)}")
