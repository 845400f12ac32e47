"""Session: turns and runs, the return value of ``ask()``, and the prompt that each result belongs to."""

from __future__ import annotations

import logging
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from async_backends import Backend, every_backend
from claude_wire import (
    ClaudeOptions,
    HandleError,
    InitMessage,
    MaxBudgetError,
    RateLimitError,
    ResultMessage,
    SessionEndedError,
    TurnError,
    UnknownMessage,
    UserMessage,
    open_session,
)
from claude_wire.errors import (
    ApiError,
    AuthenticationError,
    BillingError,
    ExecutionError,
    MaxTurnsError,
    StructuredOutputError,
    TurnCancelledError,
)
from claude_wire.messages import CancelAsyncMessageRequest, ResultSuccess
from session_peer import INIT, RESULT, Peer, numbered, numbers, opened


@every_backend
async def test_receive_response_ends_with_the_result_and_leaves_the_rest() -> None:
    async with opened() as (peer, session):
        peer.say(INIT, numbered(1), RESULT, numbered(2), RESULT, numbered(3))
        peer.output.end()
        first = [message async for message in session.receive_response()]
        second = [message async for message in session.receive_response()]
        third = [message async for message in session.receive_response()]
        assert numbers(first[1:-1]) == [1]
        assert isinstance(first[-1], ResultMessage)
        assert numbers(second[:-1]) == [2]
        assert isinstance(second[-1], ResultMessage)
        assert numbers(third) == [3]  # the output ended before a result
        assert [message async for message in session] == []


@every_backend
async def test_batches_give_the_same_in_lists() -> None:
    async with opened() as (peer, session):
        peer.say(numbered(1), {"type": "keep_alive"}, numbered(2))
        peer.say({"type": "keep_alive"}, state("idle"))  # the consumer receives neither of these
        peer.say(numbered(3))
        peer.output.end()
        batches = [batch async for batch in session.batches()]
        assert all(batches)
        assert numbers(message for batch in batches for message in batch) == [1, 2, 3]


def state(name: str, *, hidden: bool = True) -> dict[str, Any]:
    message: dict[str, Any] = {"type": "system", "subtype": "session_state_changed", "state": name}
    return {**message, "sdk_host_only": True} if hidden else message


@every_backend
async def test_keep_alives_and_states_for_the_host_are_not_shown() -> None:
    async with opened() as (peer, session):
        peer.say({"type": "keep_alive"}, state("running"), numbered(1), state("idle", hidden=False), numbered(2))
        peer.output.end()
        got = [message async for message in session]
        assert [message.type if isinstance(message, UnknownMessage) else type(message).__name__ for message in got]
        assert len(got) == 3
        assert numbers([got[0], got[2]]) == [1, 2]


def started(task_id: str, kind: str = "local_agent") -> dict[str, Any]:
    about = {"task_id": task_id, "description": "d", "task_type": kind}
    return {"type": "system", "subtype": "task_started", **about}


def ended(task_id: str) -> dict[str, Any]:
    about = {"task_id": task_id, "status": "completed", "output_file": "", "summary": ""}
    return {"type": "system", "subtype": "task_notification", **about}


def updated(task_id: str, status: str) -> dict[str, Any]:
    return {"type": "system", "subtype": "task_updated", "task_id": task_id, "patch": {"status": status}}


#: The result of a turn that began because background work ended.
WOKEN = {**RESULT, "origin": {"kind": "task-notification"}}

#: Description -> the CLI's messages after one prompt, in two parts. The run must not end after the first part, and must
#: include the second part.
RUNS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "the plain turn of a CLI that says no state": ([INIT, numbered(1)], [RESULT]),
    "idle after the result": ([state("running"), INIT, RESULT], [state("idle")]),
    "idle before the result": ([state("running"), INIT, state("idle")], [RESULT]),
    "background work that wakes the session": (
        [state("running"), INIT, started("t"), RESULT],
        [ended("t"), INIT, numbered(1), RESULT, state("idle")],
    ),
    "background work of a CLI that says no state": ([INIT, started("t"), RESULT], [ended("t"), INIT, RESULT]),
    "background work whose end is an update": ([INIT, started("t"), RESULT], [updated("t", "killed"), INIT, RESULT]),
    "two of them": ([INIT, started("t"), started("u"), RESULT, ended("u"), INIT, RESULT], [ended("t"), INIT, RESULT]),
    "two that end at once, then a turn for each": (
        [INIT, started("t"), started("u"), RESULT, ended("t"), ended("u"), INIT, WOKEN],
        [INIT, WOKEN],
    ),
    "one that ends while the turn of another is under way": (
        [INIT, started("t"), started("u"), RESULT, ended("t"), INIT, ended("u"), WOKEN],
        [INIT, WOKEN],
    ),
    "one that ends in the turn that began it": ([INIT, started("t"), ended("t"), RESULT], [INIT, WOKEN]),
    "a prompt that is still queued": ([INIT, {**RESULT, "queued_turn_count": 1}], [INIT, RESULT]),
    "a question that waits": ([state("running"), INIT, RESULT, state("requires_action")], [state("idle")]),
}


