"""Put stream events together to whole messages, which can be read at any moment. Sans-IO."""

from __future__ import annotations

from claude_wire.accumulate.accumulator import Accumulator, PartialBlock, PartialMessage

__all__ = ["Accumulator", "PartialBlock", "PartialMessage"]
