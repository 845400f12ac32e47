"""WireTransport cleans up: it ends the CLI with the query, and deletes its copy of a stored session when it closes."""

from __future__ import annotations

import dataclasses
import gc
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLINotFoundError,
    InMemorySessionStore,
    Transport,
    query,
)
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from async_backends import DEADLINE
from claude_wire.integrations.agent_sdk import WireTransport
from sdk_cli import MARKS, SESSION_ID, ask, is_alive, left_over, read, run_python, stored, texts_of, until

pytestmark = MARKS


async def test_leaving_a_query_early_ends_the_cli(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(
        cli_path=cli("prompt(); init()\nwhile True: say({'type': 'keep_alive'}); time.sleep(0.001)")
    )
    transport = WireTransport("hi", options)
    messages = query(prompt="hi", options=options, transport=transport)
    with anyio.fail_after(DEADLINE):
        await messages.__anext__()
        assert transport.process is not None
        exchange = transport.process._exchange
        exchange.settings = exchange.settings._replace(grace=0.3)
        pid = transport.process.pid
        assert is_alive(pid)
        await messages.aclose()
    # The SDK does not close its inner async generators; the event loop closes them a little later.
    await until(lambda: transport.process is None)
    assert not is_alive(pid)


async def test_a_cancelled_query_ends_the_cli(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("prompt(); init(); hear(); hear()"))
    transport = WireTransport(None, options)
    pids: list[int] = []

    async def session() -> None:
        async with ClaudeSDKClient(options, transport=transport) as client:
            await client.query("hi")
            assert transport.process is not None
            pids.append(transport.process.pid)
            async for _ in client.receive_messages():
                pass

    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as group:
            group.start_soon(session)
            await until(lambda: pids)
            group.cancel_scope.cancel()
    assert not is_alive(pids[0])
    assert transport.process is None


async def test_two_tasks_may_close_at_once(cli: Callable[..., str]) -> None:
    transport = WireTransport("", ClaudeAgentOptions(cli_path=cli("hear()")))
    await transport.connect()
    assert transport.process is not None
    pid = transport.process.pid
    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as group:
            group.start_soon(transport.close)
            group.start_soon(transport.close)
    assert not is_alive(pid)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_closing_is_not_cut_short_by_a_cancellation_of_asyncio(
    cli: Callable[..., str], tmp_path: pathlib.Path, home: pathlib.Path
) -> None:
    import asyncio

    store, _ = await stored(home)
    started = tmp_path / "started"
    script = f"open({str(started)!r}, 'w').close()\nwhile True: time.sleep(1)"  # only SIGTERM ends this CLI
    options = ClaudeAgentOptions(cli_path=cli(script), cwd=home, session_store=store, resume=SESSION_ID)
    transport = WireTransport("", options)
    await transport.connect()
    await until(started.exists)
    assert transport.process is not None
    exchange = transport.process._exchange
    exchange.settings = exchange.settings._replace(grace=0.3)
    pid = transport.process.pid
    assert left_over(home)
    closing = asyncio.ensure_future(transport.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(closing, DEADLINE)
    assert not is_alive(pid)
    assert not left_over(home)
    assert transport.process is None


RESUMED = """
    import glob
    folder = os.environ["CLAUDE_CONFIG_DIR"]
    [path] = glob.glob(folder + "/projects/*/*.jsonl")
    prompt()
    init()
    assistant(json.dumps([folder, open(path).read(), [arg for arg in sys.argv if arg.startswith("--resume")]]))
    say({"type": "transcript_mirror", "filePath": path, "entries": [{"type": "user", "uuid": "new"}]})
    inner = path.removesuffix(".jsonl") + "/subagents/agent-1.jsonl"
    say({"type": "transcript_mirror", "filePath": inner, "entries": [{"type": "user", "uuid": "sub"}]})
    result()
    hear()
"""


@pytest.mark.parametrize("how", [{"resume": SESSION_ID}, {"continue_conversation": True}], ids=str)
@pytest.mark.parametrize("own", [False, True], ids=["default", "own"])
async def test_a_session_is_resumed_from_a_store_and_written_back(
    how: dict[str, Any], own: bool, cli: Callable[..., str], home: pathlib.Path
) -> None:
    found: list[Any] = []
    for transport_of in (lambda options: None), (lambda options: WireTransport("hi", options)):
        store, key = await stored(home)
        options = ClaudeAgentOptions(
            cli_path=cli(RESUMED),
            cwd=home,
            session_store=store,
            env={"CLAUDE_CONFIG_DIR": str(home / "config")} if own else {},
            **how,
        )
        texts = await texts_of(query(prompt="hi", options=options, transport=transport_of(options)))
        folder, content, argv = json.loads(texts[0])
        assert argv == [f"--resume={SESSION_ID}"]
        assert folder.startswith(str(home / "claude-resume-"))
        assert not left_over(home)
        subkey = {**key, "subpath": "subagents/agent-1"}
        found.append((len(content.splitlines()), [entry["uuid"] for entry in store.get_entries(key)[1:]]))
        assert [entry["uuid"] for entry in store.get_entries(subkey)] == ["sub"]
        assert store.size == 1
    assert found == [(1, ["new"])] * 2


async def test_mirrors_that_lead_out_of_their_folder_are_left_as_they_are(
    cli: Callable[..., str], home: pathlib.Path
) -> None:
    """The transport rewrites a path inside the copied session. It leaves other paths for the SDK to refuse."""
    script = """
        projects = os.environ["CLAUDE_CONFIG_DIR"] + "/projects"
        for path in "/p/s.jsonl", "/../s.jsonl", "/p/../../s.jsonl", "/..":
            say({"type": "transcript_mirror", "filePath": projects + path, "entries": [projects + path]})
        result()
        hear()
    """
    store, _ = await stored(home)
    options = ClaudeAgentOptions(cli_path=cli(script), cwd=home, session_store=store, resume=SESSION_ID)
    transport = WireTransport("hi", options)
    await transport.connect()
    await transport.end_input()
    inside, *outside = [message for message in await read(transport) if message["type"] == "transcript_mirror"]
    assert inside["filePath"] == str(home / ".claude" / "projects" / "p" / "s.jsonl")
    assert len(outside) == 3
    for message in outside:
        assert message["filePath"] == message["entries"][0]
    await transport.close()


async def test_a_new_session_is_mirrored_to_a_store(cli: Callable[..., str], home: pathlib.Path) -> None:
    path = home / ".claude" / "projects" / "p" / f"{SESSION_ID}.jsonl"
    script = f"""
        prompt()
        init()
        say({{"type": "transcript_mirror", "filePath": {str(path)!r}, "entries": [{{"type": "user", "uuid": "a"}}]}})
        result()
        hear()
    """
    store = InMemorySessionStore()
    options = ClaudeAgentOptions(cli_path=cli(script), session_store=store)
    assert await texts_of(ask(options)) == ["done"]
    assert [entry["uuid"] for entry in store.get_entries({"project_key": "p", "session_id": SESSION_ID})] == ["a"]


async def test_a_client_resumes_anew_each_time_it_connects(cli: Callable[..., str], home: pathlib.Path) -> None:
    store, _ = await stored(home)
    options = ClaudeAgentOptions(cli_path=cli(RESUMED), cwd=home, session_store=store, resume=SESSION_ID)
    client = ClaudeSDKClient(options, transport=WireTransport(None, options))
    for entries in 1, 2:
        with anyio.fail_after(DEADLINE):
            await client.connect("hi")
        (said, done) = await texts_of(client.receive_response())
        assert (len(json.loads(said)[1].splitlines()), done) == (entries, "done")
        assert left_over(home)
        await client.disconnect()
        assert not left_over(home)


async def test_a_session_that_the_store_does_not_have_is_left_to_the_cli(
    cli: Callable[..., str], home: pathlib.Path
) -> None:
    script = "prompt(); init(); assistant(repr([a for a in sys.argv if a.startswith('--resume')])); result(); hear()"
    options = ClaudeAgentOptions(cli_path=cli(script), session_store=InMemorySessionStore(), resume=SESSION_ID)
    assert await texts_of(ask(options)) == [repr([f"--resume={SESSION_ID}"]), "done"]


async def test_the_copy_of_a_session_is_removed_when_the_cli_cannot_be_started(
    cli: Callable[..., str], home: pathlib.Path
) -> None:
    store, _ = await stored(home)
    options = ClaudeAgentOptions(
        cli_path=home / "missing", cwd=home, session_store=store, resume=SESSION_ID, settings="{}"
    )
    with pytest.raises(CLINotFoundError):
        await WireTransport("", options).connect()
    assert not left_over(home)
    options = dataclasses.replace(options, plugins=[{"type": "other"}])
    with pytest.raises(ValueError, match="Unsupported plugin type"):
        await WireTransport("", options).connect()
    assert not left_over(home)


async def test_the_copy_of_a_session_is_removed_when_starting_is_cancelled(
    cli: Callable[..., str], home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = await stored(home)
    options = ClaudeAgentOptions(cli_path=cli("hear()"), cwd=home, session_store=store, resume=SESSION_ID)
    seen: list[bool] = []

    async def derive(self: Any) -> None:
        seen.append(bool(left_over(home)))
        await anyio.sleep(DEADLINE)

    monkeypatch.setattr(SubprocessCLITransport, "_derive_client_app", derive)
    transport = WireTransport("", options)
    async with anyio.create_task_group() as group:
        group.start_soon(transport.connect)
        await until(lambda: seen)
        group.cancel_scope.cancel()
    assert seen == [True]
    assert not left_over(home)
    assert transport.process is None


@pytest.mark.parametrize("stderr", [None, print], ids=["", "stderr"])
async def test_the_copy_of_a_session_is_removed_when_the_sdk_forgets_to_close(
    cli: Callable[..., str], home: pathlib.Path, monkeypatch: pytest.MonkeyPatch, stderr: Callable[[str], None] | None
) -> None:
    store, _ = await stored(home)
    options = ClaudeAgentOptions(
        cli_path=cli("hear()"), cwd=home, session_store=store, resume=SESSION_ID, stderr=stderr
    )
    # The SDK parses this variable after it has connected the transport, and raises before it would close it.
    monkeypatch.setenv("CLAUDE_CODE_STREAM_CLOSE_TIMEOUT", "no number")
    pids = []

    async def ask_once(transport: Transport) -> None:
        await texts_of(query(prompt="hi", options=options, transport=transport))

    async def connect(transport: Transport) -> None:
        await ClaudeSDKClient(options, transport=transport).connect()

    for use in ask_once, connect:
        transport = WireTransport(None, options)
        with pytest.raises(ValueError, match="no number"):
            await use(transport)
        assert left_over(home)
        assert transport.process is not None
        pids.append(transport.process.pid)
        del transport
        await until(lambda: not (gc.collect(), left_over(home))[1])
    await until(lambda: not any(map(is_alive, pids)))


def test_the_copy_of_a_session_is_removed_when_the_host_ends_without_closing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "claude").write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\n")
    (tmp_path / "claude").chmod(0o755)
    said = run_python(f"""
        import os, pathlib, sys, tempfile, warnings
        import anyio
        from claude_agent_sdk import ClaudeAgentOptions, InMemorySessionStore, project_key_for_directory
        from claude_wire.integrations.agent_sdk import WireTransport

        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, forking beside threads has one
        home = pathlib.Path({str(tmp_path)!r})
        os.environ["HOME"] = tempfile.tempdir = str(home)
        os.environ.pop("CLAUDE_CONFIG_DIR", None)
        transports = []

        async def main():
            store = InMemorySessionStore()
            key = {{"project_key": project_key_for_directory(home), "session_id": {SESSION_ID!r}}}
            await store.append(key, [{{"type": "user", "uuid": "u"}}])
            options = ClaudeAgentOptions(
                cli_path=home / "claude", cwd=home, session_store=store, resume={SESSION_ID!r})
            transports.append(WireTransport(None, options))
            await transports[0].connect()
            child = os.fork()
            if child == 0:
                sys.exit(0)  # with the finalizers of its parent
            os.waitpid(child, 0)

        anyio.run(main)
        print(len(list(home.glob("claude-resume-*"))))
    """)
    assert said == "1\n"
    assert not left_over(tmp_path)


async def test_a_store_that_fails_starts_nothing(cli: Callable[..., str], home: pathlib.Path) -> None:
    class Failing(InMemorySessionStore):
        async def load(self, key: Any) -> Any:
            raise OSError("no store")

    options = ClaudeAgentOptions(cli_path=cli("hear()"), session_store=Failing(), resume=SESSION_ID)
    transport = WireTransport("", options)
    with pytest.raises(RuntimeError, match="no store"):
        await transport.connect()
    assert transport.process is None
    assert not left_over(home)
