"""WireTransport raises the same errors as the transport of claude-agent-sdk when the CLI fails."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    CLINotFoundError,
    ProcessError,
    ResultError,
    query,
)
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

import claude_wire
from async_backends import DEADLINE
from claude_wire.integrations.agent_sdk import WireProcessError, WireTransport
from claude_wire.native.budget import DEFAULT_BYTE_BUDGET
from sdk_cli import MARKS, ask, read, texts_of, until

pytestmark = MARKS


async def raised_by(messages: AsyncIterator[Any]) -> tuple[list[Any], Exception]:
    """Return the messages before the error, and the error."""
    found: list[Any] = []
    with pytest.raises(sdk.ClaudeSDKError) as caught, anyio.fail_after(DEADLINE):  # noqa: PT012 - a loop
        async for message in messages:
            found.append(message)
    return found, caught.value


async def test_an_exit_code_is_the_error_of_the_sdk(cli: Callable[..., str]) -> None:
    script = "prompt(); init(); assistant('a'); result(); sys.stderr.write('why'); sys.stderr.flush(); sys.exit(3)"
    options = ClaudeAgentOptions(cli_path=cli(script), stderr=lambda line: None)
    before, theirs = await raised_by(query(prompt="hi", options=options))
    found, ours = await raised_by(ask(options))
    assert found == before
    assert isinstance(theirs, ProcessError)
    assert isinstance(ours, WireProcessError)
    assert str(ours) == str(theirs)
    assert (ours.exit_code, ours.stderr) == (theirs.exit_code, theirs.stderr) == (3, "Check stderr output for details")
    assert ours.stderr_tail == b"why"
    assert isinstance(ours.__cause__, claude_wire.ProcessError)
    assert "why" not in str(ours)


async def test_so_is_the_exit_code_after_an_error_result(cli: Callable[..., str]) -> None:
    script = "prompt(); init(); result(subtype='error_max_turns', is_error=True, errors=['too many']); sys.exit(1)"
    options = ClaudeAgentOptions(cli_path=cli(script))
    before, theirs = await raised_by(query(prompt="hi", options=options))
    found, ours = await raised_by(ask(options))
    assert found == before
    assert type(ours) is type(theirs) is ResultError
    assert str(ours) == str(theirs)
    assert vars(ours) == vars(theirs)


async def test_so_is_the_signal_that_ended_it(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("prompt(); init(); result(); os.kill(os.getpid(), signal.SIGKILL)"))
    _, theirs = await raised_by(query(prompt="hi", options=options))
    _, ours = await raised_by(ask(options))
    assert str(ours) == str(theirs)
    assert isinstance(ours, ProcessError)
    assert ours.exit_code == -9


@pytest.mark.parametrize(
    "cut", ["sys.exit(0)", 'raw(b\'{"type":"assistant","mess\'); sys.exit(0)'], ids=["turn", "line"]
)
async def test_output_that_ends_in_the_middle_is_an_error_even_with_exit_code_0(
    cut: str, cli: Callable[..., str]
) -> None:
    options = ClaudeAgentOptions(cli_path=cli(f"prompt(); init(); assistant('a'); {cut}"))
    # With the SDK's own transport, the torn last line raises no error.
    assert await texts_of(query(prompt="hi", options=options)) == ["a"]
    found, error = await raised_by(ask(options))
    assert [type(message) for message in found] == [sdk.SystemMessage, AssistantMessage]
    assert isinstance(error, ProcessError)
    assert error.exit_code == 0
    assert "in the middle of a" in str(error)
    assert isinstance(error.__cause__, claude_wire.UnfinishedTurnError)


async def test_a_cli_that_ends_before_it_was_asked_fails_the_connection(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("sys.stderr.write('no'); sys.exit(1)"), stderr=lambda line: None)
    with pytest.raises(sdk.ClaudeSDKError), anyio.fail_after(DEADLINE):
        await ClaudeSDKClient(options, transport=WireTransport(None, options)).connect()


async def same_error(make: Callable[[], ClaudeAgentOptions]) -> Exception:
    """Connect with both transports, check that both raise the same error, and return it."""
    errors = []
    for transport in SubprocessCLITransport("", make()), WireTransport("", make()):
        with pytest.raises(CLIConnectionError) as caught:
            await transport.connect()
        errors.append(caught.value)
        assert not transport.is_ready()
        await transport.close()
    theirs, ours = errors
    assert type(ours) is type(theirs)
    # uvloop's message has no path. For a file that is not executable, WireTransport adds what to do.
    reason = "Failed to start Claude Code: [Errno 13]"
    assert str(ours).startswith(reason if str(theirs).startswith(reason) else str(theirs))
    return ours


async def test_a_cli_that_cannot_be_started(cli: Callable[..., str], tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "missing"
    error = await same_error(lambda: ClaudeAgentOptions(cli_path=missing))
    assert isinstance(error, CLINotFoundError)
    error = await same_error(lambda: ClaudeAgentOptions(cli_path=cli(""), cwd=missing))
    assert str(error) == f"Working directory does not exist: {missing}"
    (tmp_path / "file").write_text("")
    await same_error(lambda: ClaudeAgentOptions(cli_path=cli(""), cwd=tmp_path / "file"))
    await same_error(lambda: ClaudeAgentOptions(cli_path=tmp_path / "file"))
    await same_error(lambda: ClaudeAgentOptions(cli_path=cli(""), settings="{", sandbox={}))


async def test_there_is_no_cli(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    if os.path.exists("/usr/local/bin/claude"):
        pytest.skip("this machine has a CLI in /usr/local/bin")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(SubprocessCLITransport, "_find_bundled_cli", lambda self: None)
    assert isinstance(await same_error(ClaudeAgentOptions), CLINotFoundError)


async def test_reading_and_writing_without_a_connection(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("hear(); hear()"))
    for transport in SubprocessCLITransport("", options), WireTransport("", options):
        for _ in range(2):
            with pytest.raises(CLIConnectionError, match="Not connected"):
                await read(transport)
            with pytest.raises(CLIConnectionError, match="not ready for writing"):
                await transport.write("{}\n")
            await transport.end_input()
            assert not transport.is_ready()
            await transport.connect()
            assert transport.is_ready()
            await transport.connect()
            await transport.write("{}\n")
            await transport.close()
            await transport.close()


async def test_writing_after_the_end_of_the_input(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("hear()"))
    for transport in SubprocessCLITransport("", options), WireTransport("", options):
        await transport.connect()
        await transport.end_input()
        await transport.end_input()
        for _ in range(2):
            with pytest.raises(CLIConnectionError, match=r"^ProcessTransport is not ready for writing$"):
                await transport.write("{}\n")
            assert transport.is_ready()
        assert await read(transport) == []
        await transport.close()
        await transport.connect()
        await transport.write("{}\n")
        await transport.close()


async def test_writing_to_a_cli_that_has_ended(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("sys.exit(4)"))
    for transport in SubprocessCLITransport("", options), WireTransport("", options):
        await transport.connect()
        with pytest.raises(ProcessError) as caught:
            await read(transport)
        assert caught.value.exit_code == 4
        with pytest.raises(CLIConnectionError, match=re.escape("Cannot write to terminated process (exit code: 4)")):
            await transport.write("{}\n")
        await transport.close()


async def test_writing_to_a_cli_that_reads_no_more(cli: Callable[..., str], tmp_path: pathlib.Path) -> None:
    closed = tmp_path / "closed"
    options = ClaudeAgentOptions(
        cli_path=cli(f"os.close(0); open({str(closed)!r}, 'w').close(); time.sleep({DEADLINE})")
    )
    transport = WireTransport("", options)
    await transport.connect()
    await until(closed.exists)
    with pytest.raises(CLIConnectionError, match="Failed to write to process stdin"):
        await transport.write("{}\n")
    assert not transport.is_ready()
    with pytest.raises(CLIConnectionError, match="not ready for writing"):
        await transport.write("{}\n")
    assert transport.process is not None
    os.kill(transport.process.pid, 9)
    await transport.close()


async def test_overflow_error_ends_the_session_with_an_error_of_the_sdk(cli: Callable[..., str]) -> None:
    script = "init()\nfor _ in range(1000): assistant('x' * 1000)\nresult(); hear()"
    transport = WireTransport("", ClaudeAgentOptions(cli_path=cli(script)), overflow="error")
    claude_wire.streams.set_byte_budget(100_000)
    try:
        await transport.connect()
        process = transport.process
        assert process is not None
        await until(lambda: process.drain_stats is not None and process.drain_stats.pauses)
        with pytest.raises(CLIConnectionError, match="more than 100000 bytes wait") as caught:
            await read(transport)
        assert isinstance(caught.value.__cause__, claude_wire.errors.ByteBudgetError)
        with pytest.raises(CLIConnectionError, match="Cannot write to process that exited with error"):
            await transport.write("{}\n")
    finally:
        claude_wire.streams.set_byte_budget(DEFAULT_BYTE_BUDGET)
        await transport.close()


async def test_spilled_output_is_delivered(cli: Callable[..., str], tmp_path: pathlib.Path) -> None:
    done = tmp_path / "done"
    script = f"""
        init()
        for number in range(1000):
            assistant(str(number) + "x" * 1000)
        result()
        open({str(done)!r}, "w").close()
        hear()
    """
    options = ClaudeAgentOptions(cli_path=cli(script))
    transport = WireTransport("", options, overflow="spill", spill_limit=10_000_000)
    claude_wire.streams.set_byte_budget(100_000)
    try:
        await transport.connect()
        process = transport.process
        assert process is not None
        await until(done.exists)  # the CLI never waits, although its output exceeds the budget
        await transport.end_input()
        messages = await read(transport)
        assert process.drain_stats is not None
        assert process.drain_stats.bytes_spilled > 0
    finally:
        claude_wire.streams.set_byte_budget(DEFAULT_BYTE_BUDGET)
        await transport.close()
    texts = [message["message"]["content"][0]["text"] for message in messages if message["type"] == "assistant"]
    assert texts == [str(number) + "x" * 1000 for number in range(1000)]
