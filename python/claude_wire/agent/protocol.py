"""The agent's side of the protocol, without input and output.

:class:`AgentProtocol` receives the host's bytes and returns events. The caller sends the protocol's output to the host.
The protocol handles prompts, turns and the frames around turns. At any time it is in one of four states:

========  ============================================================================================================
IDLE      No turn is under way. The next prompt starts a turn.
RUNNING   A turn is under way. New prompts wait in a queue.
STOPPING  The turn was stopped, by ``interrupt`` or by a prompt with ``priority: now``. Later messages of the turn are
          dropped. The state lasts until :meth:`AgentProtocol.end_turn`.
OVER      The input has ended or had an invalid line, and all prompts are answered or dropped.
========  ============================================================================================================

The transitions, as new state and event. An event that is not listed changes nothing.

==============================  ===========================  =======================================================
event                           in IDLE                      in RUNNING and STOPPING
==============================  ===========================  =======================================================
a prompt                        RUNNING, ``TurnStarted``     queued
a prompt with a repeated uuid   echoed                       echoed
a prompt, ``priority: now``     RUNNING, ``TurnStarted``     STOPPING, ``TurnStopped``; queued before all others
a prompt that needs no model    a whole turn                 queued
``interrupt``                   nothing                      STOPPING, ``TurnStopped``
the turn ends                   nothing                      a prompt is queued: RUNNING, ``TurnStarted``;
                                                             the input has ended: OVER, ``Finished``; else IDLE
end of input                    OVER, ``Finished``           the turn and all queued prompts are still answered
an invalid line                 OVER, ``Finished``           the turn is still answered, queued prompts are dropped
==============================  ===========================  =======================================================

Each turn has exactly one result. Each prompt belongs to exactly one turn, unless an earlier prompt had its uuid or the
host withdraws it. Frames around a turn, in this order (CLI 2.1.331):

1. ``session_state_changed``: running
2. ``command_lifecycle``: queued and started, for each prompt with a uuid
3. ``system/init``
4. echoes of the prompts, if the host wants them
5. messages of the turn
6. ``result``
7. ``command_lifecycle``: completed or cancelled
8. ``session_state_changed``: idle
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec

from claude_wire.agent.input import Accepted, WrongLine, accept, join_prompts, with_original_id
from claude_wire.agent.session import AgentSession, TurnRecord, fill_missing, now
from claude_wire.codec.decoder import Decoder
from claude_wire.codec.encoder import encode
from claude_wire.dialects import STREAM_JSON, Connection, Dialect
from claude_wire.messages import (
    CommandLifecycleMessage,
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    InitMessage,
    InjectedMessage,
    InterruptRequest,
    InterruptResponse,
    Message,
    QueuedMessage,
    ResultMessage,
    ResultSuccess,
    SessionStateChangedMessage,
    Usage,
    UserMessage,
)
from claude_wire.support.ids import Ids

#: The maximum number of waiting prompts, and their maximum size as JSON in bytes. At either limit,
#: :meth:`AgentProtocol.full` returns True.
MAX_PROMPTS = 1000
MAX_PROMPT_BYTES = 16 * 1024 * 1024
#: Maximum number of prompt uuids to remember, each as a 16-byte digest.
MAX_UUIDS = 100_000


class State(Enum):
    """An agent's state. The module's docstring describes each state."""

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"
    OVER = "over"


class TurnStarted(NamedTuple):
    """A turn began. Call :meth:`AgentProtocol.open_turn`, answer it, then call :meth:`AgentProtocol.end_turn`."""

    turn: TurnRecord


class TurnStopped(NamedTuple):
    """The turn under way was stopped: end it soon."""

    turn: TurnRecord


class Interrupted(NamedTuple):
    """The host requested an interrupt: withdraw the questions to the host, and then send this answer."""

    answer: ControlResponse


class InvalidInput(NamedTuple):
    """The input has a line that makes the agent exit. Write the text to standard error."""

    text: str


class Finished(NamedTuple):
    """The agent has nothing left to do. It exits with this exit code."""

    code: int


#: The events that :meth:`AgentProtocol.feed` returns. The host's control messages are events themselves.
Event = (
    TurnStarted
    | Interrupted
    | TurnStopped
    | InvalidInput
    | Finished
    | ControlRequest
    | ControlResponse
    | ControlCancelRequest
)


class _Waiting(NamedTuple):
    prompt: UserMessage
    size: int
    #: True if the prompt gets a separate turn, without other prompts.
    alone: bool


class AgentProtocol:
    """One connection between an agent and a host.

    Args:
        session: the state of the agent's session.
        dialect: the dialect that the host speaks.
        states: whether ``session_state_changed`` messages are marked ``sdk_host_only``. None: the agent does not write
            these messages.
        init: template for the ``system/init`` message of each turn.
    """

    def __init__(
        self,
        session: AgentSession,
        dialect: Dialect = STREAM_JSON,
        *,
        states: bool | None = None,
        init: InitMessage | None = None,
    ) -> None:
        self.session: AgentSession = session
        self.connection: Connection = dialect.connect()
        self._decoder = Decoder()
        self._states = states
        self._init = InitMessage() if init is None else init
        #: The turn under way, or None.
        self.turn: TurnRecord | None = None
        self._queue: deque[_Waiting] = deque()
        # Prompts that call no model (``shouldQuery`` false): the context of the next turn.
        self._context: deque[_Waiting] = deque()
        self._uuids = Ids(MAX_UUIDS)
        # Events not yet returned to the caller.
        self._events: list[Event] = []
        self._input_ended = self._over = False
        # `_wrong`: the input had a wrong line. `_failed`: the last turn failed.
        self._wrong = self._failed = False
        self._results = 0
        # The state in the last `session_state_changed` message.
        self._reported_state = "idle"
        # Number of open questions to the host.
        self._questions = 0
        # Lines to write: the first queue has answers to control requests, the second has all other lines.
        self._answers: deque[bytes] = deque()
        self._frames: deque[bytes] = deque()
        #: Number of bytes in the lines that wait for :meth:`pop`.
        self.unwritten: int = 0
        # A uuid for a message is the head of a random UUID, with a counter as its last group. `uuid4()` takes ten times
        # as long.
        self.uuid_head: str = str(uuid4())[:24]
        self.uuid_count: int = 0

    @property
    def state(self) -> State:
        """The current state. The module's docstring describes each state."""
        if self.turn is not None:
            return State.RUNNING if self.turn.stopped is None else State.STOPPING
        return State.OVER if self._over else State.IDLE

    @property
    def dialect(self) -> Dialect:
        """The host's dialect; AUTO until the protocol detects it."""
        return self.connection.dialect

    @property
    def plain(self) -> bool:
        """True if the host speaks stream-json."""
        return self.dialect.plain

    def full(self, *, asking: bool = False) -> bool:
        """True if so many prompts are waiting that the caller must not read more input.

        Args:
            asking: True while the turn is waiting for the host's answer. The limits are then doubled, because more
                prompts may arrive before the answer.
        """
        times = 2 if asking else 1
        return len(self._queue) >= times * MAX_PROMPTS or _size(self._queue) >= times * MAX_PROMPT_BYTES

    @property
    def input_ended(self) -> bool:
        """True after the end of the input, and after a wrong line."""
        return self._input_ended

    # --- input

    def feed(self, data: bytes | memoryview) -> list[Event]:
        """Handle bytes from the host. Drop bytes after a wrong line, and after the end of input."""
        if not self._input_ended:
            for message in self._decoder.feed(data):
                self._receive(message)
        return self._take_events()

    def end_input(self) -> list[Event]:
        """Handle the end of the input. Waiting prompts are still answered."""
        if not self._input_ended:
            for message in self._decoder.close():
                self._receive(message)
        if not self._input_ended:
            self._input_ended = True
            self._begin_next()
        return self._take_events()

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _receive(self, message: Any) -> None:
        if self._input_ended:
            return
        try:
            translated = self.connection.from_host(message)
            self.write_first(self.connection.reply())
            for one in translated:
                accepted = accept(one, strict=self.dialect.strict)
                if accepted is not None:
                    self._handle(accepted)
        except WrongLine as wrong:
            self._events.append(InvalidInput(str(wrong)))
            self._wrong = self._input_ended = True
            self._queue.clear()
            self._begin_next()

    def _handle(self, message: Accepted) -> None:
        if isinstance(message, UserMessage):
            self._prompt(message)
        elif isinstance(message, ControlRequest) and isinstance(message.request, InterruptRequest):
            self._interrupted(message, message.request)
        else:
            self._events.append(message)

    def _interrupted(self, message: ControlRequest, request: InterruptRequest) -> None:
        # An interrupt is for the turn under way, not for the turn of a prompt that follows in the input.
        cancelled = self.withdraw() if request.cancel_queued else None
        receipt = InterruptResponse(still_queued=self.queued, cancelled=cancelled)
        self._events.append(Interrupted(ControlResponse.success(message.request_id, receipt)))
        self._stop("interrupt")

    def _prompt(self, prompt: UserMessage) -> None:
        if prompt.uuid:
            if prompt.uuid in self.session.answered:
                self._lifecycle([prompt], "completed")
                if self.turn is None:
                    self._reported_state = ""  # write "idle" again
                    self._state("idle")
                return
            digest = blake2b(prompt.uuid.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            if self._uuids.has_key(digest):
                self._echo(prompt, None)
                return
            self._uuids.add_key(digest)
        busy = self.turn is not None
        self._state("running")
        self._lifecycle([prompt], "queued")
        waiting = _Waiting(prompt, len(encode(prompt)), prompt.shouldQuery is False or prompt.priority == "now")
        if busy and self.dialect.busy == "inject":
            self.send(QueuedMessage(session_id=prompt.session_id or self.session.id, position=len(self._queue) + 1))
        if prompt.priority == "now":
            # Each of the other waiting prompts gets a separate turn after this one.
            self._queue = deque((waiting, *(one._replace(alone=True) for one in self._queue)))
            self._stop("now")
        else:
            self._queue.append(waiting)
        if not busy:
            self._begin_next()

    # --- turns

    def _begin_next(self) -> None:
        """Begin the next turn if a prompt is waiting. Otherwise become idle, or finish if the input has ended."""
        while self.turn is None and self._queue:
            self._begin()
        if self.turn is None and not self._queue:
            self._state("idle")
            if self._input_ended and not self._over:
                self._over = True
                self._events.append(Finished(self.code))

    def _begin(self) -> None:
        batch = [self._queue.popleft()]
        if self.dialect.busy == "merge":
            while self._queue and not batch[0].alone and not self._queue[0].alone:
                batch.append(self._queue.popleft())
        prompts = [one.prompt for one in batch]
        if self.dialect.names_session and prompts[-1].session_id:
            self.session.id = prompts[-1].session_id
        turn = self.turn = TurnRecord(prompts, join_prompts(prompts, "\n"), self.session.id)
        self._lifecycle(prompts, "started")
        if turn.prompt.shouldQuery is not False:
            turn.context = [one.prompt for one in self._context]
            self._context.clear()
            self._events.append(TurnStarted(turn))
            return
        self._context.append(batch[0])
        while len(self._context) > MAX_PROMPTS or _size(self._context) > MAX_PROMPT_BYTES:
            self._context.popleft()
        self._finish(turn, ResultSuccess(is_error=False, num_turns=0, result="", duration_api_ms=0, usage=Usage()))

    def open_turn(self, turn: TurnRecord) -> None:
        """Write the turn's first frames, ``system/init`` and echoes of the prompts, unless they are already written."""
        if turn is self.turn and not turn.opened:
            turn.opened = True
            self.send(self._init_of())
            for prompt in turn.prompts[:-1]:
                self._echo(prompt, None)
            self._echo(turn.prompt, now())

    def _init_of(self) -> InitMessage:
        session = self.session
        tools: list[str | dict[str, Any]] = [*(self._init.tools or ())]
        for server in session.mcp_servers.values():
            tools += server.tool_names
        return msgspec.structs.replace(
            self._init,
            uuid=self.new_uuid(),
            session_id=session.id,
            tools=tools,
            mcp_servers=[*(self._init.mcp_servers or ()), *session.init_servers],
            model=session.model,
            permissionMode=session.permission_mode,
        )

    def _stop(self, why: str) -> None:
        if self.turn is not None and self.turn.stopped is None:
            self.turn.stopped = why
            self._events.append(TurnStopped(self.turn))

    def interrupt(self, why: str = "interrupt") -> list[Event]:
        """Stop the turn under way. Its result is an error, whatever the author's function returns."""
        self._stop(why)
        return self._take_events()

    def end_turn(self, turn: TurnRecord, result: ResultMessage) -> list[Event]:
        """End a turn with this result. If prompts are waiting, begin the next turn."""
        if turn is self.turn:
            self._finish(turn, result)
            self._begin_next()
        return self._take_events()

    def _finish(self, turn: TurnRecord, result: ResultMessage) -> None:
        self.open_turn(turn)
        uuids = turn.uuids
        given: dict[str, Any] = {
            "duration_ms": turn.milliseconds,
            "session_id": turn.session_id,
            "uuid": self.new_uuid(),
        }
        if uuids:
            given.update(user_message_uuid=uuids[-1], user_message_uuids=uuids)
        given.update(queued_turn_count=len(self._queue), result_index=self._results)
        result = fill_missing(result, given)
        self.send(result)
        self._results += 1
        self._failed = result.is_error is True
        self._lifecycle(turn.prompts, "completed" if turn.stopped is None else "cancelled")
        self.turn = None

    def inject(self) -> list[UserMessage]:
        """Add waiting prompts to the turn under way, and return them. Prompts that need a separate turn stay queued."""
        turn = self.turn
        if turn is None or turn.stopped is not None or self.dialect.busy not in ("merge", "inject"):
            return []
        injected = [one for one in self._queue if not one.alone]
        self._queue = deque(one for one in self._queue if one.alone)
        prompts = [one.prompt for one in injected]
        turn.folded += [prompt.uuid for prompt in prompts if prompt.uuid]
        for prompt in prompts:
            self._lifecycle([prompt], "started")
            self._echo(prompt, now())
            self._lifecycle([prompt], "completed")
        if self.dialect.busy == "inject" and prompts:
            prompts = [join_prompts(prompts, "\n\n")]
            self.send(InjectedMessage(message_count=len(injected), content_length=len(prompts[0].text)))
        return prompts

    def withdraw(self, uuid: str | None = None) -> list[str]:
        """Remove a prompt, or all prompts, from the queue. Return the uuids of the removed prompts."""
        out = [one for one in self._queue if uuid is None or one.prompt.uuid == uuid]
        self._queue = deque(one for one in self._queue if uuid is not None and one.prompt.uuid != uuid)
        self._lifecycle([one.prompt for one in out], "cancelled")
        return [one.prompt.uuid for one in out if one.prompt.uuid]

    @property
    def queued(self) -> list[str]:
        """The uuids of the waiting prompts; prompts without a uuid are omitted."""
        return [one.prompt.uuid for one in self._queue if one.prompt.uuid]

    @property
    def status(self) -> dict[str, Any]:
        """The answer to ``get_status``, a request of some dialects."""
        running = self.turn is not None
        return {"running": running, "session_id": self.session.id, "queued_messages": len(self._queue)}

    @property
    def code(self) -> int:
        """The exit code: 1 after a wrong line, the dialect's code if the last turn failed, else 0."""
        return 1 if self._wrong else self.dialect.failed_code if self._failed else 0

    # --- output

    def new_uuid(self) -> str:
        """A new uuid for a message."""
        self.uuid_count += 1
        return f"{self.uuid_head}{self.uuid_count:012x}"

    def send(self, message: Message | dict[str, Any]) -> None:
        """Write a message."""
        self.write(self.connection.to_host(message))

    def write(self, line: bytes) -> None:
        """Queue an encoded line for :meth:`pop`, unless it is empty."""
        if line:
            self._frames.append(line)
            self.unwritten += len(line)

    def write_first(self, line: bytes) -> None:
        """Queue the answer to a control request: before all other lines, but after earlier answers."""
        if line:
            self._answers.append(line)
            self.unwritten += len(line)

    def encode_control(self, message: Message) -> bytes:
        """Encode a control message. An answer gets the original id of its request."""
        return self.connection.to_host(with_original_id(message) if isinstance(message, ControlResponse) else message)

    def pop(self) -> bytes | None:
        """Remove and return the next line to write. Return None if the queue is empty."""
        if not self.unwritten:
            return None
        line = self._answers.popleft() if self._answers else self._frames.popleft()
        self.unwritten -= len(line)
        return line

    def drop_output(self) -> None:
        """Drop all queued output, because the host no longer reads."""
        self._answers.clear()
        self._frames.clear()
        self.unwritten = 0

    @contextmanager
    def asking(self) -> Generator[None, None, None]:
        """Return a context manager in which the turn waits for the host's answer. Several blocks may overlap."""
        self._questions += 1
        self._report_asking()
        try:
            yield
        finally:
            self._questions -= 1
            self._report_asking()

    def _report_asking(self) -> None:
        if self.turn is not None and self.turn.stopped is None:
            self._state("requires_action" if self._questions else "running")

    def _state(self, state: str) -> None:
        if state != self._reported_state:
            self._reported_state = state
            if self._states is not None:
                changed = SessionStateChangedMessage(
                    state=state, sdk_host_only=self._states or None, uuid=self.new_uuid(), session_id=self.session.id
                )
                self.send(changed)

    def _lifecycle(self, prompts: list[UserMessage], state: str) -> None:
        for prompt in prompts:
            if prompt.uuid:
                message = CommandLifecycleMessage(
                    command_uuid=prompt.uuid, state=state, uuid=self.new_uuid(), session_id=self.session.id
                )
                self.send(message)

    def _echo(self, prompt: UserMessage, timestamp: str | None) -> None:
        if self.session.options.replay_user_messages and not prompt.isSynthetic:
            message = UserMessage(
                message=prompt.message,
                session_id=self.session.id,
                uuid=prompt.uuid or self.new_uuid(),
                timestamp=timestamp,
                isReplay=True,
            )
            self.send(message)


def _size(prompts: deque[_Waiting]) -> int:
    return sum(one.size for one in prompts)
