"""Read messages from files, pipes and any other source of bytes, and set the process-wide byte budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from claude_wire.native.budget import byte_budget, set_byte_budget
    from claude_wire.native.overflow import DrainStats
    from claude_wire.streams.message_stream import Batches, MessageStream
    from claude_wire.streams.read import Reader
    from claude_wire.streams.read_ahead import Chunks

__all__ = ["Batches", "Chunks", "DrainStats", "MessageStream", "Reader", "byte_budget", "set_byte_budget"]

# Name -> module. Imported on first use, because decoding does not need these modules.
_LATER = {
    "Batches": "streams.message_stream",
    "Chunks": "streams.read_ahead",
    "DrainStats": "native.overflow",
    "MessageStream": "streams.message_stream",
    "Reader": "streams.read",
    "byte_budget": "native.budget",
    "set_byte_budget": "native.budget",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"claude_wire.{_LATER[name]}"), name)
