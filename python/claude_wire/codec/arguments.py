"""The types of the keyword arguments for :class:`~claude_wire.Decoder`, and for functions that create one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypedDict

from claude_wire.codec.kind_names import KindName
from claude_wire.codec.kinds import Kind


class DecoderArguments(TypedDict, total=False):
    """The arguments that a :class:`Decoder` takes for any type of message."""

    only: Iterable[KindName | Kind] | None
    coalesce: bool
    max_line_bytes: int
    surrogates: Literal["keep", "replace"]


class FamilyArguments(TypedDict, total=False):
    """The arguments that a :class:`Decoder` takes for a family of messages."""

    only: Iterable[str | Kind] | None
    max_line_bytes: int
    surrogates: Literal["keep", "replace"]


class DictArguments(DecoderArguments, total=False):
    """The arguments that a :class:`Decoder` takes for dicts."""

    loads: Callable[[bytes], Any] | None
