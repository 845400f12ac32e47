"""A session with a CLI that another program started and owns.

A :class:`SessionTransport` connects to such a CLI. Its stream begins with replayed messages. The consumer gets them
like all other messages, but the session ignores control messages among them, because the transport lists the requests
that are still open. The session counts messages to tell the transport how far the consumer has read.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import Event, current_time

from claude_wire.control.guards import Registered
from claude_wire.errors import HandleError
from claude_wire.messages import (
    ControlRequest,
    ControlResponse,
    ControlSuccess,
    InitializeRequest,
    McpMessageRequest,
    ResultMessage,
)
from claude_wire.messages.union import RESULT_BY_SUBTYPE
from claude_wire.session.router import KEPT_BACK, Router
from claude_wire.support.waiting import move_on_after

if TYPE_CHECKING:
    from claude_wire.codec.follower import Follower
    from claude_wire.messages import InitializeResponse
    from claude_wire.session.arguments import McpServer
    from claude_wire.session.callbacks import Callbacks
    from claude_wire.session.control import Control
    from claude_wire.session.reading import Reading
    from claude_wire.streams.message_stream import MessageStream
    from claude_wire.streams.read_ahead import Tap
    from claude_wire.streams.tasks import Tasks

__all__ = ["Registered", "RunningCLI", "SessionPort", "SessionTransport", "Takeover", "TakeoverRouter"]

#: Seconds that an MCP server may take to handle the CLI's repeated handshake.
HANDSHAKE_SECONDS = 60.0

_RESULTS = frozenset((ResultMessage, *RESULT_BY_SUBTYPE.values()))

_log = logging.getLogger("claude_wire")


class RunningCLI(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a CLI that a session takes over.

    Attributes:
        initialize_id: the ``request_id`` of the owner's ``initialize`` request. The session uses the answer as its own.
            A second answer means that the CLI was restarted.
        initialized: the CLI's answer to the owner's ``initialize`` request; None until the answer arrives.
        replayed: number of messages at the beginning of the stream that are older than this description. The session
            ignores control messages among them, because ``open`` has the requests that still need an answer.
        continues: whether the stream begins in the middle of the CLI's output, after an answer to ``initialize``.
        ended: whether the CLI has exited. If so, no messages follow the replayed messages.
        turn: whether a turn is running.
        subagents: ids of the subagents that are working in the background.
        owed: uuids of the prompts that have no result yet.
        open: the CLI's requests that have no answer yet.
        handshakes: MCP server -> the first JSON-RPC messages that the CLI sent to this server. The session repeats them
            for a server in this process, which has not seen them.
        registered: the callbacks that the CLI was started with; None if unknown.
    """

    initialize_id: str = ""
    initialized: ControlResponse | None = None
    replayed: int = 0
    continues: bool = False
    ended: bool = False
    turn: bool = False
    subagents: Sequence[str] = ()
    owed: Sequence[str] = ()
    open: Sequence[ControlRequest] = ()
    handshakes: dict[str, list[dict[str, Any]]] = {}
    registered: Registered | None = None


class SessionPort:
    """The part of a session that its transport may use. The session passes it to :meth:`SessionTransport.open`."""

    def __init__(self, router: TakeoverRouter, callbacks: Callbacks, control: Control, reading: Reading) -> None:
        self._router = router
        self._callbacks = callbacks
        self._control = control
        self._reading = reading

    @property
    def hooks(self) -> list[str]:
        """The ids of the session's hooks."""
        return self._callbacks.hook_ids

    @property
    def mcp_servers(self) -> list[str]:
        """The names of the session's MCP servers."""
        return list(self._callbacks.mcp_servers)

    def complete(self, request: InitializeRequest) -> InitializeRequest:
        """Add the session's callbacks to the ``initialize`` request for a CLI that the transport starts.

        Raises:
            ValueError: the request sets hooks, MCP servers or dialogs that the session also has.
        """
        return self._callbacks.complete(request)

    @property
    def taken(self) -> int:
        """The number of messages up to the last one that the consumer took, including control messages."""
        return self._router.taken

    @property
    def last_result(self) -> ResultMessage | None:
        """The last result that the session read; None before the first."""
        return self._router.last_result

    def refuse_prompt(self, uuid: str, reason: str) -> None:
        """Fail a prompt that the CLI will not get. Waiting for its result raises :class:`~claude_wire.PromptError`."""
        self._reading.refuse(uuid, reason)

    def refuse_request(self, request_id: str, reason: str) -> None:
        """Fail a request that the CLI will not get, with a :class:`~claude_wire.RequestRefusedError`."""
        self._control.requests.refuse(request_id, reason)

    def stop_answering(self) -> None:
        """Cancel running callbacks and stop sending answers, because another session answers from now on."""
        self._control.answers.drop()

    def fail_requests(self, why: str, cause: Exception | None = None) -> None:
        """Fail all waiting requests with a :class:`~claude_wire.SessionEndedError`."""
        self._control.requests.fail(why, cause)


