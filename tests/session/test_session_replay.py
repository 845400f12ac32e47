"""Replay each recorded session with a Session as the host: it sends, answers and receives what the recorded host did.

Its callbacks repeat the decisions of the recorded host, and it sends prompts and requests at the recorded places. Every
recording with a standard output is played in memory: each line of the CLI waits for the host's lines before it.
Recordings with control traffic are also played by a child process, the fake CLI of ``claude_wire.testing``: all of them
on asyncio, and those of ``ON_EVERY_LOOP`` (in the long tests, all) on the other loops. ``recorded_hosts`` lists the
intended differences.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

import recordings
from async_backends import ASYNCIO, BACKENDS, TRIO, Backend
from claude_wire import (
    CanUseToolRequest,
    ClaudeOptions,
    ElicitationRequest,
    HookCallbackRequest,
    MessageStream,
    ProcessError,
    ResultMessage,
    Session,
    TurnError,
    UnfinishedTurnError,
    open_session,
)
from claude_wire.messages import McpMessageRequest
from claude_wire.testing import Recording, Replay
from each import each
from long_tests import LONG
from recorded_hosts import (
    NAMES,
    NOT_SENT,
    WITH_CONTROL,
    Host,
    Script,
    callback_ids,
    check,
    object_in,
    request_in,
    script,
    with_callback_ids,
)

# --- in memory --------------------------------------------------------------------------------------------------------


async def play(host: Host, output: Any, together: bool) -> None:
    """Play the CLI: write the recorded output, wait for the host at the recorded places, and end.

    With ``together``, write all lines up to the next wait in one chunk.
    """
    chunk = b""
    own: dict[str, str] = {}
    actions = 0
    for step in host.script.steps:
        if step.direction == "in":
            if chunk:
                await output.send(chunk)
                chunk = b""
            line = json.loads(step.data)
            if line["type"] == "control_response":
                identity = line["response"]["request_id"]
                await host.until(functools.partial(host.has_answered, identity))
            else:
                await host.until(functools.partial(host.has_sent, actions + 1))
                if "request_id" in line:
                    own[line["request_id"]] = host.sent[actions]["request_id"]
                actions += 1
            continue
        data = step.data
        if host.sent:
            data = with_callback_ids(data, callback_ids(host.script.initialize, host.sent[0]))
        if b'"request_id"' in data:
            line = object_in(data) or {}
            identity = str(line.get("response", line).get("request_id"))
            data = data.replace(json.dumps(identity).encode(), json.dumps(own.get(identity, identity)).encode(), 1)
        chunk += data
        if chunk and not together:
            await output.send(chunk)
            chunk = b""
    if chunk:
        await output.send(chunk)
    await output.aclose()


async def in_memory(name: str, together: bool, away: bool) -> None:
    host = Host(script(name), away)
    output, source = anyio.create_memory_object_stream[bytes](0 if not away else 1_000)

    async def send(line: bytes) -> None:
        host.see_sent(line)

    session = Session(MessageStream(source), send, **host.callbacks)
    with output, source:
        async with session, anyio.create_task_group() as group:
            group.start_soon(play, host, output, together)
            await host.run(session)
    assert host.failure is None
    check(host)


every_loop = pytest.mark.parametrize("backend", [ASYNCIO, TRIO], ids=["asyncio", "trio"])
with_control = pytest.mark.parametrize("name", WITH_CONTROL)


@every_loop
@with_control
def test_a_session_in_memory_does_as_the_recorded_host_did(name: str, backend: Backend) -> None:
    backend.run(in_memory, name, False, False)


@each("name", [name for name in NAMES if name not in WITH_CONTROL], str)
def test_prompts_and_messages_go_as_recorded_without_control_traffic(name: str) -> None:
    ASYNCIO.run(in_memory, name, False, False)


@every_loop
@with_control
def test_lines_that_come_in_one_chunk_are_taken_one_after_another(name: str, backend: Backend) -> None:
    backend.run(in_memory, name, True, False)


@every_loop
@with_control
def test_what_is_asked_while_nobody_iterates_is_answered_as_recorded(name: str, backend: Backend) -> None:
    backend.run(in_memory, name, True, True)


# --- with a child process ---------------------------------------------------------------------------------------------


def callback_ids_to_come(recorded: Script) -> dict[str, str]:
    """The callback ids that a Session gives to the recorded hooks in ``initialize``."""

    class Said(Exception):
        pass

    async def main() -> dict[str, str]:
        async def send(line: bytes) -> None:
            raise Said(line)

        host = Host(recorded)
        output, source = anyio.create_memory_object_stream[bytes]()
        with output, source:
            async with Session(MessageStream(source), send, **host.callbacks) as session:
                with pytest.raises(Said) as said:
                    await session.initialize(host.opening)
        return callback_ids(recorded.initialize, json.loads(said.value.args[0]))

    return ASYNCIO.run(main)


def as_played(name: str) -> Recording:
    """The recording for the fake CLI: with the ids of the Session's hooks, and without lines a Session never sends."""
    recorded = script(name)
    ids = callback_ids_to_come(recorded)
    steps = [
        step._replace(data=with_callback_ids(step.data, ids)) if step.direction == "out" else step
        for step in recorded.steps
    ]
    order = [json.dumps([step.seconds, step.direction, len(step.data.removesuffix(b"\n"))]) for step in steps]
    files = {
        "stdout.ndjson": b"".join(step.data for step in steps if step.direction == "out"),
        "stdin.ndjson": b"".join(step.data for step in steps if step.direction == "in"),
        "order.jsonl": "\n".join(order).encode(),
    }
    kept = {file: data for file, data in recordings.load(name).files.items() if file in ("cmd.json", "exit.json")}
    return Recording.from_files({**kept, **files}, name)


