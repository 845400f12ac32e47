"""Run the CLI: :func:`open_session` runs it with a session, and :func:`ask` runs it for one prompt.

Both functions split their arguments into CLI flags, process arguments and session arguments.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from claude_wire.dialects import CLASSIC, STREAM_JSON, Dialect, dialect_of
from claude_wire.errors import DialectError, ProcessInputError, SessionEndedError, SessionNotFoundError
from claude_wire.limits import DEFAULT_SPILL_BYTES
from claude_wire.messages import InitializeRequest, ResultErrorDuringExecution
from claude_wire.process.command_line import resumed_session
from claude_wire.process.options import ClaudeOptions
from claude_wire.process.process import (
    GRACE_SECONDS,
    Process,
    ProcessArguments,
    exchange_of,
    open_process,
    require_environment,
)
from claude_wire.process.stored_sessions import folder_without_session, is_session_id, projects_folder
from claude_wire.session.arguments import PLACES, REQUEST_SECONDS, McpServer
from claude_wire.session.callbacks import CanUseTool, Dialog, Elicit, HookMatcher
from claude_wire.session.iterators import Until, Wait
from claude_wire.session.prompts import Prompt, message_of
from claude_wire.session.session import Session
from claude_wire.support.arguments import tells_where, type_of
from claude_wire.support.errors import initialize_hint

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from claude_wire.messages import ResultMessage
    from claude_wire.native.overflow import Overflow
    from claude_wire.process.child import StderrTo, StrPath

#: Environment variable that makes the CLI report its state in messages marked ``sdk_host_only``.
STATE_VARIABLE = "CLAUDE_CODE_SDK_READS_SESSION_STATE"


class CallbackArguments(TypedDict, total=False):
    """The keyword arguments of :func:`open_session` that every :class:`Session` takes."""

    can_use_tool: CanUseTool | None
    hooks: Mapping[str, Sequence[HookMatcher]] | None
    mcp_servers: Mapping[str, McpServer] | None
    on_elicitation: Elicit | None
    dialogs: Mapping[str, Dialog] | None
    callback_timeout: float | None
    request_timeout: float
    verbatim_prompts: bool
    on_received: Callable[[bytes], object] | None
    on_sent: Callable[[bytes], object] | None


class SessionArguments(ProcessArguments, CallbackArguments, total=False):
    """The keyword arguments of :func:`open_session`, to annotate functions that pass them on."""

    initialize: InitializeRequest | None
    dialect: Dialect | Literal["auto"]


async def ask(
    prompt: Prompt,
    options: ClaudeOptions | Sequence[StrPath] | None = None,
    *,
    until: Until = "run",
    shells: float | None = 0.0,
    **arguments: Unpack[SessionArguments],
) -> ResultMessage:
    """Run the CLI for one prompt, and return the last result: ``(await ask("What is 2 + 2?")).result``.

    The call waits until the run is over, including background subagents and the turn that follows when each subagent
    ends. By the time the call returns, raises or is cancelled, the CLI and its background commands have exited. To see
    the messages or to send more prompts, use :func:`open_session`. In code without async, use ``claude_wire.sync.ask``.

    Args:
        prompt: text, content blocks or a whole :class:`~claude_wire.UserMessage`.
        options: the CLI's flags, or a whole command line. None: ``ClaudeOptions()``.
        until: ``"turn"`` returns the prompt's result as soon as it arrives; subagents stop when the CLI exits.
        shells: seconds to wait for background commands, as for :meth:`Session.receive_run`.

    All other arguments are the same as for :func:`open_session`, such as ``can_use_tool``, ``hooks``, ``mcp_servers``
    and ``cwd``.

    Raises:
        TurnError: a turn failed; the subclass says how. See :meth:`Session.ask`.
        PromptError, SessionEndedError: no turn answered the prompt. See :meth:`Session.ask`.
        CLINotFoundError, ProcessError, RequestError, OSError: the session did not start. See :func:`open_session`.
    """
    message = message_of(prompt)  # refuse wrong arguments before the CLI is started
    Wait.of_prompt(until, shells, None)
    async with open_session(ClaudeOptions() if options is None else options, **arguments) as session:
        return await session.ask(message, until=until, shells=shells)


@tells_where(PLACES)
def open_session(
    options: ClaudeOptions | Sequence[StrPath],
    *,
    initialize: InitializeRequest | None = None,
    can_use_tool: CanUseTool | None = None,
    hooks: Mapping[str, Sequence[HookMatcher]] | None = None,
    mcp_servers: Mapping[str, McpServer] | None = None,
    on_elicitation: Elicit | None = None,
    dialogs: Mapping[str, Dialog] | None = None,
    callback_timeout: float | None = None,
    request_timeout: float = REQUEST_SECONDS,
    verbatim_prompts: bool = False,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    extra_env: Mapping[str, str] | None = None,
    user: str | int | None = None,
    stderr: StderrTo = None,
    overflow: Overflow = "pause",
    spill_limit: int = DEFAULT_SPILL_BYTES,
    grace: float = GRACE_SECONDS,
    start_new_session: bool = False,
    on_received: Callable[[bytes], object] | None = None,
    on_sent: Callable[[bytes], object] | None = None,
    dialect: Dialect | Literal["auto"] = STREAM_JSON,
) -> Session:
    """Run the CLI with a session: ``async with open_session(ClaudeOptions(...)) as session``.

    Entering the block spawns the process, sends ``initialize`` and waits for the answer. Leaving the block, even by an
    exception, terminates the process.

    Args:
        options: the CLI's flags, or a whole command line. With ``can_use_tool``, ``permission_prompt_tool="stdio"`` is
            added to the flags if they do not set it. A command line must then have ``--permission-prompt-tool stdio``.
        initialize: additional fields for the ``initialize`` request, such as agents, a system prompt or a JSON schema.
        extra_env: merged into the environment, as for :func:`~claude_wire.open_process`, which also adds the active
            OpenTelemetry span. Like claude-agent-sdk, this function adds ``CLAUDE_CODE_SDK_READS_SESSION_STATE=1``
            unless ``extra_env`` or ``env`` sets the variable: the CLI then reports when it is idle, and
            :meth:`Session.receive_run` knows that a run is over.
        cwd, env, user, stderr, overflow, spill_limit, grace, start_new_session: as for
            :func:`~claude_wire.open_process`.

    All other arguments are the same as for :class:`Session`.

    Raises:
        ValueError: the command line lacks a flag that a callback needs; the CLI would never call the callback.
        CLINotFoundError: the CLI was not found.
        SessionNotFoundError: on entering the block, if ``resume`` is not the id of a conversation. If the CLI runs on
            this machine and its folder is known, no process is started.
        TurnError, ProcessError: on entering the block, if the CLI exits instead of answering, for instance because it
            refuses to resume a session.
        RequestError: on entering the block, if the CLI does not answer ``initialize`` in time, or refuses it.
        OSError: on entering the block, if the process cannot be spawned.
    """
    session: CallbackArguments = {
        "can_use_tool": can_use_tool,
        "hooks": hooks,
        "mcp_servers": mcp_servers,
        "on_elicitation": on_elicitation,
        "dialogs": dialogs,
        "callback_timeout": callback_timeout,
        "request_timeout": request_timeout,
        "verbatim_prompts": verbatim_prompts,
        "on_received": on_received,
        "on_sent": on_sent,
    }
    spoken = dialect_of(dialect)
    if not spoken.initializes:
        if isinstance(options, ClaudeOptions) and spoken is not CLASSIC:
            raise TypeError(f"ClaudeOptions are flags of the CLI; for {spoken.name} pass a command line as a list")
        if initialize is not None:
            raise DialectError(spoken.name, "has no initialize")
    if not isinstance(initialize, (InitializeRequest, type(None))):
        raise TypeError(f"initialize must be an InitializeRequest(...), not {type_of(initialize)}")
    require_environment("env", env)
    require_environment("extra_env", extra_env)
    argv = command_line(options, asks=can_use_tool is not None and spoken is not CLASSIC)
    variables = {STATE_VARIABLE: "1"} if spoken.initializes and STATE_VARIABLE not in (env or {}) else {}
    process = open_process(
        argv,
        cwd=cwd,
        env=env,
        extra_env={**variables, **(extra_env or {})},
        user=user,
        stderr=stderr,
        overflow=overflow,
        spill_limit=spill_limit,
        grace=grace,
        start_new_session=start_new_session,
    )
    if isinstance(options, ClaudeOptions) and options.cli_path is not None:
        exchange = exchange_of(process)
        exchange.settings = exchange.settings._replace(has_cli_path=True)
    return _ProcessSession(process, initialize or InitializeRequest(), dialect=spoken, **session)


def command_line(options: object, *, asks: bool) -> Sequence[StrPath]:
    """Return the command line for :class:`ClaudeOptions`. A list of arguments is returned unchanged.

    Args:
        asks: True if the CLI must ask its host for permission.

    Raises:
        TypeError: ``options`` is neither ClaudeOptions nor a list.
    """
    if type(options).__name__ == "ClaudeAgentOptions":
        raise TypeError(
            "open_session takes ClaudeOptions(...), not ClaudeAgentOptions of claude-agent-sdk: pass flags to "
            "ClaudeOptions and callbacks, cwd and env to open_session, all under the same names; or pass "
            "ClaudeAgentOptions to claude_wire.integrations.agent_sdk.WireTransport"
        )
    kind = type_of(options)
    if isinstance(options, (str, bytes, Mapping)) or not isinstance(options, (ClaudeOptions, Sequence)):
        hint = "; shlex.split() makes a list of a command line" if isinstance(options, str) else ""
        raise TypeError(
            f"open_session takes ClaudeOptions(model=...), or a command line as a list of arguments, not {kind}{hint}"
        )
    if not isinstance(options, ClaudeOptions):
        return cast("Sequence[StrPath]", options)
    if asks and options.permission_prompt_tool is None:
        options = dataclasses.replace(options, permission_prompt_tool="stdio")
    return options.argv()


class _ProcessSession(Session):
    """A session that spawns its process on entry, and terminates the process on close."""

    def __init__(self, process: Process[Any], opens: InitializeRequest, **options: Any) -> None:
        super().__init__(process, **options)
        self._opens = opens

    async def __aenter__(self) -> Self:
        assert self.process is not None
        settings = exchange_of(self.process).settings
        resumed = resumed_session(settings.argv) if settings.user is None else None
        env = os.environ if settings.env is None else settings.env
        if resumed is not None and (folder := folder_without_session(resumed, env)) is not None:
            said = f"No conversation found with session ID: {resumed}"
            raise SessionNotFoundError(ResultErrorDuringExecution(is_error=True, errors=[said]), str(folder))
        if resumed is not None and is_session_id(resumed) and "--fork-session" not in settings.argv:
            self._reading.resumes = resumed
        try:
            return await super().__aenter__()
        except SessionNotFoundError as error:
            folder = projects_folder(env) if settings.user is None else None
            raise SessionNotFoundError(error.result, None if folder is None else str(folder)) from error
        except ProcessInputError as error:  # the CLI exited, or closed its input, before initialize was sent
            raise SessionEndedError("initialize", f"{error}{initialize_hint('initialize')}") from error

    async def _open(self, request: InitializeRequest) -> None:
        try:
            await super()._open(request)
        except (SessionEndedError, ProcessInputError):
            # The process may have closed only its input. If its output ends with an error, raise that error instead.
            await self._reading.skip_to_end(GRACE_SECONDS)
            raise

    if not TYPE_CHECKING:  # a type checker must see that a session supports neither `with` nor `await`

        def __await__(self) -> None:
            raise TypeError("use `async with open_session(...) as session`, not `await`")

        def __enter__(self) -> None:
            raise TypeError("use `async with`; in code without async, use claude_wire.sync.open_session")

        def __exit__(self, *_: object) -> None:
            pass