class SessionTransport(ABC):
    """Connects to a CLI that another program started and owns: ``async with Session(transport) as session``.

    The session calls :meth:`open` on entering its block and :meth:`aclose` on leaving it. The CLI continues to run
    after the block. The session does not send ``initialize``, skips replayed control messages, and answers the open
    requests.
    """

    stream: MessageStream[Any]
    """The CLI's output, beginning at the point where the session continues to read.

    Its decoder must have ``on_invalid="return"``, but not ``coalesce`` or ``only``. The session drops an incomplete
    last line.
    """
    drives: bool = True
    """True while this session may send lines and must answer the CLI's requests. May change at any time."""
    end_input_line: bytes | None = None
    """The line that ends the CLI's input; None if :meth:`Session.end_input` is not possible."""

    @abstractmethod
    async def open(self, port: SessionPort) -> RunningCLI:
        """Connect, and return the CLI's state. Called once. From then on, :attr:`stream` yields the CLI's lines."""

    @abstractmethod
    async def send(self, line: bytes) -> None:
        """Send a line, which ends with a line feed, to the CLI. Only one task at a time calls this."""

    def require(self, line: bytes, *, is_answer: bool) -> None:  # noqa: B027  # most transports send anything
        """Raise an error for a line that must not be sent now. Called before the line waits for earlier lines."""

    def end_error(self) -> Exception | None:
        """The exception that iterating raises when the stream ends; None for a normal end."""
        return None

    async def aclose(self) -> None:
        """Close the connection and the stream. A second call does nothing."""
        await self.stream.aclose()


class Takeover:
    """Adapts a session to the state, open requests and replayed messages of a CLI that is already running."""

    #: The CLI's state, as returned by the transport's ``open``. Must be set before :meth:`begin` is called.
    cli: RunningCLI

    def __init__(self, transport: SessionTransport, callbacks: Callbacks, control: Control, tasks: Tasks) -> None:
        self._transport = transport
        self._callbacks = callbacks
        self._control = control
        self._tasks = tasks
        #: The CLI's answer to its owner's ``initialize`` request; None until the answer arrives.
        self.info: InitializeResponse | None = None
        # The number of answers to `initialize` among the replayed messages: one for each time the CLI started.
        self._processes = 0

    def begin(self, reading: Reading) -> None:
        """Set the run's state to the CLI's state. Call this when the transport is open."""
        self._reading = reading
        if self.cli.initialized is not None:
            self._initialized(self.cli.initialized)
        reading.run.take_over(self.cli.owed, current_time())
        if not self.cli.replayed:
            self.arrived()

    def answer_open(self) -> None:
        """If this session drives, repeat the CLI's handshakes with MCP servers, and then answer the open requests.

        Raises:
            RequestError: the CLI cannot do what a callback needs.
        """
        if not self._transport.drives:
            return
        callbacks, cli = self._callbacks, self.cli
        if self.info is not None:
            callbacks.confirm_hooks(self.info)
        if cli.registered is not None:
            callbacks.confirm_registered(cli.registered)
        open_messages = [
            (question.request.server_name, question.request.message)
            for question in cli.open
            if isinstance(question.request, McpMessageRequest)
        ]
        for name, messages in cli.handshakes.items():
            missed = [message for message in messages if (name, message) not in open_messages]
            if name in callbacks.mcp_servers and missed:
                callbacks.greetings[name] = greeted = Event()
                greet = partial(_greet, name, callbacks.mcp_servers[name], missed, greeted)
                self._tasks.start(greet, f"claude-wire-mcp-{name}-handshake")
        for question in cli.open:
            self._control.handle(question)

    def arrived(self) -> None:
        """Record that the consumer took all replayed messages. From now on, new messages change the run."""
        cli = self.cli
        restarted = self._processes > (0 if cli.continues else 1)
        self._reading.arrive(turn=cli.turn, subagents=cli.subagents, restarted=restarted)

    def skip(self, message: Any) -> None:
        """Ignore a replayed control message, but count it if it shows that the CLI started."""
        if self._answers_initialize(message):
            self._processes += 1

    def handle(self, message: Any) -> None:
        """Handle a control message that was not replayed."""
        if self._answers_initialize(message):
            self._initialized(message)
        elif self._transport.drives:
            self._control.handle(message)
        elif type(message) is ControlResponse:  # this session may have sent the request while it was driving
            self._control.handle_answer(message)

    def _answers_initialize(self, message: Any) -> bool:
        return type(message) is ControlResponse and message.request_id == self.cli.initialize_id

    def _initialized(self, answer: ControlResponse) -> None:
        if isinstance(answer.response, ControlSuccess):
            self.info = InitializeRequest().parse_answer(answer.response.response or {})


