"""The other side's questions (control requests) and their states, without input and output.

Hosts and agents use this module. Each question is in one state, and :data:`TRANSITIONS` lists all transitions:

==========  =================================================================================================
OPEN        The other side is waiting for an answer.
ANSWERED    The question was answered. A second answer is dropped.
WITHDRAWN   The other side no longer wants an answer (``control_cancel_request``). A late answer is dropped.
DIED        The other side exited without answering.
==========  =================================================================================================
"""

from __future__ import annotations

import logging
from contextlib import suppress
from enum import Enum
from typing import Any

from msgspec import UNSET

from claude_wire.codec.encoder import encode
from claude_wire.errors import EncodeError
from claude_wire.messages import ControlRequest, UnknownMessage
from claude_wire.support.ids import Ids, Key, key_of

_log = logging.getLogger("claude_wire")

#: Maximum number of open questions. A session stops reading long before this limit, but the answer to ``initialize``
#: may list any number of questions in one line.
MAX_OPEN = 8192


class State(Enum):
    """A question's state. See the table in the module docstring."""

    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    DIED = "died"


class Event(Enum):
    """An event that settles a question."""

    ANSWER = "answer"
    WITHDRAW = "withdraw"
    END = "end"


#: State -> event -> next state. An event that is not listed changes nothing.
TRANSITIONS: dict[State, dict[Event, State]] = {
    State.OPEN: {Event.ANSWER: State.ANSWERED, Event.WITHDRAW: State.WITHDRAWN, Event.END: State.DIED},
    State.ANSWERED: {},
    State.WITHDRAWN: {},
    State.DIED: {},
}


class Question:
    """One control request from the other side.

    As in the CLI, a request without an id gets an answer without an id. Such a request cannot be withdrawn, and counts
    as a new question when it is sent again.

    Attributes:
        id: the ``request_id`` as received; None or UNSET for a request without an id.
        body: the request's body; None if it cannot be read.
        problem: why the body cannot be read. The answer must then be an error. Empty if the body can be read.
        size: the message's size, in bytes of JSON.
    """

    __slots__ = ("body", "id", "problem", "size", "state")

    def __init__(self, id: Any, body: Any, size: int, problem: str = "") -> None:
        self.id: Any = id
        self.body: Any = body
        self.size: int = size
        self.problem: str = problem
        self.state: State = State.OPEN

    @property
    def is_open(self) -> bool:
        """True while the other side is waiting for an answer."""
        return self.state is State.OPEN


class Questions:
    """The other side's open questions, and the ids of the last 4,096 settled questions.

    Args:
        remembers: whether to ignore a question that has a settled question's id. If false, the question counts as new.
    """

    def __init__(self, *, remembers: bool = True) -> None:
        # Key of the id -> question. A question without an id is its own key.
        self._open: dict[Key | Question, Question] = {}
        self._remembers = remembers
        self._has_warned = False
        #: The ids of the last questions that were answered or withdrawn.
        self.settled: Ids = Ids()
        #: The total size of the open questions in bytes.
        self.open_bytes: int = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def open(self) -> list[Question]:
        """The open questions, oldest first."""
        return list(self._open.values())

    def take(self, message: ControlRequest | UnknownMessage) -> Question | None:
        """Take a question from the other side. Return None if it is repeated, or if too many questions are open.

        Args:
            message: a ControlRequest, or a ``control_request`` that does not fit its type.
        """
        question = _question_of(message)
        if question is None:
            return None
        key = _key(question)
        if key in self._open or (not isinstance(key, Question) and self.settled.has_key(key)):
            return None
        if len(self._open) >= MAX_OPEN:
            if not self._has_warned:
                self._has_warned = True
                _log.warning("%d requests are waiting for an answer; further requests are not answered", MAX_OPEN)
            return None
        self._open[key] = question
        self.open_bytes += question.size
        return question

    def find(self, id: Any) -> Question | None:
        """Return the open question with this id, or None."""
        return self._open.get(key_of(id))  # key_of(None) is not the key of any question

    def settle(self, question: Question, event: Event) -> bool:
        """Apply an event to a question. Return True if the event settled the question."""
        after = TRANSITIONS[question.state].get(event)
        if after is None:
            return False
        question.state = after
        del self._open[_key(question)]
        self.open_bytes -= question.size
        if self._remembers and _has_key(question.id):
            self.settled.add(question.id)
        return True


def _question_of(message: ControlRequest | UnknownMessage) -> Question | None:
    if isinstance(message, ControlRequest):
        id, problem = message.request_id, "this control request is nested too deeply"
        with suppress(EncodeError):  # decoders allow deeper nesting than encoders
            # Encode the message to find its size, because the decoder does not return it. Encoding 200 bytes takes
            # 0.4 µs.
            return Question(id, message.request, len(encode(message)))
    else:
        id, problem = message.get("request_id", UNSET), "this control request cannot be read"
        if id is not None and id is not UNSET and type(id) not in (str, int, float):
            return None  # no answer could repeat an id of this type
    return Question(id, None, len(id) if isinstance(id, str) else 0, problem)


def _has_key(id: Any) -> bool:
    """Return True if an id is a string or a number. Other ids do not identify a question."""
    return isinstance(id, (str, int, float))


def _key(question: Question) -> Key | Question:
    return key_of(question.id) if _has_key(question.id) else question
