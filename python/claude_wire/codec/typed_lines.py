"""Turn lines into typed messages, of a stream or of another vocabulary such as transcripts.

The native reader decodes most lines (see :mod:`~claude_wire.codec.engines`). This module decodes the lines that the
native reader refuses, and all lines if it is not in use. For types without subtypes, such as ``assistant``, there is
one msgspec decoder of a union. For types with subtypes, such as ``system``, there is a decoder for each subtype's
Struct. If msgspec refuses a line, this module builds the message piece by piece.
"""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Union

import msgspec

from claude_wire.codec.lines import Lines
from claude_wire.codec.objects import REFUSED, BadLine
from claude_wire.messages.base import Wire
from claude_wire.messages.tolerant import Ambiguous, Findings
from claude_wire.messages.union import MESSAGES
from claude_wire.messages.vocabulary import Vocabulary

if TYPE_CHECKING:
    from typing_extensions import Self


@cache
def union_decoder(vocabulary: Vocabulary = MESSAGES) -> Callable[[bytes | bytearray | memoryview | str], Any]:
    """Return the decoder for all of a vocabulary's types that have no subtypes. It refuses lines of other types.

    Creating the decoder takes tens of milliseconds, so it is not created at import.
    """
    members = tuple(vocabulary.by_type.values())
    return msgspec.json.Decoder(Union[members]).decode


@cache
def _decoder_of(cls: type[Wire]) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(cls).decode


class _Tags(msgspec.Struct, gc=False):
    type: str = ""
    subtype: str = ""


_tags_of = msgspec.json.Decoder(_Tags).decode


class TypedLines(Lines):
    """Turns lines into typed messages. The default vocabulary is the messages of a stream."""

    def __init__(self, surrogates: str, vocabulary: Vocabulary = MESSAGES) -> None:
        super().__init__(surrogates, vocabulary)
        self._vocabulary = vocabulary

    def fresh(self) -> Self:
        return type(self)("keep" if self.keep else "replace", self._vocabulary)

    def _decoder(self) -> Callable[[bytes], Any]:
        return union_decoder(self._vocabulary)

    def line(self, line: bytes) -> Any:
        try:
            tags = _tags_of(line)
            cls = self._vocabulary.by_subtype.get(tags.type, {}).get(tags.subtype)
            return self._decoder()(line) if cls is None else _decoder_of(cls)(line)
        except REFUSED:
            pass
        return self._piecewise(line)

    def _piecewise(self, line: bytes) -> Any:
        """Build the message for a line with an unknown or wrong part. Raise BadLine if the line is not an object."""
        findings = Findings()
        try:
            value, findings.ambiguous = self.noted_object(line)
            message = self._vocabulary.build(value, findings)
        except Ambiguous as ambiguous:
            raise BadLine("tags", f"{ambiguous.key!r} has two values") from None
        finally:
            self.forget_ambiguous()
        if findings.unknown:
            self.unknown += 1
        return message
