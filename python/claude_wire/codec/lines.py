"""Turn lines into messages with msgspec.

One loop in C decodes a block's lines with msgspec. A line that msgspec or the native reader refuses takes a slow path.
This module does not use the text of msgspec's exceptions, which is wrong for a lone surrogate ("truncated").
"""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from claude_wire.codec.engines import Engine, Fall, Rest, engine_of
from claude_wire.codec.objects import REFUSED, Objects
from claude_wire.messages.vocabulary import Vocabulary
from claude_wire.native.block import Block, bare_line

if TYPE_CHECKING:
    from typing_extensions import Self


class Lines(Objects, ABC):
    """Turns lines into messages. Counts lines with lone surrogates and lines with unknown content."""

    #: The exceptions that the function from :meth:`_decoder` raises to refuse a line.
    _refusals: tuple[type[Exception], ...] = REFUSED

    def __init__(self, surrogates: str, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(surrogates)
        #: The native reader, if it decodes.
        self.engine: Engine = engine_of(vocabulary)

    @abstractmethod
    def _decoder(self) -> Callable[[bytes], Any]:
        """Return the function that decodes a line, with or without its line end, or raises to refuse the line."""

    @abstractmethod
    def line(self, line: bytes) -> Any:
        """Return a line's message, even if msgspec refuses the line. Raises :class:`BadLine`."""

    @abstractmethod
    def fresh(self) -> Self:
        """Return a new object that returns the same messages and has its own counters."""

    def fallen(self, line: bytes, wanted: int) -> Any:
        """Return the message for a line that the native reader or msgspec refused. Raises :class:`BadLine`.

        Args:
            wanted: the number of the class in this line that needs a plan, or -1.
        """
        message = self.line(bare_line(line))
        if wanted >= 0:
            self.engine.plan(wanted, line, message)
        return message

    def read(self, blocks: Iterable[Block]) -> Rest:
        """Decode blocks with msgspec. Return the messages, and the lines that msgspec refuses."""
        decode = self._decoder()
        messages: list[Any] = []
        falls: list[Fall] = []
        for data, offset, line_number, length in blocks:
            if length >= 0:
                falls.append((len(messages), bytes(data), offset, line_number, -1, length))
                messages.append(None)
                continue
            block = bytes(data)
            rest = BytesIO(block)
            at = 0
            while True:
                try:
                    messages.extend(map(decode, rest))
                    break
                except self._refusals:
                    end = rest.tell()
                start = block.rfind(b"\n", at, end - 1) + 1 or at
                line_number += block.count(b"\n", at, start)
                line = block[start:end].removesuffix(b"\n")
                if bare_line(line):
                    falls.append((len(messages), line, offset + start, line_number, -1, -1))
                    messages.append(None)
                at = end
                line_number += 1
        return messages, falls
