"""The client's :class:`~claude_wire.Session` for a CLI that a supervisor runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

from claude_wire.codec import decode
from claude_wire.errors import HandleError, ProcessError, ProcessInputError, UnfinishedTurnError
from claude_wire.messages import ControlRequest, ControlResponse
from claude_wire.session import Registered, RunningCLI, Session, SessionTransport
from claude_wire.streams import MessageStream
from claude_wire.support import describe_end
from claude_wire_kit.supervisor.errors import DetachedError
from claude_wire_kit.supervisor.frames import (
    END_INPUT,
    INITIALIZE_ID,
    NOTHING,
    Accepted,
    Attached,
    Blocked,
    Cursor,
    Cut,
    Driver,
    Ended,
    Limited,
    Refused,
    Serves,
    SessionFrame,
    Stderr,
)
from claude_wire_kit.supervisor.lines import SupervisorLines
from claude_wire_kit.supervisor.unacknowledged import MAX_UNACKNOWLEDGED_BYTES, Unacknowledged

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from claude_wire.session import CallbackArguments, SessionPort
    from claude_wire_kit.supervisor.attachment import Attachment

#: Maximum bytes of standard error to keep, the same as for a CLI that this process starts.
KEPT_STDERR_BYTES = 64 * 1024

_log = logging.getLogger("claude_wire")


class AttachedSession(Session):
    """A :class:`~claude_wire.Session` whose CLI belongs to a supervisor. Entering it attaches to the CLI. Leaving it
    detaches, and the CLI keeps running.

    :meth:`Supervisor.attach`, :meth:`Supervisor.create` and :meth:`Supervisor.resume` return such a session. If the
    connection is lost, the iteration raises :class:`DetachedError`. Attach again at the error's ``cursor``, and pass
    its ``unacknowledged`` to :meth:`send_again`. The supervisor ignores a prompt or an answer that it already has.
    """

    def __init__(self, attachment: Attachment, **arguments: Unpack[CallbackArguments]) -> None:
        self._supervised = SupervisorTransport(attachment)
        super().__init__(self._supervised, **arguments)

    @property
    def cursor(self) -> Cursor | None:
        """The position after the last message that the iteration returned; None before the session is attached."""
        return self._supervised.cursor

    @property
    def attached(self) -> Attached | None:
        """The supervisor's answer, with the session's state when this client attached; None before the answer."""
        return self._supervised.attached

    @property
    def unacknowledged(self) -> list[bytes]:
        """The prompts and answers that the supervisor has not acknowledged yet, as lines, oldest first."""
        return self._supervised.unacknowledged.lines

    @property
    def refusal(self) -> str | None:
        """Why the supervisor refused the last refused prompt; None if it accepted all prompts."""
        return self._supervised.refusal


class SupervisorTransport(SessionTransport):
    """A session's transport to its supervisor. It keeps each sent line until the supervisor acknowledges it."""

    end_input_line: bytes | None = b'{"type":"%s"}\n' % END_INPUT.encode()

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self._chunks = _CliChunks(self, attachment)
        self.stream: MessageStream[Any] = MessageStream(self._chunks)
        self.drives: bool = False
        self.unacknowledged: Unacknowledged = Unacknowledged()
        self.attached: Attached | None = None
        self.refusal: str | None = None
        self._why_not = "this session is not attached yet"
        self._stderr = b""

    @property
    def cursor(self) -> Cursor | None:
        """The position after the last message that the iteration returned; None until the supervisor answers."""
        attached = self.attached
        return None if attached is None else Cursor(attached.id, attached.epoch, attached.after + self._port.taken)

    async def open(self, port: SessionPort) -> RunningCLI:
        self._port = port
        serves = Serves(hooks=port.hooks, mcp=port.mcp_servers)
        attached = await self._attachment.open(serves, port.complete)
        self._chunks.begin(attached)
        self.attached = attached
        self._become(attached.role)
        initialized = None if attached.initialized == NOTHING else decode(bytes(attached.initialized))
        questions = [decode(bytes(question)) for question in attached.open]
        started = attached.started
        return RunningCLI(
            initialize_id=INITIALIZE_ID,
            initialized=initialized if isinstance(initialized, ControlResponse) else None,
            replayed=attached.line - attached.after,
            continues=attached.after > 0,
            ended=attached.ended is not None,
            turn=attached.turn,
            subagents=attached.subagents,
            owed=attached.owed,
            open=[question for question in questions if isinstance(question, ControlRequest)],
            handshakes=attached.handshakes,
            registered=None if started is None else Registered(hooks=started.hooks, mcp=started.mcp, asks=started.asks),
        )

    # --- to the supervisor

    def require(self, line: bytes, *, is_answer: bool) -> None:
        """Check whether a line may be sent now.

        Raises:
            HandleError: this client is a viewer, or too many bytes are unacknowledged.
            ProcessInputError: the CLI has exited.
            DetachedError: the supervisor closed the connection.
        """
        end = self._chunks.end
        if isinstance(end, Ended):
            raise ProcessInputError(
                "the CLI of this session has ended; "
                'Supervisor.resume() or "claude-wire supervisor resume" starts it again'
            )
        if end is not None:
            raise self._detached("the supervisor has cut the connection")
        if not self.drives:
            raise HandleError(self._why_not)
        if not is_answer and not self.unacknowledged.has_room(line):
            raise HandleError(
                f"the supervisor has not acknowledged {self.unacknowledged.size:,} bytes of what was sent, and at "
                f"most {MAX_UNACKNOWLEDGED_BYTES:,} are kept: wait until it has read more"
            )

    async def send(self, line: bytes) -> None:
        """Send a line, and keep it until the supervisor acknowledges it.

        Raises:
            DetachedError: the connection to the supervisor is lost.
        """
        self.unacknowledged.add(line)
        try:
            await self._attachment.send(line)
        except OSError as error:
            raise self._detached("the connection with the supervisor is lost") from error

    # --- from the supervisor

    def take(self, frame: SessionFrame) -> None:
        if isinstance(frame, Accepted):
            self.unacknowledged.settle(frame.lines)
        elif isinstance(frame, Refused):
            self._refused(frame.line, frame.reason)
        elif isinstance(frame, Driver):
            self._become(frame.role)
        elif isinstance(frame, Stderr):
            self._stderr = (self._stderr + frame.text.encode(errors="replace"))[-KEPT_STDERR_BYTES:]
        elif isinstance(frame, (Blocked, Limited)):
            if frame.message:
                _log.warning("the supervisor reports about the session: %s", frame.message)
        elif isinstance(frame, Ended):
            self._port.fail_requests("the output has ended", self._ended(frame))
        else:
            self._port.fail_requests("the supervisor has cut the connection")

    def _refused(self, number: int, reason: str) -> None:
        sent = self.unacknowledged.settle(number)
        kind, id = ("line", None) if sent is None else (sent.kind, sent.id)
        if not self.drives:  # another client became the driver before this line arrived
            reason = self._why_not
        _log.warning("the supervisor has refused a %s: %s", kind, reason)
        if kind == "user" and id is not None:
            self.refusal = reason
            self._port.refuse_prompt(id, f"the supervisor has refused it: {reason}")
        elif kind == "control_request" and id is not None:
            self._port.refuse_request(id, reason)

    def _become(self, role: Literal["viewer", "driver"]) -> None:
        was, self.drives = self.drives, role == "driver"
        self._why_not = (
            "this session is a viewer, and sends nothing: attach as a driver; take=True replaces one that is there"
        )
        if was and not self.drives:
            self._why_not = "another client drives this session now; attach with take=True to replace it"
            self._port.stop_answering()

    # --- the end

    def end_error(self) -> Exception | None:
        end = self._chunks.end
        if isinstance(end, Ended):
            return self._ended(end)
        why = "the connection with the supervisor is lost"
        if end is not None:
            why = f"the supervisor has cut the connection: {end.message}"
        error = self._detached(why)
        error.__cause__ = self._chunks.failure
        return error

    def _detached(self, why: str) -> DetachedError:
        assert self.cursor is not None
        return DetachedError(f"{why}; the session goes on there", self.cursor, self.unacknowledged.lines)

    def _ended(self, ended: Ended) -> ProcessError | None:
        stderr = ended.stderr.encode(errors="replace") or self._stderr
        code, details = ended.exit_code, (ended.exit_code, stderr, self._port.last_result)
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


