"""Run an agent over one pair of streams, on asyncio and trio.

One task reads, one writes the lines that could not be written without waiting, and one runs the author's function. Each
request of the host is answered in a separate task. ``protocol``, ``speech`` and ``questions`` build the messages.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Any

import anyio
import msgspec
from anyio import CancelScope, Event, get_cancelled_exc_class, to_thread

from claude_wire.agent.outcome import failure, result_of
from claude_wire.agent.protocol import AgentProtocol, Finished, Interrupted, InvalidInput, TurnStarted, TurnStopped
from claude_wire.agent.questions import Questions
from claude_wire.agent.requests import HostRequests
from claude_wire.agent.session import AgentSession, McpConnection, TurnRecord, add_usage, fill_missing
from claude_wire.agent.turn import PlainTurn, Turn
from claude_wire.control.answers import Answers
from claude_wire.control.requests import Requests
from claude_wire.messages import (
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    InitializeRequest,
    ResultMessage,
    Usage,
)
from claude_wire.protocol.questions import Event as QuestionEvent
from claude_wire.protocol.questions import Questions as HostQuestions
from claude_wire.protocol.requests import SentRequests
from claude_wire.streams.pipes import GONE, Sink, open_input, open_sink
from claude_wire.streams.tasks import Task, Tasks, cancelled_by_nobody
from claude_wire.support.arguments import function_called_by
from claude_wire.support.waiting import cancel_scope, move_on_after

#: A turn waits before it writes more if more than this many bytes of output are waiting.
CROWDED_BYTES = 1024 * 1024
#: Number of bytes of waiting output at which the agent stops reading, because each line of a host may need an answer.
MAX_UNWRITTEN = 16 * 1024 * 1024
#: How many seconds the author's function may clean up after its turn was stopped.
CLEANUP_SECONDS = 2.0
#: How many seconds to wait before exit for unfinished answers, and for a host that does not read the output.
LAST_SECONDS = 5.0


class Service:
    """Connects an agent to one host. :func:`~claude_wire.agent.agent.service_of` creates it.

    Args:
        answer: the author's function.
        handlers: control request class -> the author's function that handles it.
        lifespan: see :class:`Agent`.
    """

    def __init__(
        self,
        protocol: AgentProtocol,
        answer: Callable[..., Any],
        handlers: dict[type, Callable[[Any], Any]],
        lifespan: Callable[[AgentSession], AbstractAsyncContextManager[Any]] | None,
    ) -> None:
        self.protocol: AgentProtocol = protocol
        self.session: AgentSession = protocol.session
        self._answer_prompt = answer
        self._lifespan = lifespan
        self._tasks = Tasks()
        self._answering = Tasks()
        # `_asked`: the host's control requests. `_sent`: the agent's control requests.
        self._asked = HostQuestions(remembers=False)
        self._sent = SentRequests()
        self.requests: Requests = Requests(self._sent, self._send, self._tasks, self.protocol.encode_control)
        self.questions: Questions = Questions(self.protocol, self.requests)
        self._host = HostRequests(self, handlers)
        self._answers = Answers(
            self._asked, self._host.find, self._send_first, self._answering, self.protocol.encode_control
        )
        # The number of unanswered initialize requests.
        self._initializing = 0
        self._turn: Turn | None = None
        self._turn_task: Task | None = None
        self._code: int | None = None
        # The exception that the input or the output raised, or None.
        self._error: Exception | None = None
        # `_broken`: the output failed or was closed. `_writing`: the writer task is writing.
        self._broken = self._writing = False
        #: True if one of the author's functions is still running when the agent exits, although it was cancelled.
        self.left_behind: bool = False
        # The cancel scope of run(). `_started` is True after the author's lifespan was entered.
        self._scope: CancelScope | None = None
        self._started = False
        self._sink: Sink | None = None
        self._pop_now = self.protocol.pop
        # The number of tasks that are waiting for `_moved`.
        self._waiters = 0
        # `_over`: the agent has no more work. `_moved`: a queue (prompts, requests, output) became shorter.
        # `_to_write`: output waits for the writer task.
        self._over, self._moved, self._to_write = Event(), Event(), Event()

    async def run(self, stdin: Any, stdout: Any) -> int:
        """Serve the host until the input ends. Return the exit code.

        Args:
            stdin: a descriptor, or any source that a :class:`~claude_wire.MessageStream` takes.
            stdout: a descriptor, or an anyio ``ByteSendStream``.

        Raises:
            Exception: an exception of ``stdin`` or ``stdout``, unless it means that the other end was closed.
        """
        self._tasks.remember_context()
        self._answering.remember_context()
        sink = self._sink = open_sink(stdout)
        self._source: Any = open_input(stdin)
        with cancel_scope() as self._scope:
            await self._run(sink)
        if self._error is not None:
            raise self._error
        return self.protocol.code if self._code is None else self._code

    async def _run(self, sink: Sink) -> None:
        async with AsyncExitStack() as stack:
            try:
                if self._lifespan is not None and self._code is None:
                    await stack.enter_async_context(self._lifespan(self.session))
                self._started = True
                self._tasks.start(self._write, "claude-wire-writer")
                self._tasks.start(self._read, "claude-wire-reader")
                await self._over.wait()
                if self._code is None:
                    await self._answering.wait(LAST_SECONDS)
                # Wait until the host has read all output, without limit unless a signal stopped the agent.
                with move_on_after(None if self._code is None else LAST_SECONDS):
                    await self._until(lambda: self._broken or not (self.protocol.unwritten or sink.rest))
            finally:
                self._gone(self._code)
                self._tasks.cancel()
                self._answering.cancel()
                with cancel_scope(shield=True):
                    await self._tasks.wait(CLEANUP_SECONDS)
                    await self._answering.wait(CLEANUP_SECONDS)
                self.left_behind = len(self._tasks) + len(self._answering) > 0
                sink.close()

    # --- called by signals and by turns

    def interrupt(self) -> None:
        """Interrupt the turn, and end the agent. This handles SIGINT."""
        self._end(self.protocol.dialect.interrupted_code)
        if self._scope is not None and not self._started:
            self._scope.cancel()
        self.interrupt_turn(self.protocol.turn)

    def terminate(self) -> None:
        """End the agent without writing another frame. This handles SIGTERM."""
        self._gone(143)
        self._over.set()
        if self._scope is not None:  # an author's lifespan that has begun gets time to end
            self._scope.deadline = anyio.current_time() + (2 * CLEANUP_SECONDS if self._started else 0)

    def interrupt_turn(self, record: TurnRecord | None) -> None:
        if record is not None and record is self.protocol.turn:
            self._withdraw()
            self._handle(self.protocol.interrupt())

    def start(self, function: Callable[[], Any]) -> None:
        """Run a function in a task. The agent waits for the task, for at most :data:`LAST_SECONDS`, before it ends."""
        self._answering.start(function, "claude-wire-answer")

    def end_input(self) -> None:
        """Read no more input. This handles ``end_session``."""
        self._handle(self.protocol.end_input())
        self.requests.fail("the session has ended")

    def _end(self, code: int) -> None:
        self._code = code
        self.protocol.withdraw()
        self.end_input()

    def _withdraw(self) -> None:
        # If a question may still be in the output queue, its withdrawal must not overtake it.
        write = self.protocol.write if self.protocol.unwritten else self.protocol.write_first
        for line in self.requests.withdraw_waiting():
            write(line)

    # --- input

    async def _read(self) -> None:
        try:
            while not self.protocol.input_ended:
                await self._until(self._has_room)
                data = await self._source.receive()
                if not data:
                    break
                self._handle(self.protocol.feed(data))
        except GONE:
            pass
        except Exception as error:
            self._error = error
        self._handle(self.protocol.end_input())
        self.requests.fail("the host has ended its input")

    def _has_room(self) -> bool:
        asking = self.requests.waiting
        if self.protocol.full(asking=asking):
            if asking:  # the answer may arrive after more prompts, so agent and host would wait for each other
                self.requests.fail_waiting("too many prompts wait before the answer", None)
            return False
        return self.protocol.unwritten < MAX_UNWRITTEN and not self._answers.is_full()

    def _handle(self, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, TurnStarted):
                self._turn = turn = Turn(self, event.turn)
                self._turn_task = self._tasks.start(
                    partial(self._answer, turn), "claude-wire-turn", partial(self._ended, turn)
                )
            elif isinstance(event, Interrupted):
                self._withdraw()
                self.protocol.write_first(self.protocol.encode_control(event.answer))
            elif isinstance(event, TurnStopped):
                assert self._turn is not None
                self._tasks.start(partial(self._stop, self._turn, self._turn_task), "claude-wire-stop")
            elif isinstance(event, ControlRequest):
                if isinstance(event.request, InitializeRequest):
                    self._initializing += 1
                    self._answering.start(
                        partial(self._initialize, event, event.request), "claude-wire-initialize", self._was_initialized
                    )
                else:
                    question = self._asked.take(event)
                    if question is not None:
                        self._answers.answer(question)
            elif isinstance(event, ControlResponse):
                sent = self._sent.resolve(event)
                if sent is not None:
                    self.requests.answered(sent)
            elif isinstance(event, ControlCancelRequest):
                question = self._asked.find(event.request_id)
                if question is not None:
                    self._asked.settle(question, QuestionEvent.WITHDRAW)
                    self._answers.withdrawn(question)
            elif isinstance(event, InvalidInput):
                print(event.text, file=sys.stderr, flush=True)
            elif isinstance(event, Finished):
                self._over.set()
        self.flush()

    async def _initialize(self, request: ControlRequest, body: InitializeRequest) -> None:
        servers: list[McpConnection] = []
        try:
            servers = self.session.open(body)
            for server in servers:
                await self.questions.greet(server)
            response = ControlResponse.success(request.request_id, await self._host.initialize(body))
            line = self.protocol.encode_control(response)
        except Exception as error:
            line = self._answers.failure(request.request_id, error, lambda: "the handler of InitializeRequest")
        await self._send_first(line)
        for server in servers:
            if server.status == "pending":
                await self.questions.connect(server)

    def _was_initialized(self) -> None:
        self._initializing -= 1
        self.moved()

    # --- turns

    async def _answer(self, turn: Turn) -> None:
        await self._until(lambda: not self._initializing)
        record = turn.record
        if record.stopped is not None:
            return
        hooked = await self.questions.hooks("UserPromptSubmit", {"prompt": turn.text})
        if record.stopped is not None:
            return
        self.protocol.open_turn(record)
        self.flush()
        try:
            if hooked.refusal is not None or hooked.stop:
                returned: Any = hooked.refusal or hooked.stop_reason
            else:
                turn.hook_context += hooked.context
                returned = await self.call(self._answer_prompt, turn)
            turn.result = result_of(returned, turn.finished(), self.session.schema)
            if record.stopped is None:
                await self.questions.hooks("Stop", {"stop_hook_active": False})
        except (Exception, SystemExit) as error:
            turn.result = _failed(error, self._answer_prompt)
        except get_cancelled_exc_class() as error:
            if not cancelled_by_nobody():
                raise
            turn.result = _failed(error)  # a future that the function awaited was cancelled, not this task

    def _ended(self, turn: Turn) -> None:
        """Write the result of a turn whose task has ended, or did not end in time."""
        record = turn.record
        if self.protocol.turn is not record:
            return
        self.protocol.open_turn(record)
        if record.stopped is None and turn.result is None:
            record.stopped = "ended"  # the task was cancelled from outside
        if record.stopped is not None:
            reason = turn.abort(by_user=record.stopped == "interrupt")
            result = failure("the turn was interrupted", reason)
        else:
            turn.finished()
            assert turn.result is not None
            result = turn.result
        try:
            events = self.protocol.end_turn(record, self._completed(turn, result))
        except Exception as error:  # the author's result or usage cannot be encoded as JSON
            bare = msgspec.structs.replace(_failed(error, self._answer_prompt), duration_api_ms=0, num_turns=0)
            events = self.protocol.end_turn(record, bare)
        self.moved()
        self._handle(events)

    def _completed(self, turn: Turn, result: ResultMessage) -> ResultMessage:
        """Return the result. Fields that are None get the turn's counts and costs."""
        spent, used, total = turn.spent.by_model, self.session.used, turn.spent.total
        for name, one in spent.items():
            used[name] = add_usage(used.get(name), one)
        self.session.cost_usd += total.costUSD or 0
        given: dict[str, Any] = {
            "duration_api_ms": 0,
            "num_turns": turn.speech.messages,
            "total_cost_usd": self.session.cost_usd,
            "usage": Usage(
                input_tokens=total.inputTokens,
                output_tokens=total.outputTokens,
                cache_read_input_tokens=total.cacheReadInputTokens,
                cache_creation_input_tokens=total.cacheCreationInputTokens,
            ),
            "modelUsage": dict(used),
            "permission_denials": turn.spent.denials,
            "model_usage_since_last_result": spent or None,
        }
        return fill_missing(result, given)

    async def _stop(self, turn: Turn, task: Task | None) -> None:
        """Cancel the author's function. If it does not end within :data:`CLEANUP_SECONDS`, end its turn anyway."""
        if task is not None:
            task.interrupt()
            with move_on_after(CLEANUP_SECONDS):
                await task.wait()
            if not task.done:
                task.cancel()
                self._ended(turn)

    async def call(self, function: Callable[..., Any], argument: Any) -> Any:
        """Call one of the author's functions: an async function in this task, a plain one in a thread."""
        # An AsyncMock and a compiled async function are marked as async, but the __call__ of their types is plain.
        if any(map(inspect.iscoroutinefunction, (function, function_called_by(function)))):
            return await function(argument)
        if isinstance(argument, Turn):
            argument = PlainTurn(argument)
        returned = await to_thread.run_sync(function, argument, abandon_on_cancel=True)
        return await returned if inspect.isawaitable(returned) else returned

    # --- output

    def flush(self) -> bool:
        """Write as much as possible without waiting; the writer task writes the rest. Return True if all is written."""
        sink = self._sink
        if sink is None or self._broken or self._writing:
            return False
        try:
            if sink.write_now(self._pop_now):
                if self._waiters:
                    self.moved()
                return True
        except GONE:
            self._gone()
            return False
        if self.protocol.unwritten or sink.rest:
            self._to_write.set()
        return False

    @property
    def crowded(self) -> bool:
        """True while so much output waits that a turn has to wait."""
        return self.protocol.unwritten > CROWDED_BYTES

    async def until_uncrowded(self) -> None:
        """Wait until less output waits, or until the output is closed."""
        await self._until(lambda: self._broken or not self.crowded)

    async def _until(self, ready: Callable[[], bool]) -> None:
        """Wait until ``ready()`` is true. Check again whenever a queue (prompts, requests, output) shrinks."""
        self._waiters += 1
        try:
            while not ready():
                if self._moved.is_set():
                    self._moved = Event()
                await self._moved.wait()
        finally:
            self._waiters -= 1

    async def _write(self) -> None:
        while True:
            await self._to_write.wait()
            self._to_write = Event()
            self._writing = True
            try:
                assert self._sink is not None
                await self._sink.write(self._pop)
            except GONE:
                self._gone()
                return
            except Exception as error:
                self._error = error
                self._gone()
                return
            finally:
                self._writing = False
                self.moved()

    def _pop(self) -> bytes | None:
        if self._waiters and self.protocol.unwritten < CROWDED_BYTES // 2:
            self.moved()
        return self.protocol.pop()

    def _gone(self, code: int | None = None) -> None:
        """Stop writing, and end the agent without a message: the host no longer reads, or a signal stops the agent."""
        self._broken = True
        self.moved()
        self._end(self.protocol.code if code is None else code)
        self._handle(self.protocol.interrupt("ended"))
        self.protocol.drop_output()

    async def _send(self, line: bytes) -> None:
        self.protocol.write(line)
        self.moved()
        self.flush()

    def moved(self) -> None:
        """Wake the tasks that wait in :meth:`_until`, because a queue may have become shorter."""
        self._moved.set()

    async def _send_first(self, line: bytes) -> None:
        self.protocol.write_first(line)
        self.moved()
        self.flush()


def _failed(error: BaseException, function: object = None) -> ResultMessage:
    print_exception(error, function)
    return failure(f"{type(error).__name__}: {error}")


def print_exception(error: BaseException, function: object = None) -> None:
    """Print an exception of the author's code on standard error. The traceback shows only the author's frames.

    Args:
        function: the author's function. If the traceback has no frame of the author, it shows this function.
    """
    frames = traceback.extract_tb(error.__traceback__)
    ours = (os.path.dirname(os.path.dirname(__file__)), os.path.dirname(anyio.__file__))
    theirs = [frame for frame in frames if not frame.filename.startswith(ours)]
    code = getattr(function, "__code__", None)
    if not theirs and code is not None:
        theirs = [traceback.FrameSummary(code.co_filename, code.co_firstlineno, code.co_name)]
    print("".join(traceback.format_list(theirs)), end="", file=sys.stderr)
    print("".join(traceback.format_exception_only(type(error), error)), end="", file=sys.stderr, flush=True)
