"""The way to a CLI that another program has started and owns, for a session that takes the CLI over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from claude_wire.control.guards import Registered
from claude_wire.messages import ControlRequest, ControlResponse, ResultMessage

if TYPE_CHECKING:
    from claude_wire.io.message_stream import MessageStream
    from claude_wire.messages import InitializeRequest
    from claude_wire.session.callbacks import Callbacks
    from claude_wire.session.control import Control
    from claude_wire.session.reading import Reading
    from claude_wire.session.takeover import TakeoverRouter

__all__ = ["Registered", "RunningCLI", "SessionPort", "SessionTransport"]


class RunningCLI(msgspec.Struct, frozen=True, kw_only=True):
    """What a session has to know of a CLI that it takes over.

    Attributes:
        initialize_id: the ``request_id`` of the owner's own ``initialize``. The session takes the answer to it as its
            own; a second answer means that the CLI was started again.
        initialized: the CLI's answer to that request; None while there is none.
        replayed: number of messages at the beginning of the stream that are older than this description. Of these the
            session handles no control message: ``open`` has what is still to be answered.
        continues: whether the stream begins in the middle of the CLI's output, after an answer to ``initialize``.
        ended: whether the CLI has ended, so that nothing follows the replayed messages.
        turn: whether a turn is under way.
        subagents: ids of the subagents that work in the background.
        owed: uuids of the prompts that have no result yet.
        open: the CLI's requests without an answer.
        handshakes: MCP server -> the first JSON-RPC messages of the CLI to this server. A server in this process gets
            them again, since it has not seen them.
        registered: the callbacks that the CLI was started with; None if nobody knows.
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
    """The session, as its transport sees it. :meth:`SessionTransport.open` gets one."""

    def __init__(self, router: TakeoverRouter, callbacks: Callbacks, control: Control, reading: Reading) -> None:
        self._router = router
        self._callbacks = callbacks
        self._control = control
        self._reading = reading

    @property
    def hooks(self) -> list[str]:
        """Ids of the session's hooks."""
        return self._callbacks.hook_ids

    @property
    def mcp_servers(self) -> list[str]:
        """Names of the session's MCP servers."""
        return list(self._callbacks.mcp_servers)

    def complete(self, request: InitializeRequest) -> InitializeRequest:
        """Add the session's callbacks to the ``initialize`` of a CLI that the transport starts.

        Raises:
            ValueError: the request has hooks, MCP servers or dialogs of its own.
        """
        return self._callbacks.complete(request)

    @property
    def taken(self) -> int:
        """Number of the stream's messages up to the last one that the consumer has taken, control messages included."""
        return self._router.taken

    @property
    def last_result(self) -> ResultMessage | None:
        """The last result that the session has read."""
        return self._router.last_result

    def refuse_prompt(self, uuid: str, reason: str) -> None:
        """The CLI will not get this prompt: whoever waits for it gets a :class:`~claude_wire.PromptError`."""
        self._reading.refuse(uuid, reason)

    def refuse_request(self, request_id: str, reason: str) -> None:
        """The CLI will not get this request: it fails with a :class:`~claude_wire.RequestRefusedError`."""
        self._control.requests.refuse(request_id, reason)

    def stop_answering(self) -> None:
        """Another session answers from now on: cancel the callbacks that run, and send no answers."""
        self._control.answers.drop()

    def fail_requests(self, why: str, cause: Exception | None = None) -> None:
        """No answer will come any more: all requests fail with a :class:`~claude_wire.SessionEndedError`."""
        self._control.requests.fail(why, cause)


class SessionTransport(ABC):
    """The way to a CLI that another program has started and owns: ``async with Session(transport) as session``.

    The session calls :meth:`open` at the beginning of its block and :meth:`aclose` at its end; the CLI goes on. It
    sends no ``initialize``, passes over the control messages of the past, and answers the requests that are open.
    """

    #: The CLI's output from the place where the session goes on: a stream whose decoder has neither ``coalesce`` nor
    #: ``only``, with ``on_invalid="return"``. A last line without line feed is dropped: it comes again, as a whole.
    stream: MessageStream[Any]
    #: Whether the session may send lines and is to answer the CLI's requests. It may change at any time.
    drives: bool = True
    #: The line that ends the CLI's input; None if :meth:`Session.end_input` is not possible.
    end_input_line: bytes | None = None

    @abstractmethod
    async def open(self, port: SessionPort) -> RunningCLI:
        """Connect, and say what the CLI does. Called once. From then on :attr:`stream` gives the CLI's lines."""

    @abstractmethod
    async def send(self, line: bytes) -> None:
        """Send a line, given with its line feed, to the CLI. Called by one task at a time."""

    def require(self, line: bytes, *, is_answer: bool) -> None:  # noqa: B027  # most transports send anything
        """Raise the error for a line that must not be sent now. Called before a line waits to be sent."""

    def end_error(self) -> Exception | None:
        """The exception that ends the iteration when the stream has ended; None for a normal end."""
        return None

    async def aclose(self) -> None:
        """Close the connection and the stream. May be called again."""
        await self.stream.aclose()
