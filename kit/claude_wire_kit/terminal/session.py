"""Run a session with the CLI for ``claude-wire run``: show it in the terminal and, if asked to, record it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup, TaskStatus

from claude_wire import Session, open_session
from claude_wire.errors import ClaudeWireError, HandleError, ProcessInputError, SubagentStoppedError, TurnError
from claude_wire.messages import CanUseToolRequest, InvalidLine, Message, PermissionResult, UserMessage
from claude_wire.session.arguments import CEILING_SECONDS
from claude_wire.session.open import STATE_VARIABLE
from claude_wire_kit.terminal.asking import Terminal
from claude_wire_kit.terminal.excerpts import detail
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.notices import ERROR, QUIET, WARNING
from claude_wire_kit.terminal.page import Page
from claude_wire_kit.terminal.record import Recorder

#: The exit code for a signal is this number plus the number of the signal, as in shells.
SIGNALLED = 128

#: Grace period in seconds between closing the CLI's input and SIGTERM, and between SIGTERM and SIGKILL.
GRACE_SECONDS = 2.0

#: This environment variable limits how long the CLI waits for background work before it exits, in milliseconds; 0 for
#: no limit.
CEILING_VARIABLE = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"


class TerminalSession:
    """Runs the CLI once, with one prompt.

    Args:
        page: shows the session.
        recorder: records the session; None for no recording.
    """

    #: What the second Ctrl-C does: the words in the hint after the first Ctrl-C, and in the line after the second.
    leaving: tuple[str, str] = ("ends the CLI", "ending the CLI")

    @property
    def shells(self) -> float | None:
        """How many seconds to wait for background commands, according to the environment; None for no limit."""
        given = os.environ.get(CEILING_VARIABLE, "")
        return (int(given) / 1000 or None) if given.isascii() and given.isdigit() else CEILING_SECONDS

    def __init__(self, page: Page, recorder: Recorder | None = None) -> None:
        self._page = page
        self._recorder = recorder
        self._live = LiveView(page)
        self._terminal = Terminal(page, self._live)
        self._session: Session | None = None
        self._tasks: TaskGroup | None = None
        self._signals: list[int] = []
        self._failed = False
        #: The error that made the page unwritable.
        self._unwritable: OSError | None = None

    async def run(self, argv: list[str], prompt: str, cwd: str | None) -> int:
        """Run the CLI with a prompt, and return the command's exit code.

        Raises:
            OSError: the output cannot be written. BrokenPipeError: the reader of the output has exited.
        """
        return await self._outcome(lambda: self._converse(argv, prompt, cwd))

    async def _outcome(self, converse: Callable[[], Awaitable[None]]) -> int:
        began = time.monotonic()
        failure: ClaudeWireError | OSError | None = None
        async with anyio.create_task_group() as self._tasks:
            if os.name == "posix":
                await self._tasks.start(self._watch)
            try:
                await converse()
            except ClaudeWireError as error:
                failure = error
            except OSError as error:
                if self._session is None:  # the CLI could not be started
                    failure = error
                else:
                    self._unwritable = error
            self._tasks.cancel_scope.cancel()
        if self._unwritable is not None:
            raise self._unwritable
        if failure is not None and not self._signals:
            self._fail(failure)
        code = self._code()
        self._page.line(self._last_line(time.monotonic() - began, code), QUIET)
        return code

    def _last_line(self, seconds: float, code: int) -> str:
        return f"* {seconds:.2f} s and ${self._live.spent_usd:.6f} in all, exit code {code}"

    def _code(self) -> int:
        if self._signals:
            return SIGNALLED + self._signals[-1]
        result = self._live.last_result
        return int(self._failed or result is None or not result.ok)

    def _fail(self, error: ClaudeWireError | OSError) -> None:
        self._failed = True
        if isinstance(error, TurnError):
            if error.result is not self._live.last_result:  # the CLI exited before the first prompt
                self._live.show(error.result)
            return
        text = (
            str(error)
            if isinstance(error, ClaudeWireError)
            else f"the CLI cannot be started: {error.strerror or error}"
        )
        self._page.line(f"! {detail(text)}", ERROR)

    async def _converse(self, argv: list[str], prompt: str, cwd: str | None) -> None:
        recorder = self._recorder
        if recorder is not None:
            recorder.started(argv, cwd or os.getcwd(), {**os.environ, STATE_VARIABLE: "1"})
        self._page.activity("waiting for the CLI")
        self._page.wait()
        session = open_session(
            argv,
            can_use_tool=self._ask,
            cwd=cwd,
            stderr=self._stderr,
            grace=GRACE_SECONDS,
            # Ctrl-C sends SIGINT to all processes in the terminal's foreground group. A CLI in a new session does
            # not get SIGINT, so Ctrl-C interrupts the turn and does not kill the CLI.
            start_new_session=os.name == "posix",
            on_received=None if recorder is None else recorder.received,
            on_sent=None if recorder is None else recorder.sent,
        )
        try:
            async with session:
                self._session = session
                await self._turns(session, prompt)
        finally:
            if recorder is not None and session.process is not None:
                with suppress(HandleError):  # the CLI was not started
                    recorder.ended(session.process.returncode)

    async def _turns(self, session: Session, prompt: str) -> None:
        message = UserMessage.of(prompt)
        self._live.sent(message)
        self._page.activity("waiting for the model")
        self._page.wait()
        try:
            await session.query(message)
        except ProcessInputError:
            await self._show(session)  # show the CLI's last output, which may explain its exit
            raise
        run = session.receive_run(shells=self.shells)
        await self._show(run)
        self._failed |= run.error is not None
        if isinstance(run.error, SubagentStoppedError):
            self._page.line(f"! {detail(str(run.error))}", ERROR)
        await self._end(session, run.end)

    async def _end(self, session: Session, ending: str | None) -> None:
        """Stop the CLI. If background commands are still running, say so."""
        if ending == "shells":
            self._page.line("! commands still run in the background, and end with the CLI", WARNING)
            return  # do not close the input, because the CLI would wait for these commands again
        await session.end_input()
        await self._show(session)

    async def _show(self, messages: AsyncIterable[Message | InvalidLine]) -> None:
        async for message in messages:
            await self._show_one(message)

    async def _show_one(self, message: Message | InvalidLine) -> None:
        async with self._terminal.turn:
            self._live.show(message)
            self._page.wait()
            self._terminal.turn.notify_all()

    async def _ask(self, request: CanUseToolRequest) -> PermissionResult:
        try:
            return await self._terminal.ask(request)
        except OSError as error:
            self._cannot_show(error)
            return request.deny("The terminal is gone, so nobody can be asked.")

    def _stderr(self, line: str) -> None:
        if self._recorder is not None:
            self._recorder.stderr(line)
        self._tell(f"! stderr: {detail(line)}", WARNING)

    def _tell(self, text: str, style: str) -> None:
        """Show a line that is not part of the conversation. Any task may call this."""
        try:
            self._page.line(text, style)
        except OSError as error:
            self._cannot_show(error)

    def _cannot_show(self, error: OSError) -> None:
        """End the session because the page cannot be written. Tasks other than the task of :meth:`run` call this."""
        assert self._tasks is not None
        self._unwritable = error
        self._tasks.cancel_scope.cancel()

    # --- signals ------------------------------------------------------------------------------------------------------

    async def _watch(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Handle signals: the first Ctrl-C interrupts the turn, the second Ctrl-C or SIGTERM ends the session."""
        assert self._tasks is not None
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                self._signals.append(number)
                if number == signal.SIGTERM or len(self._signals) > 1 or self._session is None:
                    self._tell(f"! {self.leaving[1]}", WARNING)
                    self._tasks.cancel_scope.cancel()
                    return
                self._tell(f"! interrupted; Ctrl-C once more {self.leaving[0]}", WARNING)
                self._tasks.start_soon(self._interrupt, self._session)

    async def _interrupt(self, session: Session) -> None:
        try:
            await session.interrupt()
        except ClaudeWireError as error:
            self._tell(f"! not interrupted: {detail(str(error))}", ERROR)
