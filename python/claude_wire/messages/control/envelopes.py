"""The envelopes of control messages: request, answer and withdrawal.

Either side may send a request at any time, between other messages. The bodies of requests are in ``cli_requests``,
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

#: The id of a request, which its answer repeats; ``UNSET`` for a request without an id. The CLI sends strings. It also
#: accepts numbers and null, and answers a request without an id with an answer without an id.
RequestId: TypeAlias = str | Number | UnsetType | None


class ControlRequest(MessageBase, tag="control_request", frozen=True):
    """A request to the other side, which answers with a :class:`ControlResponse`.

    Answer each id once, even if the request arrives twice. Answer an unsupported request with a :class:`ControlError`,
    but do not answer a dialog of an unknown kind.
    """

    sent_by: ClassVar[Sender] = "both"

    request_id: RequestId
    """A string that the sender chooses, unique among the sender's open requests; the answer repeats the string."""
    request: ControlRequestPayload
    """The body; its ``subtype`` selects the class."""


class ControlCancelRequest(MessageBase, tag="control_cancel_request", frozen=True):
    """The sender of a request no longer wants an answer. For example, an interrupt withdraws ``can_use_tool``.

    This message has no answer. The receiver ignores an unknown ``request_id``, and the sender ignores a late answer.
    """

    sent_by: ClassVar[Sender] = "both"

    request_id: RequestId
    """The id of the withdrawn request."""
    takes_late_allow: bool | None = None
    tool_use_id: str | None = None
    """The ``id`` of the withdrawn request's tool call."""


class ControlSuccess(Wire, tag_field="subtype", tag="success", kw_only=True, frozen=True):
    """The request succeeded.

    In the answer to ``initialize``, the ``pending_...`` lists have the CLI's requests that are still waiting for an
    answer. The CLI may also send such a request separately; answer each request once.
    """

    request_id: RequestId
    """The id of the control request."""
    response: dict[str, Any] | UnsetType | None = UNSET
    """The payload; absent, null or ``{}`` if the answer only acknowledges the request."""
    pending_permission_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``can_use_tool`` requests; None from older CLIs."""
    pending_user_dialog_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``request_user_dialog`` requests; None from older CLIs."""
    pending_elicitation_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``elicitation`` requests; None if the CLI does not list them."""


class ControlError(Wire, tag_field="subtype", tag="error", kw_only=True, frozen=True):
    """The request failed or was refused."""

    request_id: RequestId
    """The id of the control request."""
    error: str = ""
    """What failed, as human-readable text; empty if absent."""
    error_code: str | None = None
    """A code for the error, such as ``unsupported_request``; often absent."""
    model: str | None = None
    pending_permission_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``can_use_tool`` requests."""
    pending_user_dialog_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``request_user_dialog`` requests."""
    pending_elicitation_requests: list[ControlRequest | OrUnknownObject] | None = None
    """The open ``elicitation`` requests."""


#: The outcome in a control response.
ControlAnswer: TypeAlias = ControlSuccess | ControlError | OrUnknownObject


class ControlResponse(MessageBase, tag="control_response", frozen=True):
    """The answer to a :class:`ControlRequest`.

    The ``request_id`` is in ``response``, and the payload is in ``response.response``. The payload has no tag; its
    class depends on the request (see :meth:`payload_as`).
    """

    sent_by: ClassVar[Sender] = "both"

    response: ControlAnswer
    """The outcome, with the ``request_id`` and the payload."""

    session_id: str | None = None
    """The id of the session; only from remote transports."""
    uuid: str | None = None
    """The id of this message; only from remote transports."""
    live_only: bool | None = None
    """True if a remote transport sends the answer only to connected clients, and does not store it."""

    @classmethod
    def success(cls, request_id: RequestId, payload: Wire | dict[str, Any] | None = None) -> Self:
        """Return the answer to a successful request. Without a payload, the answer only acknowledges the request."""
        plain = payload.to_dict() if isinstance(payload, Wire) else payload
        return cls(ControlSuccess(request_id=request_id, response=UNSET if plain is None else plain))

    @classmethod
    def failure(cls, request_id: RequestId, error: str, *, error_code: str | None = None) -> Self:
        """Return the answer to a request that failed."""
        return cls(ControlError(request_id=request_id, error=error, error_code=error_code))

    @property
    def request_id(self) -> str | Number | None:
        """The id in ``response``; None if there is none."""
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
        """The payload of a successful answer as a dict; empty if there is none."""
        return (self.response.response or {}) if isinstance(self.response, ControlSuccess) else {}

    def payload_as(self, request: type[ControlRequestBody[A]]) -> A:
        """Return the payload as the answer's class: an InitializeResponse for ``payload_as(InitializeRequest)``.

        An answer does not name the class of its request; the caller must remember the class by ``request_id``. For a
        request without an answer class, this returns a ``dict``.

        Raises:
            PayloadError: the answer is an error, or its payload does not fit.
        """
        if not issubclass(request, ControlRequestBody):
            raise TypeError(f"payload_as() takes a class such as InitializeRequest, not {request.__name__}")
        if not isinstance(self.response, ControlSuccess):
            raise PayloadError("the request failed; the answer's error says why", self.response.to_dict())
        return request.parse_answer(self.payload)
