"""The supervisor's side of one client's connection. The client gets each line of its session exactly once.

A client that keeps up gets each chunk right after the journal has it. To a client that is behind, ``sendfile`` sends
the lines from the journal's file, so a slow client costs no memory. A connection is in one of these states:

=========  ==================================================================================================
LEVEL      The supervisor has sent the client all frames and, if it is attached, all complete lines.
BEHIND     The socket was full. The connection remembers which byte of the journal it must send next.
CLOSED     The socket is closed.
=========  ==================================================================================================

The supervisor sends frames only between two lines. While a line is partly sent, frames wait.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import select
import socket
from collections import deque
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from claude_wire import LineSplitter
from claude_wire.errors import LineTooLongError
from claude_wire_kit.supervisor.disk.journal import Place
from claude_wire_kit.supervisor.disk.parts import Part, blocks
from claude_wire_kit.supervisor.frames import Cursor, Cut, Failed, Refused, Stderr, end_of_frames, line_of

if TYPE_CHECKING:
    from claude_wire_kit.supervisor.managed_session import ManagedSession

#: Maximum bytes in one line from a client, such as a prompt with pictures or a new session's ``initialize``.
MAX_LINE_BYTES = 64 * 1024 * 1024
#: The supervisor disconnects a client that is behind and reads nothing for this many seconds. The client may attach
#: again.
STALLED_SECONDS = 60.0
#: Maximum bytes of frames waiting for one client. Above this size, the supervisor disconnects the client.
MAX_FRAME_BYTES = 1024 * 1024
#: If more bytes of frames are waiting, the supervisor drops frames with the CLI's standard error. The journal keeps it.
MAX_STDERR_BYTES = MAX_FRAME_BYTES // 2
#: The place of a frame that does not wait for a line: the start of the journal.
_AT_ONCE = Place(0, 0)
#: Maximum bytes in one read from a client, and in one ``sendfile`` from the journal.
CHUNK_BYTES = 256 * 1024


class State(Enum):
    """The state of a connection; see the module's table."""

    LEVEL = "level"
    BEHIND = "behind"
    CLOSED = "closed"


class Owner(Protocol):
    """Carries out the commands of a connection, and forgets a closed connection."""

    def command(self, connection: Connection, line: bytes) -> None:
        """Carry out a command."""

    def closed(self, connection: Connection) -> None:
        """Forget a closed connection."""

    def journal_damaged(self, connection: Connection) -> None:
        """Log that the journal lost bytes before they were sent. The connection closes afterwards."""


