"""When a run is over: each event of each state of a prompt, and the order in which a CLI says things."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from async_backends import Backend, every_backend
from claude_wire import HandleError, PromptError, ResultMessage, Session, UserMessage, decode
from claude_wire.errors import PromptAnsweredError, PromptCancelledError
from claude_wire.messages import CancelAsyncMessageRequest
from claude_wire.protocol.run import MARKS, SETTLE_SECONDS, TRANSITIONS, Event, Run, SentPrompt, State
from session_peer import INIT, RESULT, Peer, line, opened
from virtual_time import VirtualBackend, every_virtual_backend


def state(name: str) -> dict[str, Any]:
    return {"type": "system", "subtype": "session_state_changed", "state": name, "sdk_host_only": True}


def lifecycle(uuid: str, name: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": name}


def result(*names: str, text: str = "done", **fields: Any) -> dict[str, Any]:
    """A result that names these prompts; one that says of no names if there are none."""
    named = {"user_message_uuids": list(names), "user_message_uuid": names[-1]} if names else {}
    return {**RESULT, "result": text, **named, **fields}


BACKGROUND = {"origin": {"kind": "task-notification"}}
RUNNING, IDLE = state("running"), state("idle")


def seen(run: Run, *messages: dict[str, Any]) -> None:
    for message in messages:
        typed = decode(line(message))
        if type(typed) in MARKS:
            run.see(typed)


def asked(run: Run, uuid: str | None = None, now: float = 0.0) -> SentPrompt:
    prompt = run.ask(uuid, now)
    assert prompt is not None
    return prompt


# --- the table --------------------------------------------------------------------------------------------------------


def test_every_state_has_its_row_and_every_row_leads_to_an_end() -> None:
    assert set(TRANSITIONS) == set(State)
    for start in State:
        reached, todo = {start}, [start]
        while todo:
            for after in TRANSITIONS[todo.pop()].values():
                if after not in reached:
                    reached.add(after)
                    todo.append(after)
        assert any(not TRANSITIONS[one] for one in reached)
    used = {event for events in TRANSITIONS.values() for event in events}
    assert used == set(Event)


#: What becomes of prompts: the uuids of those that are sent, what the CLI says, and their states after it.
FATES: dict[str, tuple[list[str | None], list[dict[str, Any]], list[State]]] = {
    "a result names its prompt": (["a"], [INIT, result("a")], [State.ANSWERED]),
    "a result names another prompt": (["a", None], [INIT, result("a")], [State.ANSWERED, State.UNCERTAIN]),
    "a result names nobody that waits": (["a"], [INIT, result("z")], [State.SENT]),
    "a result says that it names nobody": (
        ["a", None],
        [INIT, result("a"), INIT, {**RESULT, "user_message_uuids": []}],
        [State.ANSWERED, State.ANSWERED],
    ),
    "one that names nobody leaves those with a uuid": (["a"], [{**RESULT, "user_message_uuids": []}], [State.SENT]),
    "a named one was behind one without a uuid": ([None, "b"], [INIT, result("b")], [State.ANSWERED] * 2),
    "a CLI that names the last one only": (
        ["a", "b", "c"],
        [INIT, {**RESULT, "user_message_uuid": "b"}],
        [State.ANSWERED, State.ANSWERED, State.SENT],
    ),
    "merged prompts without a uuid": ([None, None], [INIT, result()], [State.ANSWERED, State.UNCERTAIN]),
    "one result for each": ([None, None], [INIT, result(), INIT, result()], [State.ANSWERED] * 2),
    "an agent that names nobody": (["a", "b"], [result(), result()], [State.ANSWERED] * 2),
    "background work answers nobody": (["a"], [INIT, result(**BACKGROUND)], [State.UNCERTAIN]),
    "background work that took a prompt in": (["a"], [INIT, result("a", **BACKGROUND)], [State.ANSWERED]),
    "the CLI tells of a queue": (["a"], [lifecycle("a", "queued")], [State.QUEUED]),
    "of a turn": (["a"], [lifecycle("a", "queued"), lifecycle("a", "started")], [State.STARTED]),
    "of nothing known": (["a"], [lifecycle("a", "dreaming")], [State.SENT]),
    "of another prompt": (["a"], [lifecycle("b", "completed")], [State.SENT]),
    "one that was answered before": (["a"], [lifecycle("a", "completed")], [State.REPEATED]),
    "one that was cancelled": (["a"], [lifecycle("a", "queued"), lifecycle("a", "cancelled")], [State.CANCELLED]),
    "one that was refused": (["a"], [lifecycle("a", "refused")], [State.CANCELLED]),
    "one that was discarded": (["a"], [lifecycle("a", "queued"), lifecycle("a", "discarded")], [State.CANCELLED]),
    "one that was put into a turn": (
        ["a", "b"],
        [INIT, *(lifecycle("b", name) for name in ("queued", "started", "completed"))],
        [State.SENT, State.FOLDED],
    ),
    "the result of that turn": (
        ["a", "b"],
        [INIT, *(lifecycle("b", name) for name in ("queued", "started", "completed")), result("a", "b")],
        [State.ANSWERED, State.ANSWERED],
    ),
    "the result of that turn, at its limit": (
        ["a", "b"],
        [INIT, *(lifecycle("b", name) for name in ("queued", "started", "completed")), result("a")],
        [State.ANSWERED, State.ANSWERED],
    ),
    "one that was put back": (
        ["a"],
        [INIT, *(lifecycle("a", name) for name in ("queued", "started", "queued"))],
        [State.QUEUED],
    ),
    "a queued one is no merged one": (["a", "b"], [lifecycle("b", "queued"), result()], [State.ANSWERED, State.QUEUED]),
    "injected ones": (
        ["a", "b", "c"],
        [{"type": "system", "subtype": "injected", "message_count": 1, "content_length": 9}, result()],
        [State.ANSWERED, State.ANSWERED, State.UNCERTAIN],
    ),
}


@pytest.mark.parametrize("fate", FATES)
def test_what_becomes_of_prompts(fate: str) -> None:
    uuids, said, states = FATES[fate]
    run = Run()
    prompts = [asked(run, uuid) for uuid in uuids]
    seen(run, *said)
    assert [prompt.state for prompt in prompts] == states


def test_the_error_of_a_subagents_message_is_not_that_of_the_turn() -> None:
    def assistant(parent: str | None, error: str | None) -> dict[str, Any]:
        return {"type": "assistant", "message": {"content": []}, "parent_tool_use_id": parent, "error": error}

    run = Run()
    seen(run, INIT, assistant(None, "rate_limit"), assistant("toolu_1", "authentication_failed"))
    assert run.reason == "rate_limit"
    seen(run, assistant(None, None), assistant("toolu_1", "authentication_failed"))
    assert run.reason is None


def test_of_a_state_and_of_a_reason_little_is_kept() -> None:
    """Both are the peer's, and a line may have 128 MiB."""
    run = Run()
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    assistant = {"type": "assistant", "message": message, "parent_tool_use_id": None, "error": "e" * 100_000}
    seen(run, state("s" * 100_000), assistant)
    assert run.reason == "e" * 128
    assert run._state == "s" * 128


