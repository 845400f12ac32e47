"""The base classes of messages and their parts.

Declare a field that may be null or absent as follows:

=====================  ==========================  =================================  =======================
on the wire            annotation and default      decoded when absent / when null    encoded when ``None``
=====================  ==========================  =================================  =======================
present, may be null   ``T | None = null()``       ``None`` / ``None``                as ``null``
may be absent          ``T | None = None``         ``None`` / ``None``                omitted
absent is not null     ``T | None | UnsetType``    ``UNSET`` / ``None``               as ``null``; ``UNSET`` is omitted
=====================  ==========================  =================================  =======================

``UNSET`` (from msgspec) is false in a condition, like ``None``.

Declare fields in the CLI's order, rare ones last, because msgspec starts its search for each key at the previous key's
field. A recorded ``result`` with 27 keys takes 106 comparisons in this order, and 549 in another.
"""

# Plain JSON has no types: after isinstance(value, dict), pyright still does not know the type of the values.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import reprlib
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec

from claude_wire.support.arguments import nearest

__all__ = ["ByHand", "MessageBase", "NoOther", "Number", "Sender", "Wire", "constant", "null", "short_repr"]

T = TypeVar("T")

if TYPE_CHECKING:
    Number: TypeAlias = float
else:
    #: A JSON number as received: ``5432`` stays an int and ``5432.0`` a float.
    Number = int | float

#: Maximum number of characters of content in a repr, because prompts and tool output do not belong in logs.
REPR_CHARS = 80

#: The key that msgspec's own encoders write for ``Wire.extra``. This library writes the items of ``extra`` instead.
EXTRA_KEY = "(extra)"
#: The bytes that msgspec writes before an ``extra``. The key may also be from a program's dict.
EXTRA_BYTES = f'"{EXTRA_KEY}":'.encode()
_encode_json = msgspec.json.Encoder().encode

#: Fields that a repr shows last: ids, and tags that only repeat the class.
REPR_LAST = (
    "type",
    "subtype",
    "id",
    "request_id",
    "tool_use_id",
    "hook_id",
    "command_uuid",
    "uuid",
    "session_id",
    "parent_tool_use_id",
    "agent_id",
    "api_message_id",
    "timestamp",
    "extra",
)

if TYPE_CHECKING:
    Extra: TypeAlias = dict[str, Any] | None
else:

    class Extra(dict):
        """The type of ``Wire.extra``. msgspec accepts no JSON value for this type.

        If a line has the key :data:`EXTRA_KEY`, msgspec therefore refuses the line, like any line with an unknown key,
        and ``tolerant`` builds the message.
        """

    Extra = Annotated[Extra, msgspec.Meta(extra_json_schema={"type": "object"})]


class _Short(reprlib.Repr):
    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        # The inherited method would sort all keys, even if it shows only four.
        if level <= 0:
            return "{...}"
        shown = [f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}" for k, v in islice(x.items(), self.maxdict)]
        return "{" + ", ".join(shown) + (", ...}" if len(x) > self.maxdict else "}")

    def repr_instance(self, x: Any, level: int) -> str:
        # The inherited method calls `repr(x)`, which counts levels from the start and so takes time that is exponential
        # in the depth.
        return _named(x, level - 1) if isinstance(x, Wire) else super().repr_instance(x, level)


_short = _Short()
_short.maxstring = _short.maxother = REPR_CHARS
_short.maxlist = _short.maxdict = 4
_short.maxlevel = 3


@cache
def _repr_order(cls: type[Wire]) -> tuple[str, ...]:
    """Return the names of the attributes in a class's repr, in order."""
    fields = [field for field in cls.__struct_fields__ if field not in cls.repr_first and field != cls.repr_unwraps]
    fields.sort(key=REPR_LAST.__contains__)
    return (*cls.repr_first, *fields)


def _named(message: Wire, level: int) -> str:
    name = type(message).__name__
    if level <= 0:
        return f"{name}(...)"
    values = ((field, getattr(message, field)) for field in _repr_order(type(message)))
    return short_repr(name, [(f, v) for f, v in values if v is not None and v is not msgspec.UNSET], level)


def short_repr(name: str, fields: list[tuple[str, Any]], level: int = _short.maxlevel) -> str:
    """Format ``Name(field=value, …)`` with at most :data:`REPR_CHARS` characters between the parentheses."""
    content = ", ".join(f"{field}={_short.repr1(value, level)}" for field, value in fields)
    if len(content) > REPR_CHARS:
        content = content[: REPR_CHARS - 1] + "…"
    return f"{name}({content})"


def constant(value: T) -> T:
    """Define a field with a default that is always encoded. ``omit_defaults`` does not omit a factory's default."""
    field: T = msgspec.field(default_factory=lambda: value)
    return field


def null() -> Any:
    """Define a field that is ``None`` by default, and encoded as ``null``, because readers expect the key."""
    return constant(None)


