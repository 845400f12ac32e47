"""Decide when a run is over, and track each prompt's state.

A result ends a turn, not the run: background subagents continue, and the end of each starts another turn, which needs
an open input. A CLI that reports its state sends ``idle`` when no turn is due. With any other CLI, only subagents and
workflows count, because a background shell or monitor may run forever. (claude-agent-sdk 0.2.187 does the same.)

The end of a subagent starts a separate turn, even if several end at the same time (CLI 2.1.331). There is one
exception: if the current turn calls the model again, this call handles the end, no turn follows, and no message says
so. After each result, a CLI that does not report its state therefore has :data:`SETTLE_SECONDS` to begin a turn that
may be due. For an agent that never announces turns, there is no wait: its next result counts as the last.

The table "Turns and runs" in docs/session.md defines when a turn and a run are done.

Each prompt is in one state, and :data:`TRANSITIONS` is the whole state machine:

==========  =================================================================================================
SENT        The host wrote the prompt. The CLI has not mentioned the prompt yet.
QUEUED      ``command_lifecycle`` says that the prompt is waiting in the CLI's queue.
STARTED     ``command_lifecycle`` says that a turn began with the prompt.
FOLDED      The CLI merged the prompt into the current turn, whose result answers the prompt.
UNCERTAIN   A result that does not name prompts may answer this prompt, or the prompt may get another result. Or
            the CLI emptied its queue without saying whether the prompt was in the queue.
ANSWERED    A result answers the prompt.
REPEATED    The CLI got the uuid before the session was resumed. No turn begins.
CANCELLED   The CLI removed the prompt from its queue, or refused it. No turn begins.
==========  =================================================================================================

The last three are final. Messages cause these events:

* A result that names prompts (``user_message_uuids``) is NAMED for these prompts, and for prompts without a uuid that
  were sent before the last of these, because the CLI keeps the order. (A CLI that names only the last prompt, in
  ``user_message_uuid``, also means all earlier prompts.) For later prompts without a uuid, the result is LATER: it may
  answer them, although the CLI cannot name them.
* A result that does not name a prompt is FIRST for the oldest prompt, and LATER for all other prompts, because the CLI
  merges waiting prompts. In a dialect without merging, it is LATER only for FOLDED prompts. A result with an empty list
  of names is neither FIRST nor LATER for a prompt with a uuid.
* The result of a turn that background work started is not FIRST for any prompt.
* ``command_lifecycle`` is sent only for prompts with a uuid. ``completed`` is sent after the result for a prompt that
  began a turn, before the result for a folded prompt, and without ``queued`` for a repeated prompt.
* SWEPT is the CLI's answer that it emptied its queue for the host. The answer names the prompts that were in the queue
  and have a uuid. A prompt without a uuid may have been in the queue, or its turn may be about to begin.
* SETTLED happens when an idle CLI did not begin a turn for :data:`SETTLE_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import islice, takewhile
from typing import Any

from claude_wire.errors import SubagentStoppedError
from claude_wire.messages import (
    AssistantMessage,
    CommandLifecycleMessage,
    InitMessage,
    InjectedMessage,
    RateLimitEvent,
    ResultMessage,
    SessionStateChangedMessage,
    StreamEvent,
    SystemErrorMessage,
    TaskNotificationOrigin,
    UserMessage,
)
from claude_wire.messages.conversation.results import ErrorInfo
from claude_wire.messages.union import RESULT_BY_SUBTYPE
from claude_wire.protocol.background import TASK_MARKS, Background
from claude_wire.support.ids import Ids

#: The types of messages that may end a turn, or the wait for a turn.
ENDING = frozenset((CommandLifecycleMessage, ResultMessage, *RESULT_BY_SUBTYPE.values()))
#: The types of messages that show that a turn is under way.
OPENING = frozenset((AssistantMessage, InitMessage, StreamEvent, UserMessage))
#: The types of messages that a session passes to :meth:`Run.see`. StreamEvent and UserMessage are not included, because
#: they are most of the traffic, and ``system/init`` or an assistant message also shows the turn.
MARKS = frozenset(
    (
        *ENDING,
        AssistantMessage,
        InitMessage,
        InjectedMessage,
        RateLimitEvent,
        SessionStateChangedMessage,
        SystemErrorMessage,
        *TASK_MARKS,
    )
)

#: Seconds in which an expected turn must begin. CLI 2.1.331 announces a turn within 0.03 seconds of reading the prompt.
#: A session waits this long only if no message shows whether an earlier result also answered the prompt.
SETTLE_SECONDS = 3.0
#: Minimum wait in seconds, for messages that the CLI just wrote.
LEAST_SECONDS = 0.1
#: Maximum number of prompts without a result to track. If there are more, the oldest is dropped.
MAX_PROMPTS = 4096
#: Maximum number of characters in the CLI's state and in an error's reason, which are single words. Longer strings are
#: truncated.
MAX_WORD_CHARS = 128


class State(Enum):
    """The state of a sent prompt. See the table in the module docstring."""

    SENT = "sent"
    QUEUED = "queued"
    STARTED = "started"
    FOLDED = "folded"
    UNCERTAIN = "uncertain"
    ANSWERED = "answered"
    REPEATED = "repeated"
    CANCELLED = "cancelled"


class Event(Enum):
    """An event for a prompt, caused by a message or by the end of a wait. The module docstring defines the events."""

    QUEUED = "queued"
    STARTED = "started"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"
    FOLDED = "folded"
    NAMED = "named"
    FIRST = "first"
    LATER = "later"
    SWEPT = "swept"
    SETTLED = "settled"


_BY_RESULT = {Event.NAMED: State.ANSWERED, Event.FIRST: State.ANSWERED}
#: The transitions of SENT and UNCERTAIN: the prompt may be in the CLI's queue, in a turn, or in neither.
_FROM_ANYWHERE = {
    Event.QUEUED: State.QUEUED,
    Event.STARTED: State.STARTED,
    Event.COMPLETED: State.REPEATED,
    Event.CANCELLED: State.CANCELLED,
    Event.WITHDRAWN: State.CANCELLED,
    Event.FOLDED: State.FOLDED,
    **_BY_RESULT,
}

#: State -> event -> next state. An event that is not listed changes nothing. ``discarded`` and ``refused`` of
#: ``command_lifecycle`` are CANCELLED; WITHDRAWN means that the CLI granted the host's request to cancel the prompt.
#: COMPLETED and CANCELLED after STARTED are about the turn: its prompt is then FOLDED, and waits for the result of the
#: turn.
TRANSITIONS: dict[State, dict[Event, State]] = {
    State.SENT: {**_FROM_ANYWHERE, Event.LATER: State.UNCERTAIN, Event.SWEPT: State.UNCERTAIN},
    State.QUEUED: {
        Event.STARTED: State.STARTED,
        Event.COMPLETED: State.FOLDED,
        Event.CANCELLED: State.CANCELLED,
        Event.WITHDRAWN: State.CANCELLED,
        Event.FOLDED: State.FOLDED,
        **_BY_RESULT,
    },
    State.STARTED: {
        Event.QUEUED: State.QUEUED,  # an interrupt put the prompt back into the queue
        Event.COMPLETED: State.FOLDED,
        Event.CANCELLED: State.FOLDED,
        Event.WITHDRAWN: State.CANCELLED,
        **_BY_RESULT,
    },
    State.FOLDED: {
        Event.QUEUED: State.QUEUED,
        Event.LATER: State.ANSWERED,
        Event.SETTLED: State.CANCELLED,
        **_BY_RESULT,
    },
    State.UNCERTAIN: {**_FROM_ANYWHERE, Event.SETTLED: State.ANSWERED},
    State.ANSWERED: {},
    State.REPEATED: {},
    State.CANCELLED: {},
}
_FINAL = frozenset(state for state, events in TRANSITIONS.items() if not events)
#: The states in which the CLI still owes the prompt a turn with its own result.
_OWED = frozenset((State.SENT, State.QUEUED, State.STARTED))
_LIFECYCLE = {
    "queued": Event.QUEUED,
    "started": Event.STARTED,
    "completed": Event.COMPLETED,
    "cancelled": Event.CANCELLED,
    "discarded": Event.CANCELLED,
    "refused": Event.CANCELLED,
}


class SentPrompt:
    """The state of a sent prompt.

    Args:
        uuid: the message's uuid, or None.
        sent_at: when the prompt was sent, in seconds by the event loop's clock.
        number: the prompt's position in the order of sending, counted from 0.
    """

    __slots__ = ("number", "refusal", "result", "sent_at", "state", "uuid")

    def __init__(self, uuid: str | None, sent_at: float, number: int) -> None:
        self.uuid: str | None = uuid
        self.sent_at: float = sent_at
        self.number: int = number
        self.state: State = State.SENT
        #: The result that answers the prompt, or may answer it; None if there is none yet.
        self.result: ResultMessage | None = None
        #: Why the prompt was refused before it reached the CLI; empty if it was not refused.
        self.refusal: str = ""

    @property
    def ended(self) -> bool:
        """True if the state is final."""
        return self.state in _FINAL

    def happens(self, event: Event, result: ResultMessage | None = None) -> None:
        """Apply an event to the state, and keep the result if it answers or may answer the prompt."""
        self.state = TRANSITIONS[self.state].get(event, self.state)
        if self.state not in (State.ANSWERED, State.UNCERTAIN):
            self.result = None  # the earlier result was for another prompt
        elif result is not None:
            self.result = result  # prompts are answered in order, so if several results may be the answer, the last is


class Run:
    """The state of a session's prompts, turns and background work.

    Args:
        merges: whether a result that does not name prompts may answer several prompts. If false, it only answers the
            oldest prompt and FOLDED prompts.
        reports: whether :meth:`take_finished` will be called repeatedly. If false, finished prompts are not kept.
    """

    def __init__(self, *, merges: bool = True, reports: bool = False) -> None:
        self._merges = merges
        # The last state that the CLI reported; None before the first report.
        self._state: str | None = None
        #: The background work, and the turns that start when it ends.
        self.background: Background = Background()
        # The uuids of all prompts, and the unfinished prompts by uuid, in the order of sending.
        self._uuids = Ids(MAX_PROMPTS)
        self._open: dict[str | SentPrompt, SentPrompt] = {}
        # The unfinished prompts without a uuid, and the FOLDED prompts. A result may answer them without naming them.
        self._unnamed: dict[SentPrompt, None] = {}
        self._folded: dict[SentPrompt, None] = {}
        # The number of prompts so far.
        self._count = 0
        # The prompts that finished since the last take_finished(); None if `reports` is false.
        self._finished: list[SentPrompt] | None = [] if reports else None
        # Whether a turn is running, and whether the CLI ever announced a turn.
        self._turn = self._announces = False
        # True while the consumer is still reading messages that are older than the sent prompts.
        self._is_behind = False
        # The number of turns that are queued in the CLI, according to its last result.
        self._queued = 0
        #: ``error`` of the turn's last assistant message, not counting subagents; None if the message has no error.
        self.reason: str | None = None
        #: When the rate limit resets, in seconds since 1970, if the CLI last reported the limit as used up; else None.
        self.resets_at: float | None = None
        #: The last error that a dialect reported outside of a turn. It explains why an agent exits with code 1. None if
        #: there was no error.
        self.fatal: ErrorInfo | None = None

        #: The last result; None before the first.
        self.last_result: ResultMessage | None = None

    @property
    def turn(self) -> bool:
        """True while a turn is running."""
        return self._turn

    @property
    def owed(self) -> list[str]:
        """The uuids of the prompts whose turn did not begin or has no result, in the order of sending."""
        return [prompt.uuid for prompt in self._open.values() if prompt.uuid is not None and prompt.state in _OWED]

    def unfinished_turn(self) -> str:
        """Describe where in a turn the output would end if it ended now; empty between turns.

        At the end of a recorded session, the result is not empty if the recording was cut off, and only then.
        """
        if self._turn:
            return "in the middle of a turn"
        is_owed = any(prompt.state in _OWED for prompt in self._open.values())
        return "before the turn that was asked for" if is_owed else ""

    def unfinished(self) -> str:
        """Describe where in a run the output would end if it ended now; empty between runs."""
        return self.unfinished_turn() or self.background.unfinished()

    @property
    def over(self) -> bool:
        """True if the CLI will send no more messages until the host sends a prompt or request."""
        if self._is_behind or self._under_way or self._queued or len(self._folded) < len(self._open):
            return False
        return not self.background.due and self._state in (None, "idle")

    @property
    def _under_way(self) -> bool:
        """True while a turn, subagent or question is open, so the CLI will report its end."""
        return self._turn or bool(self.background.subagents) or self._state == "requires_action"

    def patience(self, ceiling: float | None, now: float) -> float | None:
        """Return how many seconds to wait for the next message; None: no limit.

        Args:
            ceiling: seconds to wait when nothing is known to be under way. None: no limit.
            now: the time in seconds, by the clock of :attr:`SentPrompt.sent_at`.
        """
        if self._is_behind or self._under_way:
            return None
        if self._queued or any(prompt.state in _OWED for prompt in self._open.values()):
            # If the CLI is idle although it owes a turn, it dropped the prompt, or did not read the prompt yet.
            return ceiling if self._state == "idle" else None
        due, certain = bool(self.background.due), self.background.is_certain
        if self._state == "idle" and self._open:
            newest = next(reversed(self._open.values()))
            left = max(newest.sent_at + SETTLE_SECONDS - now, LEAST_SECONDS)
        elif self._state == "idle" and due:
            left = SETTLE_SECONDS  # a CLI that reports its state reports the turn within 0.1 s
        elif self._state is None and ((self._announces and self._open) or (due and not certain)):
            left = SETTLE_SECONDS
        else:
            return ceiling
        return left if ceiling is None else min(left, ceiling)

    def settle(self) -> None:
        """Record that a wait for :meth:`patience` seconds timed out.

        Prompts that did not start a turn are then finished, and tasks that ended are no longer expected to start turns.
        """
        if self._state is not None or not self.background.is_certain:
            self.background.settle()
        for prompt in list(self._open.values()):
            self._happens(prompt, Event.SETTLED)

    def ask(self, uuid: str | None, now: float) -> SentPrompt | None:
        """Record that a prompt is sent. Return None if an earlier prompt had the same uuid, so no turn will follow.

        An empty uuid counts as no uuid, as in the CLI.
        """
        uuid = uuid or None
        if uuid is not None:
            if uuid in self._uuids:
                return None
            self._uuids.add(uuid)
        if len(self._open) >= MAX_PROMPTS:
            self._forget(next(iter(self._open.values())))
        prompt = SentPrompt(uuid, now, self._count)
        self._count += 1
        self._open[uuid or prompt] = prompt
        if uuid is None:
            self._unnamed[prompt] = None
        return prompt

    def take_over(self, owed: Iterable[str], now: float) -> None:
        """Set the state for a running CLI that owes results for these prompts.

        Messages that arrive before :meth:`arrive` is called are older than this state.
        """
        self._is_behind = True
        for uuid in owed:
            self.ask(uuid, now)

    def arrive(self, *, turn: bool, subagents: Iterable[str] = (), restarted: bool) -> None:
        """Record that the consumer read all messages that are older than :meth:`take_over`.

        Args:
            turn: whether a turn is running now.
            subagents: the ids of the background subagents, which may have started before the first message.
            restarted: whether the messages are from several processes. Earlier processes' work has ended.
        """
        self._is_behind, self._turn = False, turn
        if restarted:
            self._state = None
            self.background = Background()
            self._queued = 0
        for id in subagents:
            self.background.subagents.add(id)

    def refuse(self, uuid: str, reason: str) -> None:
        """Record that a prompt will not reach the CLI. The prompt may be sent again."""
        prompt = self._open.get(uuid)
        if prompt is not None:
            prompt.refusal = reason
            self._uuids.discard(uuid)
            self._happens(prompt, Event.WITHDRAWN)

    def had(self, uuid: str | None) -> bool:
        """Return True if a prompt with this uuid was sent before."""
        return uuid is not None and uuid in self._uuids

    def take_back(self, prompt: SentPrompt) -> None:
        """Undo :meth:`ask`, because the prompt was not sent."""
        if prompt.uuid is not None:
            self._uuids.discard(prompt.uuid)
        self._forget(prompt)

    def take_finished(self) -> list[SentPrompt]:
        """Return the prompts whose state became final since the last call."""
        finished = self._finished or []
        self._finished = []
        return finished

    def unnamed(self) -> list[SentPrompt]:
        """Return the unfinished prompts without a uuid."""
        return list(self._unnamed)

    def drop(self, uuids: Iterable[str], swept: Iterable[SentPrompt] = ()) -> None:
        """Record that the CLI removed prompts from its queue, according to its answer to a request.

        Args:
            uuids: the uuids of the removed prompts.
            swept: prompts without a uuid that may also have been in the queue, if the CLI emptied it.
        """
        for uuid in uuids:
            self._happens(self._open.get(uuid), Event.WITHDRAWN)
        for prompt in swept:
            self._happens(self._open.get(prompt), Event.SWEPT)

    def is_unasked(self, result: ResultMessage) -> bool:
        """Return True if a result belongs to a turn that no prompt started. Call this before :meth:`see`."""
        return isinstance(result.origin, TaskNotificationOrigin) or not self._open

    def stopped_error(self, result: ResultMessage) -> SubagentStoppedError | None:
        """Return the error if subagents were stopped and no turn followed; else None.

        Args:
            result: the run's last result.
        """
        stopped = len(self.background.stopped)
        return SubagentStoppedError(result, stopped) if stopped else None

    def see(self, message: Any) -> bool:
        """Update the state from a message. Return True if the user must not get the message (``sdk_host_only``).

        Messages whose type is not in :data:`MARKS` or :data:`OPENING` do not change the state.
        """
        if isinstance(message, AssistantMessage):
            if message.parent_tool_use_id is None:
                self._turn = True
                reason = message.error_reason
                self.reason = None if reason is None else reason[:MAX_WORD_CHARS]
        elif isinstance(message, (StreamEvent, UserMessage)):
            if message.parent_tool_use_id is None and not getattr(message, "isReplay", None):
                self._turn = True
        elif isinstance(message, ResultMessage):
            self._turn = False
            self.last_result = message
            self._queued = message.queued_turn_count or 0
            self.background.turn_ended(was_due=self.is_unasked(message))
            if not self._announces:
                self.background.settle()
            self._result(message)
        elif isinstance(message, InitMessage):
            # In a dialect without merging, an agent may send one init at startup. This init does not begin a turn.
            self._turn = self._announces = self._merges
            self.reason = None
        elif isinstance(message, CommandLifecycleMessage):
            uuid, state = message.command_uuid, message.state
            if isinstance(uuid, str) and isinstance(state, str) and state in _LIFECYCLE:
                self._happens(self._open.get(uuid), _LIFECYCLE[state])
        elif isinstance(message, RateLimitEvent):
            limit = message.rate_limit_info
            self.resets_at = limit.resetsAt if limit.status == "rejected" else None
        elif isinstance(message, InjectedMessage):
            if self._is_behind:
                return False
            # The oldest prompt started the turn. The CLI put the next `message_count` prompts that are not FOLDED into
            # the turn.
            count = min(max(message.message_count, 0), len(self._open))
            waiting = (prompt for prompt in islice(self._open.values(), 1, None) if prompt not in self._folded)
            for prompt in list(islice(waiting, count)):
                self._happens(prompt, Event.FOLDED)
        elif isinstance(message, SystemErrorMessage):
            self.fatal = message.error
        elif isinstance(message, SessionStateChangedMessage):
            self._state = message.state[:MAX_WORD_CHARS]
            self.background.settle()  # if a task ended, this state already takes it into account
            return message.sdk_host_only is True
        elif isinstance(message, TASK_MARKS):
            self.background.see(message, in_turn=self._turn)
        return False

    def _result(self, result: ResultMessage) -> None:
        names = _named_by(result)
        if self._is_behind:
            # These results are older than the prompts. Only a prompt that was sent twice can have such a result.
            for uuid in names or ():
                self._happens(self._open.get(uuid), Event.NAMED, result)
            return
        named = [self._open[uuid] for uuid in names or () if uuid in self._open]
        last_named = max((prompt.number for prompt in named), default=-1)
        background = isinstance(result.origin, TaskNotificationOrigin)
        is_first = not names and not background
        # A result that names prompts changes another prompt with a uuid only if this other prompt is FOLDED. The cost
        # therefore does not depend on the number of waiting prompts.
        if names is None:
            concerned = list(self._open.values())
        else:
            if result.user_message_uuids is None:  # the CLI names only the last prompt
                named = list(takewhile(lambda prompt: prompt.number <= last_named, self._open.values()))
            concerned = list(dict.fromkeys((*named, *self._unnamed, *self._folded)))
        is_named = set(named)
        for prompt in concerned:
            event = Event.LATER
            if prompt in is_named or (prompt.uuid is None and prompt.number <= last_named):
                event = Event.NAMED
            elif is_first and prompt.state is not State.FOLDED:
                event, is_first = Event.FIRST, False
            elif not self._merges and prompt.state is not State.FOLDED:
                continue
            elif prompt.state is State.UNCERTAIN:
                if not background:
                    prompt.result = result  # does what Event.LATER does, in a tenth of the time
                continue
            self._happens(prompt, event, result)

    def _happens(self, prompt: SentPrompt | None, event: Event, result: ResultMessage | None = None) -> None:
        if prompt is not None:
            prompt.happens(event, result)
            if prompt.ended:
                if self._finished is not None:
                    self._finished.append(prompt)
                self._forget(prompt)
            elif prompt.state is State.FOLDED:
                self._folded[prompt] = None
            else:
                self._folded.pop(prompt, None)

    def _forget(self, prompt: SentPrompt) -> None:
        self._open.pop(prompt.uuid or prompt, None)
        self._unnamed.pop(prompt, None)
        self._folded.pop(prompt, None)


def _named_by(result: ResultMessage) -> set[str] | None:
    """Return the uuids of the prompts that a result names, or None if the CLI does not name prompts."""
    names = result.user_message_uuids
    if names is None and result.user_message_uuid is None:
        return None
    return {uuid for uuid in (*(names or ()), result.user_message_uuid) if uuid is not None}
