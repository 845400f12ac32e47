"""What a supervisor of sessions refuses."""

from __future__ import annotations

from claude_wire.errors.base import ClaudeWireError

__all__ = ["HostError"]


class HostError(ClaudeWireError):
    """A supervisor of sessions has refused a command, or there is none that could be asked.

    Attributes:
        error: which refusal it is, in a word, such as ``epoch``, ``gone``, ``driver`` or ``version``; docs/host.md
            lists them.
        line: for ``epoch``, the number of the last line that there is.
        first: for ``gone``, the number of the first line that there is.
    """

    def __init__(self, error: str, message: str, *, line: int | None = None, first: int | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.line = line
        self.first = first
