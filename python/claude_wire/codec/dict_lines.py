"""Lines as plain dicts."""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from claude_wire.codec.lines import Bytes, Lines, is_utf8
from claude_wire.codec.objects import decode_dict_lines
from claude_wire.native.block import split_lines

if TYPE_CHECKING:
    from typing_extensions import Self


class DictLines(Lines):
    """Lines as plain dicts, by msgspec or by the caller's ``loads``."""

    def __init__(self, surrogates: str, loads: Callable[[bytes], Any] | None) -> None:
        super().__init__(surrogates)
        self._loads = loads
        if loads is not None:
            self._refusals = (Exception,)  # `loads` may raise anything, and no line may be lost

    def fresh(self) -> Self:
        return type(self)("keep" if self.keep else "replace", self._loads)

    def _several(self, data: Bytes, count: int) -> list[dict[str, Any]]:
        objects = decode_dict_lines(data) if self._loads is None else self._loaded(bytes(data))
        if len(objects) != count:
            raise msgspec.DecodeError("not one object on each line")
        return objects

    def line(self, line: bytes) -> dict[str, Any]:
        if self._loads is not None and is_utf8(line):
            try:
                return self._loaded(line)[0]
            except self._refusals:
                pass
        return self.object(line)

    def _loaded(self, data: bytes) -> list[dict[str, Any]]:
        """Read lines by ``loads``. Raises ValueError if it returns no dict, or might not replace surrogates."""
        if not self.keep and b"\\u" in data:
            raise ValueError("surrogates, perhaps, which are to be replaced")
        values = list(map(cast("Callable[[bytes], Any]", self._loads), split_lines(data)))
        if not all(issubclass(cls, dict) for cls in set(map(type, values))):
            raise ValueError("not an object")
        return values
