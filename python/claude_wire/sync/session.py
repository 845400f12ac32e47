"""The sync API. Each method runs the async method of the same name in the thread's loop, and waits for it."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from claude_wire import session as asynchronous
from claude_wire.messages import ResultMessage
from claude_wire.process.options import ClaudeOptions
from claude_wire.session.arguments import CEILING_SECONDS
from claude_wire.session.iterators import Until, Wait
from claude_wire.session.prompts import Prompt, message_of
from claude_wire.sync.loop_thread import LoopThread

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from claude_wire.control.guards import Guard
    from claude_wire.flags.flags import PermissionMode
    from claude_wire.messages import (
        ControlRequestBody,
        InitializeResponse,
        InterruptResponse,
        InvalidLine,
        McpServerConfig,
        McpSetServersResponse,
        Message,
        SetModelResponse,
        SetPermissionModeResponse,
    )
    from claude_wire.process.child import StrPath
    from claude_wire.session.arguments import McpServer
    from claude_wire.session.open import SessionArguments

A = TypeVar("A")
T = TypeVar("T")


def ask(
    prompt: Prompt,
    options: ClaudeOptions | Sequence[StrPath] | None = None,
    *,
    until: Until = "run",
    shells: float | None = 0.0,
    **arguments: Unpack[SessionArguments],
) -> ResultMessage:
    """Run the CLI for one prompt, wait until its background subagents end, and return the last result.

    For the arguments and exceptions, see :func:`claude_wire.ask`.
    """
    message = message_of(prompt)  # refuse wrong arguments before the CLI is started
    Wait.of_prompt(until, shells, None)
    with open_session(ClaudeOptions() if options is None else options, **arguments) as session:
        return session.ask(message, until=until, shells=shells)


def open_session(options: ClaudeOptions | Sequence[StrPath], **arguments: Unpack[SessionArguments]) -> Session:
    """Run the CLI with a session: ``with open_session(ClaudeOptions(...)) as session``.

    Entering the block starts a thread, whose event loop runs the session. Leaving the block terminates the process and
    the thread. Ctrl-C (KeyboardInterrupt) in the block cancels the waiting method and leaves the block like any
    exception; the current turn is interrupted. If a session is still open when it is garbage collected or when the
    interpreter exits, the thread closes it.

    For the arguments and other exceptions, see :func:`claude_wire.open_session`. All callbacks run in the event loop's
    thread, even while no method is waiting. They must not call this session. An async callback can await the methods of
    :attr:`Session.session`. A plain callback that does not return blocks the session, including the end of the block.

    Raises:
        HandleError: on entering the block, if an event loop runs in the calling thread. Use the async API there.
    """
    return Session(asynchronous.open_session(options, **arguments))


class Session:
    """A session with sync methods. :func:`open_session` creates it together with its async session.

    ``with Session(session)`` wraps an existing async session. Several threads may use a session: requests and prompts
    run at the same time, calls to :meth:`ask` run one after the other, and only one thread iterates at a time. Each
    method raises the same exceptions as the async method with the same name. It also raises HandleError where it cannot
    wait: outside the block, in a callback, in a thread with a running event loop, and in a forked child.
    """

    if not TYPE_CHECKING:  # a type checker must see that a sync session has no `async with`

        async def __aenter__(self) -> None:
            raise TypeError("use `with`; in async code, use claude_wire.open_session")

        async def __aexit__(self, *_: object) -> None:
            pass

    def __init__(self, session: asynchronous.Session) -> None:
        #: The async session. Async callbacks, which run in the event loop's thread, can await its methods.
        self.session: asynchronous.Session = session
        self._thread = LoopThread(session)
        # Messages that were taken from the async session but not returned, because the wait was interrupted.
        self._taken: list[Message | InvalidLine] = []
        self._taking = asyncio.Lock()  # only one call at a time waits for messages
        weakref.finalize(self, self._thread.stop)

    def __repr__(self) -> str:
        return f"<sync {self.session!r}>"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the session, terminate its process, and wait until its thread ends. A second call does nothing."""
        self._thread.close()

    @property
    def info(self) -> InitializeResponse | None:
        """The CLI's answer to ``initialize``."""
        return self.session.info

    @property
    def guards(self) -> tuple[Guard, ...]:
        """``can_use_tool`` and all hooks. See :attr:`claude_wire.Session.guards`."""
        return self.session.guards

    def send_again(self, lines: Sequence[bytes]) -> None:
        """Resend prompts and answers. See :meth:`claude_wire.Session.send_again`."""
        self._thread.call(self.session.send_again, lines)

    def query(self, prompt: Prompt, *, uuid: str | None = None, session_id: str = "") -> None:
        """Send a prompt, without waiting for the answer. See :meth:`claude_wire.Session.query`."""
        self._thread.call(self.session.query, prompt, uuid=uuid, session_id=session_id)

    def ask(
        self,
        prompt: Prompt,
        *,
        until: Until = "run",
        shells: float | None = 0.0,
        ceiling: float | None = CEILING_SECONDS,
    ) -> ResultMessage:
        """Send a prompt and return the last result of its run. See :meth:`claude_wire.Session.ask`."""

        async def answer() -> ResultMessage:
            self._taken.clear()  # ask() skips all messages before the result
            return await self.session.ask(prompt, until=until, shells=shells, ceiling=ceiling)

        return self._thread.call(answer)

    def request(self, request: ControlRequestBody[A], *, timeout: float | None = None) -> A:
        """Send a control request and return its answer. See :meth:`claude_wire.Session.request`."""

        async def answer() -> A:  # type checkers do not infer the type of a generic method as an argument
            return await self.session.request(request, timeout=timeout)

        return self._thread.call(answer)

    def interrupt(self, *, cancel_queued: bool | None = None) -> InterruptResponse:
        """Stop the current turn. See :meth:`claude_wire.Session.interrupt`."""
        return self._thread.call(self.session.interrupt, cancel_queued=cancel_queued)

    def set_model(self, model: str | None) -> SetModelResponse:
        """Change the model for later turns. None: the session's default. With an unknown name the next turn fails."""
        return self._thread.call(self.session.set_model, model)

    def set_permission_mode(self, mode: PermissionMode) -> SetPermissionModeResponse:
        """Change how the CLI decides permission questions."""
        return self._thread.call(self.session.set_permission_mode, mode)

    def set_mcp_servers(self, servers: Mapping[str, McpServer | McpServerConfig]) -> McpSetServersResponse:
        """Replace the session's MCP servers. See :meth:`claude_wire.Session.set_mcp_servers`."""
        return self._thread.call(self.session.set_mcp_servers, servers)

    def end_input(self) -> None:
        """Tell the CLI to finish and exit. Callbacks can no longer answer."""
        self._thread.call(self.session.end_input)

    def __iter__(self) -> Messages[Message | InvalidLine]:
        return self._messages(self.session)

    def batches(self) -> Messages[list[Message | InvalidLine]]:
        """Iterate over lists of messages, which is faster if there are many messages."""
        return self._messages(self.session.batches(), lists=True)

    def receive_response(self, *, ceiling: float | None = CEILING_SECONDS) -> Messages[Message | InvalidLine]:
        """Iterate up to and including the turn's result. See :meth:`claude_wire.Session.receive_response`."""
        return self._messages(self.session.receive_response(ceiling=ceiling), last=ResultMessage)

    def receive_run(
        self, *, shells: float | None = 0.0, ceiling: float | None = CEILING_SECONDS
    ) -> Messages[Message | InvalidLine]:
        """Iterate over the messages of the whole run. See :meth:`claude_wire.Session.receive_run`."""
        return self._messages(self.session.receive_run(shells=shells, ceiling=ceiling))

    def _messages(
        self, source: AsyncIterator[Any], *, lists: bool = False, last: type[ResultMessage] | None = None
    ) -> Messages[Any]:
        async def take() -> bool:
            async with self._taking:  # an interrupted wait may still be running
                if not self._taken:
                    try:
                        given = await source.__anext__()
                    except StopAsyncIteration:
                        return False
                    # Do not return `given`, because an interrupted wait would lose it.
                    self._taken.extend(given if lists else [given])
                return True

        return Messages(self, self._taken, lambda: self._thread.call(take), slice(None) if lists else 0, last)


class Messages(Generic[T]):
    """Iterates over a :class:`Session`'s messages. If you drop the iterator, the unread messages stay in the session.

    Args:
        session: the session. This reference keeps it alive, because a dropped session ends its thread.
        taken: messages that are ready to be returned.
        take: waits until ``taken`` has a message. Returns False if there are no more messages.
        place: the part of ``taken`` to return in one step: 0 for the first message, or a slice for all.
        last: the class of the message that ends the iteration. None: iterate until ``take`` returns False.
    """

    def __init__(
        self,
        session: Session,
        taken: list[Any],
        take: Callable[[], bool],
        place: int | slice,
        last: type[ResultMessage] | None,
    ) -> None:
        self._session = session
        self._taken = taken
        self._take = take
        self._place = place
        self._last = last
        self._ended = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while not self._taken:
            if self._ended or not self._take():
                self._ended = True
                raise StopIteration
        given = cast("T", self._taken[self._place])
        self._ended = self._last is not None and isinstance(given, self._last)
        # KeyboardInterrupt is raised only after a call. No call follows the deletion, so the message is returned.
        del self._taken[self._place]
        return given
