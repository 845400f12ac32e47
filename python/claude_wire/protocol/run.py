"""Decide when a run is over, and follow the state of each prompt.

A result ends a turn, not the run: a subagent in the background works on, and its end starts another turn, which needs
an open input. A CLI that reports its state says ``idle`` when it owes no turn. With any other CLI only subagents and
workflows count, since a shell or a monitor in the background may run for ever. (claude-agent-sdk 0.2.187 does the
same.)

Each subagent that ends brings a turn of its own, also if several end at once (CLI 2.1.331). There is one exception: if
a turn under way calls the model again, that call handles the end, no turn follows, and the CLI does not say so. So
after each result a CLI that reports no state has :data:`SETTLE_SECONDS` to begin a turn that may be due. An agent that
never announces turns gets no such time: its next result counts as the last.

The table "Turns and runs" in docs/session.md says when a turn and a run are done. Knows what messages say about
prompts, turns and tasks; not how they travel.

Each prompt is in one state, and :data:`TRANSITIONS` is the whole machine:

==========  =================================================================================================
SENT        The prompt was written. The CLI has not mentioned it yet.
QUEUED      ``command_lifecycle`` says that the prompt waits in the CLI's queue.
STARTED     ``command_lifecycle`` says that a turn has begun with the prompt.
FOLDED      The CLI has merged the prompt into the turn under way. That turn's result answers the prompt.
UNCERTAIN   A result without names of prompts has come. It may answer this prompt too, or another result may follow.
            Or the CLI has emptied its queue without saying whether the prompt was in it.
ANSWERED    A result answers the prompt.
REPEATED    The CLI knows the uuid from before the session was resumed. No turn begins.
CANCELLED   The CLI has taken the prompt out of its queue, or has refused it. No turn begins.
==========  =================================================================================================

The last three are final. Which event a message is for which prompt:

* A result that names prompts (``user_message_uuids``) is NAMED for these, and for those without a uuid that were sent
  before one of these: the CLI keeps their order. (A CLI that names only the last, in ``user_message_uuid``, means all
  before it.) For later ones without a uuid it is LATER, since the CLI leaves out what has no uuid.
* A result that names no prompt is FIRST for the oldest prompt, and LATER for all others, since the CLI merges waiting
  prompts. In a dialect without merging, it is no event for these others, unless they are FOLDED. A result with an
  empty list of names is neither FIRST nor LATER for a prompt with a uuid.
* The result of a turn that background work began is FIRST for no prompt.
* ``command_lifecycle`` comes only for prompts with a uuid. ``completed`` comes after the result for a prompt that began
  a turn, before the result for a folded prompt, and without ``queued`` for a repeated prompt.
* SWEPT is the CLI's answer that it has emptied its queue for the host. The answer names the prompts that were in the
  queue and have a uuid. An earlier prompt without a uuid may have been in the queue, or its turn may be about to begin.
* SETTLED is the end of :data:`SETTLE_SECONDS` in which an idle CLI began no turn.
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

#: The types of messages that may end a turn, or the wait for one.
ENDING = frozenset((CommandLifecycleMessage, ResultMessage, *RESULT_BY_SUBTYPE.values()))
#: The types of messages that show that a turn is under way.
OPENING = frozenset((AssistantMessage, InitMessage, StreamEvent, UserMessage))
#: The types of messages that a session shows to :meth:`Run.see`. It leaves out two of :data:`OPENING`, which are most
#: of its traffic: ``system/init`` or an assistant message tells of the same turn.
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

#: The most seconds between the sending of a prompt and its turn. CLI 2.1.331 announces the turn within 0.03 seconds of
#: reading the prompt. This is waited for only if nothing else tells whether an earlier result answered the prompt, too.
SETTLE_SECONDS = 3.0
#: The least seconds to wait, so that messages on their way are read.
LEAST_SECONDS = 0.1
#: The most prompts without a result that are followed. Before another one is sent, the oldest is forgotten.
MAX_PROMPTS = 4096
#: Characters that are kept of a state of the CLI, and of the reason of an error: both are one word.
MAX_WORD_CHARS = 128


class State(Enum):
    """The state of a prompt that was sent; see the module's table."""

    SENT = "sent"
    QUEUED = "queued"
    STARTED = "started"
    FOLDED = "folded"
    UNCERTAIN = "uncertain"
    ANSWERED = "answered"
    REPEATED = "repeated"
    CANCELLED = "cancelled"


class Event(Enum):
    """What a message, or the end of a wait, says of a prompt; see the module's text."""

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


