"""Random scripts run an attached session: messages, prompts, questions, answers and lost connections in any order.

The tests check these promises over all connections:

- Each line reaches the consumer once and in order, wherever chunks end.
- The cursor is the position of the last message that the consumer took.
- A driver is asked each open question once, and a settled question never.
- The supervisor receives each prompt once, and at most one answer to a question counts.
- The run knows which prompts are owed.

A script runs in one event loop, in virtual time. ``CLAUDE_WIRE_LONG=1`` runs more scripts.
"""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from claude_wire import CanUseToolRequest, HandleError, Session
from claude_wire.messages import PermissionResult
from claude_wire_kit.supervisor.errors import DetachedError
from claude_wire_kit.supervisor.frames import Cursor
from long_tests import LONG
from session_peer import INIT, RESULT, Peer, line, numbered
from supervisor_peer import SupervisorPeer, Wire
from virtual_time import VirtualBackend, every_virtual_backend

EXAMPLES = 5_000 if LONG else 150
#: Seconds after which all pending work is done.
SOON = 1.0


class CutWire(Wire):
    """A connection that holds the supervisor's bytes until the script delivers them, and may drop the client's."""

    def __init__(self, supervisor: SupervisorPeer) -> None:
        super().__init__(supervisor)
        self.in_flight = bytearray()
        self.is_deaf = False

    def write(self, data: bytes) -> None:
        self.in_flight += data

    def deliver(self, share: float) -> None:
        count = len(self.in_flight) if share == 1 else int(len(self.in_flight) * share)
        self.output.write(bytes(self.in_flight[:count]))
        del self.in_flight[:count]

    def send(self, data: bytes) -> None:
        if not self.is_deaf:
            super().send(data)


class World:
    """A supervisor and its successive clients."""

    def __init__(self) -> None:
        self.host = SupervisorPeer()
        self.count = 0
        #: The line number and key of each message that the consumer must receive.
        self.expected: list[tuple[int, str]] = []
        self.taken: list[str] = []
        self.asked: list[str] = []
        self.withdrawn: set[str] = set()
        self.queried: list[str] = []
        self.cursor: Cursor | None = None
        self.again: list[bytes] = []
        # The state of the current connection.
        self.session: Session | None = None
        self.wire: CutWire | None = None
        self.is_driver = False
        self.known: set[str] = set()
        self.questions: list[str] = []
        self.gates: dict[str, anyio.Event] = {}
        self.answers_all = False

    # --- the CLI

    def say(self, message: dict[str, Any], key: str) -> None:
        self.host.say(message)
        self.expected.append((len(self.host.journal), key))

    def message(self) -> None:
        self.count += 1
        self.say(numbered(self.count), f"{self.count}")

    def other(self, kind: int) -> None:
        others = [b"\n", b" \r\n", line({"type": "keep_alive"}), line(self.host.initialized or {})]
        self.host.raw(others[kind % len(others)])

    def nonsense(self) -> None:
        self.host.raw(b"{nonsense\n")
        self.expected.append((len(self.host.journal), "invalid"))

    def ask(self) -> None:
        self.asked.append(f"q{len(self.asked)}")
        self.host.say(Peer.permission(self.asked[-1], tool_use_id=self.asked[-1]))

    def withdraw(self, number: int) -> None:
        if self.host.open:
            id = list(self.host.open)[number % len(self.host.open)]
            self.withdrawn.add(id)
            self.host.say(Peer.cancel(id))

    def begin(self) -> None:
        self.say(INIT, "init")

    def result(self, named: bool) -> None:
        uuids = self.host.owed[:1]
        if uuids:
            self.say({**RESULT, "user_message_uuids": uuids}, f"result {uuids[0]}")
        elif not named:
            self.say({**RESULT, "user_message_uuids": []}, "result")

    # --- the supervisor

    def frame(self, kind: int) -> None:
        frames: list[dict[str, Any]] = [
            {"type": "supervisor_stderr", "text": "x"},
            {"type": "supervisor_blocked", "message": ""},
            {"type": "supervisor_of_tomorrow", "open": True},
        ]
        if self.wire is not None:
            self.wire.say(**frames[kind % len(frames)])

    def replace(self) -> None:
        if self.wire is not None and self.is_driver:
            self.wire.say(type="supervisor_driver", role="viewer", driver=True)
            self.wire.is_deaf = True
            self.is_driver = False

    def deaf(self) -> None:
        if self.wire is not None:
            self.wire.is_deaf = True

    def deliver(self, share: float) -> None:
        if self.wire is not None:
            self.wire.deliver(share)

    # --- the client

    async def connect(self, role: str) -> None:
        await self.lose(1.0)
        self.wire = wire = CutWire(self.host)
        answer = self.host.attached(self.cursor, role=role)
        self.host.wires = [wire]
        wire.write(b"".join(self.host.journal[answer.after :]))
        self.session = session = self.host.session(wire, answer, can_use_tool=self._decide)
        self.is_driver = role == "driver"
        self.known = set(self.host.answers) | self.withdrawn
        self.questions, self.gates = [], {}
        await session.__aenter__()
        if self.is_driver:
            again, self.again = self.again, []
            await session.send_again(again)

    async def _decide(self, request: CanUseToolRequest) -> PermissionResult:
        id = request.tool_use_id
        assert id is not None
        assert id not in self.known, "a settled question was asked again"
        assert id not in self.questions, "a question was asked twice"
        self.questions.append(id)
        if not self.answers_all:
            self.gates[id] = anyio.Event()
            await self.gates[id].wait()
        return request.allow()

    async def answer(self, number: int) -> None:
        if self.gates:
            id = list(self.gates)[number % len(self.gates)]
            self.gates.pop(id).set()
            await anyio.wait_all_tasks_blocked()

    async def query(self) -> None:
        if self.session is None:
            return
        uuid = f"p{len(self.queried)}"
        try:
            await self.session.query("x", uuid=uuid)
        except HandleError:
            assert not self.is_driver
        else:
            self.queried.append(uuid)

    async def take(self, count: int) -> None:
        session = self.session
        for _ in range(count):
            message: Any = None
            with anyio.move_on_after(SOON):
                if session is not None:
                    message = await session.__anext__()
            if message is None:
                return
            self.took(message)

    async def take_all(self, session: Session) -> None:
        async for message in session:
            self.took(message)

    def took(self, message: Any) -> None:
        assert self.session is not None
        name = type(message).__name__
        uuids = getattr(message, "user_message_uuids", None)
        key = {
            "UserMessage": lambda: message.text.split()[0],
            "InvalidLine": lambda: "invalid",
            "InitMessage": lambda: "init",
            "ResultSuccess": lambda: f"result {uuids[0]}" if uuids else "result",
        }[name]()
        number, expected = self.expected[len(self.taken)]
        assert key == expected, "a message came twice, or was left out"
        self.taken.append(key)
        assert self.session.cursor == Cursor("s1", 1, number)

    async def lose(self, share: float) -> None:
        """Deliver a share of the bytes in flight, and end the connection. The client may take its messages first."""
        session, wire = self.session, self.wire
        if session is None or wire is None:
            return
        wire.deliver(share)
        wire.lose()
        if share < 0.5:  # otherwise the client leaves without taking the messages
            with pytest.raises(DetachedError) as caught:
                await self.take_all(session)
            assert caught.value.cursor == session.cursor
            assert caught.value.unacknowledged == session.unacknowledged
        await session.aclose()
        self.cursor = session.cursor
        self.again += session.unacknowledged
        self.session = self.wire = None

    async def end(self) -> None:
        """Attach a last driver that answers all questions and takes all messages."""
        self.answers_all = True
        await self.connect("driver")
        assert self.session is not None
        self.deliver(1.0)
        await anyio.wait_all_tasks_blocked()
        while self.host.owed or self.host.turn:
            self.result(named=False)
        self.deliver(1.0)
        with anyio.fail_after(100 * SOON):
            async for message in self.session.receive_run():
                self.took(message)
        await self.take(len(self.expected))
        await anyio.sleep(SOON)
        assert self.taken == [key for _, key in self.expected]
        assert self.host.open == {}, "a question was left open"
        assert set(self.asked) == set(self.host.answers) | self.withdrawn
        assert self.host.prompts == [uuid for uuid in self.queried if uuid in self.host.prompts]
        assert set(self.host.prompts) == set(self.queried), "a prompt was lost"
        self.deliver(1.0)
        await anyio.sleep(SOON)
        assert self.session.unacknowledged == []
        await self.lose(1.0)


