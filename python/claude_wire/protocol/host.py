"""The host's side of the protocol, without input and output.

:class:`HostProtocol` takes each message from the CLI, and returns events. The host also reports the prompts, requests
and answers that it sends. Three kinds of exchanges have states:

=========  =====================  ===========================================================================
kind       begins with            table
=========  =====================  ===========================================================================
prompt     the host's prompt      :data:`claude_wire.protocol.run.TRANSITIONS`
question   the CLI's              :data:`claude_wire.protocol.questions.TRANSITIONS`
           ``control_request``
request    the host's             waiting until the answer, or until the host stops waiting
           ``control_request``
=========  =====================  ===========================================================================

The CLI's messages cause these events:

==========================================  ==================================================================
message                                     events
==========================================  ==================================================================
``control_request``                         :class:`CallbackWanted`; none for a repeated question
``control_cancel_request``                  :class:`CallbackWithdrawn`; none if the question is settled
``control_response``                        :class:`RequestAnswered`; none if no request waits for it. Then
                                            :class:`CallbackWanted` for each open question that it lists
``control_response`` to ``interrupt``       the same, and :class:`PromptFinished` for each prompt that the CLI
or ``cancel_async_message``                 removed from its queue
``session_state_changed`` for the host      none for the message itself
``keep_alive``                              none
any other message                           :class:`MessageReceived`
a message that ends a prompt                also :class:`PromptFinished`
a message that ends the run                 also :class:`RunFinished`, as the last event
==========================================  ==================================================================

The run is over when no turn is running or owed, and no subagent is working. See :mod:`claude_wire.protocol.run`.

A session passes control messages to its protocol as soon as they are read, and all other messages when the consumer
takes them. Callbacks therefore do not wait for the consumer, but the state of prompts and runs does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from claude_wire.errors import PayloadError
from claude_wire.messages import (
    CancelAsyncMessageRequest,
    CancelAsyncMessageResponse,
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    ControlSuccess,
    InterruptRequest,
    InterruptResponse,
    KeepAlive,
    UnknownMessage,
    UnknownObject,
)
from claude_wire.protocol.questions import Event, Question, Questions
from claude_wire.protocol.requests import SentRequest, SentRequests
from claude_wire.protocol.run import OPENING, Run, SentPrompt


class MessageReceived(NamedTuple):
    """A message for the user of the session."""

    message: Any


class CallbackWanted(NamedTuple):
    """The CLI is waiting for an answer to a request. If ``question.problem`` is not empty, answer with an error."""

    question: Question


class CallbackWithdrawn(NamedTuple):
    """The CLI withdrew its question."""

    question: Question


class RequestAnswered(NamedTuple):
    """The CLI answered one of the host's requests with a success or an error."""

    request: SentRequest


class PromptFinished(NamedTuple):
    """A prompt's state is final: the prompt has its result, or will never get one."""

    prompt: SentPrompt


class RunFinished(NamedTuple):
    """The run is over. The CLI sends no more messages until the host sends a prompt or request."""


HostEvent: TypeAlias = (
    MessageReceived | CallbackWanted | CallbackWithdrawn | RequestAnswered | PromptFinished | RunFinished
)

_CONTROL = frozenset((ControlRequest, ControlResponse, ControlCancelRequest))
_RUN_FINISHED = RunFinished()


def is_control(message: Any) -> bool:
    """Return True for a control message, even if it does not fit its type."""
    return type(message) in _CONTROL or (
        type(message) is UnknownMessage and message.type is not None and message.type.startswith("control_")
    )


