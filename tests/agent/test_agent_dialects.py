"""An agent in each dialect: the frames that it writes, and its conversation with a Session of this library."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agent_host import Host, hosted, prompt
from async_backends import ASYNCIO, Backend, every_backend
from claude_wire import ResultMessage, messages
from claude_wire.agent import Agent, Turn
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, MIRIAD, STREAM_JSON, Dialect
from claude_wire.messages import InterruptRequest
from claude_wire.testing import open_agent
from virtual_time import VirtualBackend, every_virtual_backend

ALL = [STREAM_JSON, CLASSIC, MIRIAD, JSON_RPC]
every_dialect = pytest.mark.parametrize("dialect", ALL, ids=[dialect.name for dialect in ALL])


async def answer(turn: Turn) -> None:
    if turn.text == "slow":
        await turn.say("half")
        await anyio.sleep(1000)
    if turn.text.startswith("tool"):
        outcome = await turn.run_tool("read", {"path": "/tmp"}, lambda given: "contents")
        await turn.say(f"{outcome.content}")
        for one in await turn.injected():
            await turn.say(f"And {one.text}")
    else:
        await turn.say(f"You said {turn.text}")


@every_dialect
@every_backend
def test_a_session_talks_with_an_agent_of_each_dialect(backend: Backend, dialect: Dialect) -> None:
    asked: list[str] = []

    def decide(request: Any) -> Any:
        asked.append(request.tool_name)
        return request.allow()

    async def main() -> None:
        callbacks = {"can_use_tool": decide} if dialect.permission == "always" else {}
        async with open_agent(Agent(answer, dialect=dialect), **callbacks) as session:
            result = await session.ask("one")
            assert result.result == "You said one"
            result = await session.ask("tool")
            if dialect is not STREAM_JSON:  # the host in STREAM_JSON has no permission callback
                assert result.result == "contents"
            if dialect is CLASSIC:  # CLASSIC has no interrupt request: only a signal interrupts its agent
                return
            results: list[ResultMessage] = []
            await session.query("slow")
            async for message in session.receive_run():
                if isinstance(message, messages.AssistantMessage):
                    await session.request(InterruptRequest())
                if isinstance(message, ResultMessage):
                    results.append(message)
            assert [one.cancelled for one in results] == [True]
            assert (await session.ask("two")).result == "You said two"

    backend.run(main)
    assert asked == (["read"] if dialect is CLASSIC else [])


@every_virtual_backend
def test_an_agent_of_miriad_queues_and_injects(virtual: VirtualBackend) -> None:
    async def main() -> Host:
        async with hosted(Agent(slow_tool, dialect=MIRIAD)) as host:
            await host.tell(prompt("tool", session_id="s1"))
            await anyio.sleep(1)
            await host.tell(prompt("more", session_id="s1"), prompt("less", session_id="s1"))
            await host.tell({"type": "control", "action": "status"})
            await host.until("result")
            await host.tell({"type": "control", "action": "interrupt"}, {"type": "wobble"}, prompt("end"))
        return host

    async def slow_tool(turn: Turn) -> None:
        if turn.text == "tool":
            use = await turn.use_tool("read", {})
            await anyio.sleep(5)
            await turn.tool_result(use, "contents")
            await turn.say(" & ".join(one.text for one in await turn.injected()))

    host = virtual.run(main)
    assert host.kinds == [
        "assistant",
        "system/queued",
        "system/queued",
        "system/status",
        "system/tool_result",
        "system/injected",
        "assistant",
        "result/success",
        "system/error",
        "system/error",
        "result/success",
    ]
    assert [frame["position"] for frame in host.of("system/queued")] == [1, 2]
    status = {"type": "system", "subtype": "status", "running": True, "session_id": "s1", "queued_messages": 2}
    assert host.of("system/status") == [status]
    injected = {"type": "system", "subtype": "injected", "message_count": 2, "content_length": 10}
    assert host.of("system/injected") == [injected]
    assert host.messages[6]["message"]["content"] == [{"type": "text", "text": "more\n\nless"}]
    assert host.of("result")[0]["num_turns"] == 1
    assert host.code == 0
    assert not any("uuid" in frame for frame in host.messages)


@every_virtual_backend
def test_what_is_left_in_an_agent_of_miriad_has_turns_of_its_own(virtual: VirtualBackend) -> None:
    async def main() -> Host:
        async with hosted(Agent(answer, dialect=MIRIAD)) as host:
            texts = [prompt(text, session_id=text) for text in ("slow", "two", "three")]
            await host.tell(*texts)
            await anyio.sleep(1)
            await host.tell({"type": "control", "action": "interrupt"})
        return host

    host = virtual.run(main)
    interrupted = {"type": "system", "subtype": "interrupted", "session_id": "slow"}
    assert host.messages[3] == interrupted
    assert [frame["subtype"] for frame in host.of("result")] == ["cancelled", "success", "success"]
    assert [frame["session_id"] for frame in host.of("result")] == ["slow", "two", "three"]
    assert host.of("result")[0]["is_error"] is False


def test_an_agent_of_classic_ends_at_a_bad_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> Host:
        async with hosted(Agent(answer, dialect=CLASSIC)) as host:
            host.answers = lambda request: None
            await host.tell(prompt("tool"))
            await host.until("system/permission_request")
            await host.tell({"allow": False})
            await host.until("result")
            await host.send_bytes(b"nonsense\n")
        return host

    host = ASYNCIO.run(main)
    assert host.code == 1
    question = host.of("system/permission_request")[0]
    assert (question["tool_name"], question["input"]) == ("read", {"path": "/tmp"})
    result = host.of("tool_result")[0]
    assert result["is_error"] is True
    assert result["result"] == {"type": "text", "text": "The user said no."}
    assert host.kinds[-1] == "system/error"
    assert "nonsense" not in capsys.readouterr().err


def test_an_agent_of_json_rpc_answers_a_run_many_times() -> None:
    def call(request_id: Any, method: str, **params: Any) -> dict[str, Any]:
        given = {"params": params} if params else {}
        return {"jsonrpc": "2.0", "id": request_id, "method": method, **given}

    async def main() -> list[dict[str, Any]]:
        frames: list[dict[str, Any]] = []
        host = Host(raw=frames.append)
        async with anyio.create_task_group() as group:
            host.start(Agent(answer, dialect=JSON_RPC), group)
            await host.tell(call(1, "run", prompt="one", session_id="s"))
            await until(frames, 2)
            await host.tell(call(2, "run", prompt="slow"), call(3, "run", prompt="three"), call(4, "status"))
            await until(frames, 5)
            await host.tell(call(5, "cancel"), call(6, "cancel"), call(7, "wobble"), {"jsonrpc": "2.0"})
            await host.send_bytes(b"nonsense\n")
            await until(frames, 11)
            host.end()
        assert host.code == 0
        return frames

    frames = ASYNCIO.run(main)
    assert [frame["id"] for frame in frames[:2]] == [1, 1]
    assert frames[1]["result"]["result"] == "You said one"
    errors = {str(frame["id"]): frame["error"]["code"] for frame in frames if "error" in frame}
    assert errors["3"] == -32001
    assert errors["7"] == -32601
    cancelled = [frame for frame in frames if frame.get("result", {}).get("subtype") == "cancelled"]
    assert [frame["id"] for frame in cancelled] == [2]
    status = {"jsonrpc": "2.0", "id": 5, "result": {"type": "system", "subtype": "status", "running": False}}
    assert frames.index(cancelled[0]) < frames.index(status)


async def until(frames: list[dict[str, Any]], count: int) -> None:
    while len(frames) < count:
        await anyio.sleep(0.001)


@pytest.mark.parametrize(
    ("dialect", "failed", "interrupted", "usage"),
    [(STREAM_JSON, 1, 0, 1), (CLASSIC, 1, 130, 2), (MIRIAD, 0, 0, 1), (JSON_RPC, 0, 0, 1), (AUTO, 1, 0, 1)],
    ids=str,
)
def test_exit_codes_are_those_of_the_dialect(dialect: Dialect, failed: int, interrupted: int, usage: int) -> None:
    async def code_of(text: str) -> int | None:
        working = anyio.Event()

        async def act(turn: Turn) -> str:
            if turn.text == "fail":
                raise LookupError(turn.text)
            if turn.text == "forever":
                working.set()
                await anyio.sleep_forever()
            return "done"

        host = Host(raw=lambda frame: None)
        async with anyio.create_task_group() as group:
            host.start(Agent(act, dialect=dialect), group)
            run = {"jsonrpc": "2.0", "id": 1, "method": "run", "params": {"prompt": text}}
            await host.tell(run if dialect is JSON_RPC else prompt(text))
            if text == "forever":
                await working.wait()
                host.service.interrupt()
            else:
                host.end()
        host.end()
        return host.code

    assert [ASYNCIO.run(code_of, text) for text in ("hi", "fail", "forever")] == [0, failed, interrupted]
    assert dialect.usage_code == usage


def test_a_prompt_of_several_blocks_is_joined_with_texts() -> None:
    async def repeat(turn: Turn) -> str:
        kinds = (
            turn.prompt.content
            if isinstance(turn.prompt.content, str)
            else [type(b).__name__ for b in turn.prompt.content]
        )
        return str(kinds)

    async def main() -> Host:
        async with hosted(Agent(repeat)) as host:
            image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
            await host.tell(prompt("one"), prompt("two"), prompt([image]))
        return host

    host = ASYNCIO.run(main)
    assert [one["result"] for one in host.of("result")] == ["one", "['TextBlock', 'ImageBlock']"]


@pytest.mark.parametrize("dialect", [STREAM_JSON, AUTO], ids=str)
@every_virtual_backend
def test_a_stopped_turn_says_so_to_a_host_of_stream_json(virtual: VirtualBackend, dialect: Dialect) -> None:
    async def main() -> Host:
        async with hosted(Agent(answer, dialect=dialect)) as host:
            await host.tell(prompt("slow", uuid="u"))
            await anyio.sleep(1)
            await host.tell({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}})
            await host.until("result")
        return host

    host = virtual.run(main)
    told = [line["message"]["content"] for line in host.of("user")]
    assert told == [[{"type": "text", "text": "[Request interrupted by user]"}]]
