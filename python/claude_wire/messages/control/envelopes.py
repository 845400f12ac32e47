"""The envelopes of the control protocol: request, answer and withdrawal.

Either side may ask the other at any time, on the same stream as the messages. The requests are in ``cli_requests``,
``host_requests``, ``context_usage`` and ``undeclared_requests``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import MessageBase, Number, Sender, Wire
from claude_wire.messages.control.payload import ControlRequestPayload
from claude_wire.messages.control.request_body import A, ControlRequestBody
from claude_wire.messages.unknown import OrUnknownObject
from claude_wire.support.errors import PayloadError

if TYPE_CHECKING:
    from typing_extensions import Self

#: The id of a request, which its answer repeats; ``UNSET`` for a request without one. The CLI sends strings. It also
#: accepts numbers and null, and answers a request without an id by an answer without one.
RequestId: TypeAlias = str | Number | UnsetType | None


class ControlRequest(MessageBase, tag="control_request", frozen=True):
    """One side asks the other for something and waits for a :class:`ControlResponse`.

    Answer each id once, even if it arrives twice, and answer requests that are not supported with a
    :class:`ControlError`; only dialogs of an unknown kind stay unanswered.
    """

    sent_by: ClassVar[Sender] = "both"

    request_id: RequestId
    """The sender's choice, unique among its open requests; the answer repeats it. Use a string."""
    request: ControlRequestPayload
    """The body. Its ``subtype`` selects the class."""


class ControlCancelRequest(MessageBase, tag="control_cancel_request", frozen=True):
    """The sender of a request no longer wants it answered.

    The CLI sends it for an open ``can_use_tool`` after an interrupt, for instance. It has no answer, an answer that
    still comes is ignored, and so is an unknown ``request_id``.
    """

    sent_by: ClassVar[Sender] = "both"

    request_id: RequestId
    """The id of the control request that is withdrawn."""
    takes_late_allow: bool | None = None
    tool_use_id: str | None = None
    """The ``id`` of the tool call that the withdrawn request was about."""


class ControlSuccess(Wire, tag_field="subtype", tag="success", kw_only=True, frozen=True):
    """A request was handled.

    The answer to ``initialize`` has the ``pending_...`` lists: earlier requests of the CLI that still wait for an
    answer. One of them may also arrive as a request of its own; answer it once.
    """

    request_id: RequestId
    """The id of the control request."""
    response: dict[str, Any] | UnsetType | None = UNSET
    """The payload. Absent, null and ``{}`` are all plain acknowledgements."""
    pending_permission_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``can_use_tool`` requests. None in older CLIs."""
    pending_user_dialog_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``request_user_dialog`` requests. None in older CLIs."""
    pending_elicitation_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``elicitation`` requests. None if the CLI does not list them."""


class ControlError(Wire, tag_field="subtype", tag="error", kw_only=True, frozen=True):
    """A request failed or was refused."""

    request_id: RequestId
    """The id of the control request."""
    error: str = ""
    """What failed, as text for people; empty if it was absent."""
    error_code: str | None = None
    """A word for the error, such as ``unsupported_request``. Often absent. New values may come."""
    model: str | None = None
    pending_permission_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``can_use_tool`` requests."""
    pending_user_dialog_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``request_user_dialog`` requests."""
    pending_elicitation_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``elicitation`` requests."""


#: A control response succeeds or fails.
ControlAnswer: TypeAlias = ControlSuccess | ControlError | OrUnknownObject


class ControlResponse(MessageBase, tag="control_response", frozen=True):
    """The one answer to a :class:`ControlRequest`, from the side that received it.

    The ``request_id`` is inside ``response``, not at the top as on the request, and the payload one level further
    down. The payload has no tag: only the request it answers says what it is, see :meth:`payload_as`.
    """

    sent_by: ClassVar[Sender] = "both"

    response: ControlAnswer
    """The outcome, with the ``request_id`` and the payload."""
    # Remote transports add these.
    session_id: str | None = None
    """The id of the session. Only from remote transports."""
    uuid: str | None = None
    """The id of this message. Only from remote transports."""
    live_only: bool | None = None
    """True if a remote transport sends the answer to connected clients only and does not store it."""

    @classmethod
    def success(cls, request_id: RequestId, payload: Wire | dict[str, Any] | None = None) -> Self:
        """Make the successful answer to a request. Without a payload it is a plain acknowledgement."""
        plain = payload.to_dict() if isinstance(payload, Wire) else payload
        return cls(ControlSuccess(request_id=request_id, response=UNSET if plain is None else plain))

    @classmethod
    def failure(cls, request_id: RequestId, error: str, *, error_code: str | None = None) -> Self:
        """Make the error answer to a request."""
        return cls(ControlError(request_id=request_id, error=error, error_code=error_code))

    @property
    def request_id(self) -> str | Number | None:
        """The id of the answered request, which is inside ``response``. None if there is none."""
        answer = self.response
        if isinstance(answer, (ControlSuccess, ControlError)):
            return None if answer.request_id is UNSET else answer.request_id
        request_id = answer.get("request_id")
        return request_id if isinstance(request_id, str) else None

    @property
    def ok(self) -> bool:
        """True if the request succeeded."""
        return isinstance(self.response, ControlSuccess)

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of a successful answer as plain objects; empty if it has none."""
        return (self.response.response or {}) if isinstance(self.response, ControlSuccess) else {}

    def payload_as(self, request: type[ControlRequestBody[A]]) -> A:
        """Return the payload typed as the answer to that kind of request: ``payload_as(InitializeRequest)``.

        Nothing on the wire says which kind of request an answer belongs to, so the caller must remember it by
        ``request_id``. For a request without a typed answer, this returns the payload's ``dict``.

        Raises:
            PayloadError: the answer is an error, or its payload does not fit.
        """
        if not issubclass(request, ControlRequestBody):
            raise TypeError(f"payload_as() takes a class such as InitializeRequest, not {request.__name__}")
        if not isinstance(self.response, ControlSuccess):
            raise PayloadError("the request failed; the answer's error says why", self.response.to_dict())
        return request.parse_answer(self.payload)
