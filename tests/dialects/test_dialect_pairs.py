"""A host and an agent of the same dialect run generated scripts: any order of the host's actions.

Each prompt must be in one turn, unless the agent refuses it. Each turn must have one result, and each request one
answer. The host's run must end soon after the agent's work, and nothing may wait forever.
Each script runs in one event loop, in virtual time. ``CLAUDE_WIRE_LONG=1`` runs more scripts.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from async_backends import every_backend
from claude_wire import (
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    Decoder,
    MessageStream,
    ResultMessage,
    Session,
    TurnError,
)
from claude_wire.agent import Agent, Turn
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, MIRIAD, STREAM_JSON, Dialect
from claude_wire.messages import GetStatusRequest, InjectedMessage, InterruptRequest, PermissionResult
from claude_wire.session.router import KEPT_BACK
from claude_wire.testing import open_agent
from dialect_peer import LinePeer
from mutations import mutants
from virtual_time import VirtualBackend, every_virtual_backend

EXAMPLES = 2_000 if os.environ.get("CLAUDE_WIRE_LONG") else 25
#: Upper bound for the virtual time of a whole script, in seconds.
LONGEST = 1_000

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("prompt"), st.sampled_from(["quick", "slow", "tool", "crash"])),
        st.tuples(st.just("sleep"), st.sampled_from([0.0, 0.005, 0.02, 0.5, 2.0])),
        st.tuples(st.sampled_from(["interrupt", "status", "take"]), st.just("")),
    ),
    max_size=12,
)


class Author:
    """The author of an agent. Each prompt is one word, whose beginning names what the turn does."""

    def __init__(self) -> None:
        #: For each turn, its prompts.
        self.turns: list[list[str]] = []

    async def answer(self, turn: Turn) -> str:
        """Return the prompts of the turn: those at its start, and those injected while it ran."""
        prompts = turn.text.split()
        self.turns.append(prompts)
        for prompt in list(prompts):
            if prompt.startswith("slow"):
                for _ in range(3):
                    await turn.say("x ")
                    await anyio.sleep(0.3)
            elif prompt.startswith("tool"):
                for _ in range(2):
                    await turn.run_tool("Bash", {"command": "ls"}, ran)
                    for one in await turn.injected():
                        prompts += one.text.split()
            elif prompt.startswith("crash"):
                raise ValueError("as the script says")
        await turn.say("done")
        return "\n".join(prompts)


async def ran(given: dict[str, Any]) -> str:
    await anyio.sleep(0.2)
    return "out"


async def decide(request: CanUseToolRequest) -> PermissionResult:
    await anyio.sleep(0.05)
    return request.allow() if len(request.input) == 1 else request.deny("why")


class World:
    """The host, with the prompts that it sent and the messages that it received."""

    def __init__(self, session: Session, dialect: Dialect, author: Author) -> None:
        self.session = session
        self.dialect = dialect
        self.author = author
        self.prompts: list[str] = []
        self.received: list[Any] = []

    async def do(self, act: str, how: str | float) -> None:
        session = self.session
        if act == "prompt":
            self.prompts.append(f"{how}{len(self.prompts)}")
            await session.query(self.prompts[-1], session_id="S")
        elif act == "sleep":
            await anyio.sleep(float(how))
        elif act == "interrupt" and not self.dialect.signals:
            await session.interrupt()
        elif act == "status" and self.dialect.has_status:
            status = await session.status()
            assert status.running in (True, False)
        elif act == "take" and not session._reading.run.over:
            self.received.append(await session.__anext__())

    async def check(self) -> None:
        with anyio.fail_after(LONGEST):
            self.received += [message async for message in self.session.receive_run(ceiling=None)]
        results = [message for message in self.received if isinstance(message, ResultMessage)]
        begun = [prompt for turn in self.author.turns for prompt in turn]
        refused = [result for result in results if result.error is not None and result.error.code == "-32001"]
        assert len(begun) == len(set(begun))
        assert set(begun) <= set(self.prompts)
        assert len(begun) + len(refused) == len(self.prompts)
        assert len(results) == len(self.author.turns) + len(refused)
        if self.dialect is not STREAM_JSON:  # a turn of STREAM_JSON takes all waiting prompts
            injected = sum(message.message_count for message in self.received if isinstance(message, InjectedMessage))
            assert len(results) + injected == len(self.prompts)
            assert injected == 0 or self.dialect is MIRIAD
        answered = [text for result in results if result.ok for text in (result.result or "").split("\n") if text]
        assert len(answered) == len(set(answered))
        assert set(answered) <= set(self.prompts)
        if self.dialect.has_status:
            status = await self.session.status()
            assert status.running is False
        assert (await self.session.ask("quick-last")).result == "quick-last"
        with pytest.raises(TurnError):
            await self.session.ask("crash-last")


@every_virtual_backend
@pytest.mark.parametrize("dialect", [STREAM_JSON, CLASSIC, MIRIAD, JSON_RPC], ids=str)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(steps=[("prompt", "tool"), ("prompt", "quick"), ("prompt", "quick"), ("take", "")])
@example(steps=[("prompt", "tool"), ("sleep", 0.02), ("prompt", "quick"), ("prompt", "crash"), ("interrupt", "")])
@example(steps=[("prompt", "slow"), ("sleep", 0.02), ("interrupt", ""), ("prompt", "slow"), ("interrupt", "")])
@example(steps=[*[("prompt", how) for how in ("slow", "slow", "tool", "quick")], ("sleep", 2.0), ("prompt", "quick")])
@example(steps=[("prompt", "slow"), ("prompt", "slow"), ("interrupt", ""), ("status", ""), ("interrupt", "")])
def test_each_host_understands_its_agent(
    virtual: VirtualBackend, dialect: Dialect, steps: list[tuple[str, str | float]]
) -> None:
    async def main() -> None:
        author = Author()
        asked = None if dialect.permission == "never" else decide
        async with open_agent(Agent(author.answer, dialect=dialect), can_use_tool=asked) as session:
            world = World(session, dialect, author)
            for act, how in steps:
                await world.do(act, how)
            await world.check()

    virtual.run(main)


@every_virtual_backend
async def test_prompts_that_wait_in_the_queue_of_classic_are_waited_for() -> None:
    peer = LinePeer()
    async with peer.session(dialect=CLASSIC) as session, anyio.create_task_group() as group:
        for text in ("a", "b", "c"):
            await session.query(text)

        async def answer() -> None:
            peer.say({"type": "system", "subtype": "init", "session_id": "s"})
            for _ in range(3):
                await anyio.sleep(1000)  # longer than a host waits for the turn after an init
                peer.say({"type": "result", "subtype": "success"})

        group.start_soon(answer)
        received = [message async for message in session.receive_run()]
        assert [isinstance(message, ResultMessage) for message in received] == [False, True, True, True]


@every_virtual_backend
async def test_both_sides_may_leave_the_dialect_open() -> None:
    async with open_agent(Agent(Author().answer, dialect=AUTO)) as session:
        assert (await session.ask("tool1")).result == "tool1"
        assert (await session.ask("quick2")).result == "quick2"
        assert session._connection.dialect is STREAM_JSON


# --- Corrupted lines never make a dialect raise, on either side, and a session continues to read ----------------------


LINES = [
    b'{"type":"control","action":"interrupt"}',
    b'{"type":"control","action":"status"}',
    b'{"type":"system","subtype":"interrupted","session_id":"S"}',
    b'{"type":"system","subtype":"error","message":"No turn is currently running"}',
    b'{"type":"system","subtype":"status","running":true,"session_id":"S","queued_messages":0}',
    b'{"type":"system","subtype":"permission_request","tool_name":"Bash","input":{"a":1},"tool_use_id":"t"}',
    b'{"type":"system","subtype":"tool_result","tool_result":{"type":"tool_result","tool_use_id":"t","content":"x"}}',
    b'{"type":"tool_result","tool_use_id":"t","result":{"type":"text","text":"x"}}',
    b'{"type":"user","message":{"role":"user","content":"b"},"session_id":"s"}',
    b'{"allow":true,"updatedInput":{"a":1}}',
    b'{"jsonrpc":"2.0","id":"1","result":{"type":"system","subtype":"status","running":false}}',
    b'{"jsonrpc":"2.0","id":"run","result":{"type":"result","subtype":"success","result":"Hi"}}',
    b'{"jsonrpc":"2.0","id":"2","error":{"code":-32002,"message":"none","data":{}}}',
    b'{"jsonrpc":"2.0","id":8,"method":"run","params":{"prompt":"b","session_id":"s"}}',
    b'{"jsonrpc":"2.0","id":9,"method":"cancel"}',
    b'{"jsonrpc":"2.0","method":"message","params":{"type":"assistant","message":{"content":[]}}}',
]


@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC, AUTO], ids=str)
def test_no_line_breaks_a_connection(dialect: Dialect) -> None:
    decoder = Decoder()
    host, agent = dialect.connect(), dialect.connect()
    for number, line in enumerate(mutants(LINES, 1, 6000)):
        if dialect in (MIRIAD, JSON_RPC) and number % 5 == 0:
            host.to_agent(ControlRequest("1", GetStatusRequest()))
            host.to_agent(ControlRequest("2", InterruptRequest()))
        for message in decoder.feed(line.replace(b"\n", b" ") + b"\n"):
            host.from_agent(message)
            for one in agent.from_host(message):
                if isinstance(one, ControlRequest) and dialect is not AUTO:
                    agent.to_host(ControlResponse.success(one.request_id, {"running": True}))
            assert agent.reply()[-1:] in (b"", b"\n")


@every_backend
@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC, AUTO], ids=str)
async def test_a_session_reads_on_behind_wrong_lines(dialect: Dialect) -> None:
    peer = LinePeer()
    allow = (lambda request: request.allow()) if dialect is CLASSIC else None
    async with peer.session(dialect=dialect, can_use_tool=allow) as session:
        for line in mutants(LINES, 2, 400):
            peer.output.write(line.replace(b"\n", b" ") + b"\n")
        last = '{"type":"result","subtype":"success","result":"the last one"}'
        peer.say(f'{{"jsonrpc":"2.0","id":"x","result":{last}}}' if dialect is JSON_RPC else last)
        await anyio.wait_all_tasks_blocked()  # lets the session read some lines ahead
        async for message in session:
            if isinstance(message, ResultMessage) and message.result == "the last one":
                break


@every_virtual_backend
@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC, AUTO], ids=str)
def test_nothing_changes_when_sessions_take_turns_and_iterate_now_and_then(
    virtual: VirtualBackend, dialect: Dialect
) -> None:
    """A session that reads corrupted lines in arbitrary chunks gives the same messages as a connection line by line."""
    data = b"".join(line.replace(b"\n", b" ") + b"\n" for line in mutants(LINES, 3, 300))
    connection, random = dialect.connect(), Random(3)
    expected = [one for message in Decoder().feed(data) for one in connection.from_agent(message)]
    chooses: dict[str, Any] = {"can_use_tool": lambda request: request.allow()} if dialect is CLASSIC else {}
    received: list[Any] = []

    async def take(session: Session, count: int, seconds: float) -> bool:
        with anyio.move_on_after(seconds) as scope:
            for _ in range(count):
                received.append(await session.__anext__())
        return not scope.cancelled_caught

    async def main() -> None:
        peer, at = LinePeer(), 0
        async with MessageStream(peer.output) as stream:
            while at < len(data):
                async with Session(stream, peer.send, dialect=dialect, **chooses) as session:
                    for _ in range(random.randrange(1, 6)):
                        size = random.choice([1, 30, 200, 1000, 5000])
                        peer.output.write(data[at : at + size])
                        at += size
                        await anyio.sleep(random.choice([0, 0.05]))  # after 0.05 s the session has read the chunk ahead
                        await take(session, random.randrange(20), 0.002)
                    while at >= len(data) and await take(session, 1, 1):
                        pass

    virtual.run(main)
    assert list(map(repr, received)) == [repr(one) for one in expected if type(one) not in KEPT_BACK]
