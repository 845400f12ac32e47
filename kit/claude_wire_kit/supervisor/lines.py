"""Separate a session's stream into the CLI's lines and the supervisor's frames, without I/O."""

from __future__ import annotations

import re

from claude_wire_kit.supervisor.frames import FRAME_BEGIN, Cut, Ended, SessionFrame, end_of_frames, frame_of

#: A line with more bytes is a line of the CLI. A supervisor's frames have at most 1 MiB.
MAX_FRAME_LINE_BYTES = 4 * 1024 * 1024

#: The characters in a blank line, a blank line after a line feed, and the message that replaces a blank line.
_BLANK = b" \t\r"
_BLANK_LINE = re.compile(rb"\n[ \t\r]*(?=\n)")
_FILLING = b'{"type":"keep_alive"}'


class SupervisorLines:
    """Removes the supervisor's frames from a stream, leaving the CLI's lines.

    :meth:`take` gets chunks, cut anywhere, and returns the same bytes without frames. It replaces a blank line of the
    CLI with a ``keep_alive`` message. So each line of the journal becomes exactly one message.

    Args:
        after: the number of the line before the first line of the stream.
        last: if the CLI has exited, the number of its last line.
        ended: if the CLI has exited, its frame; the stream then ends with the line ``last``. None while the CLI runs.
        mark: the ``mark`` of :class:`Attached`. A line without the mark is the CLI's, even if it begins like a frame.
    """

    def __init__(self, after: int, last: int = 0, ended: Ended | None = None, mark: str = "") -> None:
        self._frame_end = end_of_frames(mark)
        #: The number of the last complete line.
        self.line: int = after
        #: The frames found so far. The caller empties this list.
        self.found: list[SessionFrame] = []
        #: The frame that ended the stream, or None. :meth:`take` drops all bytes after this frame.
        self.end: Ended | Cut | None = ended if after >= last else None
        self._last = last
        self._ended = ended
        # `_pending`: bytes that were fed but not returned yet. `_in_line`: the beginning of an unfinished line was
        # returned. `_has_begun`: that beginning is not blank.
        self._pending = b""
        self._in_line = self._has_begun = False

    def take(self, data: bytes) -> bytes:
        """Feed a chunk, and return the CLI's bytes so far. May return b"" while a possible frame is incomplete."""
        is_at_start = not (self._pending or self._in_line or self.end or self._ended)
        if is_at_start and data[-1:] == b"\n" and FRAME_BEGIN not in data:  # most chunks: whole lines without frames
            self.line += data.count(b"\n")
            return self._fill(data)
        data = self._pending + data if self._pending else data
        pieces: list[bytes] = []
        at = 0
        while at < len(data) and self.end is None:
            if not self._in_line and (frame_end := self._frame(data, at)) != at:
                if frame_end < 0:
                    break  # the frame is incomplete, or this line may still become a frame
                at = frame_end
                continue
            stop = self._lines_end(data, at)
            if self._ended is not None:
                stop = self._end_of_last(data, at, stop)
            pieces.append(data[at:stop])
            self.line += data.count(b"\n", at, stop)
            at = stop
            self._in_line = data[stop - 1] != 10
            if self._ended is not None and self.line >= self._last:
                self.end = self._ended
        self._pending = b"" if self.end is not None else data[at:]
        return self._fill(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _fill(self, piece: bytes) -> bytes:
        """Replace each blank line that ends in this piece with a ``keep_alive`` message."""
        end = piece.find(b"\n")
        if end < 0:
            self._has_begun = self._has_begun or bool(piece.strip(_BLANK))
            return piece
        if not self._has_begun and not piece[:end].strip(_BLANK):
            piece = _FILLING + piece[end:]
        if piece[-1] == 10:
            self._has_begun = False
        else:
            self._has_begun = bool(piece[piece.rfind(b"\n") + 1 :].strip(_BLANK))
        return _BLANK_LINE.sub(b"\n" + _FILLING, piece)

    def _frame(self, data: bytes, at: int) -> int:
        """Return where the frame at ``at`` ends: ``at`` if no frame begins there, -1 if more bytes must decide."""
        if not _may_be_frame(data, at):
            return at
        end = data.find(b"\n", at)
        if end < 0:
            return -1 if len(data) - at <= MAX_FRAME_LINE_BYTES else at
        if not data.endswith(self._frame_end, at, end):
            return at  # without the mark at its end, this is a line of the CLI that looks like a frame
        frame = frame_of(data[at:end])
        if frame is not None:
            self.found.append(frame)
            if isinstance(frame, (Cut, Ended)):
                self.end = frame
        return end + 1

    def _lines_end(self, data: bytes, at: int) -> int:
        """Return where the CLI's lines after ``at`` end: before the next line that is a frame, or may become one."""
        frame = data.find(b"\n" + FRAME_BEGIN, at)
        if frame >= 0:
            return frame + 1
        tail = data.rfind(b"\n", at) + 1
        return tail if tail and _may_be_frame(data, tail) else len(data)

    def _end_of_last(self, data: bytes, at: int, stop: int) -> int:
        """Return the end of the line with the number ``last`` if it is between ``at`` and ``stop``, else ``stop``."""
        for _ in range(self._last - self.line):
            at = data.find(b"\n", at, stop) + 1
            if not at:
                return stop
        return at


def _may_be_frame(data: bytes, at: int) -> bool:
    """Return True if a frame begins at ``at``, or if there are too few bytes to rule it out."""
    return FRAME_BEGIN.startswith(data[at : at + len(FRAME_BEGIN)])
