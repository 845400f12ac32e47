"""A transport for claude-agent-sdk, to pass as ``transport=`` instead of the SDK's own transport.

::

    from claude_agent_sdk import ClaudeAgentOptions, query
    from claude_wire.integrations.agent_sdk import WireTransport

    options = ClaudeAgentOptions(model="sonnet")
    async for message in query(prompt=prompt, options=options, transport=WireTransport(prompt, options)):
        ...

This module relies on private names of claude-agent-sdk. The SDK prepares options only for its own transport, so the
module repeats the steps of ``query()`` and ``SubprocessCLITransport.connect()``. It inherits the code that builds the
command line and finds the CLI. Comments name the source of repeated code; tests compare it with the original, and fail
when the SDK changes.
"""

# The functions of the SDK's transport have no public names.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import dataclasses
import logging
import os
import re
import shutil
import weakref
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread

from claude_wire.codec.decoder import Decoder
from claude_wire.errors import ByteBudgetError
from claude_wire.errors import ProcessError as WireError
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES, DEFAULT_SPILL_BYTES
from claude_wire.process.command_line import require_flags
from claude_wire.process.process import open_process
from claude_wire.process.tracing import join_trace, trace_context
from claude_wire.support.extras import install_extra
from claude_wire.support.internals import require_parts
from claude_wire.support.waiting import cancel_scope

try:
    import claude_agent_sdk
except ModuleNotFoundError as _error:
    if _error.name != "claude_agent_sdk":
        raise
    raise ImportError(
        f"claude_wire.integrations.agent_sdk needs claude-agent-sdk: {install_extra('agent-sdk')}",
        name="claude_agent_sdk",
    ) from _error

#: The supported versions of claude-agent-sdk: from the first version up to, but not including, the second.
SUPPORTED = (0, 2, 181), (0, 3)
#: The newest tested version.
TESTED = "0.2.189"


def _refuse(why: str) -> ImportError:
    first, beyond = (".".join(map(str, version)) for version in SUPPORTED)
    return ImportError(
        f"claude_wire.integrations.agent_sdk supports claude-agent-sdk >={first},<{beyond}; "
        f"{claude_agent_sdk.__version__} is installed{why}",
        name="claude_agent_sdk",
    )


if not SUPPORTED[0] <= tuple(map(int, re.findall(r"\d+", claude_agent_sdk.__version__)[:3])) < SUPPORTED[1]:
    raise _refuse("")

try:
    from claude_agent_sdk import ClaudeAgentOptions, CLIConnectionError, CLINotFoundError, ProcessError
    from claude_agent_sdk._internal._client_app import DERIVED_CLIENT_APP_ENV, EXPLICIT_CLIENT_APP_ENV
    from claude_agent_sdk._internal.session_resume import apply_materialized_options, materialize_resume_session
    from claude_agent_sdk._internal.session_store_validation import validate_session_store_options
    from claude_agent_sdk._internal.sessions import _get_projects_dir
    from claude_agent_sdk._internal.transport.subprocess_cli import (
        _SDK_READS_SESSION_STATE_ENV,
        SubprocessCLITransport,
    )
    from claude_agent_sdk.types import _configure_can_use_tool

    require_parts(
        "claude-agent-sdk",
        TESTED,
        SubprocessCLITransport("", ClaudeAgentOptions()),
        *("_build_command", "_check_claude_version", "_cli_path", "_cwd", "_derive_client_app", "_exit_error"),
        *("_find_cli", "_options", "_prompt", "_ready", "_reject_windows_batch_cli", "_version_checked"),
    )
except ImportError as _error:
    raise _refuse(f", whose internals differ: {_error}") from _error

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable

    from claude_agent_sdk._internal.session_resume import MaterializedResume
    from typing_extensions import Self

    from claude_wire.messages import InvalidLine
    from claude_wire.process.process import Process
    from claude_wire.streams.message_stream import Batches

__all__ = ["SUPPORTED", "WireProcessError", "WireTransport"]

_log = logging.getLogger("claude_wire")


