"""Reads the lines of a supervisor for a session: its frames go to the link, the rest is numbered.

Knows which line the consumer has taken last; not what frames mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from claude_wire.control.supervisor_frames import Cursor
from claude_wire.errors import HandleError
from claude_wire.messages import ResultMessage
from claude_wire.messages.union import RESULT_BY_SUBTYPE
from claude_wire.session.router import KEPT_BACK, Router

if TYPE_CHECKING:
    from claude_wire.control.supervisor_lines import SupervisorLines
    from claude_wire.io.message_stream import MessageStream
    from claude_wire.io.read_ahead import Chunks, Tap
    from claude_wire.session.attached.channel import SupervisorChannel
    from claude_wire.session.control import Control

__all__ = ["AttachedRouter"]

_RESULTS = frozenset((ResultMessage, *RESULT_BY_SUBTYPE.values()))


class _CliChunks:
    """The bytes of the CLI, without the frames of the supervisor, for the decoder of a session."""

    def __init__(self, chunks: Chunks, link: SupervisorChannel) -> None:
        self._chunks = chunks
        self._link = link
        self._behind = not link.lines.is_level

    @property
    def final(self) -> tuple[type[Exception], ...]:
        """None: that the connection fails is told by its end."""
        return ()

    async def receive(self) -> bytes:
        """As :meth:`Chunks.receive`. Called when all that was given before has been taken."""
        link, lines = self._link, self._link.lines
        data = b""
        while lines.end is None:
            if lines.is_level and self._behind:
                self._behind = False
                link.arrived()
            piece = lines.take(data)
            link.look_at(lines)
            if piece:
                return piece
            if lines.end is None:
                try:
                    data = bytes(await self._chunks.receive())
                except Exception as error:
                    if not isinstance(error, (OSError, *self._chunks.final)):
                        raise
                    link.failure, data = error, b""
                if not data:
                    break
        return b""

    async def aclose(self) -> None:
        """As :meth:`Chunks.aclose`."""
        await self._chunks.aclose()


class AttachedRouter(Router):
    """A :class:`Router` for lines that come from a supervisor.

    Args:
        link: with the supervisor. It begins before this is started.
    """

    def __init__(self, stream: MessageStream[Any], tap: Tap | None, control: Control, link: SupervisorChannel) -> None:
        super().__init__(stream, tap, control)
        self._link = link
        # The number of the last line of all earlier batches, and the numbers of the lines of this one.
        self._before = 0
        self._numbers: Sequence[int] = ()
        self._ahead_lines: SupervisorLines | None = None
        self._told = False

    def start(self, *, ends_with_stream: bool) -> None:
        """As :meth:`Router.start`.

        Raises:
            TypeError: the decoder merges lines, or drops some, so that they cannot be numbered.
            HandleError: something was read of the stream already.
        """
        decoder = self._receiver.decoder
        if decoder.coalesce or decoder.on_invalid != "return":
            raise TypeError(
                "an attached session counts lines: it needs a decoder without coalesce=, and on_invalid='return'"
            )
        if decoder.stats.bytes:
            raise HandleError("an attached session needs a stream of which nothing was read yet")
        super().start(ends_with_stream=ends_with_stream)
        self._before = self._link.attached.after
        self._receiver.chunks = _CliChunks(self._ahead, self._link)

    @property
    def taken(self) -> int:
        """The number of the last line that the consumer has taken."""
        count = len(self._numbers) - len(self.ready)
        return self._numbers[count - 1] if count > 0 else self._before

    @property
    def cursor(self) -> Cursor | None:
        """Where the consumer stands; None before it begins."""
        if not self._started:
            return None
        attached = self._link.attached
        return Cursor(attached.id, attached.epoch, self.taken)

    async def step(self) -> None:
        """As :meth:`Router.step`. Raises, once, how the CLI or the connection has ended, if that is an error."""
        try:
            await super().step()
        except StopAsyncIteration:
            if not self.closed and not self._told and (error := self.end_cause()) is not None:
                self._told = True
                raise error from error.__cause__
            raise

    def end_cause(self) -> Exception | None:
        """As :meth:`Router.end_cause`."""
        return self._link.end_error()

    async def _next_batch(self) -> list[Any]:
        batch = await super()._next_batch()
        # What is left at the end is the beginning of a line that has no number: it comes again, as a whole.
        return [] if self._receiver.ended else batch

    def close(self) -> None:
        """As :meth:`Router.close`."""
        if self._started:
            self._before, self._numbers = self.taken, ()
        super().close()

    def _route(self, batch: list[Any]) -> None:
        if not batch:
            return
        self._before = self.taken
        numbers = self._link.lines.numbers(len(batch))
        types = set(map(type, batch))
        if not KEPT_BACK.isdisjoint(types):
            both = zip(numbers, batch, strict=True)
            numbers = [number for number, message in both if type(message) not in KEPT_BACK]
        if not _RESULTS.isdisjoint(types):
            self._link.last_result = next(one for one in reversed(batch) if isinstance(one, ResultMessage))
        self._numbers = numbers
        super()._route(batch)

    def _was_seen(self, message: Any) -> bool:
        # All lines of a batch are on the same side of the line where the session was attached.
        if self._is_old(self._link.lines):
            self._link.passed(message)
            return True
        return super()._was_seen(message)

    def _handle(self, message: Any) -> None:
        self._link.handle(message)

    def _is_old(self, lines: SupervisorLines) -> bool:
        return lines.line <= self._link.attached.line

    def _look_at(self, data: bytes) -> None:
        found = self._found
        if found.follower is None or found.followed != self._ahead.direct:
            found.follower = self._decoder.follower()
            found.followed = self._ahead.direct
            self._ahead_lines = self._link.lines.fork()
        lines = self._ahead_lines
        assert lines is not None
        piece = lines.take(data)
        while piece:
            if self._is_old(lines):
                found.follower.feed(piece)
            else:
                self._look_at_lines(found.follower, piece)
            piece = lines.take()
        self._link.look_at(lines)
