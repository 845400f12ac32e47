"""Generated scripts of host actions, in any order, run against an agent. The test checks the agent's messages.

The agent must answer each prompt exactly once, give each turn one result and each request one answer, and never wait
forever. This must hold whatever the author's function does, and whenever the host interrupts, asks, answers late, twice
or never, closes the input or stops reading. Each script runs in one event loop, in virtual time.

``CLAUDE_WIRE_LONG=1`` runs more scripts.
"""

from __future__ import annotations

import os
from typing import Any

import anyio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_host import Host, hosted, initialize, kind, prompt
from claude_wire.agent import Agent, AgentOptions, Turn
from virtual_time import VirtualBackend, every_virtual_backend

EXAMPLES = 3_000 if os.environ.get("CLAUDE_WIRE_LONG") else 60
OPTIONS = AgentOptions(
    permission_prompt_tool="stdio", include_partial_messages=True, replay_user_messages=True, reads_session_state=True
)


async def author(turn: Turn) -> str:
    """Do what the first word of the prompt says. Return the texts of all prompts of the turn."""
    said = [turn.text]
    how = turn.text.split()[0]
    if how == "slow":
        for _ in range(10):
            await turn.stream("x ")
            await anyio.sleep(0.3)
    elif how == "tool":
        await turn.run_tool("Bash", {"n": 1}, make)
        said += [one.text for one in await turn.injected()]
    elif how == "crash":
        await turn.stream("half")
        raise ValueError("as the script says")
    elif how == "swallow":
        try:
            await anyio.sleep(1)
        except BaseException:
            await turn.say("I go on")  # on trio, this await raises Cancelled again
            raise
        await turn.say("slept")
    elif how == "linger":
        try:
            await anyio.sleep(1)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(50)
    else:
        await turn.say("quick")
    return "\n".join(said)


async def make(given: dict[str, Any]) -> str:
    return "made"