_SAID_BY_RESULTS = {Event.NAMED: State.ANSWERED, Event.FIRST: State.ANSWERED}
#: What becomes of a prompt of which it is not known where it is.
_SAID_OF_ANY = {
    Event.QUEUED: State.QUEUED,
    Event.STARTED: State.STARTED,
    Event.COMPLETED: State.REPEATED,
    Event.CANCELLED: State.CANCELLED,
    Event.WITHDRAWN: State.CANCELLED,
    Event.FOLDED: State.FOLDED,
    **_SAID_BY_RESULTS,
}

#: By state, what each event makes of a prompt. An event that is not listed changes nothing. ``discarded`` and
#: ``refused`` of ``command_lifecycle`` are CANCELLED; WITHDRAWN is the host's own request to cancel, answered with yes.
#: COMPLETED and CANCELLED behind STARTED tell of the turn, whose result says more: its prompt is FOLDED for the rest.
TRANSITIONS: dict[State, dict[Event, State]] = {
    State.SENT: {**_SAID_OF_ANY, Event.LATER: State.UNCERTAIN, Event.SWEPT: State.UNCERTAIN},
    State.QUEUED: {
        Event.STARTED: State.STARTED,
        Event.COMPLETED: State.FOLDED,
        Event.CANCELLED: State.CANCELLED,
        Event.WITHDRAWN: State.CANCELLED,
        Event.FOLDED: State.FOLDED,
        **_SAID_BY_RESULTS,
    },
    State.STARTED: {
        Event.QUEUED: State.QUEUED,  # an interrupt has put it back
        Event.COMPLETED: State.FOLDED,
        Event.CANCELLED: State.FOLDED,
        Event.WITHDRAWN: State.CANCELLED,
        **_SAID_BY_RESULTS,
    },
    State.FOLDED: {
        Event.QUEUED: State.QUEUED,
        Event.LATER: State.ANSWERED,
        Event.SETTLED: State.CANCELLED,
        **_SAID_BY_RESULTS,
    },
    State.UNCERTAIN: {**_SAID_OF_ANY, Event.SETTLED: State.ANSWERED},
    State.ANSWERED: {},
    State.REPEATED: {},
    State.CANCELLED: {},
}
_FINAL = frozenset(state for state, events in TRANSITIONS.items() if not events)
#: A turn with a result of its own is owed.
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
    """A prompt that was sent, and what is known of it.

    Args:
        uuid: of the message; None if it has none.
        sent_at: when it was sent, by the clock of the event loop, in seconds.
        number: of the prompt in the order of sending.
    """

    __slots__ = ("number", "refusal", "result", "sent_at", "state", "uuid")

    def __init__(self, uuid: str | None, sent_at: float, number: int) -> None:
        self.uuid: str | None = uuid
        self.sent_at: float = sent_at
        self.number: int = number
        self.state: State = State.SENT
        #: The result that answers it, or may.
        self.result: ResultMessage | None = None
        #: Why it was refused before it came to the CLI; empty if it was not.
        self.refusal: str = ""

    @property
    def ended(self) -> bool:
        """Whether its state is final."""
        return self.state in _FINAL

    def happens(self, event: Event, result: ResultMessage | None = None) -> None:
        """Go to the state that the event leads to, and keep the result if it answers the prompt, or may."""
        self.state = TRANSITIONS[self.state].get(event, self.state)
        if self.state not in (State.ANSWERED, State.UNCERTAIN):
            self.result = None  # the CLI has said since that an earlier one was for another prompt
        elif result is not None:
            self.result = result  # of several that may have answered it, the last: prompts are answered in their order


