"""The base of every control request's body, and how the payload of an answer is typed by the request it answers."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, get_args, get_origin

from claude_wire.errors import PayloadError
from claude_wire.messages._base import Wire
from claude_wire.messages._tolerant import Findings, Misfit, build

__all__ = ["ControlRequestBody"]

A = TypeVar("A")


def parse_answer(answer: type[A], payload: dict[str, Any]) -> A:
    """Build ``payload`` as ``answer``: a Struct, a union of them, or ``dict``.

    Raises:
        PayloadError: it does not fit.
    """
    try:
        return build(payload, answer, Findings())
    except Misfit as misfit:
        raise PayloadError(f"the payload does not fit: {misfit.reason}", payload) from None


class ControlRequestBody(Wire, Generic[A], tag_field="subtype", frozen=True):
    """What a control request asks for: the object in ``ControlRequest.request``, told apart by its ``subtype``.

    ``A`` is the type of the payload in a successful answer to it; see ``ControlResponse.payload_as``.
    """

    @classmethod
    def parse_answer(cls, payload: dict[str, Any]) -> A:
        """Type the payload of a successful answer to this kind of request.

        Raises:
            PayloadError: it does not fit.
        """
        bases: tuple[Any, ...] = cls.__dict__["__orig_bases__"]  # typing puts (ControlRequestBody[A],) there
        if get_origin(bases[0]) is not ControlRequestBody:
            raise TypeError(f"{cls.__name__} is no kind of request")
        answer: type[A] = get_args(bases[0])[0]
        return parse_answer(answer, payload)
