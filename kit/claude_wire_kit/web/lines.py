"""Read a session's numbered lines from its supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from claude_wire import LineSplitter
from claude_wire.errors import LineTooLongError
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import end_of_frames, frame_of, is_frame

if TYPE_CHECKING:
    from typing_extensions import Self

    from claude_wire_kit.supervisor.attach import Supervisor
    from claude_wire_kit.supervisor.attachment import Attachment
    from claude_wire_kit.supervisor.frames import Attach, Attached, SessionFrame


class Lines:
    """A connection to a session, as numbered lines and frames. Use it with ``async with``.

    Args:
        supervisor: the supervisor.
        command: the attach command to send.

    Raises:
        SupervisorError: on entry, for the reasons listed at :class:`~claude_wire_kit.supervisor.attach.Supervisor`.
    """

    def __init__(self, supervisor: Supervisor, command: Attach) -> None:
        self._attachment: Attachment = supervisor.open(command)
        self._splitter = LineSplitter(keepends=True)
        self._number = 0
        self._frame_end = b""
        self._scope: anyio.CancelScope | None = None
        self._is_closing = False

    @property
    def answer(self) -> Attached:
        """The supervisor's answer to the attach command."""
        return self._attachment.answer

    async def __aenter__(self) -> Self:
        await self._attachment.open()
        self._number = self.answer.after
        self._frame_end = end_of_frames(self.answer.mark)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._attachment.aclose()

    async def send(self, line: bytes) -> None:
        """Send a line to the CLI.

        Raises:
            SupervisorError: the connection is lost.
        """
        try:
            await self._attachment.send(line)
        except OSError as error:
            raise SupervisorError("lost", f"the connection with the supervisor failed: {error}") from error

    async def receive(self) -> list[tuple[int, bytes] | SessionFrame]:
        """Return the next lines and frames, or an empty list at the end. A line is a pair: its number, and its bytes
        without the line feed.

        Raises:
            SupervisorError: a line exceeds :data:`DEFAULT_MAX_LINE_BYTES`.
        """
        while True:
            try:
                chunk = await self._attachment.chunks.receive()
            except OSError:
                return []
            if not chunk:
                return []
            try:
                lines = self._splitter.feed(chunk)
            except LineTooLongError as error:
                raise SupervisorError("limit", f"a line has more than {DEFAULT_MAX_LINE_BYTES:,} bytes") from error
            found = [one for one in map(self._one, lines) if one is not None]
            if found:
                return found

    async def receive_within(self, seconds: float) -> list[tuple[int, bytes] | SessionFrame] | None:
        """Call :meth:`receive`, but return None if nothing arrives within this many seconds."""
        if self._is_closing:
            return []
        with anyio.move_on_after(seconds) as self._scope:
            return await self.receive()
        return [] if self._is_closing else None

    def close(self) -> None:
        """Make :meth:`receive_within` return an empty list, now and later."""
        self._is_closing = True
        if self._scope is not None:
            self._scope.cancel()

    def _one(self, line: bytes) -> tuple[int, bytes] | SessionFrame | None:
        line = line[:-1]
        if is_frame(line, self._frame_end):
            return frame_of(line)
        self._number += 1
        return self._number, line