@pytest.mark.parametrize("count", [-5, -1, 0, 2**63, 2**80])
def test_a_count_of_injected_prompts_may_be_any_number(count: int) -> None:
    run = Run()
    prompts = [asked(run), asked(run)]
    seen(run, {"type": "system", "subtype": "injected", "message_count": count, "content_length": 1})
    assert [prompt.state for prompt in prompts] == [State.SENT, State.FOLDED if count > 0 else State.SENT]


def test_how_long_is_waited() -> None:
    run = Run()
    assert run.patience(600, 0) == 600
    prompt = asked(run, "a", 10.0)
    assert run.patience(600, 10) is None
    seen(run, IDLE)
    assert run.patience(600, 10) == 600  # the CLI is idle although a turn is owed: it may have dropped the prompt
    seen(run, RUNNING, INIT)
    assert run.patience(600, 10) is None
    seen(run, result("a"), IDLE)
    assert prompt.ended
    # Two without a uuid, of which the second may have been merged into the first.
    asked(run, None, 20.0)
    asked(run, None, 21.0)
    seen(run, RUNNING, INIT, result(), IDLE)
    assert run.patience(600, 21.5) == 21.0 + SETTLE_SECONDS - 21.5
    assert 0 < (run.patience(600, 99) or 0) < SETTLE_SECONDS
    assert run.patience(0.05, 21.5) == 0.05
    assert not run.over
    run.settle()
    assert run.over


def test_a_cli_that_says_no_state_is_given_time_if_it_tells_of_turns() -> None:
    run = Run()
    asked(run), asked(run)
    seen(run, result())
    assert run.patience(600, 0) == 600
    seen(run, INIT)
    assert run.patience(600, 0) is None
    seen(run, result())
    asked(run), asked(run)
    seen(run, result())
    assert run.patience(600, 0) == SETTLE_SECONDS


# --- receive_run ------------------------------------------------------------------------------------------------------


