"""What passes between a host and its child: the lines that are sent, the messages that come, and how the output ended.

Knows a child and whether a turn is open; not what messages mean beyond that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_wire.errors import HandleError, ProcessError, UnfinishedTurnError
from claude_wire.errors.base import describe_end
from claude_wire.process.child import Child, Settings
from claude_wire.process.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Exchange", "NotStarted"]


class Exchange:
    """Lines to a child, and what its messages and its exit code say of a turn.

    Args:
        settings: of the child, which :meth:`start` spawns.
        sees_results: whether results are among the messages that are decoded.
    """

    def __init__(self, settings: Settings, *, sees_results: bool) -> None:
        self._settings = settings
        self._sees_results = sees_results
        #: The child, once it was started.
        self.child: Child | None = None
        self.turn: Turn = Turn()
        # Whether a step has said how the output ended.
        self._told = False

    @property
    def settings(self) -> Settings:
        """The arguments of the process."""
        return self._settings

    def start(self) -> Child:
        """Spawn the child."""
        self.child = Child(self._settings)
        return self.child

    def started(self) -> Child:
        """The child.

        Raises:
            HandleError: it was not started, or this is its copy in a forked process.
        """
        if self.child is None:
            raise not_started()
        if self.child.foreign:
            raise HandleError("this process was started before a fork: only the parent may use it")
        return self.child

    async def write(self, lines: bytes, begun: Callable[[], object] | None = None, *, is_answer: bool = False) -> None:
        """Write lines. ``begun`` is called with the first byte that was written: they are as good as sent then.

        An answer to a control request is no prompt, and its task, new as it is, need not let others go first.
        """

        def first() -> None:
            self.turn.sent(lines)
            if begun is not None:
                begun()

        await self.started().stdin.write(lines, begun if is_answer else first, is_answer)

    def write_in_turn(self, line: bytes) -> bool:
        """Write a line if a turn is under way or asked for, by what was sent and decoded. This never waits.

        Returns whether the line was written. An input that is ended, full, or in use by a sender takes none.
        """
        child = self.child
        return bool(self.turn.unfinished()) and child is not None and not child.foreign and child.stdin.write_now(line)

    async def close(self) -> None:
        """End the child, if there is one."""
        if self.child is not None and not self.child.foreign:
            await self.child.close(self._settings.grace)

    def saw(self, batch: list[Any]) -> None:
        """As :class:`~claude_wire.io.receiver.Observer`."""
        self.turn.see(batch)

    async def ended(self, *, cut: bool) -> None:
        """As :class:`~claude_wire.io.receiver.Observer`: wait for the exit code, and say once how the output ended."""
        child = self.started()
        if self._told or child.closed:
            return
        await child.wait(self._settings.grace)
        await child.read_stderr()
        if child.closed:  # in the meantime, by another task: how it ended is its own doing
            return
        self._told = True
        code = child.popen.returncode
        details = code, child.stderr_tail(), self.turn.last_result
        where = "in the middle of a line" if cut else self.turn.unfinished() if self._sees_results else ""
        if where:
            end = describe_end(code, details[1])
            raise UnfinishedTurnError(*details, message=f"the output ended {where}; the process {end}")
        if code:
            raise ProcessError(*details)


def not_started() -> HandleError:
    return HandleError("this process is not started: use it as `async with open_process(...) as process`")


class NotStarted:
    """The chunks of a process that was not started."""

    final: tuple[type[Exception], ...] = ()

    async def receive(self) -> bytes:
        raise not_started()

    async def aclose(self) -> None:
        pass
