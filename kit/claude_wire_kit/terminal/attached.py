"""Show a supervisor's session in the terminal. The user can talk to it, or send it one prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import anyio

from claude_wire import Session
from claude_wire.errors import ClaudeWireError, HandleError
from claude_wire.messages import (
    AssistantMessage,
    CanUseToolRequest,
    InvalidLine,
    Message,
    PermissionResult,
    ResultMessage,
    StreamEvent,
)
from claude_wire_kit.terminal.page import Page
from claude_wire_kit.terminal.session import TerminalSession

if TYPE_CHECKING:
    from claude_wire_kit.supervisor.session import AttachedSession

#: Seconds between checks for whether the user may type again.
SECONDS_TO_SHOW = 0.05


class Join(Protocol):
    """Returns a session that attaches when it is entered."""

    def __call__(
        self, *, can_use_tool: Callable[[CanUseToolRequest], Awaitable[PermissionResult]]
    ) -> AttachedSession: ...


class AttachedTerminalSession(TerminalSession):
    """Attaches to a supervisor's session. When the command exits, the session keeps running."""

    leaving: tuple[str, str] = ("leaves the session", "leaving the session, which goes on")

    @property
    def shells(self) -> float | None:
        """0.0: do not wait for background commands, because they keep running in the supervisor."""
        return 0.0

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._is_over: bool = False
        # Set while no turn is under way, according to the messages.
        self._idle: anyio.Event = anyio.Event()
        self._typing: anyio.CancelScope | None = None
        # The number of tasks that are writing to the page or waiting to write. The user cannot type until it is 0.
        self._showing = 0
        self._needs_result = True
        self._failure: ClaudeWireError | None = None

    @property
    def is_at_terminal(self) -> bool:
        """True if a person can type answers and prompts."""
        return self._terminal.is_there

    async def ask(self, join: Join, prompt: str) -> int:
        """Send one prompt, show its turn, and return the command's exit code.

        Raises:
            OSError: see :meth:`TerminalSession.run`.
        """
        return await self._outcome(lambda: self._asked(join, prompt))

    async def talk(self, join: Join) -> int:
        """Show the session, and send the lines that the user types until the input ends. Returns the exit code.

        Raises:
            OSError: see :meth:`TerminalSession.run`.
        """
        self._needs_result = False
        return await self._outcome(lambda: self._talked(join))

    def _code(self) -> int:
        return super()._code() if self._signals or self._needs_result else int(self._failed)

    def _last_line(self, seconds: float, code: int) -> str:
        if self._needs_result:
            return super()._last_line(seconds, code)
        return "* the CLI has ended" if self._is_over or self._failed else "* left; the session goes on"

    async def _asked(self, join: Join, prompt: str) -> None:
        async with join(can_use_tool=self._ask) as session:
            self._session = session
            await self._turns(session, prompt)

    async def _end(self, session: Session, ending: str | None) -> None:
        pass  # do not stop the CLI, because the session keeps running

    async def _talked(self, join: Join) -> None:
        async with join(can_use_tool=self._ask) as session:
            self._session = session
            await self._show(session.receive_run())
            self._idle.set()
            failure: ClaudeWireError | OSError | None = None
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._type, session, tasks.cancel_scope.cancel)
                try:
                    await self._show(session)
                    self._is_over = True
                except (ClaudeWireError, OSError) as error:
                    failure = error
                tasks.cancel_scope.cancel()
            failure = failure or self._failure
            if failure is not None:
                raise failure

    async def _show_one(self, message: Message | InvalidLine) -> None:
        with self._to_be_shown():
            await super()._show_one(message)
        if isinstance(message, ResultMessage):
            self._idle.set()
        elif isinstance(message, (AssistantMessage, StreamEvent)) and self._idle.is_set():
            self._idle = anyio.Event()

    async def _ask(self, request: CanUseToolRequest) -> PermissionResult:
        with self._to_be_shown():
            return await super()._ask(request)

    @contextmanager
    def _to_be_shown(self) -> Generator[None, None, None]:
        """Remove the row ``> ``, where the user types, while this block writes to the page. Afterwards, :meth:`_type`
        shows the row again.
        """
        self._showing += 1
        if self._typing is not None:
            self._typing.cancel()
        try:
            yield
        finally:
            self._showing -= 1

    async def _type(self, session: AttachedSession, leave: Callable[[], None]) -> None:
        """Between turns, read lines from the user and send them as prompts."""
        while True:
            if not self._idle.is_set():
                with anyio.move_on_after(SECONDS_TO_SHOW):
                    await self._idle.wait()
                if session.refusal is not None:  # the supervisor refused the prompt, so no turn will follow
                    self._failure = HandleError(session.refusal)
                    leave()
                    return
                continue
            typed = await self._typed()
            if typed is None:
                await anyio.sleep(SECONDS_TO_SHOW)
            elif not typed:
                leave()
                return
            elif typed.strip():
                self._idle = anyio.Event()
                self._live.typed(typed.strip())
                try:
                    await session.query(typed.strip())
                except ClaudeWireError as error:
                    self._failure = error
                    leave()
                    return

    async def _typed(self) -> str | None:
        """Return a line from the user, or None if another task must write to the page first."""
        async with self._terminal.turn:
            if self._showing:
                return None
            typed = None
            with anyio.CancelScope() as self._typing:
                typed = await self._terminal.line("> ")
            self._typing = None
            return typed