class World:
    """The host of the agent, with the prompts and requests that it has sent."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.count = 0
        self.sent: list[str] = []
        self.uuids: dict[str, str] = {}
        self.asked: list[str] = []
        self.questions: list[str] = []
        self.open = True
        host.answers = self._asked

    def _asked(self, request: dict[str, Any]) -> None:
        self.questions.append(self.host.messages[-1]["request_id"])

    async def query(self, how: str, named: bool, **fields: Any) -> None:
        self.count += 1
        text = f"{how} p{self.count}"
        uuid = f"u{self.count}" if named else None
        if self.open:
            self.sent.append(f"p{self.count}")
            if uuid:
                self.uuids[uuid] = f"p{self.count}"
        await self.host.tell(prompt(text, uuid, **fields))

    async def again(self, number: int) -> None:
        if self.uuids:
            uuid = sorted(self.uuids)[number % len(self.uuids)]
            await self.host.tell(prompt("quick again", uuid))

    async def interrupt(self, cancel: bool) -> None:
        await self._request("interrupt", **({"cancel_queued": True} if cancel else {}))

    async def cancel(self, number: int) -> None:
        if self.uuids:
            await self._request("cancel_async_message", message_uuid=sorted(self.uuids)[number % len(self.uuids)])

    async def model(self, name: str | None) -> None:
        await self._request("set_model", model=name)

    async def _request(self, subtype: str, **fields: Any) -> None:
        request_id = f"r{len(self.asked)}"
        if self.open:
            self.asked.append(request_id)
        await self.host.tell(self.host.ask(request_id, subtype, **fields))

    async def answer(self, number: int, payload: dict[str, Any] | None) -> None:
        """Answer a question of the agent, possibly one that is already answered or cancelled."""
        if self.questions:
            request_id = self.questions[number % len(self.questions)]
            success = {"subtype": "success", "request_id": request_id, "response": payload}
            failure = {"subtype": "error", "request_id": request_id, "error": "no"}
            response = failure if payload is None else success
            await self.host.tell({"type": "control_response", "response": response})

    async def end(self) -> None:
        self.open = False
        self.host.end()


def action(name: str, *arguments: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *arguments)


HOW = st.sampled_from(["quick", "slow", "tool", "crash", "swallow", "linger"])
PAYLOADS = st.sampled_from(
    [{"behavior": "allow"}, {"behavior": "deny", "message": "no"}, {"behavior": "perhaps"}, None]
)
STEPS = st.one_of(
    action("query", HOW, st.booleans()),
    action("query", HOW, st.booleans()),
    action("again", st.integers(0, 3)),
    action("now", HOW),
    action("interrupt", st.booleans()),
    action("interrupt", st.just(False)),
    action("cancel", st.integers(0, 5)),
    action("model", st.sampled_from(["m", None])),
    action("answer", st.integers(0, 3), PAYLOADS),
    action("answer", st.integers(0, 3), PAYLOADS),
    action("sleep", st.sampled_from([0.0, 0.01, 0.5, 3.0, 60.0])),
    action("sleep", st.sampled_from([0.0, 0.01, 0.5, 3.0, 60.0])),
    action("end"),
)


async def play(script: list[tuple[Any, ...]]) -> None:
    async with hosted(Agent(author, options=OPTIONS)) as host:
        world = World(host)
        await host.tell(initialize())
        for name, *arguments in script:
            if name == "sleep":
                await anyio.sleep(*arguments)
            elif name == "now":
                await world.query(*arguments, True, priority="now")
            else:
                await getattr(world, name)(*arguments)
        await world.end()
        with anyio.fail_after(10_000):
            while host.code is None:
                await anyio.sleep(1)
    check(world)


def check(world: World) -> None:
    messages = world.host.messages
    # Each prompt that the agent read is in exactly one result, or the agent reported it as cancelled.
    answered: list[str] = []
    cancelled: list[str] = []
    under_way = False
    for message in messages:
        tag = kind(message)
        if tag == "system/init":
            assert not under_way
            under_way = True
        elif tag.startswith("result"):
            assert under_way
            under_way = False
            named = [world.uuids[uuid] for uuid in message.get("user_message_uuids") or ()]
            texts = [word for word in (message.get("result") or "").split() if word.startswith("p")]
            answered += named + [word for word in texts if word not in named]
        elif tag == "command_lifecycle/cancelled":
            cancelled.append(world.uuids[message["command_uuid"]])
        elif tag.startswith(("stream_event", "assistant")):
            assert under_way
    assert not under_way
    assert len(answered) == len(set(answered))
    results = sum(kind(message).startswith("result") for message in messages)
    inits = sum(kind(message) == "system/init" for message in messages)
    assert results == inits
    named = set(world.uuids.values())
    for text in named:
        assert text in answered or text in cancelled, text
    # Each request that the agent read has exactly one answer.
    answers = [m["response"]["request_id"] for m in messages if m["type"] == "control_response"]
    assert sorted(answers) == sorted(["init", *world.asked])
    state = [m["state"] for m in messages if kind(m) == "system/session_state_changed"]
    assert not state or state[-1] == "idle"
    last = [m for m in messages if kind(m).startswith("result")]
    assert world.host.code == (1 if last and last[-1]["is_error"] else 0)


@every_virtual_backend
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example([("query", "linger", True), ("sleep", 0.5), ("interrupt", False), ("query", "quick", True)])
@example([("query", "tool", True), ("sleep", 0.5), ("interrupt", True), ("answer", 0, {"behavior": "allow"})])
@example([("query", "slow", True), ("query", "slow", True), ("sleep", 0.5), ("now", "quick"), ("sleep", 60.0)])
@given(st.lists(STEPS, max_size=14))
def test_no_prompt_is_lost_and_each_turn_has_one_result(virtual: VirtualBackend, script: list[tuple[Any, ...]]) -> None:
    virtual.run(play, script)


@every_virtual_backend
@settings(max_examples=EXAMPLES // 3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=8), st.sampled_from(["broken", "cancelled", "terminated", "signal"]))
def test_an_agent_ends_whatever_becomes_of_its_host(
    virtual: VirtualBackend, script: list[tuple[Any, ...]], end: str
) -> None:
    async def main() -> None:
        host = Host()
        world = World(host)
        agent = Agent(author, options=OPTIONS)
        async with anyio.create_task_group() as group:
            host.start(agent, group)
            for name, *arguments in script:
                if name == "sleep":
                    await anyio.sleep(*arguments)
                elif name == "now":
                    await world.query(*arguments, True, priority="now")
                else:
                    await getattr(world, name)(*arguments)
            if end == "broken":
                host.broken = True
                await world.query("quick", True)
                await world.query("slow", True)
            elif end == "terminated":
                host.service.terminate()
            elif end == "signal":
                host.service.interrupt()
            else:
                group.cancel_scope.cancel()
            with anyio.move_on_after(100):
                await anyio.sleep(99)
            if end != "cancelled":
                assert host.code is not None or not world.open
        host.end()
        host.input.close()

    virtual.run(main)