@every_backend
@pytest.mark.parametrize("case", RUNS)
async def test_receive_run_goes_on_to_the_end_of_the_run(case: str) -> None:
    first, second = RUNS[case]

    async with opened() as (peer, session):
        await session.query("x")
        got: list[Any] = []
        over = anyio.Event()

        async def take() -> None:
            async for message in session.receive_run():
                got.append(message)
            over.set()

        async with anyio.create_task_group() as group:
            group.start_soon(take)
            peer.say(*first)
            shown = sum(not message.get("sdk_host_only") for message in first)
            with anyio.fail_after(60):
                while len(got) < shown:
                    await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            assert not over.is_set()
            peer.say(*second)
            await over.wait()
        assert len(got) == sum(not message.get("sdk_host_only") for message in first + second)
        # No result is outstanding: the next run ends immediately, and a later prompt starts a normal run.
        assert [message async for message in session.receive_run()] == []
        await session.query("y")
        peer.say(RESULT, *([state("idle")] if "state" in repr(first) else []))
        assert len([message async for message in session.receive_run()]) == 1


@every_backend
async def test_a_shell_in_the_background_is_not_waited_for_beyond_the_ceiling() -> None:
    async with opened() as (peer, session):
        await session.query("x")
        peer.say(INIT, started("t", "local_bash"), RESULT)
        assert len([message async for message in session.receive_run()]) == 3
        # This CLI sends state messages, but never reports that it is idle.
        await session.query("x")
        peer.say(state("running"), INIT, started("u", "local_bash"), RESULT)
        assert len([message async for message in session.receive_run(ceiling=0.05)]) == 3


@every_backend
async def test_the_ceiling_does_not_end_a_turn_that_is_under_way() -> None:
    async with opened() as (peer, session):
        await session.query("x")

        async def later() -> None:
            await anyio.sleep(0.15)
            peer.say(RESULT)

        async with anyio.create_task_group() as group:
            group.start_soon(later)
            got = [message async for message in session.receive_run(ceiling=0.02)]
        assert len(got) == 1


@every_backend
async def test_a_prompt_that_was_had_already_is_owed_nothing() -> None:
    async with opened() as (peer, session):
        for _ in range(2):
            await session.query("x", uuid="u")
            if len(peer.prompts()) == 1:
                peer.say(RESULT)
            async for _ in session.receive_run():
                pass


@every_backend
async def test_a_result_that_is_read_before_the_sender_goes_on_is_that_of_its_prompt() -> None:
    async with opened() as (peer, session):
        seen = anyio.Event()

        async def iterate() -> None:
            async for _ in session.receive_response():
                pass
            seen.set()

        async def answered_at_once() -> None:
            peer.say(RESULT)
            await seen.wait()

        async with anyio.create_task_group() as group:
            group.start_soon(iterate)
            await anyio.wait_all_tasks_blocked()
            peer.hold = answered_at_once
            await session.query("x")
        assert [message async for message in session.receive_run()] == []


@every_backend
async def test_ask_returns_the_result() -> None:
    async with opened() as (peer, session):
        peer.say(INIT, numbered(1), RESULT, numbered(2))
        result = await session.ask("x")
        assert isinstance(result, ResultSuccess)
        assert result.result == "done"
        peer.output.end()
        with pytest.raises(SessionEndedError, match="before the result"):
            await session.ask("y")


#: Each class of error, with fields of a result that raises it.
FAILURES: list[tuple[type[TurnError], dict[str, Any]]] = [
    (MaxTurnsError, {"subtype": "error_max_turns"}),
    (MaxBudgetError, {"subtype": "error_max_budget_usd"}),
    (StructuredOutputError, {"subtype": "error_max_structured_output_retries"}),
    (ExecutionError, {"subtype": "error_during_execution"}),
    (ExecutionError, {"subtype": "error_of_tomorrow"}),
    (TurnCancelledError, {"subtype": "error_during_execution", "terminal_reason": "aborted_streaming"}),
    (TurnCancelledError, {"subtype": "cancelled", "is_error": False}),
    (ApiError, {"api_error_status": 500}),
    (ApiError, {}),
    (AuthenticationError, {"api_error_status": 401}),
    (AuthenticationError, {"api_error_status": 403}),
    (BillingError, {"api_error_status": 402}),
    (RateLimitError, {"api_error_status": 429}),
    (RateLimitError, {"api_error_status": 529}),
    (AuthenticationError, {"reason": "authentication_failed"}),
]