@every_virtual_backend
@pytest.mark.parametrize("states", [True, False], ids=["idle", "no state"])
@pytest.mark.parametrize("uuids", [("a", None), (None, None), (None, "b"), ("a", "b")], ids=str)
def test_a_run_goes_on_to_the_answer_of_a_prompt_that_was_sent_before_the_last_result_was_taken(
    virtual: VirtualBackend, uuids: tuple[str | None, str | None], states: bool
) -> None:
    def turn(uuid: str | None, text: str) -> list[dict[str, Any]]:
        said = [INIT, result(*([uuid] if uuid else []), text=text, queued_turn_count=0)]
        return [RUNNING, *said, IDLE] if states else said

    async def main() -> None:
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

    virtual.run(main)


@every_virtual_backend
@pytest.mark.parametrize("said", [[RUNNING, INIT, RESULT, IDLE], [INIT, RESULT]], ids=["idle", "no state"])
def test_a_result_may_be_for_several_prompts(virtual: VirtualBackend, said: list[dict[str, Any]]) -> None:
    async def main() -> None:
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

    virtual.run(main)


@every_virtual_backend
def test_a_cli_that_is_idle_although_a_result_is_owed_is_waited_for_up_to_the_ceiling(virtual: VirtualBackend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            await session.query("x")
            peer.say(IDLE)
            began = anyio.current_time()
            assert [message async for message in session.receive_run(ceiling=50)] == []
            assert anyio.current_time() - began == pytest.approx(50)
            with pytest.raises(PromptError, match="ceiling"):
                await session.ask("y", ceiling=50)
            assert anyio.current_time() - began == pytest.approx(100)

    virtual.run(main)


@every_backend
def test_a_loop_of_runs_without_a_prompt_lets_other_tasks_run(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (_, session), anyio.create_task_group() as group:

            async def runs() -> None:
                for _ in range(1_000):
                    assert [message async for message in session.receive_run()] == []
                raise AssertionError("no other task ran")

            group.start_soon(runs)
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    backend.run(main)


@every_backend
@pytest.mark.parametrize("how", ["raises", "cancelled"])
def test_a_prompt_that_was_not_sent_can_be_sent_again_under_its_uuid(backend: Backend, how: str) -> None:
    async def main() -> None:
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

    backend.run(main)


# --- a prompt that the CLI has had already ----------------------------------------------------------------------------


def _is_had(peer: Peer, replays: bool) -> Callable[[], Any]:
    """What the CLI 2.1.331 says to a prompt whose uuid is in the session that was resumed."""

    async def answer() -> None:
        prompt = (await peer.until(peer.prompts))[-1]
        echo = [{**prompt, "isReplay": True}] if replays else []
        peer.say(*echo, lifecycle(prompt["uuid"], "completed"), IDLE)

    return answer


@every_backend
@pytest.mark.parametrize("replays", [False, True])
def test_a_prompt_that_was_answered_before_the_session_was_resumed_ends_at_once(
    backend: Backend, replays: bool
) -> None:
    async def main() -> None:
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

    backend.run(main)


@every_backend
@pytest.mark.parametrize("how", ["request", "lifecycle", "interrupt"])
def test_asking_ends_when_the_prompt_is_taken_out_of_the_queue(backend: Backend, how: str) -> None:
    async def main() -> None:
        peer = Peer(
            {"cancel_async_message": {"cancelled": True}, "interrupt": {"still_queued": [], "cancelled": ["u"]}}
        )
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

    backend.run(main)


@every_backend
@pytest.mark.parametrize("asks", [True, False])
def test_who_waits_for_a_prompt_that_another_task_cancels_ends_though_the_agent_says_no_more(
    backend: Backend, asks: bool
) -> None:
    async def main() -> None:
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

    backend.run(main)


@every_backend
def test_a_prompt_that_is_taken_out_of_the_queue_has_no_other_prompts_result(backend: Backend) -> None:
    """A result that names nobody may have been for both, until the CLI says of the second one that it is cancelled."""

    async def main() -> None:
        async with opened() as (peer, session), anyio.create_task_group() as group:
            await session.query("first")

            async def ask() -> None:
                with pytest.raises(PromptCancelledError):
                    await session.ask(UserMessage.of("second", uuid="b"))

            group.start_soon(ask)
            await peer.until(lambda: peer.prompts()[1:])
            peer.say(INIT, result(text="of the first"), lifecycle("b", "cancelled"))

    backend.run(main)


def test_a_prompt_keeps_a_result_only_while_that_may_be_its_own() -> None:
    run = Run()
    prompts = [asked(run, uuid) for uuid in ("a", "b", "c")]
    seen(run, result(), lifecycle("b", "queued"))
    assert [prompt.result is not None for prompt in prompts] == [True, False, True]


def test_an_emptied_queue_leaves_prompts_without_a_uuid_uncertain() -> None:
    """Those that were sent before it was asked for, and had no result since."""
    run = Run()
    answered, swept = asked(run), asked(run)
    before = run.unnamed()
    seen(run, RUNNING, INIT, result(user_message_uuids=[]))
    assert answered.state is State.ANSWERED
    later, named = asked(run, now=9.0), asked(run, "a", now=9.0)
    run.drop(["a"], before)
    assert [prompt.state for prompt in (answered, swept, later, named)] == [
        State.ANSWERED,
        State.UNCERTAIN,
        State.SENT,
        State.CANCELLED,
    ]
    assert not run.over


def test_an_empty_uuid_is_none() -> None:
    """The CLI starts a turn for each prompt with it, and names it in no result."""
    run = Run()
    prompts = [run.ask("", 0.0), run.ask("", 0.0)]
    assert not run.had("")
    for prompt in prompts:
        assert prompt is not None
        assert not run.over
        seen(run, {**RESULT, "user_message_uuids": []})
        assert prompt.state is State.ANSWERED
    assert run.over


@every_backend
def test_a_prompt_whose_uuid_is_empty_is_asked_with_one_of_its_own(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session), anyio.create_task_group() as group:
            group.start_soon(session.ask, UserMessage.of("x", uuid=""))
            uuid = (await peer.until(peer.prompts))[0]["uuid"]
            assert uuid
            peer.say(INIT, result(uuid))

    backend.run(main)


@every_backend
def test_a_prompt_counts_when_another_one_with_its_uuid_was_given_up_before_it_was_sent(backend: Backend) -> None:
    async def main() -> None:
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

    backend.run(main)


@every_virtual_backend
def test_a_task_that_may_not_read_changes_nothing_for_the_one_that_does(virtual: VirtualBackend) -> None:
    """The end of a prompt wakes the reader, also when another task has tried to read meanwhile."""

    async def main() -> None:
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

    virtual.run(main)


# --- who may ask ------------------------------------------------------------------------------------------------------


async def _answers_in_order(peer: Peer) -> None:
    """Answers each prompt with its own text. Fails if one is sent before the one before it has its answer."""
    for number in range(3):
        prompt = (await peer.until(lambda number=number: peer.prompts()[number:]))[0]
        await anyio.wait_all_tasks_blocked()
        assert len(peer.prompts()) == number + 1
        peer.say(INIT, result(prompt["uuid"], text=prompt["message"]["content"]))


@every_backend
def test_callers_of_ask_take_turns(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            answers = {}

            async def ask(text: str) -> None:
                answers[text] = (await session.ask(text)).result

            async with anyio.create_task_group() as group:
                group.start_soon(_answers_in_order, peer)
                for text in "abc":
                    group.start_soon(ask, text)
            assert answers == {"a": "a", "b": "b", "c": "c"}

    backend.run(main)


@every_backend
def test_a_caller_that_gives_up_while_it_waits_has_sent_nothing_and_lets_the_next_go_on(backend: Backend) -> None:
    async def main() -> None:
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
                scopes[0].cancel()  # in the middle of its turn
                await anyio.wait_all_tasks_blocked()
                sent = [prompt["message"]["content"] for prompt in peer.prompts()]
                assert sent == ["0", "2"]
                first, third = (prompt["uuid"] for prompt in peer.prompts())
                peer.say(INIT, result(first, text="0"), INIT, result(third, text="2"))
            assert answers == ["2"]

    backend.run(main)


@every_backend
def test_nobody_reads_a_session_that_asks_and_nothing_is_sent_by_one_that_may_not(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session), anyio.create_task_group() as group:
            group.start_soon(session.ask, "x")
            uuid = (await peer.until(peer.prompts))[0]["uuid"]
            for step in session.__anext__, session.batches().__anext__, session.receive_run().__anext__:
                with pytest.raises(HandleError, match="ask"):
                    await step()
            peer.say(INIT, result(uuid))

    backend.run(main)


@every_backend
def test_asking_within_a_callback_is_refused_for_it_would_wait_for_its_own_turn(backend: Backend) -> None:
    async def main() -> None:
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

    backend.run(main)


# --- requests within callbacks ----------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("where", ["the callback", "a task of the callback"])
def test_an_interrupt_within_a_callback_returns_its_answer_and_then_the_callback_is_cancelled(
    backend: Backend, where: str
) -> None:
    async def main() -> None:
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
            peer.say(Peer.cancel("p"))  # the CLI withdraws its question first
            await anyio.wait_all_tasks_blocked()
            assert not cancelled.is_set()
            peer.answer(asked["request_id"], {"still_queued": ["q"]})
            await cancelled.wait()
            assert seen == [["q"]]
            assert peer.answers_to("p") == []
            assert peer.withdrawn() == []

    backend.run(main)


@every_backend
def test_a_session_that_is_left_ends_a_callback_whose_request_has_no_answer(backend: Backend) -> None:
    async def main() -> None:
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

    backend.run(main)
