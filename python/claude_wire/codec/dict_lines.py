"""Turn lines into plain dicts."""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from claude_wire.codec.lines import Lines
from claude_wire.codec.objects import decode_dict
from claude_wire.native.block import bare_line

if TYPE_CHECKING:
    from typing_extensions import Self


class DictLines(Lines):
    """Turns lines into plain dicts, with msgspec or with the caller's ``loads``."""

    def __init__(self, surrogates: str, loads: Callable[[bytes], Any] | None) -> None:
        super().__init__(surrogates)
        self._loads = loads
        if loads is not None:
            self._refusals = (Exception,)  # `loads` may raise anything, and no line may be lost

    def _decoder(self) -> Callable[[bytes], Any]:
        return decode_dict if self._loads is None else self._loaded

    def fresh(self) -> Self:
        return type(self)("keep" if self.keep else "replace", self._loads)

    def line(self, line: bytes) -> dict[str, Any]:
        if self._loads is not None:
            try:
                return self._loaded(line)
            except self._refusals:
                pass
        return self.object(line)

    def _loaded(self, line: bytes) -> dict[str, Any]:
        """Call ``loads`` with a line, without its line end.

        Raises:
            ValueError: the line is blank or not UTF-8, it may have surrogates that must be replaced, or ``loads``
                raised StopIteration or did not return a dict.
        """
        line = bare_line(line)
        if not line.isascii():
            str(line, "utf-8")  # raises UnicodeDecodeError
        if not line or (not self.keep and b"\\u" in line):
            raise ValueError("not for loads")
        try:
            value = self._loads(line)  # type: ignore[misc]  # `_loads` is not None here
        except StopIteration:
            # The caller iterates over map(), which StopIteration would end before the last line.
            raise ValueError("no value") from None
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return value
