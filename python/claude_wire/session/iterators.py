"""Iterate over a session's messages: in batches, up to the end of a turn, or up to the end of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, get_args

from claude_wire.streams.message_stream import Batches
from claude_wire.support.arguments import require_one_of, require_seconds

if TYPE_CHECKING:
    from typing_extensions import Self

    from claude_wire.errors import TurnError
    from claude_wire.messages import InvalidLine, Message, ResultMessage
    from claude_wire.protocol.run import Run

#: Why an iteration or a wait ended. :attr:`SessionMessages.end` describes each value.
Ending: TypeAlias = Literal["result", "done", "shells", "ceiling", "output"]


#: How long ``ask`` waits. ``turn``: until the prompt's result arrives. ``run``: also until all background subagents
#: end.
Until: TypeAlias = Literal["run", "turn"]


class SessionBatches(Batches["Message | InvalidLine"]):
    """Iterates over a :class:`Session` in lists of messages. :meth:`Session.batches` returns it."""

    __slots__ = ()


class Wait:
    """One wait for a result or for the end of a run.

    Args:
        ceiling: seconds to wait when nothing is known to be under way. None: no limit.
        shells: total seconds to wait when only background commands are still running. None: no limit.
    """

    __slots__ = ("ceiling", "end", "error", "result", "shells", "structured")

    def __init__(self, ceiling: float | None, shells: float | None = 0.0) -> None:
        require_seconds("shells", shells, or_zero=True)
        require_seconds("ceiling", ceiling, or_zero=True)
        self.ceiling: float | None = ceiling
        #: The remaining seconds to wait for background commands; None: no limit.
        self.shells: float | None = shells
        #: Why the wait ended; None until it ends.
        self.end: Ending | None = None
        #: The error of the first failed turn; None if no turn failed.
        self.error: TurnError | None = None
        #: The last result; None before the first.
        self.result: ResultMessage | None = None
        #: True if each result must have ``structured_output``.
        self.structured: bool = False

    @classmethod
    def of_prompt(cls, until: Until, shells: float | None, ceiling: float | None) -> Wait:
        """The wait of :meth:`Session.ask`.

        Raises:
            TypeError, ValueError: an argument is wrong, or ``shells`` would have no effect.
        """
        require_one_of("until", until, get_args(Until))
        if shells != 0 and until == "turn":
            raise ValueError("shells is for until='run': a turn does not wait for commands")
        return cls(ceiling, shells)

    def is_over(self, run: Run) -> bool:
        """True if the run is over and ``shells`` leaves no time for commands still running. Then also sets ``end``."""
        if not run.over:
            return False
        if not run.background.shells:
            self.end = "done"
        elif self.shells == 0:
            self.end = "shells"
        else:
            return False
        return True

    def only_shells(self, run: Run) -> bool:
        """True if only background commands are still running, and the wait has time left for them."""
        return self.shells != 0 and bool(run.background.shells) and run.over

    def note(self, result: ResultMessage, run: Run) -> None:
        """Store the turn's result, and its error if no earlier turn failed."""
        self.result = result
        if self.error is None:
            self.error = result.to_error(run.reason, run.resets_at, structured=self.structured)

    def close(self, run: Run) -> None:
        """Record that the run ended. If subagents were stopped and no turn followed, set ``error``."""
        if self.error is None and self.result is not None:
            self.error = run.stopped_error(self.result)


class SessionMessages:
    """Iterates over the messages of a turn or run. ``Session.receive_response`` and ``receive_run`` return it.

    Args:
        take: returns the next message. At the end it raises StopAsyncIteration, after setting ``end`` of ``wait``.
        wait: the argument for ``take``.
    """

    def __init__(self, take: Callable[[Wait], Awaitable[Message | InvalidLine]], wait: Wait) -> None:
        self._take = take
        self._wait = wait

    def __repr__(self) -> str:
        return f"<SessionMessages {'open' if self.end is None else f'ended ({self.end})'}>"

    @property
    def end(self) -> Ending | None:
        """Why the iteration ended; None until it ends.

        ``result``: the turn's result arrived. ``done``: the run is over, so no more messages will arrive. ``shells``:
        only background commands are still running, and the time to wait for them (``shells=``) is up. ``ceiling``: the
        CLI was silent for ``ceiling`` seconds while nothing was known to be under way. ``output``: the output ended.
        """
        return self._wait.end

    @property
    def error(self) -> TurnError | None:
        """The error of the first failed turn, as :meth:`Session.ask` raises it; None if no turn failed.

        At the end of a run, it can also be a :class:`~claude_wire.errors.SubagentStoppedError`.
        """
        return self._wait.error

    def __iter__(self) -> NoReturn:
        raise TypeError("iterate with `async for`; in code without async, use a session of claude_wire.sync")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message | InvalidLine:
        if self._wait.end is not None:
            raise StopAsyncIteration
        try:
            return await self._take(self._wait)
        except StopAsyncIteration:
            if self._wait.end is None:
                self._wait.end = "output"
            raise