class ByHand(msgspec.StructMeta):
    """The metaclass of messages that users construct. The error for a wrong argument suggests the right field.

    Construction takes 0.7 µs longer. Decoding does not use this metaclass.
    """

    if not TYPE_CHECKING:  # type checkers read the arguments from the fields

        def __call__(cls, *args, **fields):
            try:
                return super().__call__(*args, **fields)
            except TypeError as error:
                names = [name for name in cls.__struct_fields__ if name != "extra"]
                content = f"; {cls.__name__}.of(...) takes its content" if hasattr(cls, "of") else ""
                if len(args) > len(cls.__match_args__):
                    raise TypeError(f"{cls.__name__} takes its fields by name{content}") from None
                wrong = [name for name in fields if name not in cls.__struct_fields__]
                if not wrong:
                    raise TypeError(f"{cls.__name__}: {error}") from None
                advice = nearest(wrong[0], names) or content or f"; it has {', '.join(names)}"
                raise TypeError(f"{cls.__name__} has no field {wrong[0]!r}{advice}") from None


class Wire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of messages and their parts.

    Instances are immutable. The garbage collector does not track them, because decoded JSON has no cycles. Do not put a
    message into a list or dict of the same message: such a cycle is never freed.

    Keys without a field are in :attr:`extra`, and :func:`~claude_wire.encode` and :meth:`to_dict` write them again. A
    host thus passes on messages of a newer CLI without loss. msgspec's own decoders refuse such keys, and its encoders
    write ``extra`` as a nested object.
    """

    extra: Extra = msgspec.field(default=None, name=EXTRA_KEY)
    """The keys without a field, encoded after the fields unless a field has the same key; None if there are none."""
    # Not a string: msgspec would evaluate the string again for each subclass, which takes 5 ms.
    __annotations__["extra"] = Extra

    if TYPE_CHECKING:
        repr_first: ClassVar[tuple[str, ...]]
        repr_unwraps: ClassVar[str]

    repr_first = ()
    """Attributes that a repr shows first."""
    repr_unwraps = ""
    """A field that a repr omits, because attributes in :attr:`repr_first` show its content; empty for none."""

    # `dict(message)` raises Python's own TypeError. A better text would need `__iter__` or `keys`: with `__iter__` a
    # message is an Iterable, which pandas takes apart like a list, and `hasattr(message, "keys")` would raise.
    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object as plain Python objects, with the same keys as on the wire."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def __repr__(self) -> str:
        return _named(self, _short.maxlevel)


def wire_fields(cls: type[Wire]) -> list[msgspec.structs.FieldInfo]:
    """Return a class's fields, without ``extra``."""
    return [field for field in msgspec.structs.fields(cls) if field.encode_name != EXTRA_KEY]


def to_plain(value: Any, *, keep_raw: bool = False) -> Any:
    """Convert messages anywhere in a value to plain Python objects. Items of ``extra`` become keys.

    Args:
        keep_raw: do not convert ``msgspec.Raw`` objects.
    """
    plain = msgspec.to_builtins(value, builtin_types=(msgspec.Raw,) if keep_raw else ())
    if _may_have_extra(value):
        _put_extra(value, plain)
    return plain


def _may_have_extra(value: Any) -> bool:
    """Return False if no message in a value has an ``extra``. This takes a tenth of the time of :func:`_put_extra`."""
    try:
        return EXTRA_BYTES in _encode_json(value)
    except (OverflowError, TypeError, ValueError, RecursionError):  # JSON cannot express the value
        return True


def _put_extra(value: Any, plain: Any) -> None:
    """Move the items of each ``extra``, which msgspec wrote as a nested object, into the object around it."""
    pairs = [(value, plain)]
    while pairs:
        value, plain = pairs.pop()
        if isinstance(value, dict):
            # Pair the values by position, because msgspec converts keys. If two keys became equal, skip the dict: the
            # pairs are unknown.
            if len(value) == len(plain):
                pairs += zip(value.values(), plain.values(), strict=True)
        elif isinstance(value, (list, tuple, set, frozenset)):
            pairs += zip(value, plain, strict=True)
        elif isinstance(plain, dict):  # a Struct or a dataclass
            is_struct = isinstance(value, msgspec.Struct)
            keys, names = (value.__struct_encode_fields__, value.__struct_fields__) if is_struct else (plain, plain)
            at = zip(keys, names, strict=True)
            pairs += [(getattr(value, name), plain[key]) for key, name in at if key in plain]
            # `extra` is None in a class that writes defaults.
            extra = plain.pop(EXTRA_KEY, None) if isinstance(value, Wire) else None
            for key, item in extra.items() if isinstance(extra, dict) else ():
                plain.setdefault(key, item)


#: Who sends a message: the CLI or another agent, the host, or both.
Sender: TypeAlias = Literal["agent", "host", "both"]


class MessageBase(Wire, tag_field="type", tag="", frozen=True):
    """The base class of messages. To add a message, write a subclass, and run ``make generate``.

    ``tag`` is the ``type``. Classes for the types ``system`` and ``result`` derive from :class:`SystemMessage` and
    :class:`ResultMessage`, and have a :func:`constant` field ``subtype``.
    """

    if TYPE_CHECKING:
        sent_by: ClassVar[Sender]

    sent_by = "agent"
    """The side that sends the message."""


class NoOther(Wire, tag_field="type", tag="", frozen=True):
    """A second member for a union of one class, because msgspec checks tags only in unions of two or more classes."""

    def __post_init__(self) -> None:
        raise ValueError("unknown type")