class Run:
    """Follows the prompts of a session as they are sent, and its messages as they are taken.

    Args:
        merges: whether a result that names nobody may answer several prompts. Otherwise it is for the oldest alone, and
            for those that are FOLDED.
        reports: whether :meth:`take_finished` is called, again and again. Otherwise ended prompts are not kept.
    """

    def __init__(self, *, merges: bool = True, reports: bool = False) -> None:
        self._merges = merges
        # What the CLI has last said of its state; None if it says nothing of it.
        self._state: str | None = None
        #: What works in the background, and the turns that its ends bring.
        self.background: Background = Background()
        # The uuids of all prompts; and the prompts that have not ended, in the order of sending, by their uuids.
        self._uuids = Ids(MAX_PROMPTS)
        self._open: dict[str | SentPrompt, SentPrompt] = {}
        # Of these, the ones without a uuid, and the ones that are FOLDED: a result concerns them without naming them.
        self._unnamed: dict[SentPrompt, None] = {}
        self._folded: dict[SentPrompt, None] = {}
        self._count = 0
        # The prompts that have ended since take_finished(), with their results; None if nobody takes them.
        self._finished: list[SentPrompt] | None = [] if reports else None
        # Whether a turn is under way; whether the CLI ever said that one begins; how many it says are queued.
        self._turn = self._announces = False
        # Whether older messages are read than those behind which the prompts were sent.
        self._is_behind = False
        self._queued = 0
        #: ``error`` of the last assistant message of the turn, those of subagents aside.
        self.reason: str | None = None
        #: When the rate limit ends that the CLI last said was used up, in seconds since 1970; else None.
        self.resets_at: float | None = None
        #: The last error that a dialect reported beside all turns: an agent that ends with code 1 means it.
        self.fatal: ErrorInfo | None = None

        #: The last result.
        self.last_result: ResultMessage | None = None

    @property
    def turn(self) -> bool:
        """Whether a turn is under way."""
        return self._turn

    @property
    def owed(self) -> list[str]:
        """The uuids of the prompts that wait for a turn, or for its result, in the order of sending."""
        return [prompt.uuid for prompt in self._open.values() if prompt.uuid is not None and prompt.state in _OWED]

    def unfinished_turn(self) -> str:
        """Where the turn would end if the output ended now, in words; empty if that is between turns.

        Among the recorded sessions of the CLI, those that were cut, and no others, end within a turn by this rule.
        """
        if self._turn:
            return "in the middle of a turn"
        is_owed = any(prompt.state in _OWED for prompt in self._open.values())
        return "before the turn that was asked for" if is_owed else ""

    def unfinished(self) -> str:
        """Where the run would end if the output ended now, in words; empty if that is between runs."""
        return self.unfinished_turn() or self.background.unfinished()

    @property
    def over(self) -> bool:
        """Whether nothing more will come, unless something is asked."""
        if self._is_behind or self._under_way or self._queued or len(self._folded) < len(self._open):
            return False
        return not self.background.due and self._state in (None, "idle")

    @property
    def _under_way(self) -> bool:
        """Whether something goes on that will say when it ends."""
        return self._turn or bool(self.background.subagents) or self._state == "requires_action"

    def patience(self, ceiling: float | None, now: float) -> float | None:
        """Seconds to wait for the next message; None for as long as it takes.

        Args:
            ceiling: seconds to wait when nothing is known to be under way.
            now: by the clock of :attr:`SentPrompt.sent_at`.
        """
        if self._is_behind or self._under_way:
            return None
        if self._queued or any(prompt.state in _OWED for prompt in self._open.values()):
            # A CLI that is idle although a turn is owed has dropped the prompt, or has not come to it yet.
            return ceiling if self._state == "idle" else None
        due, certain = bool(self.background.due), self.background.is_certain
        if self._state == "idle" and self._open:
            newest = next(reversed(self._open.values()))
            left = max(newest.sent_at + SETTLE_SECONDS - now, LEAST_SECONDS)
        elif self._state == "idle" and due:
            left = SETTLE_SECONDS  # a CLI that tells its state says within 0.1 s that it runs
        elif self._state is None and ((self._announces and self._open) or (due and not certain)):
            left = SETTLE_SECONDS
        else:
            return ceiling
        return left if ceiling is None else min(left, ceiling)

    def settle(self) -> None:
        """Nothing came for as long as :meth:`patience` said: what is open and owed no turn has ended.

        Ends of tasks that may have brought no turn have brought none.
        """
        if self._state is not None or not self.background.is_certain:
            self.background.settle()
        for prompt in list(self._open.values()):
            self._happens(prompt, Event.SETTLED)

    def ask(self, uuid: str | None, now: float) -> SentPrompt | None:
        """A prompt is sent. Returns None if no turn is owed for it, because an earlier one had its uuid.

        An empty uuid is none: the CLI reads it so.
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
        """The session takes over a CLI that owes results for these prompts.

        Until :meth:`arrive` is called, messages are seen that are older than that.
        """
        self._is_behind = True
        for uuid in owed:
            self.ask(uuid, now)

    def arrive(self, *, turn: bool, subagents: Iterable[str] = (), restarted: bool) -> None:
        """The consumer has read all older messages.

        Args:
            turn: whether a turn is under way now.
            subagents: ids of the subagents in the background. Some may have begun before the first message.
            restarted: whether the messages come from several processes. Work of an earlier process has ended.
        """
        self._is_behind, self._turn = False, turn
        if restarted:
            self._state = None
            self.background = Background()
            self._queued = 0
        for id in subagents:
            self.background.subagents.add(id)

    def refuse(self, uuid: str, reason: str) -> None:
        """A prompt will not come to the CLI. It may be sent again."""
        prompt = self._open.get(uuid)
        if prompt is not None:
            prompt.refusal = reason
            self._uuids.discard(uuid)
            self._happens(prompt, Event.WITHDRAWN)

    def had(self, uuid: str | None) -> bool:
        """Whether a prompt with this uuid was sent before."""
        return uuid is not None and uuid in self._uuids

    def take_back(self, prompt: SentPrompt) -> None:
        """The prompt was not sent after all."""
        if prompt.uuid is not None:
            self._uuids.discard(prompt.uuid)
        self._forget(prompt)

    def take_finished(self) -> list[SentPrompt]:
        """The prompts whose state has become final since this was last asked."""
        finished = self._finished or []
        self._finished = []
        return finished

    def unnamed(self) -> list[SentPrompt]:
        """The prompts without a uuid that have not ended."""
        return list(self._unnamed)

    def drop(self, uuids: Iterable[str], swept: Iterable[SentPrompt] = ()) -> None:
        """The CLI answers that it has taken these prompts out of its queue.

        Args:
            uuids: of the prompts that the CLI names.
            swept: those without a uuid that may have been in the queue, too, if it was emptied.
        """
        for uuid in uuids:
            self._happens(self._open.get(uuid), Event.WITHDRAWN)
        for prompt in swept:
            self._happens(self._open.get(prompt), Event.SWEPT)

    def is_unasked(self, result: ResultMessage) -> bool:
        """Whether a result, which is about to be seen, is of a turn that background work began."""
        return isinstance(result.origin, TaskNotificationOrigin) or not self._open

    def stopped_error(self, result: ResultMessage) -> SubagentStoppedError | None:
        """The error of a run whose subagents were stopped, where no turn has taken that up; ``result`` is its last."""
        stopped = len(self.background.stopped)
        return SubagentStoppedError(result, stopped) if stopped else None

    def see(self, message: Any) -> bool:
        """Look at a message. Returns whether it is for the host alone, which asked for it.

        Messages whose type is neither in :data:`MARKS` nor in :data:`OPENING` change nothing.
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
            self.background.turn_ended(takes_one_up=self.is_unasked(message))
            if not self._announces:
                self.background.settle()
            self._result(message)
        elif isinstance(message, InitMessage):
            # A simple agent may greet its host with one, once. Its prompts are answered each by a result of its own.
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
            # The oldest prompt is the one of the turn. The next ones, as many as the message counts, were put into it,
            # behind those that an earlier message has counted.
            count = min(max(message.message_count, 0), len(self._open))
            waiting = (prompt for prompt in islice(self._open.values(), 1, None) if prompt not in self._folded)
            for prompt in list(islice(waiting, count)):
                self._happens(prompt, Event.FOLDED)
        elif isinstance(message, SystemErrorMessage):
            self.fatal = message.error
        elif isinstance(message, SessionStateChangedMessage):
            self._state = message.state[:MAX_WORD_CHARS]
            self.background.settle()  # what is due makes the CLI run
            return message.sdk_host_only is True
        elif isinstance(message, TASK_MARKS):
            self.background.see(message, in_turn=self._turn)
        return False

    def _result(self, result: ResultMessage) -> None:
        names = _named_by(result)
        if self._is_behind:
            # Only a prompt that was sent again can have its result among the older messages.
            for uuid in names or ():
                self._happens(self._open.get(uuid), Event.NAMED, result)
            return
        named = [self._open[uuid] for uuid in names or () if uuid in self._open]
        last_named = max((prompt.number for prompt in named), default=-1)
        background = isinstance(result.origin, TaskNotificationOrigin)
        is_first = not names and not background
        # A result that names prompts changes no other prompt with a uuid, unless that is FOLDED. So its cost does not
        # depend on the number of prompts that wait.
        if names is None:
            concerned = list(self._open.values())
        else:
            if result.user_message_uuids is None:  # it names the last only
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
                    prompt.result = result  # as LATER would have it, at a tenth of the time
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
    """The uuids of the prompts that a result is for; None from a CLI that does not say."""
    names = result.user_message_uuids
    if names is None and result.user_message_uuid is None:
        return None
    return {uuid for uuid in (*(names or ()), result.user_message_uuid) if uuid is not None}
