"""What a supervisor of sessions refuses, and the end of a connection with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_wire.errors.base import ClaudeWireError

if TYPE_CHECKING:
    from claude_wire.control.supervisor_frames import Cursor

__all__ = ["DetachedError", "SupervisorError"]


class DetachedError(ClaudeWireError):
    """The connection with the supervisor of a session has ended. The session itself goes on there.

    Attributes:
        cursor: where to attach again, so that each line comes once: behind the last message that was taken.
        unacknowledged: prompts and answers that the supervisor has not acknowledged, as lines, the oldest first. They
            can be sent again by :meth:`~claude_wire.Session.send_again`: the supervisor takes none of them twice.
    """

    def __init__(self, problem: str, cursor: Cursor, unacknowledged: list[bytes]) -> None:
        super().__init__(problem)
        self.cursor = cursor
        self.unacknowledged = unacknowledged


class SupervisorError(ClaudeWireError):
    """A supervisor of sessions has refused a command, or there is none that could be asked.

    Attributes:
        error: which refusal it is, in a word, such as ``epoch``, ``gone``, ``driver`` or ``version``;
            docs/supervisor.md lists them.
        line: for ``epoch``, the number of the last line that there is.
        first: for ``gone``, the number of the first line that there is.
    """

    def __init__(self, error: str, message: str, *, line: int | None = None, first: int | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.line = line
        self.first = first