class WireProcessError(ProcessError):
    """The SDK's ProcessError, with more details about the CLI's exit.

    If the CLI's output ended in the middle of a turn, ``__cause__`` is a :class:`~claude_wire.UnfinishedTurnError`, and
    the exit code may be 0. Otherwise ``__cause__`` is a :class:`~claude_wire.ProcessError`.

    Attributes:
        exit_code: the exit code. Negative if a signal killed the CLI: minus the signal's number. None if the CLI was
            still running when its output ended.
        stderr: a fixed sentence, as in the SDK.
        stderr_tail: the last 64 KiB of the CLI's standard error, as bytes. Empty without ``options.stderr``, because
            the CLI then writes to the host's standard error.
    """

    def __init__(self, message: str, exit_code: int | None = None, stderr: str | None = None) -> None:
        super().__init__(message, exit_code, stderr)
        self.stderr_tail = b""


class WireTransport(SubprocessCLITransport):
    """Runs the Claude Code CLI for ``claude_agent_sdk.query()`` and ``ClaudeSDKClient``.

    It differs from the SDK's own transport in four ways. The CLI's output is read even while the host is busy, so no
    output is lost. A line that is not one JSON object is skipped and reported, and the session continues. Lone
    surrogates are kept. If the output ends in the middle of a turn, that is an error even with exit code 0.

    Args:
        prompt: the same prompt as for ``query()``; None for a ``ClaudeSDKClient``. The SDK sends the prompt, not the
            transport.
        options: the same options as for ``query()`` or ``ClaudeSDKClient``.
        on_invalid: called with the :class:`~claude_wire.InvalidLine` of each skipped line. If it raises, the
            exception is logged.
        overflow, spill_limit: what happens when unread bytes exceed this process's byte budget, as for
            :func:`~claude_wire.open_process`. ``"error"`` ends the SDK's session.

    ``options.max_buffer_size`` is the limit for a line in bytes; by default 128 MiB. A longer line is skipped.

    Attributes:
        process: the running :class:`~claude_wire.Process`, for its pid and statistics; None while not connected.
        invalid_lines: how many lines were skipped since :meth:`connect`.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the options contradict each other. The message is the SDK's.
    """

    def __init__(
        self,
        prompt: str | AsyncIterable[dict[str, Any]] | None = None,
        options: ClaudeAgentOptions | None = None,
        *,
        on_invalid: Callable[[InvalidLine], object] | None = None,
        overflow: Literal["pause", "spill", "error"] = "pause",
        spill_limit: int = DEFAULT_SPILL_BYTES,
    ) -> None:
        if options is None:
            options = ClaudeAgentOptions()
        if not isinstance(options, ClaudeAgentOptions):
            raise TypeError(f"options must be ClaudeAgentOptions, not {type(options).__name__}")
        if on_invalid is not None and not callable(on_invalid):
            raise TypeError(f"on_invalid must be callable, not {type(on_invalid).__name__}")
        if overflow not in ("pause", "spill", "error"):
            raise ValueError(f"overflow must be 'pause', 'spill' or 'error', not {overflow!r}")
        validate_session_store_options(options)
        super().__init__("" if prompt is None else prompt, _with_permission_prompts(options))
        self._given = options
        self.process: Process[dict[str, Any]] | None = None
        self.invalid_lines: int = 0
        self._input_ended = False
        self._on_invalid = on_invalid
        self._overflow: Literal["pause", "spill", "error"] = overflow
        self._spill_limit = spill_limit
        self._batches: Batches[dict[str, Any]] | None = None
        self._resumed: _Resumed | None = None

    async def connect(self) -> None:
        """Start the CLI. If it is already running, do nothing.

        Raises:
            CLINotFoundError: the CLI was not found, or is not at ``options.cli_path``.
            CLIConnectionError: the working directory does not exist, or the CLI cannot be started.
            ValueError, TypeError: an option has a value that the SDK does not accept.
            RuntimeError: the session store failed.
        """
        if self.process is not None:
            return
        # From InternalClient.process_query and ClaudeSDKClient.connect, which do this only for their own transport.
        # Read the options here, not in the constructor: changes before connect() must count, as in the SDK.
        options = _with_permission_prompts(self._given)
        materialized = await materialize_resume_session(options)
        if materialized is not None:
            self._resumed = _Resumed(materialized, str(_get_projects_dir(options.env)))
            options = apply_materialized_options(options, materialized)
        try:
            super().__init__(self._prompt, options)
            await self._start()
        except BaseException:
            await self._remove_resumed()
            raise

    async def _start(self) -> None:
        # From SubprocessCLITransport.connect.
        if self._cli_path is None:
            self._cli_path = await anyio.to_thread.run_sync(self._find_cli)
        self._reject_windows_batch_cli(self._cli_path)
        argv = self._build_command()
        require_flags(argv, asks=self._options.can_use_tool is not None)
        limit = self._options.max_buffer_size
        decoder = Decoder(
            dict, max_line_bytes=DEFAULT_MAX_LINE_BYTES if limit is None else limit, on_invalid=self._invalid_line
        )
        try:
            process = open_process(
                argv,
                decoder,
                cwd=self._cwd,
                env=await self._environment(),
                user=self._options.user,
                # This is not a method, because the task that reads the lines would keep the transport alive.
                stderr="inherit" if self._options.stderr is None else partial(_stderr_line, self._options.stderr),
                overflow=self._overflow,
                spill_limit=self._spill_limit,
            )
            await process.__aenter__()
        except FileNotFoundError as error:
            if self._cwd and not os.path.exists(self._cwd):
                raise CLIConnectionError(f"Working directory does not exist: {self._cwd}") from error
            raise CLINotFoundError(f"Claude Code not found at: {self._cli_path}") from error
        except Exception as error:
            raise CLIConnectionError(f"Failed to start Claude Code: {error}") from error
        self.invalid_lines = 0
        self._input_ended = False
        self.process = process
        self._batches = process.batches()
        self._ready = True

    async def _environment(self) -> dict[str, str]:
        """Build the CLI's environment as SubprocessCLITransport.connect does. That method explains the reasons."""
        given = self._options.env
        environment = {name: value for name, value in os.environ.items() if name != "CLAUDECODE"}
        environment["CLAUDE_CODE_ENTRYPOINT"] = "sdk-py"
        environment |= given
        environment["CLAUDE_AGENT_SDK_VERSION"] = claude_agent_sdk.__version__
        environment.pop(DERIVED_CLIENT_APP_ENV, None)
        if self._options.client_app is not None:
            environment[EXPLICIT_CLIENT_APP_ENV] = self._options.client_app
        if EXPLICIT_CLIENT_APP_ENV not in environment:
            derived = await self._derive_client_app()
            if derived is not None:
                environment[DERIVED_CLIENT_APP_ENV] = derived
        join_trace(environment, trace_context(), given)
        if not any(name.upper() == _SDK_READS_SESSION_STATE_ENV for name in environment):
            environment[_SDK_READS_SESSION_STATE_ENV] = "1"
        if self._options.enable_file_checkpointing:
            environment["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] = "true"
        if self._cwd:
            environment["PWD"] = self._cwd
        return environment

    def _invalid_line(self, line: InvalidLine) -> None:
        self.invalid_lines += 1
        _log.warning("skipped line %d of the CLI's output, of %d bytes: %s", line.line_number, line.length, line.reason)
        if self._on_invalid is not None:
            try:
                self._on_invalid(line)
            except Exception as error:
                _log.warning("on_invalid raised %s; going on", type(error).__name__)

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Iterate over the CLI's messages, as dicts, until its output ends.

        Raises:
            CLIConnectionError: in a step: :meth:`connect` was not called, or reading failed.
            WireProcessError: in the last step: the exit code is not 0, or the output ended in the middle of a turn.
        """
        return _Messages(self)

    async def _next_messages(self, batches: Batches[dict[str, Any]] | None) -> list[dict[str, Any]]:
        if batches is None:
            raise CLIConnectionError("Not connected")
        try:
            batch = await batches.__anext__()
        except WireError as error:
            self._exit_error = _process_error(error)
            raise self._exit_error from error
        except (ByteBudgetError, OSError) as error:
            self._exit_error = CLIConnectionError(f"Failed to read from Claude Code: {error}")
            raise self._exit_error from error
        if not self._version_checked:
            for message in batch:
                self._check_claude_version(message)
        if self._resumed is not None:
            for message in batch:
                if message.get("type") == "transcript_mirror":
                    self._resumed.redirect(message)
        return batch

    async def write(self, data: str) -> None:
        """Send one or more lines to the CLI.

        Raises:
            CLIConnectionError: the transport is not connected or closed, :meth:`end_input` was called, or the CLI has
                exited or closed its input.
        """
        # From SubprocessCLITransport.write.
        process = self.process
        if process is None or not self._ready or self._input_ended:
            raise CLIConnectionError("ProcessTransport is not ready for writing")
        if process.returncode is not None:
            raise CLIConnectionError(f"Cannot write to terminated process (exit code: {process.returncode})")
        if self._exit_error is not None:
            raise CLIConnectionError(
                f"Cannot write to process that exited with error: {self._exit_error}"
            ) from self._exit_error
        try:
            # The SDK writes ASCII, but a host may write lone surrogates. UTF-8 cannot encode these; "backslashreplace"
            # writes them as JSON escapes, such as \ud83d.
            await process.send_bytes(data.encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._ready = False
            self._exit_error = CLIConnectionError(f"Failed to write to process stdin: {error}")
            raise self._exit_error from error

    async def end_input(self) -> None:
        """Wait for an unfinished write, then close the CLI's standard input. A second call does nothing."""
        if self.process is not None:
            await self.process.end_input()
            self._input_ended = True

    async def close(self) -> None:
        """Terminate the CLI: close its input, send SIGTERM after 5 s, SIGKILL 5 s later. A second call does nothing.

        Then remove the temporary copy of a resumed session. (It is also removed if the transport is garbage-collected,
        and when the interpreter exits.) Afterwards, :meth:`connect` may be called again.
        """
        self._ready = False
        process = self.process
        with cancel_scope(shield=True):
            try:
                if process is not None:
                    await process.aclose()
            finally:
                if self.process is process:
                    self.process = self._batches = None
                await self._remove_resumed()
        self._exit_error = None

    async def _remove_resumed(self) -> None:
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            with cancel_scope(shield=True):
                await resumed.remove()


class _Messages:
    """The iterator of :meth:`WireTransport.read_messages`. (A generator would end after its first exception.)"""

    __slots__ = ("_batches", "_ready", "_transport")

    def __init__(self, transport: WireTransport) -> None:
        self._transport = transport
        self._batches = transport._batches
        self._ready: deque[dict[str, Any]] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> dict[str, Any]:
        ready = self._ready
        if not ready:
            ready.extend(await self._transport._next_messages(self._batches))
        return ready.popleft()


class _Resumed:
    """A temporary config directory with a session from a session store. The session is not on disk anywhere else."""

    def __init__(self, materialized: MaterializedResume, expected: str) -> None:
        self._materialized = materialized
        self._projects = str(materialized.config_dir / "projects")
        self._expected = expected
        # The directory may contain credentials. Remove it even if the transport is never closed: the SDK does not close
        # it after an error between connect() and the first request, and a host may exit without closing it.
        self._abandon = weakref.finalize(self, _remove_folder, materialized.config_dir, os.getpid())

    async def remove(self) -> None:
        await self._materialized.cleanup()
        self._abandon.detach()

    def redirect(self, message: dict[str, Any]) -> None:
        """Change the path in a ``transcript_mirror`` message to a path that the SDK knows.

        The CLI writes files below the temporary directory. For transports other than its own, the SDK expects files
        below the projects directory of ``options.env``, and would drop the message.
        """
        path = message.get("filePath")
        if isinstance(path, str):
            try:
                inside = os.path.relpath(path, self._projects)
            except ValueError:  # on another drive of Windows
                return
            if not inside.startswith(os.pardir) and not os.path.isabs(inside):
                message["filePath"] = os.path.join(self._expected, inside)


def _remove_folder(path: os.PathLike[str], owner: int) -> None:
    if os.getpid() == owner:  # a forked child has a copy of the finalizer, and must not remove the folder
        shutil.rmtree(path, ignore_errors=True)


def _stderr_line(callback: Callable[[str], object], line: str) -> None:
    # From SubprocessCLITransport._handle_stderr.
    line = line.rstrip()
    if line:
        try:
            callback(line)
        except Exception as error:
            _log.debug("options.stderr raised %s; going on", type(error).__name__)


def _with_permission_prompts(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    # From claude_agent_sdk.types._configure_can_use_tool, without its warning about shadowed callbacks: the SDK itself
    # also calls that function, and warns.
    if not options.can_use_tool:
        return options
    if options.permission_prompt_tool_name:
        return _configure_can_use_tool(options)  # raises ValueError
    return dataclasses.replace(options, permission_prompt_tool_name="stdio")


def _process_error(error: WireError) -> WireProcessError:
    code = error.returncode
    if code:
        made = WireProcessError(
            f"Command failed with exit code {code}", exit_code=code, stderr="Check stderr output for details"
        )
    else:
        made = WireProcessError(f"Claude Code did not finish: {error}", exit_code=code)
    made.stderr_tail = error.stderr_tail
    return made
