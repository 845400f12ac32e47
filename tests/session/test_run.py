"""Runs and prompts of a session: the results that a run waits for, and callers of ``ask()`` that take turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from async_backends import every_backend
from claude_wire import HandleError, MaxBudgetError, PromptError, ResultMessage, Session, SessionEndedError, UserMessage
from claude_wire.errors import ExecutionError, PromptAnsweredError, PromptCancelledError, SubagentStoppedError
from claude_wire.messages import CancelAsyncMessageRequest
from claude_wire.protocol.run import SETTLE_SECONDS
from run_messages import BACKGROUND, IDLE, RUNNING, ended, lifecycle, listed, result, started
from session_peer import INIT, RESULT, Peer, opened
from virtual_time import VirtualBackend, every_virtual_backend

# --- receive_run ------------------------------------------------------------------------------------------------------


@every_virtual_backend
@pytest.mark.parametrize("states", [True, False], ids=["idle", "no state"])
@pytest.mark.parametrize("uuids", [("a", None), (None, None), (None, "b"), ("a", "b")], ids=str)
async def test_a_run_goes_on_to_the_answer_of_a_prompt_that_was_sent_before_the_last_result_was_taken(
    uuids: tuple[str | None, str | None], states: bool
) -> None:
    def turn(uuid: str | None, text: str) -> list[dict[str, Any]]:
        said = [INIT, result(*([uuid] if uuid else []), text=text, queued_turn_count=0)]
        return [RUNNING, *said, IDLE] if states else said

    async with opened() as (peer, session), anyio.create_task_group() as group:
        await session.query(UserMessage.of("first", uuid=uuids[0]))
        peer.say(*turn(uuids[0], "first"))
        await session.query(UserMessage.of("second", uuid=uuids[1]))

        async def later() -> None:
            await anyio.sleep(0.5)
            peer.say(*turn(uuids[1], "second"))

        group.start_soon(later)
        got = [message async for message in session.receive_run()]
        assert [one.result for one in got if isinstance(one, ResultMessage)] == ["first", "second"]
        assert [message async for message in session.receive_run()] == []


@every_virtual_backend
@pytest.mark.parametrize("said", [[RUNNING, INIT, RESULT, IDLE], [INIT, RESULT]], ids=["idle", "no state"])
async def test_a_result_may_be_for_several_prompts(said: list[dict[str, Any]]) -> None:
    async with opened() as (peer, session):
        for text in "abc":
            await session.query(UserMessage.of(text))
        peer.say(*said)
        began = anyio.current_time()
        got = [message async for message in session.receive_run()]
        assert sum(isinstance(message, ResultMessage) for message in got) == 1
        assert anyio.current_time() - began <= SETTLE_SECONDS
        await session.query("d")
        peer.say(*said)
        assert len([message async for message in session.receive_run()]) == 2


@every_virtual_backend
async def test_a_cli_that_is_idle_although_a_result_is_owed_is_waited_for_up_to_the_ceiling() -> None:
    async with opened() as (peer, session):
        await session.query("x")
        peer.say(IDLE)
        began = anyio.current_time()
        assert [message async for message in session.receive_run(ceiling=50)] == []
        assert anyio.current_time() - began == pytest.approx(50)
        with pytest.raises(PromptError, match="ceiling"):
            await session.ask("y", ceiling=50)
        assert anyio.current_time() - began == pytest.approx(100)


@every_backend
async def test_a_loop_of_runs_without_a_prompt_lets_other_tasks_run() -> None:
    async with opened() as (_, session), anyio.create_task_group() as group:

        async def runs() -> None:
            for _ in range(1_000):
                assert [message async for message in session.receive_run()] == []
            raise AssertionError("no other task ran")

        group.start_soon(runs)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


@every_backend
@pytest.mark.parametrize("how", ["raises", "cancelled"])
async def test_a_prompt_that_was_not_sent_can_be_sent_again_under_its_uuid(how: str) -> None:
    async with opened() as (peer, session):
        if how == "raises":
            peer.failure = OSError("no")
            with pytest.raises(OSError, match="no"):
                await session.query("x", uuid="u")
            peer.failure = None
        else:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await session.query("x", uuid="u")
        assert [message async for message in session.receive_run()] == []
        await session.query("x", uuid="u")
        peer.say(INIT, result("u"))
        got = [message async for message in session.receive_run()]
        assert len(got) == 2


# --- a prompt that the CLI already has --------------------------------------------------------------------------------


def _is_had(peer: Peer, replays: bool) -> Callable[[], Any]:
    """Answer as CLI 2.1.331 answers a prompt whose uuid is already in the resumed session."""

    async def answer() -> None:
        prompt = (await peer.until(peer.prompts))[-1]
        echo = [{**prompt, "isReplay": True}] if replays else []
        peer.say(*echo, lifecycle(prompt["uuid"], "completed"), IDLE)

    return answer


@every_backend
@pytest.mark.parametrize("replays", [False, True])
async def test_a_prompt_that_was_answered_before_the_session_was_resumed_ends_at_once(replays: bool) -> None:
    async with opened() as (peer, session):
        async with anyio.create_task_group() as group:
            group.start_soon(_is_had(peer, replays))
            with pytest.raises(PromptAnsweredError, match="answered before") as caught:
                await session.ask(UserMessage.of("x", uuid="old"))
        assert caught.value.uuid == "old"
    async with opened() as (peer, session):
        async with anyio.create_task_group() as group:
            group.start_soon(_is_had(peer, replays))
            await session.query("x", uuid="old")
            got = [message async for message in session.receive_run()]
        assert len(got) == 1 + replays


@every_backend
@pytest.mark.parametrize("how", ["request", "lifecycle", "interrupt"])
async def test_asking_ends_when_the_prompt_is_taken_out_of_the_queue(how: str) -> None:
    peer = Peer({"cancel_async_message": {"cancelled": True}, "interrupt": {"still_queued": [], "cancelled": ["u"]}})
    async with opened(peer) as (peer, session), anyio.create_task_group() as group:

        async def cancel() -> None:
            await peer.until(peer.prompts)
            if how == "request":
                await session.request(CancelAsyncMessageRequest(message_uuid="u"))
            elif how == "interrupt":
                await session.interrupt(cancel_queued=True)
            else:
                peer.say(lifecycle("u", "queued"), lifecycle("u", "cancelled"))
            peer.say(IDLE)

        group.start_soon(cancel)
        with pytest.raises(PromptCancelledError):
            await session.ask(UserMessage.of("x", uuid="u"))


@every_backend
@pytest.mark.parametrize("asks", [True, False])
async def test_who_waits_for_a_prompt_that_another_task_cancels_ends_though_the_agent_says_no_more(asks: bool) -> None:
    peer = Peer({"cancel_async_message": {"cancelled": True}})
    async with opened(peer) as (peer, session), anyio.create_task_group() as group:

        async def wait() -> None:
            if asks:
                with pytest.raises(PromptCancelledError):
                    await session.ask(UserMessage.of("x", uuid="u"))
            else:
                await session.query("x", uuid="u")
                assert [message async for message in session.receive_run()] == []

        group.start_soon(wait)
        await peer.until(peer.prompts)
        await anyio.wait_all_tasks_blocked()
        await session.request(CancelAsyncMessageRequest(message_uuid="u"))


@every_backend
async def test_a_prompt_that_is_taken_out_of_the_queue_has_no_other_prompts_result() -> None:
    """A result without prompt uuids may answer both prompts, until the CLI reports that the second one is cancelled."""
    async with opened() as (peer, session), anyio.create_task_group() as group:
        await session.query("first")

        async def ask() -> None:
            with pytest.raises(PromptCancelledError):
                await session.ask(UserMessage.of("second", uuid="b"))

        group.start_soon(ask)
        await peer.until(lambda: peer.prompts()[1:])
        peer.say(INIT, result(text="of the first"), lifecycle("b", "cancelled"))


@every_backend
async def test_a_prompt_whose_uuid_is_empty_is_asked_with_one_of_its_own() -> None:
    async with opened() as (peer, session), anyio.create_task_group() as group:
        group.start_soon(session.ask, UserMessage.of("x", uuid=""))
        uuid = (await peer.until(peer.prompts))[0]["uuid"]
        assert uuid
        peer.say(INIT, result(uuid))


@every_backend
async def test_a_prompt_counts_when_another_one_with_its_uuid_was_given_up_before_it_was_sent() -> None:
    async with opened() as (peer, session), anyio.create_task_group() as group:
        go_on = anyio.Event()
        peer.hold = go_on.wait
        scope = anyio.CancelScope()

        async def given_up() -> None:
            with scope:
                await session.query("x", uuid="u")

        group.start_soon(session.query, "before")
        await anyio.wait_all_tasks_blocked()
        group.start_soon(given_up)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(lambda: session.query("x", uuid="u"))
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        go_on.set()
        before, prompt = await peer.until(lambda: peer.prompts() if len(peer.prompts()) == 2 else [])
        peer.say(INIT, result(before["uuid"], text="first"), INIT, result(prompt["uuid"], text="second"))
        said = [message async for message in session.receive_run()]
        assert [message.result for message in said if isinstance(message, ResultMessage)] == ["first", "second"]


@every_virtual_backend
async def test_a_task_that_may_not_read_changes_nothing_for_the_one_that_does() -> None:
    """The end of a prompt wakes the task that reads, even if another task tried to read in the meantime."""
    peer = Peer({"cancel_async_message": {"cancelled": True}})
    async with opened(peer) as (peer, session), anyio.create_task_group() as group:
        await session.query("x", uuid="u")

        async def wait() -> None:
            assert [message async for message in session.receive_run(ceiling=None)] == []

        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(HandleError, match="another task"):
            await session.receive_run().__anext__()
        await session.request(CancelAsyncMessageRequest(message_uuid="u"))


# --- callers of ask() take turns --------------------------------------------------------------------------------------


async def _answers_in_order(peer: Peer) -> None:
    """Answer each prompt with its own text.

    Fail if the session sends a prompt before the previous one has its answer.
    """
    for number in range(3):
        prompt = (await peer.until(lambda number=number: peer.prompts()[number:]))[0]
        await anyio.wait_all_tasks_blocked()
        assert len(peer.prompts()) == number + 1
        peer.say(INIT, result(prompt["uuid"], text=prompt["message"]["content"]))


@every_backend
async def test_callers_of_ask_take_turns() -> None:
    async with opened() as (peer, session):
        answers = {}

        async def ask(text: str) -> None:
            answers[text] = (await session.ask(text)).result

        async with anyio.create_task_group() as group:
            group.start_soon(_answers_in_order, peer)
            for text in "abc":
                group.start_soon(ask, text)
        assert answers == {"a": "a", "b": "b", "c": "c"}


@every_backend
async def test_a_caller_that_gives_up_while_it_waits_has_sent_nothing_and_lets_the_next_go_on() -> None:
    async with opened() as (peer, session):
        scopes = [anyio.CancelScope() for _ in range(3)]
        answers: list[str | None] = []

        async def ask(number: int) -> None:
            with scopes[number]:
                answers.append((await session.ask(str(number))).result)

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(ask, number)
                await anyio.wait_all_tasks_blocked()
            scopes[1].cancel()
            scopes[0].cancel()  # its prompt is sent, and its turn is running
            await anyio.wait_all_tasks_blocked()
            sent = [prompt["message"]["content"] for prompt in peer.prompts()]
            assert sent == ["0", "2"]
            first, third = (prompt["uuid"] for prompt in peer.prompts())
            peer.say(INIT, result(first, text="0"), INIT, result(third, text="2"))
        assert answers == ["2"]


@every_backend
async def test_nobody_reads_a_session_that_asks_and_nothing_is_sent_by_one_that_may_not() -> None:
    async with opened() as (peer, session), anyio.create_task_group() as group:
        group.start_soon(session.ask, "x")
        uuid = (await peer.until(peer.prompts))[0]["uuid"]
        for step in session.__anext__, session.batches().__anext__, session.receive_run().__anext__:
            with pytest.raises(HandleError, match="ask"):
                await step()
        peer.say(INIT, result(uuid))


@every_backend
async def test_asking_within_a_callback_is_refused_for_it_would_wait_for_its_own_turn() -> None:
    refused: list[str] = []
    session: Session

    async def decide(request: Any) -> Any:
        with pytest.raises(HandleError) as caught:
            await session.ask("deeper")
        refused.append(str(caught.value))
        return request.allow()

    async with opened(can_use_tool=decide) as (peer, session):
        peer.say(Peer.permission("p"))
        await peer.answer_to("p")
        assert "query()" in refused[0]
        assert peer.prompts() == []


# --- requests within callbacks ----------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("where", ["the callback", "a task of the callback"])
async def test_an_interrupt_within_a_callback_returns_its_answer_and_then_the_callback_is_cancelled(where: str) -> None:
    seen: list[Any] = []
    cancelled = anyio.Event()
    session: Session

    async def interrupt() -> None:
        seen.append((await session.interrupt()).still_queued)

    async def decide(request: Any) -> Any:
        try:
            if where == "the callback":
                await interrupt()
            else:
                async with anyio.create_task_group() as group:
                    group.start_soon(interrupt)
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with opened(can_use_tool=decide) as (peer, session):
        peer.say(Peer.permission("p"))
        asked = await peer.asked("interrupt")
        peer.say(Peer.cancel("p"))  # the CLI withdraws its question before it answers the interrupt
        await anyio.wait_all_tasks_blocked()
        assert not cancelled.is_set()
        peer.answer(asked["request_id"], {"still_queued": ["q"]})
        await cancelled.wait()
        assert seen == [["q"]]
        assert peer.answers_to("p") == []
        assert peer.withdrawn() == []


@every_backend
async def test_a_session_that_is_left_ends_a_callback_whose_request_has_no_answer() -> None:
    session: Session
    ended: list[str] = []

    async def decide(request: Any) -> Any:
        try:
            await session.interrupt()
        except Exception as error:
            ended.append(type(error).__name__)
            raise

    async with opened(can_use_tool=decide) as (peer, session):
        peer.say(Peer.permission("p"))
        await peer.asked("interrupt")
        peer.say(Peer.cancel("p"))
        await anyio.wait_all_tasks_blocked()
    assert ended == ["SessionEndedError"]


# --- The end of a run: how long it waits for background work, what ends each wait, and which error a failure raises ---


#: The result of a turn that began because background work ended.
WOKEN = {**RESULT, "result": "woken", **BACKGROUND}
FAILED = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["no"]}

#: The CLI's reply to one prompt: messages (dicts), pauses in seconds (numbers), and None for the end of the output.
Script = list[Any]


class Talking(Peer):
    """A peer that waits for a prompt and then plays a script."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script
        self.at: list[float] = []

    async def talk(self) -> None:
        while not self.prompts():
            await anyio.sleep(0.01)
        for part in self.script:
            if isinstance(part, (int, float)):
                await anyio.sleep(part)
            elif part is None:
                self.output.end()
            else:
                self.say(part)


