"""The base class of control requests. A request class names the type of its answer's payload."""

from __future__ import annotations

from functools import cache
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_origin

import msgspec

from claude_wire.messages.base import Sender, Wire
from claude_wire.messages.tolerant import Findings, Misfit, build
from claude_wire.support.errors import PayloadError

A = TypeVar("A")


def parse_answer(answer: type[A], payload: dict[str, Any]) -> A:
    """Convert a payload to the type ``answer``: a Struct, a union of Structs, or ``dict``.

    For an empty payload, which only acknowledges the request, lists are empty and all other fields are None.

    Raises:
        PayloadError: the payload does not fit.
    """
    if not payload and isinstance(answer, type) and issubclass(answer, Wire):
        payload = _acknowledgement(answer)
    try:
        return build(payload, answer, Findings())
    except Misfit as misfit:
        raise PayloadError(f"the payload does not fit: {misfit.reason}", payload) from None


@cache
def _acknowledgement(answer: type[Wire]) -> dict[str, Any]:
    """Return the payload to use in place of an empty one. Required lists and objects are empty."""
    kinds: dict[Any, Any] = {list: [], dict: {}}
    required = [field for field in msgspec.structs.fields(answer) if field.required]
    made = {field.encode_name: kinds.get(get_origin(field.type)) for field in required}
    return made if None not in made.values() else {}


if TYPE_CHECKING:

    class _Answered(Wire, Generic[A], frozen=True): ...

else:

    class _Answered(Wire, frozen=True):
        # typing.Generic would make the import 1.6 ms slower, because it slows down the definition of each subclass.
        __class_getitem__ = classmethod(GenericAlias)


class ControlRequestBody(_Answered[A], tag_field="subtype", frozen=True):
    """The base class for ``request`` of a :class:`ControlRequest`. The tag of a subclass is the ``subtype``.

    ``A`` is the type of the payload in a successful answer. To add a request, write a subclass and run
    ``make generate``.
    """

    if TYPE_CHECKING:
        sent_by: ClassVar[Sender]

    sent_by = "host"
    """The side that sends the request."""

    @classmethod
    def answer_type(cls) -> type[A]:
        """Return the type of the answer: ``A`` in ``class ThisRequest(ControlRequestBody[A])``."""
        base: Any = cls.__dict__["__orig_bases__"][0]
        if get_origin(base) is not ControlRequestBody:
            raise TypeError(f"{cls.__name__} is not a kind of request")
        answer: type[A] = get_args(base)[0]
        return answer

    @classmethod
    def parse_answer(cls, payload: dict[str, Any]) -> A:
        """Convert the payload of a successful answer to the type of this request's answer.

        Raises:
            PayloadError: the payload does not fit.
        """
        return parse_answer(cls.answer_type(), payload)
