"""Random schedules of a host and a slow agent: check the ends of runs and the results of ``ask()`` against the agent.

The promises: a run ends when every prompt has its result, and not earlier; it always ends; ``ask()`` returns the result
that answers its prompt, or an error that says why there is none; callers take turns. The agent merges waiting prompts,
adds some to a running turn, and already has some prompts. Each kind of agent reports as much about this as a real agent
of its kind does. Each script runs in one event loop, in virtual time.

``CLAUDE_WIRE_LONG=1`` runs more scripts.
"""

from __future__ import annotations

import os
from typing import Any, Literal, NamedTuple

import anyio
import anyio.abc
import anyio.lowlevel
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from claude_wire import HandleError, ResultMessage, TurnError, UserMessage
from claude_wire.errors import PromptAnsweredError, PromptCancelledError, SubagentStoppedError
from claude_wire.messages import CancelAsyncMessageRequest, InterruptRequest
from claude_wire.protocol.run import SETTLE_SECONDS
from session_peer import INIT, RESULT, Peer
from virtual_time import VirtualBackend, every_virtual_backend

EXAMPLES = 3_000 if os.environ.get("CLAUDE_WIRE_LONG") else 75
#: Seconds until the agent has read a message, and seconds until it starts a turn. Their sum is well below
#: SETTLE_SECONDS.
READING, STARTING = 0.3, 0.2


class Kind(NamedTuple):
    """The features of an agent: which messages it sends, and how it treats prompts."""

    names: bool = True
    states: bool = True
    inits: bool = True
    merges: bool = True


#: Kinds of agents by name: today's CLI with and without state messages, an older CLI, and a minimal agent.
KINDS = {
    "today": Kind(),
    "no states": Kind(states=False),
    "no names": Kind(names=False, states=False),
    "plain": Kind(names=False, states=False, inits=False, merges=False),
}


class Said(NamedTuple):
    """A prompt that the agent received."""

    uuid: str | None
    text: str


