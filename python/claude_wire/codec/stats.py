"""The counts of a decoder."""

from __future__ import annotations

from typing import NamedTuple


class DecoderStats(NamedTuple):
    """The bytes, lines and messages of a :class:`Decoder` since its creation."""

    bytes: int
    """The number of bytes fed."""
    lines: int
    """The number of lines, without blank, skipped and merged lines."""
    messages: int
    """The number of lines that became messages, including unknown messages."""
    invalid: int
    """The number of lines that are not a JSON object."""
    unknown: int
    """The number of messages with an unknown kind or an unknown part; 0 for dicts."""
    repaired: int
    """The number of lines with lone surrogates, which msgspec refuses."""
    skipped: int = 0
    """The number of lines that were skipped because of ``only``."""
    merged: int = 0
    """The number of lines whose text became part of an earlier message because of ``coalesce``."""

    def summary(self) -> str:
        """Return the main counts as text."""
        return f"{self.messages:,} messages, {self.invalid:,} invalid lines, {self.bytes:,} bytes"