async def in_session(script: Script, use: Callable[[Session], Any]) -> tuple[Any, float]:
    """Run ``use`` on a session whose CLI plays the script.

    Return the result or the exception, and the seconds it took.
    """
    peer = Talking(script)
    async with anyio.create_task_group() as group:
        async with peer.session() as session:
            await session.initialize()
            began = anyio.current_time()
            group.start_soon(peer.talk)
            try:
                outcome = await use(session)
            except Exception as error:
                outcome = error
            seconds = anyio.current_time() - began
        group.cancel_scope.cancel()
    return outcome, seconds


async def ask(session: Session, **how: Any) -> str | None:
    return (await session.ask("go", **how)).result


async def run(session: Session, **how: Any) -> tuple[int, str | None, Any]:
    """Send a prompt and read its run.

    Return the number of results, the reason of the end, and the type of the error.
    """
    await session.query("go")
    messages = session.receive_run(**how)
    count = len([message async for message in messages if isinstance(message, ResultMessage)])
    return count, messages.end, None if messages.error is None else type(messages.error)


AGENT = [RUNNING, INIT, listed(t="local_agent"), started("t"), RESULT]
SHELL = [RUNNING, INIT, listed(s="local_bash"), started("s", "local_bash"), RESULT, IDLE]
NO_STATE = [INIT, started("t"), RESULT]