class HostProtocol:
    """Tracks prompts, questions and requests between a host and its CLI.

    Args:
        merges: whether a result that does not name prompts may answer several prompts. If false, the result answers the
            oldest prompt.
    """

    def __init__(self, *, merges: bool = True) -> None:
        #: The state of all prompts, turns and background work.
        self.run: Run = Run(merges=merges, reports=True)
        self._merges = merges
        #: The CLI's questions.
        self.questions: Questions = Questions()
        #: The host's requests.
        self.requests: SentRequests = SentRequests(self._unnamed_before)

    # --- what the host sends

    def send_prompt(self, uuid: str | None, now: float) -> SentPrompt | None:
        """Record that a prompt is sent. Return None if an earlier prompt had the same uuid, so no turn will follow.

        Args:
            now: the time in seconds, by the same clock as for :meth:`Run.patience`.
        """
        return self.run.ask(uuid, now)

    def send_request(self, body: Any) -> tuple[SentRequest, ControlRequest]:
        """Begin a request. Return its state, and the message to send."""
        return self.requests.begin(body)

    def end_request(self, request: SentRequest) -> ControlCancelRequest:
        """Stop waiting for an answer. Return the message that withdraws the request."""
        return self.requests.end(request)

    def _unnamed_before(self, body: Any) -> list[SentPrompt] | None:
        """Return the queued prompts without a uuid, if this request may empty the queue."""
        return self.run.unnamed() if isinstance(body, InterruptRequest | CancelAsyncMessageRequest) else None

    def send_answer(self, question: Question) -> bool:
        """Record that an answer is about to be sent. Return False if the question is settled, so do not send it."""
        return self.questions.settle(question, Event.ANSWER)

    # --- what the CLI sends

    def receive(self, message: Any) -> list[HostEvent]:
        """Take a message from the CLI. Return the events that follow, in order."""
        run = self.run
        if type(message) in OPENING:  # most messages, which do not end a prompt or a run
            run.see(message)
            return [MessageReceived(message)]
        if is_control(message):
            return self._control(message)
        if type(message) is KeepAlive:
            return []
        was_over = run.over
        is_for_the_host = run.see(message)
        events: list[HostEvent] = [] if is_for_the_host else [MessageReceived(message)]
        return self._finished(events, was_over=was_over)

    def receive_answer(self, message: ControlResponse) -> list[HostEvent]:
        """Take an answer to one of this host's requests, while another host answers the CLI's questions."""
        request = self.requests.resolve(message)
        if request is None:
            return []
        events: list[HostEvent] = [RequestAnswered(request)]
        if request.before is not None:
            was_over = self.run.over
            self._sweep(request)
            self._finished(events, was_over=was_over)
        return events

    def end(self) -> list[Question]:
        """Record that the process exited. Return the questions that were open."""
        died = self.questions.open
        for question in died:
            self.questions.settle(question, Event.END)
        self.run = Run(merges=self._merges, reports=True)
        return died

    def _control(self, message: Any) -> list[HostEvent]:
        if type(message) is ControlResponse:
            return self._answered(message)
        if type(message) is ControlCancelRequest:
            question = self.questions.find(message.request_id)
            if question is None:
                return []
            self.questions.settle(question, Event.WITHDRAW)
            return [CallbackWithdrawn(question)]
        if type(message) is ControlRequest or message.type == "control_request":
            question = self.questions.take(message)
            return [] if question is None else [CallbackWanted(question)]
        return []

    def _answered(self, message: ControlResponse) -> list[HostEvent]:
        events = self.receive_answer(message)
        if not isinstance(message.response, UnknownObject):
            for pending in (
                message.response.pending_permission_requests,
                message.response.pending_user_dialog_requests,
                message.response.pending_elicitation_requests,
            ):
                for one in pending or ():
                    events += self._control(one)
        return events

    def _sweep(self, request: SentRequest) -> None:
        """Record the prompts that the CLI removed from its queue, according to its answer to a request."""
        answer = None if request.answer is None else request.answer.response
        if not isinstance(answer, ControlSuccess):
            return
        try:
            parsed: Any = request.body.parse_answer(answer.response or {})
        except PayloadError:  # the caller of the request gets this error
            return
        if isinstance(parsed, CancelAsyncMessageResponse):
            self.run.drop([request.body.message_uuid] if parsed.cancelled else [])
        elif isinstance(parsed, InterruptResponse):
            # The answer has a list only if the queue was emptied.
            self.run.drop(parsed.cancelled or [], [] if parsed.cancelled is None else request.before)

    def _finished(self, events: list[HostEvent], *, was_over: bool) -> list[HostEvent]:
        finished: Sequence[SentPrompt] = self.run.take_finished()
        events += map(PromptFinished, finished)
        if self.run.over and (finished or not was_over):
            events.append(_RUN_FINISHED)
        return events
