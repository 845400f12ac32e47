"""Session, ask and open_session of the sync API. Knows which method waits for which; not threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from claude_wire import session as asynchronous
from claude_wire.process.options import ClaudeOptions
from claude_wire.session.prompts import Prompt, message_of
from claude_wire.session.session import CEILING_SECONDS
from claude_wire.sync.loop_thread import LoopThread

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from claude_wire.messages import (
        ControlRequestBody,
        InitializeResponse,
        InterruptResponse,
        InvalidLine,
        Message,
        ResultMessage,
        SetModelResponse,
        SetPermissionModeResponse,
    )
    from claude_wire.process.child import StrPath
    from claude_wire.process.options import PermissionMode
    from claude_wire.session.open import SessionArguments

__all__ = ["Messages", "Session", "ask", "open_session"]

A = TypeVar("A")
T = TypeVar("T")

_END = object()


def ask(
    prompt: Prompt, options: ClaudeOptions | Sequence[StrPath] | None = None, **arguments: Unpack[SessionArguments]
) -> ResultMessage:
    """Run the CLI for one prompt, and return its result. Arguments and exceptions are those of `claude_wire.ask`."""
    message = message_of(prompt)  # a wrong prompt is refused before anything runs
    with open_session(ClaudeOptions() if options is None else options, **arguments) as session:
        return session.ask(message)


def open_session(options: ClaudeOptions | Sequence[StrPath], **arguments: Unpack[SessionArguments]) -> Session:
    """Run the CLI with a session: ``with open_session(ClaudeOptions(...)) as session``.

    At the beginning of the block a thread with an event loop is started, and in it the session. However the block is
    left, the process has ended by then, and so has the thread. Ctrl-C (KeyboardInterrupt) in the block cancels the
    method that is waiting, and leaves the block like any exception; the turn that is under way is interrupted. At
    interpreter exit a session that was not left is closed, and one that is dropped is closed by its thread.

    Arguments and exceptions are those of :func:`claude_wire.open_session`. Callbacks, plain ones too, run in the event
    loop's thread, also while no method waits. They may not call this session: an async one can await the methods of
    :attr:`Session.session`. A plain one that does not return holds up everything, the end of the block too.

    Raises:
        HandleError: by entering the block, an event loop runs in this thread; use the async API there.
    """
    return Session(asynchronous.open_session(options, **arguments))


class Session:
    """A :class:`claude_wire.Session` whose methods wait; made by :func:`open_session`.

    Several threads may use it, as several tasks may use the async one: requests and prompts at the same time,
    :meth:`ask` one after the other, and one thread iterates at a time. Each method raises what the async one of that
    name does, and HandleError where it cannot wait: outside of the block, in a callback, where an event loop runs, and
    in a forked child.
    """

    def __init__(self, session: asynchronous.Session) -> None:
        #: The async session. Its methods are for the event loop's thread: for async callbacks.
        self.session: asynchronous.Session = session
        self._thread = LoopThread(session, "session")

    def __repr__(self) -> str:
        return f"<sync {self.session!r}>"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._thread.stop()

    def close(self) -> None:
        """End the session, its process and its thread, and wait for that. May be called again."""
        self._thread.close()

    @property
    def info(self) -> InitializeResponse | None:
        """What the CLI answered to ``initialize``."""
        return self.session.info

    def query(self, prompt: Prompt, *, uuid: str | None = None, session_id: str = "") -> None:
        """Send a prompt, as :meth:`claude_wire.Session.query`. Does not wait for the answer."""
        self._thread.call(self.session.query, prompt, uuid=uuid, session_id=session_id)

    def ask(self, prompt: Prompt, *, ceiling: float | None = CEILING_SECONDS) -> ResultMessage:
        """Send a prompt and return its result, as :meth:`claude_wire.Session.ask`."""
        return self._thread.call(self.session.ask, prompt, ceiling=ceiling)

    def request(self, request: ControlRequestBody[A], *, timeout: float | None = None) -> A:
        """Send a control request and return its answer, as :meth:`claude_wire.Session.request`."""

        async def answer() -> A:  # type checkers do not see through a method that is generic itself
            return await self.session.request(request, timeout=timeout)

        return self._thread.call(answer)

    def interrupt(self, *, cancel_queued: bool | None = None) -> InterruptResponse:
        """Stop the turn that is under way, as :meth:`claude_wire.Session.interrupt`."""
        return self._thread.call(self.session.interrupt, cancel_queued=cancel_queued)

    def set_model(self, model: str | None) -> SetModelResponse:
        """Change the model for the next turns; None is the session's default."""
        return self._thread.call(self.session.set_model, model)

    def set_permission_mode(self, mode: PermissionMode) -> SetPermissionModeResponse:
        """Change how permission questions are decided."""
        return self._thread.call(self.session.set_permission_mode, mode)

    def end_input(self) -> None:
        """Tell the CLI to finish and end. Callbacks cannot be answered then."""
        self._thread.call(self.session.end_input)

    def __iter__(self) -> Messages[Message | InvalidLine]:
        return Messages(self, self._thread.call, self.session)

    def batches(self) -> Messages[list[Message | InvalidLine]]:
        """Iterate over lists of messages instead, which is cheaper where there are many."""
        return Messages(self, self._thread.call, self.session.batches())

    def receive_response(self) -> Messages[Message | InvalidLine]:
        """Iterate up to the result of the turn, and with it. What comes after it remains."""
        return Messages(self, self._thread.call, self.session.receive_response())

    def receive_run(self, *, ceiling: float | None = CEILING_SECONDS) -> Messages[Message | InvalidLine]:
        """Iterate until nothing more will come, as :meth:`claude_wire.Session.receive_run`."""
        return Messages(self, self._thread.call, self.session.receive_run(ceiling=ceiling))


class Messages(Generic[T]):
    """Iterates over a part of a :class:`Session`. May be dropped half-way: what it has not given remains there."""

    def __init__(self, session: Session, call: Callable[..., Any], source: AsyncIterator[T]) -> None:
        self._session = session  # which ends its thread when nobody keeps it
        self._call = call
        self._source = source

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        message = self._call(_next, self._source)
        if message is _END:
            raise StopIteration
        return cast("T", message)


async def _next(source: AsyncIterator[T]) -> T | object:
    try:
        return await source.__anext__()
    except StopAsyncIteration:
        return _END