@every_backend
@pytest.mark.parametrize(
    ("kind", "fields"), FAILURES, ids=[f"{kind.__name__}-{number}" for number, (kind, _) in enumerate(FAILURES)]
)
def test_ask_raises_what_the_result_says_and_iterating_shows_it(
    backend: Backend, kind: type[TurnError], fields: dict[str, Any]
) -> None:
    fields = dict(fields)
    reason = fields.pop("reason", None)
    message = {"role": "assistant", "content": [{"type": "text", "text": "no"}], "model": "<synthetic>"}
    turn = [
        INIT,
        {"type": "assistant", "message": message, "session_id": "s", **({"error": reason} if reason else {})},
        {**RESULT, "is_error": True, **fields},
    ]

    async def main() -> None:
        async with opened() as (peer, session):
            peer.say(*turn)
            with pytest.raises(TurnError) as info:
                await session.ask("x")
            assert type(info.value) is kind
            assert isinstance(info.value.result, ResultMessage)
            peer.say(*turn)
            *_, result = [message async for message in session.receive_response()]
            assert isinstance(result, ResultMessage)
            # The error of this turn does not change the error of the next one.
            peer.say(INIT, {**RESULT, "is_error": True, "api_error_status": 500})
            with pytest.raises(ApiError) as later:
                await session.ask("x")
            assert type(later.value) is ApiError

    backend.run(main)


def limit(status: str, resets_at: object) -> dict[str, Any]:
    return {"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": resets_at}}


@every_backend
async def test_a_rate_limit_says_when_it_ends_if_the_cli_has_said_so() -> None:
    """The error carries the time of the end while the latest rate limit event says that the limit is used up."""
    refused = {**RESULT, "is_error": True, "api_error_status": 429}
    ends = datetime(2030, 1, 1, tzinfo=timezone.utc)
    said: list[tuple[list[dict[str, Any]], datetime | None]] = [
        ([], None),
        ([limit("allowed_warning", ends.timestamp())], None),
        ([limit("rejected", ends.timestamp())], ends),
        ([], ends),
        ([limit("rejected", 1e300)], None),
        ([limit("rejected", None)], None),
        ([limit("rejected", 1), limit("allowed", 1)], None),
    ]

    async with opened() as (peer, session):
        for events, resets_at in said:
            peer.say(INIT, *events, refused)
            with pytest.raises(RateLimitError) as info:
                await session.ask("x")
            assert info.value.resets_at == resets_at
            assert ("try again after 2030-01-01 00:00:00 UTC" in str(info.value)) is (resets_at is not None)


@every_backend
async def test_ask_passes_over_the_result_of_a_prompt_that_was_given_up() -> None:
    async with opened() as (peer, session):
        async with anyio.create_task_group() as group:
            group.start_soon(session.ask, "first")
            await peer.until(peer.prompts)
            group.cancel_scope.cancel()
        first = peer.prompts()[0]["uuid"]

        async def answer() -> None:
            await peer.until(lambda: len(peer.prompts()) == 2)
            second = peer.prompts()[1]["uuid"]
            peer.say(INIT, {**RESULT, "result": "one", "user_message_uuids": [first]})
            peer.say(INIT, {**RESULT, "result": "two", "user_message_uuids": [second]})

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            assert (await session.ask("second")).result == "two"


@every_backend
async def test_ask_passes_over_the_turn_of_background_work_and_refuses_what_would_wait_for_ever() -> None:
    async with opened() as (peer, session):

        async def answer() -> None:
            uuid = (await peer.until(peer.prompts))[0]["uuid"]
            peer.say(INIT, {**RESULT, "result": "background", "origin": {"kind": "task-notification"}})
            peer.say(INIT, {**RESULT, "result": "mine", "user_message_uuids": [uuid]})

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            assert (await session.ask("x")).result == "mine"
        sent = len(peer.prompts())
        with pytest.raises(ValueError, match="uuid"):
            await session.ask(UserMessage.of("again", uuid=peer.prompts()[0]["uuid"]))

        async def iterate() -> None:
            await session.__anext__()

        async with anyio.create_task_group() as group:
            group.start_soon(iterate)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HandleError):
                await session.ask("beside another")
            assert len(peer.prompts()) == sent
            group.cancel_scope.cancel()


