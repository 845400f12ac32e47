"""A supervisor's errors: refused commands, and a lost connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_wire.errors import ClaudeWireError

if TYPE_CHECKING:
    from typing_extensions import Self

    from claude_wire_kit.supervisor.frames import Cursor, Failed


class DetachedError(ClaudeWireError):
    """The connection to a session's supervisor ended. The session itself keeps running in the supervisor.

    Attributes:
        cursor: the position after the last received message. Attach there again to get each line exactly once.
        unacknowledged: the prompts and answers that the supervisor did not acknowledge, as lines, oldest first.
            :meth:`~claude_wire.Session.send_again` sends them again; the supervisor accepts each line only once.
    """

    def __init__(self, problem: str, cursor: Cursor, unacknowledged: list[bytes]) -> None:
        super().__init__(problem)
        self.cursor = cursor
        self.unacknowledged = unacknowledged


class SupervisorError(ClaudeWireError):
    """A supervisor refused a command, or the client cannot reach a supervisor.

    Attributes:
        error: the reason in one word, such as ``epoch``, ``gone``, ``driver`` or ``version``; docs/supervisor.md lists
            all reasons.
        line: for ``epoch``, the number of the journal's last line.
        first: for ``gone``, the number of the oldest line that the journal still has.
    """

    def __init__(self, error: str, message: str, *, line: int | None = None, first: int | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.line = line
        self.first = first

    @classmethod
    def of(cls, answer: Failed) -> Self:
        """Return the error for a refused command."""
        return cls(answer.error, answer.message, line=answer.line, first=answer.first)
