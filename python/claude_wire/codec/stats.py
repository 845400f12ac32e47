"""Counts of a decoder."""

from __future__ import annotations

from typing import NamedTuple


class DecoderStats(NamedTuple):
    """Counts of a :class:`Decoder` since it was created."""

    bytes: int
    """Bytes that were fed."""
    lines: int
    """Lines, without blank, skipped and merged lines."""
    messages: int
    """Lines that became messages, unknown messages included."""
    invalid: int
    """Lines that are not a JSON object."""
    unknown: int
    """Messages of an unknown kind, or with an unknown part; 0 for dicts."""
    repaired: int
    """Lines with lone surrogates, which msgspec refuses."""
    skipped: int = 0
    """Lines that were skipped because of ``only``."""
    merged: int = 0
    """Lines whose text became part of an earlier message because of ``coalesce``."""

    def summary(self) -> str:
        """The main counts as a text."""
        return f"{self.messages:,} messages, {self.invalid:,} invalid lines, {self.bytes:,} bytes"
