"""The dialect in which a JSON-RPC 2.0 request ``run`` has many responses: each is one message of the turn."""

from __future__ import annotations

from claude_wire.dialects.dialect import Dialect

__all__ = ["JSON_RPC"]

#: The older interface of miriad-code.
JSON_RPC: Dialect = Dialect("json-rpc", busy="refuse", names_session=True)
