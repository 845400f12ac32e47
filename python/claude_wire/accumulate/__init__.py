"""Build whole messages from stream events, without input and output. A message can be read while it streams."""

from __future__ import annotations

from claude_wire.accumulate.accumulator import Accumulator, PartialBlock, PartialMessage

__all__ = ["Accumulator", "PartialBlock", "PartialMessage"]