class Agent(Peer):
    """An agent that ends each turn with a result. The text of the result joins the texts of all prompts of the turn."""

    def __init__(self, kind: Kind, durations: list[float]) -> None:
        super().__init__()
        self.kind = kind
        self.durations = durations
        self.answers["interrupt"] = self._interrupt
        self.answers["cancel_async_message"] = self._cancel
        self.arrived: list[Said] = []
        self.queue: list[Said] = []
        # The texts of the results that it sent, of the prompts that it cancelled, and of the prompts that it already
        # had.
        self.results: list[str] = []
        self.cancelled: list[str] = []
        self.had: list[str] = []
        self.turn: list[Said] = []
        # Background tasks: the number started, the running ones, and the ended ones that wait for a turn.
        self.begun = 0
        self.running: dict[str, anyio.CancelScope] = {}
        self.ended: list[str] = []
        self.stopped = 0
        self.fold = False
        self.idle = True
        self._group: anyio.abc.TaskGroup | None = None
        self._stop: anyio.CancelScope | None = None
        self._work = anyio.Event()

    def took(self, message: dict[str, Any]) -> None:
        if message["type"] == "user":
            self.arrived.append(Said(message.get("uuid"), message["message"]["content"]))
            self._work.set()
        super().took(message)

    @property
    def done(self) -> bool:
        """Whether the agent has no prompts, turns or background tasks left."""
        return not (self.arrived or self.queue or self.turn or self.running or self.ended)

    def wake(self, seconds: float) -> None:
        """Start a background task of this many seconds. Its end starts a turn, unless a running turn handles it."""
        self.begun += 1
        task = f"t{self.begun}"
        about = {"task_id": task, "description": "d", "task_type": "local_agent"}
        self.say({"type": "system", "subtype": "task_started", **about})
        scope = self.running[task] = anyio.CancelScope()
        assert self._group is not None
        self._group.start_soon(self._end, task, scope, seconds)

    def stop(self) -> None:
        """Exceed the budget: stop all background tasks without a turn after them."""
        for task, scope in self.running.items():
            scope.cancel()
            self.stopped += 1
            about = {"task_id": task, "status": "stopped", "output_file": "", "summary": ""}
            self.say({"type": "system", "subtype": "task_notification", **about})
        self.running.clear()
        if not self.idle and not self.turn:
            self._rest()

    async def _end(self, task: str, scope: anyio.CancelScope, seconds: float) -> None:
        with scope:  # stop() may have cancelled the scope before this task began
            await anyio.sleep(seconds)
        if self.running.pop(task, None) is None:
            return  # stop() has ended it already
        self.ended.append(task)
        if self.kind.inits:
            self._notify(task)

    def _notify(self, task: str) -> None:
        about = {"task_id": task, "status": "completed", "output_file": "", "summary": ""}
        self.say({"type": "system", "subtype": "task_notification", **about})

    def lifecycle(self, said: Said, *states: str) -> None:
        if self.kind.names and said.uuid is not None:
            for state in states:
                self.say({"type": "command_lifecycle", "command_uuid": said.uuid, "state": state})

    def state(self, name: str) -> None:
        if self.kind.states:
            self.say({"type": "system", "subtype": "session_state_changed", "state": name, "sdk_host_only": True})

    def _cancel(self, request: dict[str, Any]) -> dict[str, Any]:
        found = [said for said in self.queue if said.uuid == request["message_uuid"]]
        self._sweep(found)
        return {"cancelled": bool(found)}

    def _interrupt(self, request: dict[str, Any]) -> dict[str, Any]:
        swept = list(self.queue) if request.get("cancel_queued") else []
        self._sweep(swept)
        if self._stop is not None:
            self._stop.cancel()
        return {"still_queued": [], "cancelled": [said.uuid for said in swept if said.uuid is not None]}

    def _sweep(self, found: list[Said]) -> None:
        for said in found:
            self.queue.remove(said)
            self.cancelled.append(said.text)
            self.lifecycle(said, "cancelled")

    # --- what goes on

    async def live(self) -> None:
        async with anyio.create_task_group() as self._group:
            self._group.start_soon(self._read)
            while True:
                while not (self.queue or self.ended):
                    await anyio.sleep(0.05)
                await self._take_turn()

    async def _read(self) -> None:
        while True:
            await self._work.wait()
            self._work = anyio.Event()
            await anyio.sleep(READING)
            arrived, self.arrived = self.arrived, []
            for said in arrived:
                if said.text.startswith("old"):
                    self.had.append(said.text)
                    self.lifecycle(said, "completed")
                    if self.idle:
                        self.state("idle")
                    continue
                self.lifecycle(said, "queued")
                self.queue.append(said)

    async def _take_turn(self) -> None:
        if self.idle:
            self.idle = False
            self.state("running")
        await anyio.sleep(STARTING)
        background = not self.queue and bool(self.ended)
        if background:
            task = self.ended.pop(0)
            # An agent that does not announce its turns reports the end of a task only when the turn for it starts.
            # Otherwise a host could not know how long to wait for the turns of several ended tasks.
            if not self.kind.inits:
                self._notify(task)
        else:
            count = len(self.queue) if self.kind.merges else 1
            self.turn, self.queue = self.queue[:count], self.queue[count:]
            if not self.turn:  # the prompts were cancelled a moment ago
                self._rest()
                return
        for said in self.turn:
            self.lifecycle(said, "started")
        if self.kind.inits:
            self.say(INIT)
        with anyio.CancelScope() as self._stop:
            await anyio.sleep(self.durations[len(self.results) % len(self.durations)])
        stopped, self._stop = self._stop.cancelled_caught, None
        if self.fold and self.queue and not stopped:
            folded, self.queue = self.queue, []
            for said in folded:
                self.lifecycle(said, "started", "completed")
            if not self.kind.names:
                count = len(folded)
                self.say({"type": "system", "subtype": "injected", "message_count": count, "content_length": 1})
            self.turn += folded
        # the running turn has handled the ended tasks, and the agent does not report that
        if self.fold and not stopped:
            if not self.kind.inits:
                for task in self.ended:
                    self._notify(task)
            self.ended.clear()
        names = [said.uuid for said in self.turn if said.uuid is not None]
        text = " ".join(said.text for said in self.turn) or "background"
        message = {**RESULT, "result": text, "queued_turn_count": 0}
        if names and self.kind.names:
            message.update(user_message_uuids=names, user_message_uuid=names[-1])
        if background:
            message["origin"] = {"kind": "task-notification"}
        if stopped:
            message.update(subtype="error_during_execution", is_error=True, errors=[text])
        self.say(message)
        for said in self.turn:
            self.lifecycle(said, "cancelled" if stopped else "completed")
        self.results.append(text)
        self.turn = []
        self._rest()

    def _rest(self) -> None:
        if not (self.queue or self.running or self.ended):
            self.idle = True
            self.state("idle")


