"""Random scripts of the peer, the host and the consumer of a session, checked against a simple model.

The promises: every message reaches the consumer once and in order, wherever chunks are cut and whichever side reads;
every request of the peer is answered once, unless the peer withdraws it; every request of ours ends once, with the
right outcome; nothing waits forever. A script runs in one event loop and in virtual time, so it always has the same
outcome.

``CLAUDE_WIRE_LONG=1`` runs more scripts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, example, given, register_random, settings
from hypothesis import strategies as st

from claude_wire import (
    CanUseToolRequest,
    HandleError,
    InvalidLine,
    RequestRefusedError,
    RequestTimeoutError,
    SessionEndedError,
    UserMessage,
)
from claude_wire.messages import InterruptRequest, PermissionResult
from session_peer import Peer, line, numbered, queued_bytes
from virtual_time import VirtualBackend, every_virtual_backend

#: Seconds: the timeout of a callback, and the most that one step of the session takes. The model allows for the latter.
OVERRUN, SLACK = 50.0, 2.0
#: Seconds; longer than any wait in a script.
LONG = 10_000.0
#: A byte position that no stream reaches.
NEVER = 1 << 60

EXAMPLES = 5_000 if os.environ.get("CLAUDE_WIRE_LONG") else 200


@pytest.fixture(scope="module", autouse=True)
def _same_order_every_time() -> None:
    """Make trio schedule its tasks in a reproducible order for Hypothesis, as pytest-trio does."""
    run = pytest.importorskip("trio")._core._run
    run._ALLOW_DETERMINISTIC_SCHEDULING = True
    register_random(run._r)


class Asked(NamedTuple):
    """A request that the peer sent."""

    kind: str
    #: The position in the stream just after its line.
    end: int


class World:
    """A session with its peer, its consumer and its callers, and a record of what each of them saw."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self.group = group
        self.peer = Peer()
        del self.peer.answers["initialize"]
        self.session = self.peer.session(can_use_tool=self._decide, callback_timeout=OVERRUN)
        # Everything that the peer wrote, how many bytes of it the stream has, and the time at which it had that many.
        self.said = bytearray()
        self.given = 0
        self.given_at: list[tuple[int, float]] = []
        self.errors_at: list[int] = []
        self.ended = False
        self.count = 0
        # Requests of the peer by id, and the position in the stream at which the withdrawal of a request ends.
        self.asked: dict[str, Asked] = {}
        self.withdrawals: dict[str, int] = {}
        # The verdict for each callback and the time it was given; an event per verdict; the time each callback began.
        self.verdicts: dict[str, tuple[str, float]] = {}
        self.told: dict[str, anyio.Event] = {}
        self.begun: dict[str, float] = {}
        # Our requests by number: their outcomes, timeouts and answers.
        self.outcomes: dict[int, tuple[str, float]] = {}
        self.timeouts: dict[int, tuple[float, float]] = {}
        self.callers: dict[int, anyio.CancelScope] = {}
        self.answered: dict[int, tuple[str, int]] = {}
        # The consumer: what it received, its cancel scope, and whether it has stopped.
        self.got: list[Any] = []
        self.consumer: tuple[anyio.CancelScope, anyio.Event] | None = None
        self.stopped = False
        # The faults that the script injects.
        self.closed = self.send_failed = self.ended_early = False

    # --- the peer

    def say(self, message: dict[str, Any]) -> int:
        if not self.ended:
            self.said += line(message)
        return len(self.said)

    def message(self, size: int) -> None:
        self.count += 1
        self.say(numbered(self.count, size))

    def bad_line(self, number: int) -> None:
        if not self.ended:
            bad = [b"{", b"\x00\xff", b'{"type":"control_request"', b'["control_request"]', b" "]
            self.said += bad[number % len(bad)] + b"\n"

    def keep_alive(self) -> None:
        self.say({"type": "keep_alive"})

    def ask(self, kind: str) -> None:
        if self.ended:
            return
        request_id = f"p{len(self.asked)}"
        self.told[request_id] = anyio.Event()
        message = {
            "unknown": Peer.request(request_id, "of_tomorrow"),
            "dialog": Peer.request(request_id, "request_user_dialog", dialog_kind="of tomorrow", payload={}),
            "unreadable": {"type": "control_request", "request_id": request_id},
        }.get(kind) or Peer.permission(request_id, kind, tool_use_id=request_id)
        self.asked[request_id] = Asked(kind, self.say(message))

    def ask_again(self, number: int) -> None:
        if self.asked:
            self.say(Peer.permission(f"p{number % len(self.asked)}", "again", tool_use_id="again"))

    def withdraw(self, number: int) -> None:
        if self.asked and not self.ended:
            request_id = f"p{number % len(self.asked)}"
            end = self.say(Peer.cancel(request_id))
            self.withdrawals.setdefault(request_id, end)

    def answer(self, number: int, how: str) -> None:
        if self.ended:
            return
        requests = self.peer.requests("interrupt")
        if how == "nobody" or not requests:
            self.say({"type": "control_response", "response": {"subtype": "success", "request_id": "nobody's"}})
            return
        index = number % len(requests)
        request_id, ours = requests[index]["request_id"], self._number(requests[index])
        response: dict[str, Any] = {"subtype": "success", "request_id": request_id, "response": {"still_queued": []}}
        response["response"]["still_queued"].append(str(ours))
        if how == "error":
            response = {"subtype": "error", "request_id": request_id, "error": str(ours)}
        end = self.say({"type": "control_response", "response": response})
        self.answered.setdefault(ours, (how, end))

    @staticmethod
    def _number(request: dict[str, Any]) -> int:
        # The only free field of the request carries our number.
        return int(request["spare"])

    def give(self, share: float) -> None:
        """Give the stream this share of the pending bytes, wherever that cuts them."""
        size = round((len(self.said) - self.given) * share)
        if size and not self.ended:
            self.peer.output.write(bytes(self.said[self.given : self.given + size]))
            self.given += size
            self.given_at.append((self.given, anyio.current_time()))

    def give_all_but(self, count: int) -> None:
        """Give the stream all pending bytes except the last ``count``, to cut a line near its end."""
        left = len(self.said) - self.given
        if left > count:
            self.give((left - count) / left)

    def give_bytes(self) -> None:
        """Give the stream all pending bytes one by one."""
        while self.given < len(self.said) and not self.ended:
            self.give(1 / (len(self.said) - self.given))

    def fail(self) -> None:
        if not self.ended:
            self.errors_at.append(self.given)
            self.peer.output.write(OSError("of the stream"))

    def end(self) -> None:
        """Close the output now and drop the pending bytes."""
        if not self.ended:
            self.ended = self.ended_early = True
            del self.said[self.given :]
            # The last line is complete even without its line feed, so count one byte more.
            self.given_at.append((self.given + 1, anyio.current_time()))
            self.peer.output.end()

    def sending(self, how: str) -> None:
        async def slow() -> None:
            await anyio.sleep(0.25)

        self.peer.failure = OSError("of sending") if how == "fails" else None
        self.send_failed |= how == "fails"
        self.peer.hold = slow if how == "slow" else anyio.lowlevel.checkpoint

    # --- the host

    async def _decide(self, request: CanUseToolRequest) -> PermissionResult:
        request_id = request.tool_use_id
        assert request_id is not None
        assert request_id not in self.begun, "a callback ran twice"
        self.begun[request_id] = anyio.current_time()
        with anyio.CancelScope(shield=request.tool_name == "stubborn"):
            await self.told[request_id].wait()
        verdict, _ = self.verdicts[request_id]
        if verdict == "raise":
            raise ValueError(request_id)
        return request.allow({"id": request_id}) if verdict == "allow" else request.deny(request_id)

    def tell(self, number: int, verdict: str) -> None:
        if self.asked:
            self._tell(f"p{number % len(self.asked)}", verdict)

    def _tell(self, request_id: str, verdict: str) -> None:
        if request_id not in self.verdicts:
            self.verdicts[request_id] = verdict, anyio.current_time()
            self.told[request_id].set()

    def request(self, seconds: float) -> None:
        self.callers[len(self.timeouts)] = anyio.CancelScope()
        self.group.start_soon(self._request, len(self.timeouts), seconds)
        self.timeouts[len(self.timeouts)] = seconds, anyio.current_time()

    async def _request(self, number: int, seconds: float) -> None:
        outcome = "cancelled"
        with self.callers[number]:
            self.timeouts[number] = seconds, anyio.current_time()
            try:
                answer: Any = await self.session.request(Numbered(spare=str(number)), timeout=seconds)
                assert answer == {"still_queued": [str(number)]}
                outcome = "success"
            except RequestRefusedError as error:
                outcome = "error" if error.error == str(number) else "the error of another"
            except RequestTimeoutError:
                outcome = "timeout"
            except (SessionEndedError, HandleError):
                outcome = "ended"
            except OSError:
                outcome = "not sent"
        assert number not in self.outcomes
        self.outcomes[number] = outcome, anyio.current_time()

    def give_up(self, number: int) -> None:
        if self.callers:
            self.callers[number % len(self.callers)].cancel()

    # --- the consumer

    async def consume(self, how: str, number: int) -> None:
        if self.consumer is None and not self.closed:
            started = anyio.Event()
            self.group.start_soon(self._consume, how, number, started)
            await started.wait()

    async def _consume(self, how: str, number: int, started: anyio.Event) -> None:
        gone = anyio.Event()
        with anyio.CancelScope() as scope:
            self.consumer = scope, gone
            started.set()
            steps = 0
            while how != "some" or steps < number:
                steps += 1
                try:
                    if how == "batches":
                        batch = await self.session.batches().__anext__()
                        assert batch
                        self.got.extend(batch)
                    else:
                        self.got.append(await self.session.__anext__())
                except OSError:
                    self.got.append("error")
                except StopAsyncIteration:
                    self.stopped = True
                    break
        self.consumer = None
        gone.set()

    async def leave(self) -> None:
        if self.consumer is not None:
            scope, gone = self.consumer
            scope.cancel()
            await gone.wait()

    async def close(self) -> None:
        self.closed = True
        await self.session.aclose()

    # --- checks of the outcome ----------------------------------------------------------------------------------------

    def expected(self) -> list[Any]:
        """What the consumer must receive from the given bytes: message numbers, places of bad lines, and errors."""
        expected: list[Any] = []
        data = bytes(self.said[: self.given])
        errors = list(self.errors_at)
        offset = 0
        for number, text in enumerate(data.split(b"\n"), 1):
            end = offset + len(text) + 1
            while errors and errors[0] < end:
                expected.append("error")
                errors.pop(0)
            complete = end <= len(data) or self.ended
            if text.strip() and complete:
                try:
                    message = json.loads(text)
                except ValueError:
                    message = None
                if not isinstance(message, dict):
                    expected.append((number, offset, len(text)))
                elif message["type"] == "user":
                    expected.append(int(message["message"]["content"].split()[0]))
                elif message["type"] == "control_request" and "request" not in message:
                    expected.append(message)
            offset = end
        expected += ["error"] * len(errors)
        return expected

    def seen(self) -> list[Any]:
        seen: list[Any] = []
        for message in self.got:
            if isinstance(message, InvalidLine):
                seen.append((message.line_number, message.offset, message.length))
            elif isinstance(message, UserMessage):
                seen.append(int(message.text.split()[0]))
            else:
                seen.append(message if isinstance(message, str) else dict(message))
        return seen

    def given_by(self, end: int) -> float | None:
        """The time at which the stream had this many bytes, or None if it never had."""
        return next((at for given, at in self.given_at if given >= end), None)

    def check_answers(self) -> None:
        responses = [message["response"] for message in self.peer.lines if message["type"] == "control_response"]
        assert {response["request_id"] for response in responses} <= set(self.asked)
        for request_id, asked in self.asked.items():
            answers = self.peer.answers_to(request_id)
            assert len(answers) <= 1, "a request was answered twice"
            at = self.given_by(asked.end)
            if at is None or asked.kind == "dialog":
                assert not answers
                continue
            withdrawn = self.given_by(self.withdrawals.get(request_id, NEVER))
            if not answers:
                assert self.closed or self.send_failed or withdrawn is not None, "a request was not answered"
                continue
            [answer] = answers
            if asked.kind == "unknown":
                assert answer["error_code"] == "unsupported_request"
            elif asked.kind == "unreadable":
                assert answer["subtype"] == "error"
            else:
                begun = self.begun[request_id]
                verdict, told = self.verdicts.get(request_id, ("none", LONG * 100))
                if withdrawn is not None and not self.errors_at:
                    assert withdrawn + SLACK > min(max(told, begun), begun + OVERRUN), "answered after its withdrawal"
                if told < begun + OVERRUN:
                    payload = answer.get("response", {})
                    said = {"allow": payload.get("updatedInput"), "deny": payload.get("message")}
                    expected = {"allow": {"id": request_id}, "deny": request_id}
                    assert said.get(verdict) == expected.get(verdict)
                    assert answer["subtype"] == ("error" if verdict == "raise" else "success")
                else:
                    assert "took longer" in answer["error"]

    def check_outcomes(self) -> None:
        assert set(self.outcomes) == set(self.timeouts), "a request has not ended"
        sent = {self._number(request): request["request_id"] for request in self.peer.requests("interrupt")}
        withdrawn = self.peer.withdrawn()
        assert len(set(withdrawn)) == len(withdrawn)
        for number, (outcome, at) in self.outcomes.items():
            seconds, began = self.timeouts[number]
            how, end = self.answered.get(number, ("none", NEVER))
            answered = self.given_by(end)
            if outcome in ("success", "error"):
                assert outcome == how
                assert answered is not None
            elif outcome == "timeout":
                assert at == pytest.approx(began + seconds)
                assert answered is None or self.errors_at or answered + SLACK > at
            elif outcome == "ended":
                assert self.closed or self.ended
            elif outcome == "not sent":
                assert self.send_failed
            if outcome in ("timeout", "cancelled") and number in sent:
                # The session does not withdraw a request after the end, while sending fails, just after the answer has
                # arrived, or if reading failed before its caller gave up.
                just_ended = (answered is not None and answered <= at) or (outcome == "cancelled" and self.errors_at)
                excused = self.closed or self.ended_early or self.send_failed or just_ended
                assert excused or sent[number] in withdrawn, "a request was not withdrawn"
            else:
                assert sent.get(number) not in withdrawn


