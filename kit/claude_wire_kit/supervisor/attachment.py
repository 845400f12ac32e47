"""The client's connection to a supervisor. It sends one command, then reads the answer and the session's lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from claude_wire.codec import encode
from claude_wire.errors import HandleError
from claude_wire.messages import InitializeRequest, from_dict
from claude_wire.support import move_on_after, type_of
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import (
    MAX_ANSWER_BYTES,
    Attach,
    Attached,
    Create,
    Failed,
    Resume,
    Serves,
    answer_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from claude_wire.streams import Chunks
    from claude_wire_kit.supervisor.frames import Command
    from claude_wire_kit.supervisor.transport import Transport

A = TypeVar("A")
Following: TypeAlias = Attach | Create | Resume


class Attachment:
    """A connection to a supervisor's session, for programs that handle the bytes themselves. See
    :meth:`Supervisor.open`.

    ``async with`` connects and sends the command. Then ``answer`` is the supervisor's answer, ``chunks`` are the bytes
    that the supervisor sends, and ``send`` writes a line. :meth:`Supervisor.attach` returns a decoded session instead.

    Args:
        transport: the connection to the supervisor.
        command: the command that attaches to the session.
        seconds: the supervisor must answer within this time.
    """

    def __init__(self, transport: Transport, command: Following, seconds: float) -> None:
        self._transport = transport
        self._command = command
        self._seconds = seconds
        self._connection: Connection | None = None
        self._answer: Attached | None = None

    @property
    def answer(self) -> Attached:
        """The supervisor's answer.

        Raises:
            HandleError: the attachment is not open yet.
        """
        if self._answer is None:
            raise HandleError("this attachment is not open: use it as `async with`")
        return self._answer

    async def open(
        self,
        serves: Serves | None = None,
        complete: Callable[[InitializeRequest], InitializeRequest] = lambda request: request,
    ) -> Attached:
        """Connect and send the command.

        Args:
            serves: the client's hooks and MCP servers. Only a driver sends them.
            complete: adds the client's hooks and MCP servers to a new CLI's ``initialize`` request.

        Raises:
            HandleError: this attachment was opened before.
            SupervisorError: for the reasons listed at :class:`Supervisor`.
        """
        if self._connection is not None:
            raise HandleError("an attachment can be opened only once; create another one")
        command: Any = self._command
        if serves is not None and command.role == "driver":
            command = msgspec.structs.replace(command, serves=serves)
        if isinstance(command, Create):
            said = complete(from_dict(InitializeRequest, command.create.initialize))
            spec = msgspec.structs.replace(command.create, initialize=msgspec.json.decode(encode(said)))
            command = msgspec.structs.replace(command, create=spec)
        self._connection = connection = Connection(self._transport)
        try:
            self._answer = answer = await connection.ask(command, Attached, self._seconds)
        except BaseException:
            await self.aclose()
            raise
        return answer

    @property
    def chunks(self) -> Chunks:
        """The session's lines, with the supervisor's frames between them.

        Raises:
            HandleError: the supervisor has not answered yet.
        """
        if self._connection is None or self._answer is None:
            raise HandleError("this attachment is not open: use it as `async with`")
        return self._connection

    async def send(self, line: bytes) -> None:
        """Send a line to the CLI. Only one task may send at a time.

        Raises:
            OSError: the connection is lost.
            HandleError: the attachment is not open.
        """
        if self._connection is None:
            raise HandleError("this attachment is not open")
        await self._connection.transport.send(line)

    async def aclose(self) -> None:
        """Close the connection. The CLI keeps running. A second call does nothing."""
        if self._connection is not None:
            await self._connection.aclose()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.transport.drop()


class Connection:
    """One command, its answer, and the chunks that follow the answer."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        # Bytes that arrived with the answer, but after its line feed.
        self._rest = b""

    async def ask(self, command: Command, kind: type[A], seconds: float) -> A:
        """Connect, send a command, and wait for its answer.

        Raises:
            SupervisorError: for the reasons listed at :class:`Supervisor`.
        """
        line = b""
        with move_on_after(seconds) as scope:
            await self.transport.open()
            try:
                await self.transport.send(msgspec.json.encode(command) + b"\n")
            except OSError:
                pass  # the supervisor refused the connection; read its answer, which gives the reason
            line = await self._first_line()
        if scope.cancelled_caught:
            raise SupervisorError("timeout", f"the supervisor has not answered within {seconds:g} seconds")
        if not line:
            why = await self.transport.why_ended()
            told = f"; {why}" if why else ""
            raise SupervisorError("lost", f"the connection ended before the supervisor answered{told}")
        try:
            answer = answer_of(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SupervisorError(
                "version", f"this version cannot read the answer of the supervisor: {error}"
            ) from error
        if isinstance(answer, Failed):
            raise SupervisorError.of(answer)
        if not isinstance(answer, kind):
            raise SupervisorError("version", f"the supervisor answered {type_of(command)} with {type_of(answer)}")
        return answer

    async def _first_line(self) -> bytes:
        """Return the answer without its line feed, or b"" if the connection ends before the line feed."""
        chunks, size = self.transport.chunks, 0
        got: list[bytes] = []
        while size <= MAX_ANSWER_BYTES:
            try:
                data = bytes(await chunks.receive())
            except OSError:
                return b""
            if not data:
                return b""
            head, feed, rest = data.partition(b"\n")
            got.append(head)
            size += len(head)
            if feed:
                self._rest = rest
                return b"".join(got)
        raise SupervisorError("limit", f"the answer of the supervisor has more than {MAX_ANSWER_BYTES:,} bytes")

    @property
    def final(self) -> tuple[type[Exception], ...]:
        return self.transport.chunks.final

    async def receive(self) -> bytes | memoryview:
        rest, self._rest = self._rest, b""
        return rest or await self.transport.chunks.receive()

    async def aclose(self) -> None:
        await self.transport.aclose()