async def by_a_child(name: str, path: str, away: bool) -> None:
    host = Host(script(name), away)
    recording = as_played_cached(name)
    stand_in = Replay(recording, writes="blocks" if away else "lines").script(path)
    opening: dict[str, Any] = {"initialize": host.opening} if host.script.initialize is not None else {}
    async with open_session(
        ClaudeOptions(cli_path=stand_in), **opening, **host.callbacks, on_sent=host.see_sent
    ) as session:
        await host.run(session, is_open=True)
    check(host)
    # If the last result is an error, a failing exit code adds nothing, and the session raises no error for it.
    last = recording.stdout[-1:]
    results = [message for message in host.received if isinstance(message, ResultMessage)]
    if last != b"\n":
        assert isinstance(host.failure, UnfinishedTurnError)
    elif recording.exit_code == 0:
        assert host.failure is None
    elif results and results[-1].is_error:
        assert isinstance(host.failure, TurnError)
        assert host.failure.result == results[-1]
    else:
        assert type(host.failure) is ProcessError
        assert host.failure.returncode == recording.exit_code


as_played_cached = functools.cache(as_played)


INITIALIZED = [name for name in WITH_CONTROL if script(name).initialize is not None]
#: Recordings to play on every loop: permission questions, hooks, an MCP server, and many requests. The short tests play
#: the other recordings on asyncio only, because these four cover what depends on the loop.
ON_EVERY_LOOP = ["05_perm_cancel", "06_hooks_events", "07_mcp_viainit", "08_control"]


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a script")
@pytest.mark.parametrize("away", [False, True], ids=["iterating", "away"])
@pytest.mark.parametrize(
    ("name", "backend"),
    [
        pytest.param(name, backend, id=f"{name}-{backend.id}")
        for name in INITIALIZED
        for backend in BACKENDS
        if backend is ASYNCIO or name in ON_EVERY_LOOP or LONG
    ],
)
def test_a_session_with_a_child_does_as_the_recorded_host_did(
    name: str, away: bool, backend: Backend, tmp_path: Path
) -> None:
    as_played_cached(name)  # fill the cache first, because this runs its own event loop
    backend.run(by_a_child, name, str(tmp_path / "claude"), away)


# --- recorded lines that are not compared -----------------------------------------------------------------------------


def test_what_no_session_sends_is_what_is_listed() -> None:
    left_out = {name: script(name).left_out for name in NAMES}
    assert {name: reasons for name, reasons in left_out.items() if reasons} == NOT_SENT


def test_the_recordings_have_control_traffic_of_every_kind() -> None:
    """Otherwise the replays would cover less than they claim."""
    questions = [question for name in NAMES for question in script(name).questions]
    kinds = {type(question.request.request) for question in questions}
    assert kinds == {CanUseToolRequest, HookCallbackRequest, McpMessageRequest, ElicitationRequest}
    assert sum(question.answer is not None for question in questions) > 60
    assert sum(question.withdrawn for question in questions) == 1
    assert sum(question.answer is None for question in questions) == 2
    requests = [request_in(a.line).request for name in NAMES for a in script(name).actions if "request" in a.line]
    assert len({type(request) for request in requests}) > 40
