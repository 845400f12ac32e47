"""Read a session's messages: only the next one, all until a turn ends, or all until a run ends.

Only one task reads at a time. :class:`Reading` also decides how long to wait for a message, and which exception to
raise when the stream ends.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from anyio import current_time
from anyio.lowlevel import checkpoint

from claude_wire.errors import HandleError, ProcessError, TurnError
from claude_wire.messages import (
    InitMessage,
    ResultError,
    ResultMessage,
)
from claude_wire.process.stdin import LAST_SECONDS
from claude_wire.protocol.host import MessageReceived
from claude_wire.protocol.run import MARKS, Run, SentPrompt
from claude_wire.session.arguments import CEILING_SECONDS
from claude_wire.session.iterators import Wait
from claude_wire.support.text import one_line
from claude_wire.support.waiting import move_on_after

if TYPE_CHECKING:
    from collections import deque

    from claude_wire.messages import InvalidLine, Message
    from claude_wire.process.process import Process
    from claude_wire.session.control import Control
    from claude_wire.session.router import Router

_log = logging.getLogger("claude_wire")


class Reading:
    """Takes messages from a router and updates the state of the run and its callbacks."""

    def __init__(self, router: Router, control: Control, process: Process[Any] | None) -> None:
        self._protocol = control.protocol
        self._control = control
        #: Messages that the consumer has not taken yet.
        self.ready: deque[Message | InvalidLine] = router.ready
        #: True if a message in ``ready`` may change the state of the run.
        self.has_marks: bool = True
        # True while ask() reads the session. No other task may read during this time.
        self._reserved = False
        self._router = router
        self._requests = control.requests
        self._process = process
        self._on_init = control.callbacks.see_init
        #: The id of the session that the CLI should resume, to compare with the first ``system/init``. None after that
        #: comparison, or if the CLI does not resume a session.
        self.resumes: str | None = None
        self._warned_of_no_prompt = False

    @property
    def run(self) -> Run:
        """The state of all prompts, turns and background work at the consumer's position in the stream."""
        return self._protocol.run

    def run_sees(self, message: Message | InvalidLine) -> bool:
        """Update the run with a message. Return True if the consumer must not get the message (``sdk_host_only``)."""
        if type(message) is InitMessage:
            self._on_init(message)
            self._compare_with_resumed(message)
        if type(message) not in MARKS:
            return False
        events = self._protocol.receive(message)
        return not (events and isinstance(events[0], MessageReceived))

    def _compare_with_resumed(self, message: InitMessage) -> None:
        """Warn if the CLI started a new, empty session instead of the session to resume.

        In all recordings of ``--resume`` without ``--fork-session``, the first ``system/init`` has the id to resume.
        """
        resumes, self.resumes = self.resumes, None
        if resumes is not None and message.session_id not in (None, resumes):
            text = "the CLI was to resume session %s and has begun session %s: it has nothing of what was said before"
            _log.warning(text, one_line(resumes), one_line(message.session_id or ""))

    async def step(self, *, reserved: bool = False) -> None:
        """Wait until ``ready`` has a message.

        Raises:
            StopAsyncIteration: the output ended.
            TurnError: the process failed because of its last result.
            HandleError: another task is reading.
            Exception: any other exception that the stream raises.
        """
        if self._reserved and not reserved:
            raise HandleError("ask() is reading this session")
        try:
            await self._router.step()
        except (StopAsyncIteration, ProcessError) as end:
            error = end if isinstance(end, ProcessError) else self._router.take_end_error()
            await self._output_ended(error)
            if error is None:
                raise
            failed = self._failed_turn(error) if isinstance(error, ProcessError) else None
            if failed is not None:
                raise failed from error
            raise error from error.__cause__
        finally:  # even after an error: a router that refuses can_use_tool may have filled `ready`
            self.has_marks = not MARKS.isdisjoint(self._router.types)

    async def next_batch(self) -> list[Message | InvalidLine]:
        while True:
            if not self.ready:
                await self.step()
            batch = list(self.ready)
            self.ready.clear()
            if self.has_marks:
                batch = [message for message in batch if not self.run_sees(message)]
            if batch:
                return batch

    async def next_of_turn(self, wait: Wait) -> Message | InvalidLine:
        while wait.end is None:
            if not self.ready:
                self._warn_if_no_prompt(wait)
                await self._wait(wait)
                continue
            message = self.ready.popleft()
            if self.has_marks and self.run_sees(message):
                continue
            if isinstance(message, ResultMessage):
                wait.note(message, self.run)
                wait.end = "result"
            return message
        raise StopAsyncIteration

    async def next_of_run(self, wait: Wait) -> Message | InvalidLine:
        while wait.end is None and not wait.is_over(self.run):
            if not self.ready:
                await self._wait(wait)
                continue
            message = self.ready.popleft()
            if not self.run_sees(message):
                if isinstance(message, ResultMessage):
                    wait.note(message, self.run)
                return message
        wait.close(self.run)
        # Let other tasks run, even if the caller calls this in a loop while the session is idle.
        await checkpoint()
        raise StopAsyncIteration

    @contextmanager
    def reserved(self) -> Generator[None, None, None]:
        """Return a context manager in which only the entering task may read.

        Raises:
            HandleError: another task is reading.
        """
        self._router.require_idle()
        self._reserved = True
        try:
            yield
        finally:
            self._reserved = False

    async def skip_to_end_of_prompt(self, prompt: SentPrompt, wait: Wait) -> None:
        """Skip all messages until the prompt ends or the ceiling ends the wait."""
        while not prompt.ended and wait.end is None:
            if self.ready:
                self.run_sees(self.ready.popleft())
            else:
                await self._wait(wait, reserved=True)

    async def skip_to_end_of_run(self, wait: Wait) -> None:
        """Skip all messages until the run is over. Store results of turns that no prompt started in ``wait``."""
        while wait.end is None and not wait.is_over(self.run):
            if not self.ready:
                await self._wait(wait, reserved=True)
                continue
            message = self.ready.popleft()
            unasked = isinstance(message, ResultMessage) and self.run.is_unasked(message)
            self.run_sees(message)
            if unasked:
                wait.note(cast("ResultMessage", message), self.run)
        wait.close(self.run)

    def refuse(self, uuid: str, reason: str) -> None:
        """End the wait for a prompt's result, because the CLI will not get the prompt."""
        self.run.refuse(uuid, reason)
        self._wake()

    def arrive(self, *, turn: bool, subagents: Iterable[str], restarted: bool) -> None:
        """Record that the consumer took all replayed messages. For the arguments, see :meth:`Run.arrive`."""
        self.run.arrive(turn=turn, subagents=subagents, restarted=restarted)
        self._wake()

    def _wake(self) -> None:
        """Make the task that is waiting for a message check the state of the run again."""
        if self._control.waiting is not None:
            self._control.waiting.cancel()

    async def skip_to_end(self, seconds: float) -> None:
        """Skip all messages until the stream ends, for at most ``seconds``. Raises any exception of the stream."""
        with move_on_after(seconds), suppress(StopAsyncIteration):
            while True:
                self.ready.clear()
                await self.step()

    async def read_ahead(self) -> None:
        """Read ahead while nobody iterates, until the end of the stream. The session runs this in a task."""
        await self._router.read_ahead()
        await self._output_ended()

    async def _wait(self, wait: Wait, *, reserved: bool = False) -> None:
        """Wait until a message arrives or the run changes, as long as ``wait`` allows. Record a timeout in ``wait``."""
        began = current_time()
        only_shells = wait.only_shells(self.run)
        seconds = wait.shells if only_shells else self.run.patience(wait.ceiling, began)
        with move_on_after(seconds) as scope:
            before, self._control.waiting = self._control.waiting, scope
            try:
                await self.step(reserved=reserved)
            finally:
                self._control.waiting = before  # if step() raised HandleError, this is the scope of the reading task
        is_late = not self.ready and current_time() >= scope.deadline
        if only_shells:
            if wait.shells is not None:
                wait.shells = 0.0 if is_late else max(wait.shells - (current_time() - began), 0.0)
        elif is_late:
            was_over = self.run.over
            self.run.settle()
            if seconds == wait.ceiling and (was_over or not self.run.over):
                wait.end = "ceiling"

    def _warn_if_no_prompt(self, wait: Wait) -> None:
        """Log one warning per session if ``receive_response()`` waits although no turn is due.

        Do not log it if the caller set a ceiling, which shows that the caller expects the wait. Do not log it without a
        process, because another program may then send the prompts.
        """
        idle = self.run.over and not self.run.background.shells
        if idle and self._process is not None and wait.ceiling == CEILING_SECONDS and not self._warned_of_no_prompt:
            self._warned_of_no_prompt = True
            _log.warning(
                "receive_response() waits, but no prompt was sent since the last result: call query() first; if "
                "another task calls it later, pass ceiling="
            )

    def _failed_turn(self, error: ProcessError) -> TurnError | None:
        """The last result's error, if it explains why the process exited with code 1; else None."""
        result = error.last_result
        if self.run.fatal is not None and error.returncode == 1:
            return ResultError(is_error=True, error=self.run.fatal).to_error()
        if type(error) is ProcessError and error.returncode == 1 and isinstance(result, ResultMessage):
            return result.to_error(self.run.reason, self.run.resets_at)
        return None

    async def _output_ended(self, cause: Exception | None = None) -> None:
        """Fail all requests that are waiting for an answer, because the output ended."""
        process, cause = self._process, cause or self._router.end_cause()
        if cause is None and process is not None and not self._router.closed:
            with move_on_after(LAST_SECONDS):
                await process.wait()
            cause = ProcessError(process.returncode, process.stderr_tail, process.last_result)
        self._requests.fail("the output has ended", cause)