class Connection:
    """Reads one client's lines, and sends it the lines of its session and the supervisor's frames.

    Args:
        client: the client's socket. The connection closes it.
        owner: carries out the client's commands.
    """

    __slots__ = (
        "_awaits",
        "_client",
        "_frame_bytes",
        "_frames",
        "_lines",
        "_loop",
        "_mark",
        "_number",
        "_offset",
        "_out",
        "_owner",
        "_part",
        "_part_number",
        "_progress",
        "_reads",
        "_splitter",
        "managed",
        "state",
    )

    def __init__(self, client: socket.socket, owner: Owner) -> None:
        self._client = client
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._splitter = LineSplitter(max_line_bytes=MAX_LINE_BYTES, keepends=True)
        # Lines from the client, waiting for room in the CLI's input or for the answer to the previous command.
        self._lines: deque[bytes] = deque()
        self._reads = self._awaits = False
        self._number = 0
        # Send order: 1. `_out`, the rest of a partly sent frame; 2. frames whose place in the journal has been reached;
        # 3. journal lines.
        self._out = bytearray()
        self._frames: deque[tuple[Place, bytes]] = deque()
        self._frame_bytes = 0
        # While the client is behind: the journal part to send, its number, and the offset of the next byte.
        self._part: Part | None = None
        self._part_number = 0
        self._offset = 0
        self._progress = 0.0
        # The mark at the end of each frame. The CLI does not know the mark. Set when the client attaches to a session.
        self._mark = ""
        self.state: State = State.LEVEL
        #: The session that the client is attached to.
        self.managed: ManagedSession | None = None
        self.read_on()

    # --- from the client

    def read_on(self) -> None:
        """Read from the client only while the supervisor can handle its lines."""
        wanted = self._takes()
        if self.state is State.CLOSED or wanted is self._reads:
            return
        self._reads = wanted
        if wanted:
            self._loop.add_reader(self._client, self._on_readable)
            self._loop.call_soon(self._take)
        else:
            self._loop.remove_reader(self._client)

    def _takes(self) -> bool:
        if self.managed is None:
            return not self._awaits and self.state is State.LEVEL
        return not self.managed.waits_for(self)

    def await_answer(self, *, awaits: bool) -> None:
        """Hold back further commands while the answer to a command is pending.

        Args:
            awaits: True when a command waits for its answer; False when the answer was sent.
        """
        self._awaits = awaits
        self.read_on()

    def _on_readable(self) -> None:
        try:
            data = self._client.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        try:
            self._lines += self._splitter.feed(data)
        except LineTooLongError as error:
            self._lines += error.lines
            self._take()
            what = f"the line has {error.length:,} bytes; at most {MAX_LINE_BYTES:,} are taken"
            number = self._number + len(self._lines) + 1
            self.send_frame(Failed("command", what) if self.managed is None else Refused(number, what))
            self.close()
            return
        self._take()

    def _take(self) -> None:
        """Handle the client's lines until one of them must wait."""
        while self._lines and self.state is not State.CLOSED and self._takes():
            line = self._lines.popleft()
            if self.managed is None:
                self._owner.command(self, line)
            else:
                self._number += 1
                self.managed.sent(self, self._number, line)
        self.read_on()

    # --- to the client

    def follow(self, managed: ManagedSession, place: Place, answer: Any) -> None:
        """Answer a command that attaches, then send the session's lines at or after ``place``.

        Raises:
            OSError: the journal cannot be read. Nothing was answered.
        """
        part = managed.journal.open_part(place.part)
        mark = secrets.token_hex(16)
        self.send_frame(msgspec.structs.replace(answer, mark=mark))
        self._mark = mark
        if self.state is State.CLOSED:
            managed.journal.release_part(place.part)
            return
        self.managed = managed
        self._part_number, self._offset = place
        self._part = part
        self._fall_behind()

    def on_output(self, chunk: bytes | None, start: int) -> None:
        """Send new whole lines. If ``chunk`` is None, read them from the journal at offset ``start``."""
        if self.state is not State.LEVEL:
            return
        assert self.managed is not None
        sent = 0
        try:
            if chunk is not None:
                sent = self._client.send(chunk)
                if sent == len(chunk):
                    return
        except BlockingIOError:
            pass
        except OSError:
            self._close_soon()
            return
        try:
            self._go_on_from(Place(self.managed.delivered_position.part, start), sent)
        except OSError:  # no descriptor is left
            self._close_soon()
            return
        self._fall_behind()

    def _go_on_from(self, place: Place, sent: int = 0) -> None:
        assert self.managed is not None
        self._part = self.managed.journal.open_part(place.part)
        self._part_number, self._offset = place.part, place.offset + sent

    def send_frame(self, frame: Any, *, behind: Place = _AT_ONCE) -> None:
        """Send a frame between two lines of the CLI, after all journal lines before the place ``behind``."""
        line = self._line(frame)
        if self.state is State.CLOSED:
            return
        if self.state is State.BEHIND:
            if isinstance(frame, Stderr) and self._frame_bytes > MAX_STDERR_BYTES:
                return
            self._frames.append((behind, line))
            self._frame_bytes += len(line)
            if self._frame_bytes > MAX_FRAME_BYTES:
                self.disconnect_slow("the client reads so slowly that too many frames of the supervisor wait for it")
            return
        sent = 0
        try:
            sent = self._client.send(line)
        except BlockingIOError:
            pass
        except OSError:
            self._close_soon()
            return
        if sent < len(line):
            self._out += line[sent:]
            if self.managed is not None:
                self._go_on_from(self.managed.delivered_position)
            self._fall_behind()

    def _line(self, frame: Any) -> bytes:
        line = line_of(frame)
        return line if not self._mark else line[:-2] + end_of_frames(self._mark) + b"\n"

    def _fall_behind(self) -> None:
        self.state = State.BEHIND
        self._progress = self._loop.time()
        self._loop.add_writer(self._client, self._on_writable)

    def _on_writable(self) -> None:
        """Send one piece of the waiting data. Sending more in one callback would delay the other clients."""
        try:
            done = self._send_next()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno == errno.EIO:
                self._owner.journal_damaged(self)
            self.close()
            return
        self._progress = self._loop.time()
        if done:
            self._loop.remove_writer(self._client)
            self._release()
            self.state = State.LEVEL
            self.read_on()

    def _send_next(self) -> bool:
        """Send one piece of the waiting data. Returns True if the client has everything."""
        here = Place(self._part_number, self._offset)
        if not self._out and self._frames and self._frames[0][0] <= here and self._at_line_start():
            while self._frames and self._frames[0][0] <= here:
                self._out += self._frames.popleft()[1]
            self._frame_bytes = sum(len(line) for _, line in self._frames)
        if self._out:
            del self._out[: self._client.send(self._out)]
            return False
        if self.managed is None or self._part is None:
            return True
        number, delivered = self.managed.delivered_position
        end = delivered if number == self._part_number else self._part.output.end
        if self._offset < end:
            if self._frames and self._frames[0][0] <= here:
                end = self._end_of_line(min(end, self._offset + CHUNK_BYTES))
            elif self._frames and self._frames[0][0].part == self._part_number:
                end = min(end, self._frames[0][0].offset)
            count = min(end - self._offset, CHUNK_BYTES)
            sent = os.sendfile(self._client.fileno(), self._part.output.descriptor, self._offset, count)
            if not sent:  # the file was truncated
                raise OSError(errno.EIO, "the journal has lost bytes", self._part.path)
            self._offset += sent
            return False
        if self._part_number < number:
            self._release()
            self._go_on_from(Place(self._part_number + 1, 0))
            return False
        return not self._frames

    def _at_line_start(self) -> bool:
        if self._part is None or self._offset == 0:
            return True
        return os.pread(self._part.output.descriptor, 1, self._offset - 1) == b"\n"

    def _end_of_line(self, end: int) -> int:
        assert self._part is not None
        offset = self._offset
        for data in blocks(self._part.output.descriptor, offset, end):
            if (place := data.find(b"\n")) >= 0:
                return offset + place + 1
            offset += len(data)
        return end

    def _release(self) -> None:
        if self._part is not None:
            assert self.managed is not None
            self.managed.journal.release_part(self._part_number)
            self._part = None

    # --- the end

    @property
    def part_number(self) -> int | None:
        """The number of the journal part being sent to the client; None if the client is not behind."""
        return None if self._part is None else self._part_number

    def is_stalled(self, now: float) -> bool:
        """Return True if the client is behind and has read nothing for :data:`STALLED_SECONDS`."""
        return self.state is State.BEHIND and now - self._progress > STALLED_SECONDS

    @property
    def is_gone(self) -> bool:
        """Return True if the client closed the connection while the supervisor was not reading from it."""
        if self._reads or self.state is State.CLOSED:
            return False
        poll = select.poll()
        poll.register(self._client, 0)  # poll always reports a hang-up and an error
        return bool(poll.poll(0))

    def disconnect_slow(self, message: str) -> None:
        """Disconnect a client that reads too slowly. Unless a line is partly sent, send a :class:`Cut` first."""
        if self.managed is not None and self._part is not None and not self._out and self._at_line_start():
            line = self.managed.journal.line_at(Place(self._part_number, self._offset)) - 1
            frame = Cut(Cursor(self.managed.id, self.managed.epoch, line), message)
            with suppress(OSError):
                self._client.send(self._line(frame))
        self.close()

    def _close_soon(self) -> None:
        """Close the socket in a later callback, because a caller may be iterating over all clients."""
        self._loop.call_soon(self.close)

    def close(self) -> None:
        """Close the socket. A second call does nothing."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self._loop.remove_reader(self._client)
        self._loop.remove_writer(self._client)
        self._release()
        self._lines.clear()
        self._frames.clear()
        self._client.close()
        if self.managed is not None:
            self.managed.remove(self)
        self._owner.closed(self)
