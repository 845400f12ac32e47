"""Messages, blocks, events and other objects without a class.

Each is a ``dict`` with the JSON object as received, which encodes to the same JSON. An object is unknown if no class
has its tag (a newer CLI or another agent sent it), or if a field does not fit the class; ``reason`` says which. In a
``match``, put ``case UnknownMessage():`` before any mapping pattern.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, Union, get_args

from claude_wire.messages.base import NoOther, short_repr

if TYPE_CHECKING:
    from typing_extensions import Self


class Unknown(dict[str, Any]):
    """The base class of unknown objects: a JSON object as received, and the reason why it has no class."""

    __slots__ = ("_reason",)

    tag_fields: ClassVar[tuple[str, ...]] = ("type",)
    """The keys that may have the object's tag. The first key that is present counts."""

    _reason: str

    @classmethod
    def because(cls, value: dict[str, Any], reason: str) -> Self:
        """Create an unknown object. ``reason`` says why the JSON object ``value`` has no class."""
        unknown = cls(value)
        unknown._reason = reason
        return unknown

    @property
    def reason(self) -> str:
        """Why there is no class: ``"unknown type"`` (or subtype, …), or the path of the wrong field and its problem."""
        return getattr(self, "_reason", "")

    @property
    def type(self) -> str | None:
        """The object's tag; None if the tag is absent or not a string."""
        for key in self.tag_fields:
            value = self.get(key)
            if isinstance(value, str):
                return value
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object as a plain ``dict``."""
        return dict(self)

    def __repr__(self) -> str:
        others = sorted(str(key) for key in self if key not in self.tag_fields)
        return short_repr(type(self).__name__, [("type", self.type), ("reason", self.reason), ("keys", others)])


class UnknownMessage(Unknown):
    """A line with an unknown type, or with a field that does not fit its type."""

    __slots__ = ()

    @property
    def subtype(self) -> str | None:
        """The value of ``subtype``; None if it is absent or not a string."""
        value = self.get("subtype")
        return value if isinstance(value, str) else None


class UnknownBlock(Unknown):
    """A content block with an unknown type, or with a field that does not fit its type."""

    __slots__ = ()


class UnknownEvent(Unknown):
    """The ``event`` of a stream event, with an unknown type, or with a field that does not fit its type."""

    __slots__ = ()


class UnknownDelta(Unknown):
    """The ``delta`` of a content block delta, with an unknown type, or with a field that does not fit its type."""

    __slots__ = ()


class UnknownRequest(Unknown):
    """The ``request`` of a control request, with an unknown subtype, or with a field that does not fit its type."""

    __slots__ = ()
    tag_fields: ClassVar[tuple[str, ...]] = ("subtype",)


class UnknownHookInput(Unknown):
    """The ``input`` of a hook callback, with an unknown event, or with a field that does not fit its type."""

    __slots__ = ()
    tag_fields: ClassVar[tuple[str, ...]] = ("hook_event_name",)


class UnknownObject(Unknown):
    """A smaller part of a message (a source, a citation, a permission update, …) of an unknown kind."""

    __slots__ = ()
    tag_fields: ClassVar[tuple[str, ...]] = ("type", "subtype", "kind", "behavior", "hookEventName")


def unknown_class(members: Iterable[type]) -> type[Unknown]:
    """Return the class for objects that do not fit any of these members of a union."""
    return _BY_MEMBERS.get(frozenset(members), UnknownObject)


_BY_MEMBERS: dict[frozenset[type], type[Unknown]] = {}

if TYPE_CHECKING:
    OrUnknownBlock: TypeAlias = UnknownBlock
    OrUnknownDelta: TypeAlias = UnknownDelta
    OrUnknownEvent: TypeAlias = UnknownEvent
    OrUnknownHookInput: TypeAlias = UnknownHookInput
    OrUnknownObject: TypeAlias = UnknownObject
    OrUnknownRequest: TypeAlias = UnknownRequest
else:

    class _OrUnknown:
        """The last member of a union, such as ``A | B | OrUnknownBlock``.

        A type checker sees the class of unknown values. msgspec refuses that class in a union of Structs, so at run
        time the union has only the other members, and :func:`unknown_class` returns the class.

        ``A | OrUnknownBlock`` also makes the tag of ``A`` required. Otherwise msgspec would accept an ``A`` without its
        tag, and encode it with a tag.
        """

        def __init__(self, cls: type[Unknown]) -> None:
            self._class = cls

        def __ror__(self, union: Any) -> Any:
            members = get_args(union) or (union, NoOther)
            _BY_MEMBERS[frozenset(members)] = self._class
            return Union[members]

    OrUnknownBlock = _OrUnknown(UnknownBlock)
    OrUnknownDelta = _OrUnknown(UnknownDelta)
    OrUnknownEvent = _OrUnknown(UnknownEvent)
    OrUnknownHookInput = _OrUnknown(UnknownHookInput)
    OrUnknownObject = _OrUnknown(UnknownObject)
    OrUnknownRequest = _OrUnknown(UnknownRequest)
