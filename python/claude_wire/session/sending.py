"""Send a session's lines, one at a time, to its process or to its ``send`` function."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Protocol

from anyio import Semaphore

from claude_wire.errors import HandleError
from claude_wire.streams.read_ahead import Tap, show

if TYPE_CHECKING:
    from claude_wire.control.sending import Send
    from claude_wire.process.exchange import Exchange
    from claude_wire.streams.tasks import Tasks


class Require(Protocol):
    """A function that checks whether a line may be sent now, such as :meth:`.SessionTransport.require`."""

    def __call__(self, line: bytes, /, *, is_answer: bool) -> None:
        """Raise the error for a line that must not be sent now."""
        ...


class Sender:
    """Sends whole lines, one at a time, while a session is open.

    Args:
        exchange: writes to the session's process; None for a stream that is not a process.
        send: a plain or async function that writes a line to a stream that is not a process.
        tap: called with each line when its first byte is written.
        tasks: the session's tasks.
        require: raises an error for a line that must not be sent now. None: all lines may be sent.
    """

    def __init__(
        self,
        exchange: Exchange | None,
        send: Send | None,
        tap: Tap | None,
        tasks: Tasks,
        require: Require | None,
    ) -> None:
        if send is None and exchange is None:
            raise TypeError("send is missing: a stream that is not a Process needs a function that sends")
        self._exchange = exchange
        self._send = send
        self._tap = tap
        self._tasks = tasks
        self._require = require
        self._turns: Semaphore | None = None
        #: True after the session was entered, and after it was closed.
        self.entered: bool = False
        self.closed: bool = False

    def start(self) -> None:
        """Begin sending. Call this in the session's event loop."""
        self.entered = True
        self._turns = Semaphore(1)

    def close(self, last: bytes | None = None) -> None:
        """Stop sending. Drop the references to the process and the functions: an MCP server may keep this object alive.

        Args:
            last: a line to write first, if a turn is under way and the process's pipe has room.
        """
        self.closed = True
        if last is not None and self._exchange is not None and self._exchange.write_in_turn(last):
            show(self._tap, last, "on_sent")
        self._exchange = self._send = self._tap = self._require = None

    def require_open(self) -> None:
        """Raise HandleError if the session is not entered yet, or already closed."""
        if not self.entered:
            raise HandleError("this session is not entered: use it as `async with ... as session`")
        if self.closed:
            raise HandleError("this session is closed; open another one")

    async def send(self, line: bytes, begun: Callable[[], object] | None = None, *, is_answer: bool = False) -> None:
        """Send a line. Call ``begun`` before writing the first byte. From then on, cancellation cannot cut the line.

        Raises:
            HandleError: the session is not open, or code outside the session cancelled the ``send`` function.
            ProcessInputError: the process has exited, or its input was closed.
            Exception: any exception that the ``send`` function raises.
        """
        self.require_open()
        if self._require is not None:
            self._require(line, is_answer=is_answer)
        if self._tap is not None:
            begun = _shown_first(self._tap, line, begun)
        if self._exchange is not None:
            await self._exchange.write(line, begun, is_answer=is_answer)
            return
        assert self._send is not None
        assert self._turns is not None
        await self._turns.acquire()
        try:
            self.require_open()
        except HandleError:
            self._turns.release()
            raise
        written = False
        failed: list[Exception] = []

        async def write_whole(send: Send = self._send) -> None:
            # This runs in a separate task, so cancelling the caller does not cut the line.
            nonlocal written
            try:
                sent = send(line)
                if isawaitable(sent):
                    await sent
                written = True
            except Exception as error:
                failed.append(error)

        if begun is not None:
            begun()
        try:
            writer = self._tasks.start(write_whole, "claude-wire-writer", self._turns.release)
        except RuntimeError:  # called in another event loop
            self._turns.release()
            raise
        await writer.wait()
        if failed:
            raise failed[0]
        if not written:
            self.require_open()
            raise HandleError("the send function of this session was cancelled from outside the session")


def _shown_first(tap: Tap, line: bytes, begun: Callable[[], object] | None) -> Callable[[], object]:
    """Return a ``begun`` function that passes the line to the tap and then calls the original ``begun``."""

    def first() -> None:
        show(tap, line, "on_sent")
        if begun is not None:
            begun()

    return first