def step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *arguments)


which = st.integers(0, 5)
share = st.sampled_from([0.1, 0.5, 0.9, 1.0, 1.0])
STEPS = st.one_of(
    step("message"),
    step("message"),
    step("ask"),
    step("ask"),
    step("other", which),
    step("nonsense"),
    step("withdraw", which),
    step("begin"),
    step("result", st.booleans()),
    step("frame", which),
    step("replace"),
    step("deaf"),
    step("deliver", share),
    step("deliver", st.floats(0, 1)),
    step("deliver", st.just(1.0)),
    step("connect", st.sampled_from(["driver", "driver", "driver", "viewer"])),
    step("lose", share),
    step("answer", which),
    step("query"),
    step("take", st.integers(1, 4)),
    step("sleep", st.sampled_from([0.0, 0.02, 3.0])),
)


async def play(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for name, *arguments in script:
        if name == "sleep":
            await anyio.sleep(*arguments)
            continue
        done = getattr(world, name)(*arguments)
        if done is not None:
            await done
    await world.end()


#: A script in which the answer to a question gets lost, and the connection then ends in the middle of a line.
LOST_ANSWER: list[tuple[Any, ...]] = [
    *(("connect", "driver"), ("ask",), ("message",), ("deliver", 1.0), ("sleep", 0.02), ("deaf",), ("answer", 0)),
    *(("query",), ("message",), ("deliver", 0.5), ("take", 2), ("lose", 0.1), ("connect", "driver")),
]


@every_virtual_backend
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(script=st.lists(STEPS, max_size=40))
@example(script=LOST_ANSWER)
@example(script=[("connect", "driver"), ("ask",), ("deliver", 1.0), ("sleep", 0.02), ("replace",), ("deliver", 1.0)])
def test_nothing_is_lost_repeated_or_asked_twice_over_any_connections(
    virtual: VirtualBackend, script: list[tuple[Any, ...]]
) -> None:
    virtual.run(play, script)
