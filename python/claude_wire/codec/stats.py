"""Counts of a decoder."""

from __future__ import annotations

from typing import NamedTuple


class DecoderStats(NamedTuple):
    """Counts of a :class:`Decoder` since it was created."""

    #: Bytes that were fed.
    bytes: int
    #: Lines, without blank, skipped and merged lines.
    lines: int
    #: Lines that became messages, unknown messages included.
    messages: int
    #: Lines that are not a JSON object.
    invalid: int
    #: Messages of an unknown kind, or with an unknown part; 0 for dicts.
    unknown: int
    #: Lines with lone surrogates, which msgspec refuses.
    repaired: int
    #: Lines that were skipped because of ``only``.
    skipped: int = 0
    #: Lines whose text became part of an earlier message because of ``coalesce``.
    merged: int = 0

    def summary(self) -> str:
        """The main counts as a text."""
        return f"{self.messages:,} messages, {self.invalid:,} invalid lines, {self.bytes:,} bytes"
