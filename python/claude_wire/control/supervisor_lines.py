"""Lines of a supervisor's session as it sends them: the CLI's own, with frames of the supervisor between them.

Knows line feeds, and how a frame begins; not what lines mean. Sans-IO.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from claude_wire.control.supervisor_frames import Cut, Ended, SessionFrame, end_of_frames, frame_of

__all__ = ["SupervisorLines"]

#: Bytes of a line by which it is known whether it is a frame.
SURE_BYTES = 64
#: Bytes of a frame. A supervisor sends none above 1 MiB; one that is longer than this is passed on like a line.
MAX_FRAME_BYTES = 4 * 1024 * 1024

_MARK = b'"supervisor_'
_FRAME = re.compile(rb'[ \t]*\{[ \t]*"type"[ \t]*:[ \t]*"supervisor_')


class SupervisorLines:
    """Takes the frames out of a stream, and numbers the lines of the CLI.

    Chunks go in, cut anywhere; *pieces* come out: the same bytes without frames. No piece goes on behind line
    ``level``, so all lines that a piece completes are on the same side of it.

    Args:
        after: the number of the line before the first one.
        level: the number of a line.
        ended: the stream ends at ``level``, for this reason; None if it goes on.
        mark: what each frame ends with. A line without it is the CLI's, however it begins.
    """

    def __init__(self, after: int, level: int, ended: Ended | None = None, mark: str = "") -> None:
        self._mark = mark
        self._frame_end = end_of_frames(mark)
        #: The number of the last line before the last piece, and of the last line that is complete.
        self.before: int = after
        self.line: int = after
        #: Frames that were found so far, with their numbers in the stream, for somebody who takes them away.
        self.found: list[tuple[int, SessionFrame]] = []
        #: The frame that has ended the stream. What stands behind it is dropped.
        self.end: Ended | Cut | None = ended if after >= level else None
        self._level = level
        self._ended = ended
        self._count = 0
        # What was fed and not given yet. Whether the line in which it begins was given in part, and has more than
        # spaces in that part; the same at the beginning of the last piece.
        self._pending = b""
        self._in_line = self._has_begun = self._had_begun = False
        self._piece = b""

    def fork(self) -> SupervisorLines:
        """Another one that stands here."""
        other = SupervisorLines(self.line, self._level, self._ended, self._mark)
        other._count, other.end = self._count, self.end
        other._pending, other._in_line, other._has_begun = self._pending, self._in_line, self._has_begun
        return other

    @property
    def is_level(self) -> bool:
        """Whether line ``level`` was given."""
        return self.line >= self._level

    def take(self, data: bytes = b"") -> bytes:
        """Feed a chunk, and get the next piece; nothing if another chunk is needed. Call it again without a chunk."""
        if data and not (self._pending or self._in_line) and data[-1] == 10 and self.end is None and _MARK not in data:
            # Whole lines without any frame, as most chunks are.
            line = self.line + data.count(b"\n")
            if not self.line < self._level <= line:
                self.before, self.line, self._piece = self.line, line, data
                self._had_begun = self._has_begun = False
                return data
        data = self._pending + data if self._pending else data
        pieces: list[bytes] = []
        self.before, self._had_begun = self.line, self._has_begun
        at = 0
        while at < len(data) and self.end is None:
            if not self._in_line and (frame_end := self._frame(data, at)) != at:
                if frame_end < 0:
                    break  # it is not complete, or not known for one
                at = frame_end
                continue
            stop = self._lines_end(data, at)
            feeds = data.count(b"\n", at, stop)
            if self.line < self._level <= self.line + feeds:
                stop = self._behind_level(data, at)
                feeds = self._level - self.line
            pieces.append(data[at:stop])
            self.line += feeds
            at = stop
            self._in_line = data[stop - 1] != 10
            if feeds and self.line == self._level:
                self.end = self._ended
                break
        self._pending = b"" if self.end is not None else data[at:]
        self._piece = piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if piece:
            rest = piece[piece.rfind(b"\n") + 1 :]
            self._has_begun = bool(rest.strip(b" \t\r")) or (len(rest) == len(piece) and self._has_begun)
        return piece

    def numbers(self, count: int) -> Sequence[int]:
        """The numbers of the lines that the last piece completes, save blank ones; there are ``count`` of these."""
        first, feeds = self.before + 1, self.line - self.before
        if count == feeds:
            return range(first, first + count)
        lines = self._piece.split(b"\n")[:-1]
        said = [bool(line.strip(b" \t\r")) for line in lines]
        if said:
            said[0] = said[0] or self._had_begun
        found = [first + index for index, says in enumerate(said) if says]
        return found if len(found) == count else range(first, first + count)

    def _frame(self, data: bytes, at: int) -> int:
        """Where the frame that begins here ends; here, if none does; -1 if that is not known yet."""
        end = data.find(b"\n", at)
        if _FRAME.match(data, at) is None:
            return -1 if end < 0 and len(data) - at < SURE_BYTES else at
        if end < 0:
            return -1 if len(data) - at <= MAX_FRAME_BYTES else at
        if not data.endswith(self._frame_end, at, end):
            return at  # without the mark at its end, this is a line of the CLI that looks like a frame
        self._count += 1
        frame = frame_of(data[at:end])
        if frame is not None:
            self.found.append((self._count, frame))
            if isinstance(frame, (Cut, Ended)):
                self.end = frame
        return end + 1

    def _lines_end(self, data: bytes, at: int) -> int:
        """Where the next frame begins behind a line that begins at ``at``, or what may be one."""
        mark = data.find(_MARK, at)
        while mark >= 0:
            begins = data.rfind(b"\n", max(at, mark - SURE_BYTES), mark) + 1
            if begins and _FRAME.match(data, begins) is not None:
                return begins
            mark = data.find(_MARK, mark + 1)
        tail = data.rfind(b"\n", at) + 1
        return tail if tail and len(data) - tail < SURE_BYTES else len(data)

    def _behind_level(self, data: bytes, at: int) -> int:
        for _ in range(self._level - self.line):
            at = data.index(b"\n", at) + 1
        return at