@every_virtual_backend
@pytest.mark.parametrize(
    ("script", "how", "outcome", "seconds"),
    [
        # A subagent works for 20 s: ask() returns the last result of the run or, with until="turn", the first result.
        ([*AGENT, 20, ended("t"), listed(), INIT, WOKEN, IDLE], {}, "woken", 20),
        ([*AGENT, 20, ended("t"), listed(), INIT, WOKEN, IDLE], {"until": "turn"}, "done", 0),
        ([*NO_STATE, 20, ended("t"), INIT, WOKEN], {}, "woken", 20),
        # ask() waits `shells` seconds for a background command, and for the turn that follows its end.
        ([*SHELL, 8, ended("s"), listed(), RUNNING, INIT, WOKEN, IDLE], {}, "done", 0),
        ([*SHELL, 8, ended("s"), listed(), RUNNING, INIT, WOKEN, IDLE], {"shells": 5}, "done", 5),
        ([*SHELL, 8, ended("s"), listed(), 0.5, RUNNING, INIT, WOKEN, IDLE], {"shells": 9}, "woken", 8.5),
        ([*SHELL, 8, ended("s"), listed(), 0.5, RUNNING, INIT, WOKEN, IDLE], {"shells": None}, "woken", 8.5),
        # No turn follows a background command that was stopped.
        ([*SHELL, 8, ended("s", "stopped"), listed(), IDLE], {"shells": 9}, "done", 8),
        ([*SHELL, 8, ended("s", "stopped"), listed()], {"shells": 9}, "done", 8 + SETTLE_SECONDS),
        # The CLI does not report the end of the task, but drops it from the list of background tasks.
        ([*AGENT, 20, listed(), IDLE], {}, "done", 20),
        # The run does not wait for a foreground task, even if the task continues after the result of its turn.
        ([RUNNING, INIT, started("t", is_backgrounded=False), RESULT, IDLE, 9, ended("t")], {}, "done", 0),
        # The CLI ends, after its work or in the middle of it.
        ([RUNNING, INIT, RESULT, 1, None], {}, "done", 1),
        ([*AGENT, 5, None], {}, SessionEndedError, 5),
        ([*AGENT, 5, None], {"until": "turn"}, "done", 0),
        # The turn of the prompt fails, or a later turn of the run does. ask() waits for the whole run before it raises.
        ([RUNNING, INIT, started("t"), FAILED, 20, ended("t"), INIT, WOKEN, IDLE], {}, ExecutionError, 20),
        ([*AGENT, 20, ended("t"), INIT, {**FAILED, "origin": WOKEN["origin"]}, IDLE], {}, ExecutionError, 20),
        # A subagent exceeds the budget: the CLI stops the subagent, and no result follows.
        ([*AGENT, 4, ended("t", "stopped"), listed(), IDLE], {}, SubagentStoppedError, 4),
        ([*NO_STATE, 4, ended("t", "stopped"), listed()], {}, SubagentStoppedError, 4 + SETTLE_SECONDS),
        (
            [*AGENT[:-1], {**FAILED, "subtype": "error_max_budget_usd"}, ended("t", "stopped"), listed(), IDLE],
            {},
            MaxBudgetError,
            0,
        ),
        # The host stops the subagent by a request: another turn follows.
        ([*AGENT, 4, ended("t", "stopped"), listed(), 1, INIT, WOKEN, IDLE], {}, "woken", 5),
        ([*NO_STATE, 4, ended("t", "stopped"), listed(), 1, INIT, WOKEN], {}, "woken", 5),
        # The CLI never reports that it is idle, although no work is known to be running: `ceiling` ends the wait.
        ([RUNNING, INIT, RESULT], {"ceiling": 30}, "done", 30),
    ],
)  # fmt: skip
def test_ask_waits_for_the_run_and_each_wait_ends(
    virtual: VirtualBackend, script: Script, how: dict[str, Any], outcome: Any, seconds: float
) -> None:
    got, took = virtual.run(in_session, script, lambda session: ask(session, **how))
    assert got == outcome or type(got) is outcome, got
    assert took == pytest.approx(seconds, abs=0.1)


