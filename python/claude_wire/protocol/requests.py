"""This side's control requests. Each has an id and gets at most one answer. Hosts and agents use this module."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from claude_wire.messages import ControlCancelRequest, ControlRequest, ControlResponse


class SentRequest:
    """A request that was sent.

    Attributes:
        id: the request's ``request_id``.
        body: the request's body.
        before: what ``note`` returned when the request was sent.
        answer: the answer; None until it arrives.
    """

    __slots__ = ("answer", "before", "body", "id")

    def __init__(self, id: str, body: Any, before: Any) -> None:
        self.id: str = id
        self.body: Any = body
        self.before: Any = before
        self.answer: ControlResponse | None = None


class SentRequests:
    """The requests that are waiting for their answers.

    Args:
        note: called with each body when it is sent. Returns the request's ``before``.
    """

    def __init__(self, note: Callable[[Any], Any] = lambda body: None) -> None:
        self._note = note
        # A random prefix, because a later session over the same transport must not use the same ids.
        self._prefix = os.urandom(6).hex()
        self._count = 0
        self._open: dict[str, SentRequest] = {}

    def envelope(self, body: Any) -> ControlRequest:
        """Return the message for a request whose answer does not matter."""
        self._count += 1
        return ControlRequest(f"{self._prefix}-{self._count}", body)

    def begin(self, body: Any) -> tuple[SentRequest, ControlRequest]:
        """Begin a request. Return its state, and the message to send."""
        message = self.envelope(body)
        assert isinstance(message.request_id, str)
        sent = self._open[message.request_id] = SentRequest(message.request_id, body, self._note(body))
        return sent, message

    def find(self, id: Any) -> SentRequest | None:
        """Return the waiting request with this id, or None."""
        return self._open.get(id) if isinstance(id, str) else None

    def resolve(self, response: ControlResponse) -> SentRequest | None:
        """Take an answer. Return its request, or None if no request is waiting for this answer."""
        sent = self.find(response.request_id)
        if sent is None or sent.answer is not None:
            return None
        sent.answer = response
        return sent

    def end(self, sent: SentRequest) -> ControlCancelRequest:
        """Stop waiting for an answer. Return the message that withdraws the request. Send it if no answer arrived."""
        self._open.pop(sent.id, None)
        return ControlCancelRequest(sent.id)