class Numbered(InterruptRequest, tag="interrupt", kw_only=True, frozen=True):
    """An interrupt request with a number, to distinguish it from others."""

    spare: str

    @classmethod
    def parse_answer(cls, payload: dict[str, Any]) -> Any:
        return payload


Action = Callable[[World], Any]


def action(name: str, *arguments: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *arguments)


#: Selects one of the existing items: an index, taken modulo their number.
which = st.integers(0, 5)
STEPS = st.one_of(
    action("message", st.sampled_from([0, 0, 0, 40])),
    action("message", st.just(0)),
    action("bad_line", which),
    action("keep_alive"),
    action("ask", st.sampled_from(["polite", "polite", "polite", "stubborn", "unknown", "dialog", "unreadable"])),
    action("ask", st.just("polite")),
    action("ask_again", which),
    action("withdraw", which),
    action("tell", which, st.sampled_from(["allow", "deny", "raise"])),
    action("request", st.sampled_from([0.0, 1.0, 20.0, LONG])),
    action("answer", which, st.sampled_from(["success", "success", "error", "nobody"])),
    action("give_up", which),
    action("give", st.sampled_from([1.0, 1.0, 0.5, 0.1])),
    action("give", st.floats(0, 1)),
    action("give_all_but", st.integers(1, 60)),
    action("give_all_but", st.integers(1, 60)),
    action("give_bytes"),
    action("consume", st.sampled_from(["some", "all", "batches"]), st.integers(1, 4)),
    action("leave"),
    action("sending", st.sampled_from(["slow", "fine", "fine"])),
    action("sleep", st.sampled_from([0.0, 0.001, 0.02, 3.0, 60.0])),
    action("tick", st.integers(1, 6)),
)
FAULTS = st.one_of(
    action("fail"), action("end"), action("close"), action("sending", st.sampled_from(["fails", "fails", "fine"]))
)
#: A line cut in two, where either the consumer or the read-ahead gets the first part and the other one the rest.
CUT = st.integers(1, 60).map(
    lambda count: [("message", 0), ("ask", "polite"), ("give_all_but", count), ("sleep", 0.02)]
)
COME = st.just([("consume", "all", 0), ("tick", 6), ("message", 0), ("give", 1.0), ("tick", 6)])
GO = st.just([("leave",), ("sleep", 0.02), ("give", 1.0), ("sleep", 0.02)])


