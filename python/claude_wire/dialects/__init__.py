"""Dialects of compatible agents: how the messages of the protocol stand on their wires.

Knows messages; not streams, sessions and processes.
"""

from __future__ import annotations

from claude_wire.dialects.classic import CLASSIC
from claude_wire.dialects.dialect import Connection, Dialect
from claude_wire.dialects.json_rpc import JSON_RPC
from claude_wire.dialects.miriad import MIRIAD
from claude_wire.dialects.stream_json import STREAM_JSON, STREAM_JSON_2_1_7

__all__ = ["CLASSIC", "JSON_RPC", "MIRIAD", "STREAM_JSON", "STREAM_JSON_2_1_7", "Connection", "Dialect"]

#: The dialects by their names.
BY_NAME: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (STREAM_JSON, STREAM_JSON_2_1_7, CLASSIC, MIRIAD, JSON_RPC)
}
