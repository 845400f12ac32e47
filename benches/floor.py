"""The lower bound for decoding time: msgspec alone, without checks and without a second pass for subtypes."""

from __future__ import annotations

from typing import Any, Union

import msgspec

from claude_wire.messages.union import MESSAGES

_subtyped = (
    msgspec.defstruct("Subtyped", [("subtype", str)], tag_field="type", tag=tag, frozen=True, gc=False)
    for tag in MESSAGES.by_subtype
)
_members = (*MESSAGES.by_type.values(), *_subtyped)

#: Decodes all of a stream's top-level types.
floor: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Union[_members])
