"""The host's side of a live session with the CLI, or with another agent that speaks the CLI's protocol.

A session sends prompts and requests, and answers the agent's requests with callbacks. It reads a
:class:`~claude_wire.MessageStream` (such as a :class:`~claude_wire.Process`) and writes lines to the process, or
through a ``send`` function.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from claude_wire.control.sending import Send
from claude_wire.dialects import AUTO, STREAM_JSON, Dialect, dialect_of
from claude_wire.errors import DialectError, HandleError
from claude_wire.flags.flags import PermissionMode
from claude_wire.messages import (
    ControlRequestBody,
    GetStatusRequest,
    InitializeRequest,
    InitializeResponse,
    InterruptResponse,
    McpSetServersResponse,
    ResultMessage,
    SetModelRequest,
    SetModelResponse,
    SetPermissionModeRequest,
    SetPermissionModeResponse,
    StatusMessage,
    from_dict,
)
from claude_wire.process.process import GRACE_SECONDS, Process, exchange_of
from claude_wire.protocol.host import HostProtocol
from claude_wire.session.arguments import CEILING_SECONDS, REQUEST_SECONDS, STREAM_PLACES, McpServer
from claude_wire.session.callbacks import Callbacks, CanUseTool, Dialog, Elicit, HookMatcher
from claude_wire.session.control import Control
from claude_wire.session.dialect import (
    DialectAdapter,
    argv_of,
    interrupt,
    interrupt_before_close,
    require_callbacks,
)
from claude_wire.session.host_hooks import host_hooks
from claude_wire.session.iterators import SessionBatches, SessionMessages, Until, Wait
from claude_wire.session.prompts import Prompt, Prompts, message_of
from claude_wire.session.reading import Reading
from claude_wire.session.router import Router
from claude_wire.session.sending import Sender
from claude_wire.session.takeover import SessionPort, SessionTransport, Takeover, TakeoverRouter
from claude_wire.streams.message_stream import MessageStream
from claude_wire.streams.tasks import EventLoopRef, Tasks
from claude_wire.support.arguments import (
    require_function,
    require_one_of,
    require_seconds,
    shown,
    tells_where,
    type_of,
)
from claude_wire.support.waiting import Lock, cancel_scope

if TYPE_CHECKING:
    from typing_extensions import Self

    from claude_wire.control.guards import Guard
    from claude_wire.messages import InvalidLine, McpServerConfig, Message

A = TypeVar("A")


class Session:
    """A conversation with the CLI: send prompts, read typed messages, and answer the CLI's requests with callbacks.

    Args:
        stream: a :class:`~claude_wire.Process`, or any stream of typed messages. The caller owns the stream: enter it
            before the session, call :meth:`initialize`, and close the stream after the session. While the session is
            open, only the session may read the stream. For a CLI that another program owns, pass a
            :class:`SessionTransport`: the session opens and closes the transport, but does not send ``initialize``.
        send: a plain or async function that writes lines (which end with line feeds) to a stream that is not a process.
            One task at a time calls it. While the session is open, a call that has started is not cancelled.
        can_use_tool: decides whether a tool may be used; returns ``request.allow()`` or ``request.deny("why")``.
        hooks: functions by hook event, such as ``{"PreToolUse": [HookMatcher(guard, matcher="Bash", timeout=5)]}``; the
            event may also be written ``pre-tool-use``.
        mcp_servers: MCP servers in this process, by name; the session closes them.
        on_elicitation: answers a question from an MCP server; without it, the session declines all elicitations.
        dialogs: dialog kind -> function that shows the dialog. The session never answers dialogs of other kinds.
        callback_timeout: seconds for a callback that does not set a timeout. None: as long as the CLI waits.
        request_timeout: seconds to wait for the answer to a request that does not set a timeout.
        verbatim_prompts: send prompts marked ``client_composed``. The CLI then reads no file for an ``@path`` in a
            prompt, and does not treat a ``/`` at its start as a command. Use this for text that your user did not type.
        on_received, on_sent: called with all bytes: ``on_received`` gets each chunk that is read, and ``on_sent`` gets
            each line when its first byte is written.
        dialect: the agent's dialect, one of :mod:`claude_wire.dialects`; ``"auto"`` detects it from the first line that
            reveals it. The session translates all dialects to stream-json. docs/dialects.md compares the dialects.

    Callbacks may be async or plain functions; a plain function runs in the event loop's thread and blocks the loop.
    Each callback call runs in a separate task, even while nobody iterates. If a callback raises, times out or returns
    an invalid answer, the CLI gets an error answer, the callback's name is logged, and the session continues. A
    callback is cancelled when the CLI withdraws its request, and when the session ends.

    Iterating returns every message except control messages, ``keep_alive``, and state changes that are marked
    ``sdk_host_only``. A line that is not JSON becomes an :class:`~claude_wire.InvalidLine`. Iterating raises the
    stream's exceptions. When a process exits with code 1 after a result that is an error, iterating raises the
    :class:`~claude_wire.TurnError` that fits the result. Only one task iterates at a time, but several tasks may send
    requests and prompts. A session belongs to one event loop.

    While nobody iterates, the session keeps incoming bytes, up to the process-wide byte budget
    (:func:`~claude_wire.streams.set_byte_budget`). When the budget is used up, the session stops reading, and later
    control messages wait for the consumer. The session also stops reading while 4,096 callbacks and answers are waiting
    (a callback with a time limit counts twice), or 64 MiB of them. Leave the session's block or call :meth:`aclose` to
    close the session. A dropped session is closed in its event loop. If the loop is closed or stopped, the dropped
    session's callbacks are abandoned at their current await, and a thread terminates its process.

    Raises:
        TypeError: an argument has the wrong type, ``send`` is missing, or a callback cannot be called with its
            arguments. On entering the block: the stream returns dicts, or raises for bad lines.
        ValueError: ``hooks`` has an event that the protocol does not have, or the process's command line lacks a flag
            that a callback needs (the CLI would never call the callback).
        HandleError: on entering the block, if the stream already has a session.
        DialectError: the dialect has no message for a callback.
    """

    # The event loop that entered the session.
    _home: EventLoopRef | None = None
    # The `initialize` request, if the session starts and terminates its process. None: the caller owns the stream.
    _opens: InitializeRequest | None = None

    @tells_where(STREAM_PLACES, owner="Session")
    def __init__(
        self,
        stream: MessageStream[Any] | SessionTransport,
        send: Send | None = None,
        *,
        can_use_tool: CanUseTool | None = None,
        hooks: Mapping[str, Sequence[HookMatcher]] | None = None,
        mcp_servers: Mapping[str, McpServer] | None = None,
        on_elicitation: Elicit | None = None,
        dialogs: Mapping[str, Dialog] | None = None,
        callback_timeout: float | None = None,
        request_timeout: float = REQUEST_SECONDS,
        verbatim_prompts: bool = False,
        on_received: Callable[[bytes], object] | None = None,
        on_sent: Callable[[bytes], object] | None = None,
        dialect: Dialect | Literal["auto"] = STREAM_JSON,
    ) -> None:
        _require_ends(stream, send, on_received, on_sent)
        self._dialect = dialect = dialect_of(dialect)
        # The connection to a CLI that another program owns; None otherwise.
        self._transport = transport = stream if isinstance(stream, SessionTransport) else None
        if transport is not None and not dialect.plain:
            raise DialectError(dialect.name, "is not spoken through a transport: the owner of the CLI adapts it")
        stream = stream.stream if isinstance(stream, SessionTransport) else stream
        argv = argv_of(stream)
        by_name = {"hooks": hooks, "mcp_servers": mcp_servers, "on_elicitation": on_elicitation, "dialogs": dialogs}
        self._callbacks = Callbacks(can_use_tool, hooks, mcp_servers, on_elicitation, dialogs, callback_timeout)
        self._callbacks.confirm_permissions(require_callbacks(dialect, argv, can_use_tool, by_name))
        #: The agent's process; None for a stream that is not a process.
        self.process: Process[Any] | None = stream if isinstance(stream, Process) else None
        require_seconds("request_timeout", request_timeout)
        self._request_timeout = request_timeout
        self._info: InitializeResponse | None = None
        # Waiting tasks keep the following objects alive. These objects must not refer to the session. A session that
        # the user drops can then be garbage collected, and __del__ closes it.
        self._tasks = Tasks()
        self._callbacks.shared = transport is not None
        hooks_of_host = host_hooks(dialect, self._callbacks, self._tasks)
        exchange = None if self.process is None else exchange_of(self.process)
        require = None
        if transport is not None:
            send, require = transport.send, transport.require
        self._sender = Sender(exchange, send, on_sent, self._tasks, require)
        adapter = None if dialect.plain else DialectAdapter(dialect, stream, self._callbacks, hooks_of_host)
        self._connection = connection = dialect.connect() if adapter is None else adapter.connection
        protocol = HostProtocol(merges=dialect.merges)
        self._control = Control(protocol, self._callbacks, self._sender, self._tasks, connection.to_agent)
        self._takeover: Takeover | None = None
        if transport is None:
            self._router = Router(stream, on_received, self._control, adapter)
        else:
            self._takeover = Takeover(transport, self._callbacks, self._control, self._tasks)
            self._router = TakeoverRouter(transport, on_received, self._control, self._takeover)
        self._reading = Reading(self._router, self._control, self.process)
        self._ready = self._reading.ready
        self._prompts = Prompts(
            self._sender, self._reading, hooks_of_host, connection.to_agent, argv or (), verbatim=verbatim_prompts
        )
        # Functions that aclose() awaits. Each takes a number of seconds. Empty until the session begins to close.
        self._ending: list[Callable[[float], Awaitable[None]]] = []

    def __repr__(self) -> str:
        state = "closed" if self._sender.closed else "open" if self._sender.entered else "not entered"
        run = "nothing under way" if self._reading.run.over else "a run under way"
        stream = "" if self.process is None else f", {self.process!r}"
        return f"<Session {state}: {run}{stream}>"

    @property
    def info(self) -> InitializeResponse | None:
        """The CLI's answer to ``initialize``, sent by the session or the CLI's owner. None until the answer arrives."""
        return self._info if self._takeover is None else self._takeover.info

    @property
    def guards(self) -> tuple[Guard, ...]:
        """For ``can_use_tool`` and each hook: whether the CLI confirmed it, and how often the CLI called it."""
        return self._callbacks.guards

    # --- enter and close

    async def __aenter__(self) -> Self:
        if self._sender.entered or self._sender.closed:
            raise HandleError("a session can be entered only once, and not after it was closed; open another one")
        self._home = EventLoopRef()
        self._sender.start()
        self._asking = Lock()
        if self._opens is not None:
            assert self.process is not None
            await self.process.__aenter__()
        try:
            if self._transport is not None and self._takeover is not None:
                assert isinstance(self._router, TakeoverRouter)
                port = SessionPort(self._router, self._callbacks, self._control, self._reading)
                self._takeover.cli = await self._transport.open(port)
            self._begin()
            if self._opens is not None and self._dialect.initializes:
                await self._open(self._opens)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _begin(self) -> None:
        self._tasks.remember_context()
        if self.process is not None:
            _ = self.process.pid  # raises if the process is not started
        if self._takeover is not None:
            self._takeover.begin(self._reading)
        self._router.start(ends_with_stream=self._opens is not None)
        for name, server in self._callbacks.mcp_servers.items():
            self._control.connect(name, server)
        if self._takeover is not None:
            self._takeover.answer_open()
        self._tasks.start(self._reading.read_ahead, "claude-wire-reader")

    async def aclose(self) -> None:
        """End the session: there are no more callbacks, answers or messages. A second call does nothing.

        If the session started its process, it terminates the process. It first interrupts the current turn and cancels
        the queued prompts, because the CLI would otherwise finish the turn. The session also closes its MCP servers,
        and cancels an ``aclose()`` that takes longer than 5 seconds. Unread messages stay in the stream for its owner
        or the next session; the next session skips control requests that this session already handled.

        Cancellation by anyio or trio does not cut this call short. asyncio's ``Task.cancel()`` does if the session uses
        a stream that the caller owns: the callbacks then end later.
        """
        home = self._home
        is_here = home is None or home.runs_here()
        if is_here:
            self._begin_to_close()
        else:
            self._leave()
        try:
            # A second caller waits until the first call finishes.
            if self._opens is not None and self.process is not None:
                await self.process.aclose()
            if self._transport is not None:
                await self._transport.aclose()
        finally:
            # asyncio's Task.cancel() interrupts this wait in spite of the shield. The tasks then end later.
            if is_here and (home is None or await home.can_wait()):
                for wait in self._ending:
                    with cancel_scope(shield=True):
                        await wait(GRACE_SECONDS)

    def __del__(self) -> None:
        if self._home is not None:
            self._leave()

    def _leave(self) -> None:
        """Close the session from outside its event loop. If the loop does not run, abandon the tasks."""
        assert self._home is not None
        if self._sender.closed or self._home.foreign or self._home.call_soon(self._begin_to_close):
            return
        self._stop()
        self._tasks.abandon()
        with suppress(RuntimeError):  # a step may still be waiting in the loop
            self._router.close()

    def _stop(self) -> None:
        """Stop sending. If the session started its process, interrupt the current turn."""
        runs = None if self._opens is None else self.process
        self._sender.close(
            None if runs is None else interrupt_before_close(self._connection.dialect, self._control.requests, runs)
        )

    def _begin_to_close(self) -> None:
        if self._sender.closed:
            return
        self._stop()
        self._control.requests.fail("the session was closed")
        self._router.close()
        self._control.drop_servers([*self._control.connected])
        self._tasks.cancel()
        self._ending = [self._tasks.wait, self._control.end_servers]

    # --- send

    async def _open(self, request: InitializeRequest) -> None:
        """Send ``initialize`` to the process that this session started."""
        await self.initialize(request)

    async def initialize(
        self, request: InitializeRequest | None = None, *, timeout: float | None = None
    ) -> InitializeResponse:
        """Send ``initialize``, with the session's callbacks added to ``request``. :func:`open_session` calls this.

        Raises:
            RequestError: the CLI does not answer, did not register the hooks, or cannot do ``on_failure="block"``.
            ValueError: both ``request`` and the session have hooks, MCP servers or dialogs.
            DialectError: ``request`` is given, but the dialect has no ``initialize``. (Without ``request``, this method
                sends nothing in such a dialect.)
        """
        if self._transport is not None:
            raise HandleError("the program that owns the CLI has sent initialize; session.info is the answer")
        if not self._dialect.initializes:
            if request is not None:
                raise DialectError(self._dialect.name, "has no initialize")
            return InitializeResponse()
        request = self._callbacks.complete(request or InitializeRequest())
        self._prompts.structured |= request.jsonSchema is not None
        self._info = info = await self.request(request, timeout=timeout)
        self._callbacks.confirm_hooks(info)
        return info

    async def query(
        self, prompt: Prompt | AsyncIterable[Prompt], *, uuid: str | None = None, session_id: str = ""
    ) -> None:
        """Send a prompt: text, content blocks, a whole :class:`UserMessage`, or an async iterable of these.

        ``query`` does not wait for the answer. The CLI queues prompts sent during a turn, and may merge them. Each item
        from an iterable is sent as soon as the iterable yields it.

        Args:
            uuid: the message's uuid, for :class:`~claude_wire.messages.CancelAsyncMessageRequest` and the result's
                ``user_message_uuids``. None: the :class:`UserMessage`'s uuid, or a random one. The CLI does not start a
                turn for a uuid that it already received, and reports each prompt's state in ``command_lifecycle``
                messages.
            session_id: see :meth:`UserMessage.of`.

        Raises:
            ProcessInputError: the process has exited, or its input was closed.
        """
        await self._prompts.query(prompt, uuid, session_id, needs_uuid=self._transport is not None)

    async def send_again(self, lines: Sequence[bytes]) -> None:
        """Resend lines (prompts and answers) that a lost connection may not have delivered.

        Use this only with a transport whose other end ignores a prompt that it already received.
        """
        await self._prompts.send_again(lines)

    async def ask(
        self,
        prompt: Prompt,
        *,
        until: Until = "run",
        shells: float | None = 0.0,
        ceiling: float | None = CEILING_SECONDS,
    ) -> ResultMessage:
        """Send a prompt, skip all messages until its run ends, and return the last result.

        After the prompt's own result, the run continues while subagents work. When a subagent ends, a new turn starts
        and has its own result; ``ask`` returns the last of these results (see :meth:`receive_run`). Calls run in order:
        a prompt is sent after all earlier calls end. A prompt without a uuid gets a random one. ``ask`` skips the
        results of other prompts. (This is impossible with an agent that merges prompts but does not name them in its
        results.) No other task may iterate during the call.

        Args:
            until: ``"turn"`` returns the prompt's own result as soon as it arrives. Subagents then continue to work.
            shells, ceiling: seconds to wait, as for :meth:`receive_run`.

        Raises:
            HandleError: another task is iterating, or a callback of this session calls ``ask`` (the turn that waits
                for the callback could never end). Nothing is sent.
            ValueError: this session already sent a prompt with this uuid, or ``shells`` is set for ``until="turn"``.
            TurnError: a turn of the run failed, or subagents were stopped, for instance by a budget
                (:class:`~claude_wire.errors.SubagentStoppedError`). ``ask`` raises the first error when the run ends.
            PromptError: no turn answers the prompt within ``ceiling`` seconds. It is a
                :class:`~claude_wire.errors.PromptAnsweredError` if the CLI knows the uuid from before the session was
                resumed, and a :class:`~claude_wire.errors.PromptCancelledError` if the prompt was removed from the
                queue.
            SessionEndedError: the output ended before the result, or while subagents were working.
        """
        wait = Wait.of_prompt(until, shells, ceiling)
        self._sender.require_open()
        prompt = message_of(prompt)
        if self._tasks.current is not None:
            raise HandleError("ask() in a callback would wait for its own turn; send a prompt with query()")
        async with self._asking:
            return await self._prompts.ask(prompt, wait, until)

    async def request(self, request: ControlRequestBody[A], *, timeout: float | None = None) -> A:
        """Send a control request and return its answer, typed: ``await session.request(McpStatusRequest())``.

        Args:
            request: any request that a host may send. Its class names the answer's type (see ``ControlRequestBody``).
            timeout: seconds to wait; None for the session's ``request_timeout``. If the request times out or the caller
                is cancelled, the session withdraws the request and drops a late answer.

        Raises:
            RequestRefusedError: the answer is an error.
            RequestTimeoutError: no answer arrived in time.
            SessionEndedError: the session or the output ended without an answer.
            PayloadError: the answer does not fit the request.
            ProcessInputError: the process has exited, or its input was closed.
        """
        self._sender.require_open()
        if not isinstance(request, ControlRequestBody):
            raise TypeError(f"request() takes a request such as McpStatusRequest(), not {type_of(request)}")
        seconds = self._request_timeout if timeout is None else timeout
        require_seconds("timeout", seconds, or_zero=True)
        # If a callback calls this (say, to interrupt), the CLI may withdraw the request that the callback is answering.
        # The withdrawal cancels the callback, but only after the callback gets the answer to its own request.
        callback = self._tasks.current
        with nullcontext() if callback is None else callback.cancelled_later():
            answer = await self._control.requests.ask(request, seconds, self._router.notice)
        return request.parse_answer(answer.response or {})

    async def interrupt(self, *, cancel_queued: bool | None = None) -> InterruptResponse:
        """Stop the current turn. The turn then ends with a result. See :class:`InterruptRequest`.

        A callback may also call this. The CLI then withdraws the request that the callback is answering, so the
        callback is cancelled at its next await, and its answer is not sent.
        """
        self._sender.require_open()
        return await interrupt(self._connection, self.process, cancel_queued, self.request)

    async def status(self) -> StatusMessage:
        """Ask whether a turn is running, and how many prompts are queued.

        The answer has ``running``, ``session_id`` and ``queued_messages``. Only the dialects MIRIAD and JSON_RPC have a
        status request; in all others, the method raises :class:`DialectError`.
        """
        dialect = self._connection.dialect
        if dialect is AUTO:
            problem = "has no status request before the agent shows its dialect; pass the dialect"
            raise DialectError(dialect.name, problem)
        if not dialect.has_status:
            raise DialectError(dialect.name, "has no status request; Session.receive_run() tells when a run is over")
        return from_dict(StatusMessage, await self.request(GetStatusRequest()))

    async def set_model(self, model: str | None) -> SetModelResponse:
        """Change the model for later turns. None: the session's default.

        The CLI accepts any name. If there is no such model, the next turn fails: :meth:`ask` raises an
        :class:`~claude_wire.errors.ApiError` with the ``status`` 404. ``info.models`` lists models of the session.
        """
        if model is not None and not (isinstance(model, str) and model):
            raise TypeError(f"model must be a model's name, or None for the default, not {shown(model)}")
        return await self.request(SetModelRequest(model=model))

    async def set_permission_mode(self, mode: PermissionMode) -> SetPermissionModeResponse:
        """Change how the CLI decides permission questions. See :class:`SetPermissionModeRequest`.

        Raises:
            ValueError: there is no such mode. ``request(SetPermissionModeRequest(mode=...))`` sends any mode.
        """
        otherwise = "; for a mode that this version does not know: session.request(SetPermissionModeRequest(mode=...))"
        require_one_of("mode", mode, get_args(PermissionMode), otherwise)
        return await self.request(SetPermissionModeRequest(mode=mode))

    async def set_mcp_servers(self, servers: Mapping[str, McpServer | McpServerConfig]) -> McpSetServersResponse:
        """Replace all of the session's MCP servers, including those from earlier calls, with ``servers``.

        The session connects new servers in this process, and closes those that ``servers`` does not have. Servers from
        settings files stay. If the call fails without a clear answer (a timeout, a cancellation or an unreadable
        answer), the CLI may use either set, so the old and the new servers stay connected until the next call.

        Raises:
            HandleError: another program owns the CLI, the session is not open, another call is running, or a removed
                server is added again but its ``aclose()`` did not return within 10 seconds.
            ValueError: another server in this process has this name, or this server already has another name. First
                call this method without the old entry.
        """
        self._sender.require_open()
        return await self._control.set_servers(servers, self.request)

    # --- receive

    def __aiter__(self) -> Self:
        self._sender.require_open()
        return self

    async def __anext__(self) -> Message | InvalidLine:
        ready, reading = self._ready, self._reading
        while True:
            if not ready:
                await reading.step()
            message = ready.popleft()
            if not (reading.has_marks and reading.run_sees(message)):
                return message

    def batches(self) -> SessionBatches:
        """Iterate over non-empty lists of messages; see :meth:`MessageStream.batches`."""
        return SessionBatches(self, self._reading.next_batch)

    def receive_response(self, *, ceiling: float | None = CEILING_SECONDS) -> SessionMessages:
        """Iterate over the messages up to and including the turn's result. Later messages remain unread.

        Args:
            ceiling: seconds to wait while nothing is under way. ``end`` is then ``"ceiling"``. None: no limit. If the
                session has a process, the default also logs a warning when a wait begins and no prompt was sent.
        """
        messages = SessionMessages(self._reading.next_of_turn, Wait(ceiling))
        self._sender.require_open()
        return messages

    def receive_run(self, *, shells: float | None = 0.0, ceiling: float | None = CEILING_SECONDS) -> SessionMessages:
        """Iterate over the messages of the whole run, even after the first result, while background subagents work.

        There may be several results. A run is over when every prompt has its result, no subagent is working in the
        background, and the CLI reports that it is idle (if it reports its state at all). After the iteration, the
        returned object's ``end`` says why it ended, and ``error`` is the exception that :meth:`ask` would raise.

        Args:
            shells: total seconds to wait for background commands after everything else is done. The default is 0,
                because commands may run forever. None: no limit. When a command ends, a new turn starts.
            ceiling: seconds to wait for an idle CLI or another turn, while nothing is under way. None: no limit.
        """
        messages = SessionMessages(self._reading.next_of_run, Wait(ceiling, shells))
        self._sender.require_open()
        return messages

    async def end_input(self) -> None:
        """Close the process's input. The CLI then finishes its work and exits. Callbacks can no longer answer.

        Raises:
            TypeError: this session has neither a process nor a transport that can end the input.
        """
        if self.process is not None:
            await self.process.end_input()
        elif self._transport is not None and self._transport.end_input_line is not None:
            await self._sender.send(self._transport.end_input_line)
        else:
            raise TypeError("end_input() ends the input of a process, and this session has no process")


def _require_ends(stream: object, send: object, on_received: object, on_sent: object) -> None:
    """Check :class:`Session`'s first two arguments, and its functions that get bytes.

    Raises:
        TypeError: ``stream`` is neither a message stream nor a transport, a function cannot be called with bytes, or
            ``send`` is given together with a transport.
    """
    if isinstance(stream, SessionTransport):
        if send is not None:
            raise TypeError("send must be left out: a transport sends by itself")
    elif not isinstance(stream, MessageStream):
        raise TypeError(
            f"stream must be a Process, a MessageStream or a SessionTransport, not {type_of(stream)}; "
            "open_session(ClaudeOptions(...)) runs the CLI"
        )
    if send is not None:
        require_function("send", send, "the bytes of a line")
    if on_received is not None:
        require_function("on_received", on_received, "the bytes that were read", awaited=False)
    if on_sent is not None:
        require_function("on_sent", on_sent, "the bytes of a line", awaited=False)
