"""What a session has to do with the supervisor that its CLI belongs to.

Knows frames of the supervisor, and which lines of ours it has acknowledged; not sockets, nor what control messages
mean. What a session does for its CLI is the same as elsewhere, but for this:

* It sends no ``initialize``: the supervisor has.
* Control messages up to the line where the session stood when it was attached are passed over. What was open of them is
  in the answer of the supervisor.
* A viewer answers nothing, and sends nothing.
* Each line that is sent is kept until the supervisor has acknowledged it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from anyio import Event, current_time

from claude_wire.codec.decoder import decode
from claude_wire.control.supervisor_frames import (
    END_INPUT,
    INITIALIZE_ID,
    NOTHING,
    Accepted,
    Attached,
    Blocked,
    Cut,
    Driver,
    Ended,
    Limited,
    Refused,
    Serves,
    Stderr,
)
from claude_wire.control.supervisor_lines import SupervisorLines
from claude_wire.control.unacknowledged import MAX_UNACKNOWLEDGED_BYTES, Unacknowledged
from claude_wire.errors import DetachedError, HandleError, ProcessError, ProcessInputError, UnfinishedTurnError
from claude_wire.errors.base import describe_end
from claude_wire.io.waiting import move_on_after
from claude_wire.messages import (
    ControlRequest,
    ControlResponse,
    ControlSuccess,
    InitializeRequest,
    McpMessageRequest,
)

if TYPE_CHECKING:
    from claude_wire.control.sending import Send
    from claude_wire.io.message_stream import MessageStream
    from claude_wire.io.tasks import Tasks
    from claude_wire.messages import InitializeResponse
    from claude_wire.session.callbacks import Callbacks
    from claude_wire.session.control import Control
    from claude_wire.session.reading import Reading

__all__ = ["END_INPUT_LINE", "Attachment", "SupervisorChannel"]

#: Tells the supervisor that the input of the CLI ends.
END_INPUT_LINE = b'{"type":"%s"}\n' % END_INPUT.encode()
#: Bytes of standard error that are kept, as of a process.
STDERR_BYTES = 64 * 1024
#: Seconds in which an MCP server must have taken the repeated handshake of the CLI.
HANDSHAKE_SECONDS = 60.0

_log = logging.getLogger("claude_wire")


class Attachment(Protocol):
    """A way to a session of a supervisor; :class:`claude_wire.supervisor.attach.Attachment` is one."""

    @property
    def stream(self) -> MessageStream[Any]:
        """The lines of the session, once it was opened."""
        ...

    async def open(self, serves: Serves, complete: Callable[[InitializeRequest], InitializeRequest], /) -> Attached:
        """Attach. Called once.

        Args:
            serves: the hooks and MCP servers that the client answers for.
            complete: adds them to the ``initialize`` of a CLI that is started by this.
        """
        ...

    async def send(self, line: bytes, /) -> None:
        """Send a line, by one task at a time."""
        ...

    async def aclose(self) -> None:
        """Close the connection. May be called again."""
        ...


class SupervisorChannel:
    """What a session has to do with the supervisor that it is attached to.

    Args:
        send: writes a line to the supervisor.
        attached: the answer of the supervisor; None if it comes before the session begins.
    """

    #: The answer of the supervisor.
    attached: Attached
    #: Where the consumer of the session stands in what the supervisor sends.
    lines: SupervisorLines

    def __init__(self, send: Send, attached: Attached | None) -> None:
        if attached is not None:
            self.attached = attached
        self._send = send
        #: Whether lines may be sent, and questions are answered.
        self.drives: bool = False
        #: What the CLI has answered to the ``initialize`` of the supervisor.
        self.info: InitializeResponse | None = None
        #: The last result that was read.
        self.last_result: Any = None
        #: Why the connection failed, if it has.
        self.failure: Exception | None = None
        self._why_not = "this session is not attached yet"
        self._stderr = b""
        self._unacknowledged = Unacknowledged()
        # Processes that have begun between the cursor and the answer of the supervisor.
        self._processes = 0
        # The frame that ends the stream, once somebody has seen it.
        self._end: Ended | Cut | None = None
        # Frames that somebody has seen, of all that stand in the stream.
        self._seen = 0

    def begin(self, control: Control, reading: Reading) -> None:
        """The session begins: it goes on where the supervisor says that it is."""
        attached = self.attached
        self._control, self._reading = control, reading
        self.lines = SupervisorLines(attached.after, attached.line, attached.ended, attached.mark)
        self._end = attached.ended
        self._become(attached.role)
        if attached.initialized != NOTHING:
            self.initialized(decode(bytes(attached.initialized)))
        reading.run.attach(attached.owed, current_time())
        if self.lines.is_level:
            self.arrived()

    def take_over(self, callbacks: Callbacks, tasks: Tasks) -> None:
        """Answer what is open, unless this is a viewer; MCP servers see the beginning of their conversation first.

        Raises:
            RequestError: the CLI cannot do what a callback needs.
        """
        if not self.drives:
            return
        if self.info is not None:
            callbacks.confirm_hooks(self.info)
        if self.attached.started is not None:
            callbacks.confirm_started(self.attached.started)
        questions = [decode(bytes(raw)) for raw in self.attached.open]
        open_messages = [
            (question.request.server_name, question.request.message)
            for question in questions
            if isinstance(question, ControlRequest) and isinstance(question.request, McpMessageRequest)
        ]
        for name, messages in self.attached.handshakes.items():
            said = [message for message in messages if (name, message) not in open_messages]
            if name in callbacks.mcp_servers and said:
                callbacks.greetings[name] = greeted = Event()
                tasks.start(_Greeting(callbacks, name, said, greeted).run, f"claude-wire-mcp-{name}-handshake")
        for question in questions:
            if isinstance(question, ControlRequest):
                self._control.handle(question)

    def arrived(self) -> None:
        """All that there was when the session was attached has been taken."""
        attached = self.attached
        restarted = self._processes > (0 if attached.after else 1)
        self._reading.arrive(turn=attached.turn, subagents=attached.subagents, restarted=restarted)

    def passed(self, message: Any) -> None:
        """A control message was passed over that is older than the answer of the supervisor."""
        if type(message) is ControlResponse and message.request_id == INITIALIZE_ID:
            self._processes += 1

    def initialized(self, answer: object) -> None:
        """The CLI has answered the ``initialize`` of the supervisor."""
        if isinstance(answer, ControlResponse) and isinstance(answer.response, ControlSuccess):
            self.info = InitializeRequest().parse_answer(answer.response.response or {})

    def handle(self, message: Any) -> None:
        """Take a control message of the CLI that is newer than the answer of the supervisor."""
        if type(message) is ControlResponse and message.request_id == INITIALIZE_ID:
            self.initialized(message)
        elif self.drives:
            self._control.handle(message)
        elif type(message) is ControlResponse:  # to what was asked as a driver
            self._control.requests.resolve(message)

    # --- what is sent

    def require(self, line: bytes, *, is_answer: bool) -> None:
        """Refuse a line that may not be sent.

        Raises:
            HandleError: this is a viewer, or too much is not acknowledged.
            ProcessInputError: the CLI has ended.
            DetachedError: the supervisor has cut the connection.
        """
        if isinstance(self._end, Ended):
            raise ProcessInputError(
                "the CLI of this session has ended; "
                'Supervisor.resume() or "claude-wire supervisor resume" starts it again'
            )
        if self._end is not None:
            raise self._detached("the supervisor has cut the connection")
        if not self.drives:
            raise HandleError(self._why_not)
        if not is_answer and not self._unacknowledged.has_room(line):
            raise HandleError(
                f"the supervisor has not acknowledged {self._unacknowledged.size:,} bytes of what was sent, and at "
                f"most {MAX_UNACKNOWLEDGED_BYTES:,} are kept: wait until it has read on"
            )

    async def send(self, line: bytes) -> None:
        """Write a line, and keep it until it is acknowledged.

        Raises:
            DetachedError: the connection with the supervisor is lost.
        """
        self._unacknowledged.add(line)
        try:
            sent: Any = self._send(line)
            if isawaitable(sent):
                await sent
        except OSError as error:
            raise self._detached("the connection with the supervisor is lost") from error

    @property
    def unacknowledged(self) -> list[bytes]:
        """Prompts and answers that were sent and are not acknowledged, the oldest first."""
        return self._unacknowledged.lines

    def _refused(self, number: int, reason: str) -> None:
        sent = self._unacknowledged.settle(number)
        kind, id = ("line", None) if sent is None else (sent.kind, sent.id)
        _log.warning("the supervisor has refused a %s: %s", kind, reason)
        if kind == "user" and id is not None:
            self._reading.refuse(id, reason)
        elif kind == "control_request" and id is not None:
            self._control.requests.refuse(id, reason)

    # --- what the supervisor says

    def look_at(self, lines: SupervisorLines) -> None:
        """Take the frames that were found, unless somebody has seen them before."""
        for number, frame in lines.found:
            if number > self._seen:
                self._seen = number
                self._take(frame)
        lines.found.clear()

    def _take(self, frame: object) -> None:
        if isinstance(frame, Accepted):
            self._unacknowledged.settle(frame.lines)
        elif isinstance(frame, Refused):
            self._refused(frame.line, frame.reason)
        elif isinstance(frame, Driver):
            self._become(frame.role)
        elif isinstance(frame, Stderr):
            self._stderr = (self._stderr + frame.text.encode(errors="replace"))[-STDERR_BYTES:]
        elif isinstance(frame, (Blocked, Limited)):
            if frame.message:
                _log.warning("the supervisor says of the session: %s", frame.message)
        elif isinstance(frame, Ended):
            self._end = frame
            self._control.requests.fail("the output has ended", self._ended(frame))
        elif isinstance(frame, Cut):
            self._end = frame
            self._control.requests.fail("the supervisor has cut the connection")

    def _become(self, role: Literal["viewer", "driver"]) -> None:
        was, self.drives = self.drives, role == "driver"
        self._why_not = (
            "this session is a viewer, and sends nothing: attach as a driver; take=True replaces one that is there"
        )
        if was and not self.drives:
            self._why_not = "another client drives this session now; attach with take=True to replace it"
            self._control.answers.drop()

    # --- the end

    def end_error(self) -> Exception | None:
        """What the stream ends with; None if the CLI has just ended."""
        end = self.lines.end
        if isinstance(end, Ended):
            return self._ended(end)
        why = "the connection with the supervisor is lost"
        if end is not None:
            why = f"the supervisor has cut the connection: {end.message}"
        error = self._detached(why)
        error.__cause__ = self.failure
        return error

    def _detached(self, why: str) -> DetachedError:
        cursor = self._reading.cursor
        assert cursor is not None
        return DetachedError(f"{why}; the session goes on there", cursor, self.unacknowledged)

    def _ended(self, ended: Ended) -> ProcessError | None:
        stderr = ended.stderr.encode(errors="replace") or self._stderr
        code, details = ended.exit_code, (ended.exit_code, stderr, self.last_result)
        how = "ended with its supervisor" if code is None else describe_end(code, stderr)
        calls = f"; {len(ended.calls)} tool calls have no result, and were perhaps done" if ended.calls else ""
        error: ProcessError | None = None
        if ended.unfinished:
            message = f"the output ended {ended.unfinished}; the process {how}{calls}"
            error = UnfinishedTurnError(*details, message=message)
        elif code != 0:
            error = ProcessError(*details, message=f"the process {how}{calls}")
        if error is not None:
            error.calls = list(ended.calls)
        return error


class _Greeting:
    """Repeats the beginning of the CLI's conversation with an MCP server for a server that has not seen it."""

    def __init__(self, callbacks: Callbacks, name: str, messages: Sequence[dict[str, Any]], done: Event) -> None:
        self._callbacks = callbacks
        self._name = name
        self._messages = messages
        self._done = done

    async def run(self) -> None:
        server = self._callbacks.mcp_servers[self._name]
        try:
            with move_on_after(HANDSHAKE_SECONDS) as scope:
                for message in self._messages:
                    await server.handle(message)
            if scope.cancelled_caught:
                _log.warning("the MCP server %s did not take its handshake in %g s", self._name, HANDSHAKE_SECONDS)
        except Exception as error:
            _log.warning("the MCP server %s raised %s in its handshake", self._name, type(error).__name__)
        finally:
            self._done.set()
