"""The base of every control request's body, and how the payload of an answer is typed by the request it answers."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import GenericAlias
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin

import msgspec

from claude_wire.errors import PayloadError
from claude_wire.messages.base import Wire
from claude_wire.messages.tolerant import Findings, Misfit, build

__all__ = ["ControlRequestBody"]

A = TypeVar("A")


def parse_answer(answer: type[A], payload: dict[str, Any]) -> A:
    """Build ``payload`` as ``answer``: a Struct, a union of them, or ``dict``.

    An empty payload acknowledges the request: lists are empty then, and all other fields None.

    Raises:
        PayloadError: it does not fit.
    """
    if not payload and isinstance(answer, type) and issubclass(answer, Wire):
        payload = _acknowledgement(answer)
    try:
        return build(payload, answer, Findings())
    except Misfit as misfit:
        raise PayloadError(f"the payload does not fit: {misfit.reason}", payload) from None


@cache
def _acknowledgement(answer: type[Wire]) -> dict[str, Any]:
    """The payload that an answer without one stands for: the lists and objects that must be there are empty."""
    kinds: dict[Any, Any] = {list: [], dict: {}}
    required = [field for field in msgspec.structs.fields(answer) if field.required]
    made = {field.encode_name: kinds.get(get_origin(field.type)) for field in required}
    return made if None not in made.values() else {}


if TYPE_CHECKING:
    from typing import Generic
else:

    class _NoBase:
        def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[()]:
            return ()

    # To subclass the real one takes 40% longer (CPython 3.11), and there are 52 requests, which every import makes.
    Generic = {A: _NoBase()}


class ControlRequestBody(Wire, Generic[A], tag_field="subtype", frozen=True):
    """What a control request asks for: the object in ``ControlRequest.request``, told apart by its ``subtype``.

    ``A`` is the type of the payload in a successful answer to it; see ``ControlResponse.payload_as``. It may be the
    name of a class of :mod:`claude_wire.messages`, which is then imported when the first answer is typed.
    """

    if not TYPE_CHECKING:
        __class_getitem__ = classmethod(GenericAlias)

    @classmethod
    def parse_answer(cls, payload: dict[str, Any]) -> A:
        """Type the payload of a successful answer to this kind of request.

        Raises:
            PayloadError: it does not fit.
        """
        bases: tuple[Any, ...] = cls.__dict__["__orig_bases__"]  # (ControlRequestBody[A],) as it was written
        if get_origin(bases[0]) is not ControlRequestBody:
            raise TypeError(f"{cls.__name__} is no kind of request")
        answer: type[A] | str = get_args(bases[0])[0]
        if isinstance(answer, str):
            answer = cast("type[A]", getattr(import_module("claude_wire.messages"), answer))
        return parse_answer(answer, payload)