def scripts(*steps: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    parts = st.one_of(*(step.map(lambda one: [one]) for step in steps), CUT, COME, GO)
    return st.lists(parts, max_size=40).map(lambda some: [step for part in some for step in part])


PLAIN = scripts(STEPS, STEPS, STEPS)
FAULTY = scripts(STEPS, STEPS, STEPS, FAULTS)


async def play(script: list[tuple[Any, ...]]) -> None:
    """Run a script, let all pending work finish, and check all promises."""
    before = queued_bytes()
    async with anyio.create_task_group() as group:
        world = World(group)
        async with world.session:
            for name, *arguments in script:
                if name == "sleep":
                    await anyio.sleep(*arguments)
                elif name == "tick":
                    for _ in range(*arguments):
                        await anyio.lowlevel.checkpoint()
                elif (result := getattr(world, name)(*arguments)) is not None:
                    await result
            world.sending("fine")
            world.give(1.0)
            # Stop the consumer, and wait until the session has answered everything that it can.
            await world.leave()
            await anyio.sleep(5 * OVERRUN)
            if not world.errors_at:
                world.check_answers()
            await anyio.sleep(2 * LONG)
            ended_early = world.ended_early
            world.end()
            world.ended_early = ended_early
            await world.consume("all", 0)
            await anyio.sleep(5 * OVERRUN)
            assert world.consumer is None, "the consumer waits for ever"
            assert world.stopped or world.closed
            seen, expected = world.seen(), world.expected()
            assert seen == (expected[: len(seen)] if world.closed else expected)
            world.check_answers()
            world.check_outcomes()
            for request_id in world.asked:
                world._tell(request_id, "allow")
        sent = len(world.peer.lines)
        await world.peer.stream.aclose()
        await anyio.sleep(LONG)
        assert len(world.peer.lines) == sent, "something was sent after the end"
    assert queued_bytes() == before


def at_most(examples: int) -> settings:
    return settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


#: The session reads ahead, then the consumer reads up to the middle of a line, then the session reads ahead again.
HANDED_OVER: list[tuple[Any, ...]] = [
    *(("message", 0), ("give", 1.0), ("sleep", 0.02)),
    *(("consume", "all", 0), ("tick", 6), ("message", 0), ("give", 1.0), ("tick", 6)),
    *(("message", 0), ("ask", "polite"), ("give_all_but", 10), ("tick", 6)),
    *(("leave",), ("sleep", 0.02), ("give", 1.0), ("sleep", 0.02)),
]


@every_virtual_backend
@at_most(EXAMPLES)
@given(script=PLAIN)
@example(script=HANDED_OVER)
@example(script=[("request", 0.0), ("request", 0.0), ("sleep", 0.0), ("give_up", 0)])
@example(script=[("ask", "polite"), ("give", 1.0), ("sleep", 0.02), ("tell", 0, "allow")])
@example(script=[("ask", "polite"), ("give_all_but", 1), ("sleep", 0.02), ("end",)])
@example(script=[("consume", "some", 1), ("message", 0), ("give", 0.5), ("sleep", 0.02), ("ask", "polite")])
def test_nothing_is_lost_and_all_is_answered_once(virtual: VirtualBackend, script: list[tuple[Any, ...]]) -> None:
    virtual.run(play, script)


@every_virtual_backend
@at_most(EXAMPLES)
@given(script=FAULTY)
@example(script=[("request", 1.0), ("give", 1.0), ("sleep", 0.02), ("fail",), ("give_up", 0)])
def test_faults_lose_nothing_and_end_every_wait(virtual: VirtualBackend, script: list[tuple[Any, ...]]) -> None:
    virtual.run(play, script)