class World:
    """A session with a simulated agent, and the tasks that use the session."""

    def __init__(self, group: anyio.abc.TaskGroup, agent: Agent) -> None:
        self.group = group
        self.agent = agent
        self.session = agent.session()
        self.count = 0
        self.uuids: list[str] = []
        self.got: list[str] = []
        self.asked: dict[str, str] = {}
        self.askers: dict[str, anyio.CancelScope] = {}
        self.reader: anyio.CancelScope | None = None
        self.gone = anyio.Event()

    def _prompt(self, how: str) -> UserMessage:
        self.count += 1
        text = f"{'old' if how == 'old' else 'p'}{self.count}"
        uuid = None if how == "unnamed" or (how == "old" and not self.agent.kind.names) else f"u-{text}"
        if uuid is not None:
            self.uuids.append(uuid)
        if how == "old" and uuid is None:  # only a prompt with a uuid can be one that the agent already has
            text = f"p{self.count}"
        return UserMessage.of(text, uuid=uuid)

    async def query(self, how: str) -> None:
        await self.session.query(self._prompt(how))

    async def ask(self, how: str, until: Literal["run", "turn"] = "run") -> None:
        prompt = self._prompt(how)
        text = prompt.text
        scope = self.askers[text] = anyio.CancelScope()

        async def run() -> None:
            with scope:
                try:
                    result = await self.session.ask(prompt, until=until)
                    answered = (result.result or "").split()
                    if until == "run":
                        assert self.agent.done, "the run ended before its work"
                    is_last = until == "run" and answered == ["background"]
                    self.asked[text] = "answered" if text in answered or is_last else "another prompt's result"
                except SubagentStoppedError:
                    assert self.agent.stopped
                    assert self.agent.done, "the run ended before its work"
                    self.asked[text] = "stopped"
                except TurnError as error:
                    failed = (error.result.errors or [""])[0].split()
                    is_later = until == "run" and failed == ["background"]
                    self.asked[text] = "answered" if text in failed or is_later else "another prompt's error"
                except PromptAnsweredError:
                    self.asked[text] = "had"
                except PromptCancelledError:
                    self.asked[text] = "cancelled"
                except HandleError:
                    self.asked[text] = "refused"

        self.group.start_soon(run)
        await anyio.lowlevel.checkpoint()

    async def give_up(self, number: int) -> None:
        waiting = [text for text in self.askers if text not in self.asked]
        if waiting:
            text = waiting[number % len(waiting)]
            self.askers[text].cancel()
            self.asked[text] = "given up"
            await anyio.sleep(0.01)

    async def read(self) -> None:
        """Start a task that reads to the end of the run, unless a task already reads."""
        if self.reader is not None or any(text not in self.asked for text in self.askers):
            return
        self.gone = anyio.Event()
        self.reader = scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                try:
                    await self.take()
                    assert self.agent.done, "the run ended before its work"
                except HandleError:
                    pass  # a task calls ask(), so this one may not read
            self.reader = None
            self.gone.set()

        self.group.start_soon(run)
        await anyio.lowlevel.checkpoint()

    async def take(self) -> None:
        async for message in self.session.receive_run():
            if isinstance(message, ResultMessage):
                self.got.append(message.result or "")

    async def leave(self) -> None:
        if self.reader is not None:
            self.reader.cancel()
            await self.gone.wait()

    async def interrupt(self, cancel_queued: bool) -> None:
        await self.session.request(InterruptRequest(cancel_queued=cancel_queued))

    async def cancel(self, number: int) -> None:
        if self.uuids:
            uuid = self.uuids[number % len(self.uuids)]
            await self.session.request(CancelAsyncMessageRequest(message_uuid=uuid))

    def wake(self, seconds: float) -> None:
        if self.agent.turn:
            self.agent.wake(seconds)

    def stop(self) -> None:
        self.agent.stop()

    def fold(self, wanted: bool) -> None:
        self.agent.fold = wanted