@every_backend
@pytest.mark.parametrize("states", [True, False])
async def test_a_result_that_was_not_read_yet_is_not_that_of_a_later_prompt(states: bool) -> None:
    def state(name: str) -> list[dict[str, Any]]:
        changed = {"type": "system", "subtype": "session_state_changed", "state": name, "sdk_host_only": True}
        return [changed] if states else []

    async with opened() as (peer, session):
        for number in range(2):
            await session.query(str(number))
            uuid = peer.prompts()[number]["uuid"]
            if number == 0:
                peer.say(*state("running"), INIT, {**RESULT, "user_message_uuids": [uuid]}, *state("idle"))
        peer.say(*state("running"), INIT, {**RESULT, "user_message_uuids": [uuid]}, *state("idle"))
        got = [message async for message in session.receive_run()]
        assert sum(isinstance(message, ResultMessage) for message in got) == 2


@every_backend
async def test_a_prompt_that_the_cli_has_taken_out_of_its_queue_is_owed_nothing() -> None:
    async with opened(Peer({"cancel_async_message": {"cancelled": True}})) as (peer, session):
        await session.query("x", uuid="u")
        assert (await session.request(CancelAsyncMessageRequest(message_uuid="u"))).cancelled
        assert [message async for message in session.receive_run()] == []
        await session.query("y", uuid="v")
        peer.answers["interrupt"] = {"cancelled": ["v"]}
        await session.interrupt(cancel_queued=True)
        assert [message async for message in session.receive_run()] == []


@every_backend
async def test_a_prompt_that_the_cli_has_begun_already_is_owed_its_result() -> None:
    """The host asks the CLI to cancel the prompt, but the CLI has already started its turn."""
    async with opened(Peer({"cancel_async_message": {"cancelled": False}})) as (peer, session):
        await session.query("x", uuid="u")
        assert not (await session.request(CancelAsyncMessageRequest(message_uuid="u"))).cancelled
        peer.say(INIT, {**RESULT, "user_message_uuids": ["u"]})
        got = [type(message) async for message in session.receive_run()]
        assert got == [InitMessage, ResultSuccess]


@every_backend
async def test_a_prompt_that_comes_back_is_a_message_that_says_so_and_no_turn() -> None:
    async with opened() as (peer, session):
        await session.query("x", uuid="u")
        echo = {"type": "user", "message": {"role": "user", "content": "x"}, "uuid": "u", "isReplay": True}
        peer.say(echo, INIT, RESULT)
        got = [message async for message in session.receive_response()]
        assert isinstance(got[0], UserMessage)
        assert (got[0].isReplay, got[0].uuid) == (True, "u")
        await session.query("x", uuid="u")  # the CLI starts no turn for a repeated uuid
        peer.say(echo)
        assert [message async for message in session.receive_run()] == []
        assert (await session.__anext__()).isReplay is True


# --- A resumed session continues the earlier conversation, or warns that it does not ----------------------------------


SESSION = "0e5c1a54-6a5c-4a6c-9a54-0d3c2a1b0f9e"
OTHER = "11111111-6a5c-4a6c-9a54-0d3c2a1b0f9e"

#: A fake CLI that runs its turn in the session that an environment variable names.
PROGRAM = """
import json, os, sys
def say(**message): print(json.dumps(message), flush=True)
for text in sys.stdin:
    message = json.loads(text)
    if message["type"] == "control_request":
        answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        say(type="control_response", response=answer)
    elif message["type"] == "user":
        id = os.environ["BEGINS"]
        say(type="system", subtype="init", session_id=id)
        say(type="result", subtype="success", is_error=False, result="done", session_id=id, uuid=message["uuid"],
            user_message_uuids=[message["uuid"]])
        say(type="system", subtype="session_state_changed", state="idle", session_id=id)
"""


@every_backend
@pytest.mark.parametrize(
    ("begins", "fork", "warned"), [(SESSION, False, False), (OTHER, False, True), (OTHER, True, False)]
)
def test_a_resume_that_begins_another_session_is_warned_of(
    backend: Backend, begins: str, fork: bool, warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / backend.id
    (folder / "projects" / "-x").mkdir(parents=True)
    (folder / "projects" / "-x" / f"{SESSION}.jsonl").touch()
    interpreter = folder / "node"  # the CLI is a Node.js script or a binary, so the script must not look like Python
    interpreter.symlink_to(sys.executable)
    program = folder / "claude"
    program.write_text(f"#!{interpreter}\n{PROGRAM}")
    program.chmod(0o755)

    async def main() -> None:
        options = ClaudeOptions(cli_path=program, resume=SESSION, fork_session=fork)
        env = {"CLAUDE_CONFIG_DIR": str(folder), "BEGINS": begins, "PATH": "/usr/bin:/bin"}
        async with open_session(options, env=env) as session:
            assert (await session.ask("x", until="turn")).result == "done"

    with caplog.at_level(logging.WARNING, "claude_wire"):
        backend.run(main)
    said = [record.getMessage() for record in caplog.records]
    expected = (
        f"the CLI was to resume session {SESSION} and has begun session {OTHER}: it has nothing of what was said before"
    )
    assert said == ([expected] if warned else [])
