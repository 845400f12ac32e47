"""Dialects: how agents other than the CLI write the protocol's messages on the wire.

In Python, hosts and agents always use the messages of stream-json. A dialect translates these messages to lines, and
lines to messages.
"""

from __future__ import annotations

from claude_wire.dialects.auto import AUTO
from claude_wire.dialects.classic import CLASSIC
from claude_wire.dialects.dialect import Connection, Dialect
from claude_wire.dialects.json_rpc import JSON_RPC
from claude_wire.dialects.known import dialect_of
from claude_wire.dialects.miriad import MIRIAD
from claude_wire.dialects.stream_json import STREAM_JSON, STREAM_JSON_2_1_7

__all__ = [
    "AUTO",
    "CLASSIC",
    "JSON_RPC",
    "MIRIAD",
    "STREAM_JSON",
    "STREAM_JSON_2_1_7",
    "Connection",
    "Dialect",
    "dialect_of",
]