def action(name: str, *arguments: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *arguments)


HOW = st.sampled_from(["named", "named", "unnamed", "old"])
STEPS = st.one_of(
    action("query", HOW),
    action("query", HOW),
    action("ask", HOW, st.sampled_from(["run", "run", "turn"])),
    action("ask", HOW, st.sampled_from(["run", "run", "turn"])),
    action("give_up", st.integers(0, 3)),
    action("read"),
    action("read"),
    action("leave"),
    action("interrupt", st.booleans()),
    action("cancel", st.integers(0, 5)),
    action("wake", st.sampled_from([0.0, 0.3, 0.6, 5.0, 50.0])),
    action("stop"),
    action("fold", st.booleans()),
    action("sleep", st.sampled_from([0.0, 0.01, 0.3, 0.6, 5.0])),
    action("sleep", st.sampled_from([0.0, 0.01, 0.3, 0.6, 5.0])),
)
DURATIONS = st.lists(st.sampled_from([0.0, 0.05, 0.6, 40.0]), min_size=1, max_size=3)


async def play(kind: Kind, durations: list[float], script: list[tuple[Any, ...]]) -> None:
    async with anyio.create_task_group() as group:
        agent = Agent(kind, durations)
        world = World(group, agent)
        async with world.session:
            await world.session.initialize()
            group.start_soon(agent.live)
            for name, *arguments in script:
                if name == "sleep":
                    await anyio.sleep(*arguments)
                elif (done := getattr(world, name)(*arguments)) is not None:
                    await done
            # Every waiting caller gets its result. After that a run ends soon after the agent's work.
            with anyio.fail_after(10_000):
                while any(text not in world.asked for text in world.askers):
                    await anyio.sleep(1)
                if world.reader is not None:
                    await world.gone.wait()
                await world.take()
            assert agent.done, "the run ended before its work"
            while not agent.done:
                await anyio.sleep(1)
            began, taken = anyio.current_time(), len(world.got)
            await world.take()
            assert anyio.current_time() - began <= SETTLE_SECONDS
            assert len(world.got) == taken, "a result came behind the end of the run"
            check(world)
        group.cancel_scope.cancel()


def check(world: World) -> None:
    """Check that the outcome of each ask() matches what the agent did with its prompt."""
    agent = world.agent
    for text, outcome in world.asked.items():
        if outcome == "answered" or outcome == "stopped":
            assert any(text in result.split() for result in agent.results)
        elif outcome == "had":
            assert text in agent.had
        elif outcome == "cancelled":
            assert text in agent.cancelled
        elif outcome.startswith("another"):
            # Two prompts, then two results without prompt uuids. Either each prompt has one, or the first result
            # answers both.
            assert agent.kind.merges
            assert not agent.kind.names
        else:
            assert outcome in ("given up", "refused")


@every_virtual_backend
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.sampled_from(sorted(KINDS)), DURATIONS, st.lists(STEPS, max_size=25))
# The interrupt removes a prompt without a uuid from the queue. The answer to the interrupt cannot name that prompt.
@example("today", [0.0], [("query", "unnamed"), ("sleep", 0.3), ("interrupt", True)])
@example("no states", [0.0], [("query", "unnamed"), ("sleep", 0.3), ("interrupt", True)])
# Two background tasks end at the same time, during the turn or after it. Each gets a separate turn.
@example("no names", [0.6], [("query", "named"), ("sleep", 0.6), ("wake", 0.0), ("wake", 0.0)])
@example("no names", [0.6], [("query", "named"), ("sleep", 0.6), ("wake", 5.0), ("wake", 5.0)])
@example("no names", [0.6], [("query", "named"), ("sleep", 0.6), ("read",), ("wake", 0.0), ("wake", 0.0)])
@example("no names", [0.6], [("query", "named"), ("sleep", 0.6), ("read",), ("wake", 5.0), ("wake", 5.0)])
def test_a_run_ends_when_all_is_answered_and_askers_get_their_own_answers(
    virtual: VirtualBackend, kind: str, durations: list[float], script: list[tuple[Any, ...]]
) -> None:
    virtual.run(play, KINDS[kind], durations, script)
