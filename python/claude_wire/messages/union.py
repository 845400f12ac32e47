"""Find the message class of a line, and check that a value is a message."""

from __future__ import annotations

from typing import Any, cast, get_args

from claude_wire.messages.base import Wire
from claude_wire.messages.conversation.results import ResultMessage
from claude_wire.messages.dialects import PermissionReply
from claude_wire.messages.invalid import InvalidLine
from claude_wire.messages.registry import Message, ResultSubtype, SystemSubtype, TypedMessage
from claude_wire.messages.tolerant import Findings
from claude_wire.messages.vocabulary import Vocabulary, by_subtype
from claude_wire.support.arguments import type_of

#: The classes of everything that a decoder returns.
_GIVEN: tuple[type, ...] = (*get_args(Message), InvalidLine)
_GIVEN_SET = frozenset(_GIVEN)


def require_message(taker: str, message: object) -> None:
    """Check that a value is a message of a stream. Otherwise ``taker``, the caller, would silently ignore the value.

    Raises:
        TypeError: ``message`` is a dict, a list, a line, or a part of a message.
    """
    if type(message) in _GIVEN_SET or isinstance(message, _GIVEN):
        return
    if isinstance(message, dict):
        raise TypeError(f"{taker} takes messages, not dicts: use Decoder() instead of Decoder(dict)")
    raise TypeError(f"{taker} takes the messages of a stream, one at a time, not {type_of(message)}")


class _Messages(Vocabulary):
    def without_type(self, value: dict[str, Any]) -> type[Wire] | str:
        return PermissionReply if "type" not in value and "allow" in value else "no type"


SYSTEM_BY_SUBTYPE: dict[str, type[Wire]] = by_subtype(get_args(SystemSubtype))
RESULT_BY_SUBTYPE: dict[str, type[Wire]] = by_subtype(get_args(ResultSubtype))

#: The messages of a stream.
MESSAGES = _Messages(
    get_args(TypedMessage),
    {"system": SYSTEM_BY_SUBTYPE, "result": RESULT_BY_SUBTYPE},
    {"result": ResultMessage},
)


def build_message(value: dict[str, Any], findings: Findings) -> Message:
    """Build a message from a line's JSON object.

    Raises:
        Ambiguous: a tag has two values.
    """
    return cast("Message", MESSAGES.build(value, findings))
