"""The arguments of a :class:`~claude_wire.Decoder` that its overloads, and those of what makes one, have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypedDict

from claude_wire.codec.kind_names import KindName
from claude_wire.codec.kinds import Kind

__all__ = ["DecoderArguments", "DictArguments", "FamilyArguments"]


class DecoderArguments(TypedDict, total=False):
    """The arguments of a :class:`Decoder` that its overloads have in common."""

    only: Iterable[KindName | Kind] | None
    coalesce: bool
    max_line_bytes: int
    surrogates: Literal["keep", "replace"]


class FamilyArguments(TypedDict, total=False):
    """Those of one that gives messages of a family."""

    only: Iterable[str | Kind] | None
    max_line_bytes: int
    surrogates: Literal["keep", "replace"]


class DictArguments(DecoderArguments, total=False):
    """Those of one that gives dicts."""

    loads: Callable[[bytes], Any] | None
