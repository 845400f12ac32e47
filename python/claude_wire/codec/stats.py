"""What a decoder has seen."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DecoderStats"]


class DecoderStats(NamedTuple):
    """What a :class:`Decoder` has seen since it was made."""

    #: Bytes that were fed.
    bytes: int
    #: Lines that were not blank, without those that were passed over or merged.
    lines: int
    #: Lines that became messages, the unknown among them.
    messages: int
    #: Lines that are not one JSON object.
    invalid: int
    #: Messages that are, or have within them, something unknown; 0 when decoding to dicts.
    unknown: int
    #: Lines with lone surrogates, which msgspec does not read.
    repaired: int
    #: Lines that were passed over because of ``only``.
    skipped: int = 0
    #: Lines whose text became part of an earlier message because of ``coalesce``.
    merged: int = 0

    def summary(self) -> str:
        """How much was seen, in words."""
        return f"{self.messages:,} messages, {self.invalid:,} invalid lines, {self.bytes:,} bytes"