class TakeoverRouter(Router):
    """A :class:`Router` that counts messages, and separates replayed messages from new messages.

    A batch never has both replayed and new messages, because the run's state changes between them.
    """

    def __init__(self, transport: SessionTransport, tap: Tap | None, control: Control, takeover: Takeover) -> None:
        super().__init__(transport.stream, tap, control)
        self._transport = transport
        self._takeover = takeover
        #: The last result that was read; None before the first.
        self.last_result: ResultMessage | None = None
        # Messages are numbered from 1. `_routed` is the number of the last routed message, `_before` is the number of
        # the last message that the consumer took before this batch, and `_numbers` has the numbers of the consumer's
        # messages in this batch.
        self._routed = 0
        self._before = 0
        self._numbers: Sequence[int] = ()
        # New messages that were decoded in the same batch as the last replayed messages. They form the next batch.
        self._held: list[Any] = []
        # True after the consumer took all replayed messages.
        self._arrived = False
        # The number of messages up to the follower's position.
        self._followed_count = 0
        # True after take_end_error() returned the error.
        self._has_ended = False

    def start(self, *, ends_with_stream: bool) -> None:
        """Start like :meth:`Router.start`.

        Raises:
            TypeError: the decoder merges or drops lines, so messages cannot be counted.
            HandleError: the stream was read before.
        """
        decoder = self._receiver.decoder
        if decoder.coalesce or decoder.on_invalid != "return":
            raise TypeError(
                "a session that takes over a CLI counts messages: its transport needs a decoder without coalesce=, and "
                "on_invalid='return'"
            )
        if decoder.stats.bytes:
            raise HandleError("a session that takes over a CLI needs a stream that was not read before")
        self._arrived = not self._takeover.cli.replayed
        super().start(ends_with_stream=ends_with_stream)

    @property
    def taken(self) -> int:
        """The number of the last message that the consumer took, counted from 1; 0 before the first."""
        count = len(self._numbers) - len(self.ready)
        return self._numbers[count - 1] if count > 0 else self._before

    def end_cause(self) -> Exception | None:
        return self._transport.end_error()

    def take_end_error(self) -> Exception | None:
        if self.closed or self._has_ended:
            return None
        self._has_ended = True
        return self.end_cause()

    def close(self) -> None:
        if self._started:
            self._before, self._numbers = self.taken, ()
        super().close()

    async def _next_batch(self) -> list[Any]:
        replayed = self._takeover.cli.replayed
        if self._routed >= replayed and not (self._arrived or self._takeover.cli.ended):
            self._arrived = True
            self._takeover.arrived()
        if self._held:
            held, self._held = self._held, []
            return held
        batch = await super()._next_batch()
        if self._receiver.ended:
            return []  # drop an incomplete last line, because the transport sends it again when it is complete
        old = replayed - self._routed
        if 0 < old < len(batch):
            batch, self._held = batch[:old], batch[old:]
        return batch

    def _route(self, batch: list[Any]) -> None:
        if not batch:
            return
        self._before = self.taken
        first, self._routed = self._routed + 1, self._routed + len(batch)
        numbers: Sequence[int] = range(first, first + len(batch))
        types = set(map(type, batch))
        if not KEPT_BACK.isdisjoint(types):
            both = zip(numbers, batch, strict=True)
            numbers = [number for number, message in both if type(message) not in KEPT_BACK]
        if not _RESULTS.isdisjoint(types):
            self.last_result = next(one for one in reversed(batch) if isinstance(one, ResultMessage))
        self._numbers = numbers
        super()._route(batch)

    def _was_seen(self, message: Any) -> bool:
        if self._routed <= self._takeover.cli.replayed:
            self._takeover.skip(message)
            return True
        return super()._was_seen(message)

    def _handle(self, message: Any) -> None:
        self._takeover.handle(message)

    def _new_follower(self) -> Follower[Any]:
        self._followed_count = self._routed + len(self._held)
        return super()._new_follower()

    def _handle_lines(self, follower: Follower[Any], data: bytes) -> None:
        before, long_lines = self._followed_count, follower.long_lines
        lines = follower.feed(data)
        self._followed_count = before + len(lines) + follower.long_lines - long_lines
        self._handle_control_lines(follower, lines[max(0, self._takeover.cli.replayed - before) :])


async def _greet(name: str, server: McpServer, messages: Sequence[dict[str, Any]], done: Event) -> None:
    """Repeat the CLI's handshake with an MCP server for a new server object that has not seen the handshake."""
    try:
        with move_on_after(HANDSHAKE_SECONDS) as scope:
            for message in messages:
                await server.handle(message)
        if scope.cancelled_caught:
            _log.warning("the MCP server %s did not complete its handshake in %g s", name, HANDSHAKE_SECONDS)
    except Exception as error:
        _log.warning("the MCP server %s raised %s in its handshake", name, type(error).__name__)
    finally:
        done.set()