@every_virtual_backend
@pytest.mark.parametrize(
    ("script", "how", "outcome"),
    [
        ([*AGENT, 20, ended("t"), listed(), INIT, WOKEN, IDLE], {}, (2, "done", None)),
        (SHELL, {}, (1, "shells", None)),
        (SHELL, {"shells": 5}, (1, "shells", None)),
        ([*SHELL, 8, ended("s"), listed(), RUNNING, INIT, WOKEN, IDLE], {"shells": 9}, (2, "done", None)),
        ([*AGENT, 4, ended("t", "stopped"), listed(), IDLE], {}, (1, "done", SubagentStoppedError)),
        ([RUNNING, INIT, FAILED, IDLE], {}, (1, "done", ExecutionError)),
        ([RUNNING, INIT, RESULT], {"ceiling": 30}, (1, "ceiling", None)),
        ([*AGENT, None], {}, (1, "output", None)),
    ],
)
def test_an_iteration_says_how_it_has_ended(
    virtual: VirtualBackend, script: Script, how: dict[str, Any], outcome: Any
) -> None:
    assert virtual.run(in_session, script, lambda session: run(session, **how))[0] == outcome


@every_virtual_backend
def test_the_wait_for_a_result_that_never_comes_has_an_end(virtual: VirtualBackend) -> None:
    async def wait(session: Session) -> list[str | None]:
        await session.query("go")
        ends: list[str | None] = []
        for _ in range(2):
            messages = session.receive_response(ceiling=30)
            async for _ in messages:
                pass
            ends.append(messages.end)
        return ends

    script = [*AGENT, 4, ended("t", "stopped"), listed(), IDLE]
    got, seconds = virtual.run(in_session, script, wait)
    assert got == ["result", "ceiling"]
    assert seconds == pytest.approx(34, abs=0.1)


@every_virtual_backend
def test_a_prompt_that_is_taken_back_ends_the_wait_at_once(virtual: VirtualBackend) -> None:
    script = [{"type": "command_lifecycle", "command_uuid": "u", "state": "cancelled"}]

    async def wait(session: Session) -> Any:
        return await session.ask(UserMessage.of("go", uuid="u"))

    got, seconds = virtual.run(in_session, script, wait)
    assert type(got) is PromptCancelledError
    assert seconds < 1


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"until": "end"}, "until"),
        ({"until": "turn", "shells": 5}, "shells is for until='run'"),
        ({"shells": -1}, "shells"),
    ],
)
async def test_what_would_be_without_effect_is_refused(how: dict[str, Any], problem: str) -> None:
    async with Peer().session() as session:
        with pytest.raises(ValueError, match=problem):
            await session.ask("go", **how)