class _CliChunks:
    """Receives the CLI's bytes, and passes the supervisor's frames between them to the transport."""

    final: tuple[type[Exception], ...] = ()

    def __init__(self, transport: SupervisorTransport, attachment: Attachment) -> None:
        self._transport = transport
        self._attachment = attachment
        # None until the supervisor answered.
        self._lines: SupervisorLines | None = None
        #: The error of the connection, if it failed.
        self.failure: Exception | None = None

    def begin(self, attached: Attached) -> None:
        """Start receiving lines, once the supervisor has answered."""
        self._lines = SupervisorLines(attached.after, attached.line, attached.ended, attached.mark)

    @property
    def end(self) -> Ended | Cut | None:
        """The frame that ended the stream; None while the stream is open."""
        return None if self._lines is None else self._lines.end

    async def receive(self) -> bytes:
        """Return the CLI's next bytes, or b"" at the end. If the connection failed, ``failure`` has the error."""
        lines = self._lines
        if lines is None:
            raise HandleError("this session is not attached: use it as `async with`")
        chunks = self._attachment.chunks
        while lines.end is None:
            try:
                data = bytes(await chunks.receive())
            except Exception as error:
                if not isinstance(error, (OSError, *chunks.final)):
                    raise
                self.failure, data = error, b""
            if not data:
                break
            piece = lines.take(data)
            frames, lines.found = lines.found, []
            for frame in frames:
                self._transport.take(frame)
            if piece:
                return piece
        return b""

    async def aclose(self) -> None:
        await self._attachment.aclose()
