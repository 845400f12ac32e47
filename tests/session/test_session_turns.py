"""Session: what it takes, initialize, prompts, turns and runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timezone
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from async_backends import Backend, every_asyncio, every_backend
from claude_wire import (
    AgentDefinition,
    ApiError,
    AuthenticationError,
    BillingError,
    CancelAsyncMessageRequest,
    ClaudeOptions,
    Decoder,
    ExecutionError,
    HandleError,
    HookCallbackMatcher,
    HookCallbackRequest,
    HookMatcher,
    InitializeRequest,
    InitializeResponse,
    InitMessage,
    InterruptRequest,
    MaxBudgetError,
    MaxTurnsError,
    MessageStream,
    RateLimitError,
    RequestError,
    RequestUserDialogRequest,
    ResultMessage,
    ResultSuccess,
    Session,
    SessionEndedError,
    StructuredOutputError,
    TextBlock,
    TurnCancelledError,
    TurnError,
    UnknownMessage,
    UserDialogCancelled,
    UserMessage,
    open_session,
)
from session_peer import INIT, RESULT, Peer, Server, allow, numbered, numbers, opened

# --- what a session takes ---------------------------------------------------------------------------------------------


@every_backend
def test_it_refuses_what_it_cannot_work_with(backend: Backend) -> None:
    async def main() -> None:
        with pytest.raises(TypeError):
            Session(MessageStream(Peer().output))
        for decoder in Decoder(dict), Decoder(on_invalid="raise"), Decoder(only={"result"}):
            with pytest.raises(TypeError):
                async with Peer().session(decoder=decoder):
                    pass
        with pytest.raises(ValueError, match="callback_timeout"):
            Peer().session(callback_timeout=0)
        with pytest.raises(TypeError, match="HookMatcher"):
            Peer().session(hooks={"Stop": HookMatcher(hook)})
        for bad in ({"timeout": 0}, {"on_failure": "explode"}):
            with pytest.raises(ValueError, match=next(iter(bad))):
                HookMatcher(hook, **bad)
        with pytest.raises(TypeError):
            HookMatcher()

    async def hook(request: HookCallbackRequest) -> None: ...

    backend.run(main)


@every_backend
def test_it_is_used_in_its_block_and_entered_once(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer()
        session = peer.session()
        uses: list[Callable[[], Awaitable[object]]] = [
            lambda: session.query("x"),
            lambda: session.request(InterruptRequest()),
            lambda: session.__anext__(),
            lambda: session.batches().__anext__(),
        ]
        for use in uses:
            with pytest.raises(HandleError, match="not entered"):
                await use()
        async with session:
            pass
        for use in uses[:2]:
            with pytest.raises((HandleError, SessionEndedError), match="closed"):
                await use()
        for use in uses[2:]:
            with pytest.raises(StopAsyncIteration):
                await use()
        await session.aclose()
        with pytest.raises(HandleError, match="once"):
            await session.__aenter__()
        assert peer.lines == []

    backend.run(main)


@every_backend
def test_one_that_is_closed_is_not_entered_and_leaves_its_stream_to_another(backend: Backend) -> None:
    async def main() -> None:
        peer, server = Peer(), Server()
        session = peer.session(mcp_servers={"s": server})
        await session.aclose()
        with pytest.raises(HandleError, match="closed"):
            async with session:
                raise AssertionError
        assert server.send is None
        async with opened(peer):
            pass

    backend.run(main)


@every_backend
def test_a_stream_has_one_session(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer()
        async with peer.session():
            with pytest.raises(HandleError, match="session"):
                async with peer.session():
                    pass

    backend.run(main)


# --- initialize -------------------------------------------------------------------------------------------------------


@every_backend
def test_initialize_tells_of_the_callbacks_beside_what_is_asked_for(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer({"initialize": {"output_style": "default", "claude_code_version": "2.1.330"}})
        matcher = HookMatcher(hook, hook, matcher="Bash|Edit", timeout=5, on_failure="continue")
        session = peer.session(
            hooks={"PreToolUse": [matcher], "Stop": [HookMatcher(hook)]},
            mcp_servers={"calc": Server()},
            dialogs={"survey": dialog},
        )
        async with session:
            assert session.info is None
            answer = await session.initialize(
                InitializeRequest(title="T", agents={"a": AgentDefinition(description="d", prompt="p")})
            )
            assert answer is session.info
            assert answer == InitializeResponse(output_style="default", claude_code_version="2.1.330")
        request = peer.requests("initialize")[0]
        assert (request["title"], list(request["agents"])) == ("T", ["a"])
        assert request["sdkMcpServers"] == ["calc"]
        assert request["supportedDialogKinds"] == ["survey"]
        [tools], [stop] = request["hooks"]["PreToolUse"], request["hooks"]["Stop"]
        assert (tools["matcher"], tools["timeout"], tools["onFailure"]) == ("Bash|Edit", 5, "continue")
        ids = tools["hookCallbackIds"] + stop["hookCallbackIds"]
        assert len(set(ids)) == len(ids) == 3

    async def hook(request: HookCallbackRequest) -> None: ...
    async def dialog(request: RequestUserDialogRequest) -> UserDialogCancelled:
        return UserDialogCancelled()

    backend.run(main)


@every_backend
def test_what_is_said_twice_to_initialize_is_an_error_and_nothing_is_sent(backend: Backend) -> None:
    async def main() -> None:
        async with Peer().session() as plain:
            await plain.initialize(InitializeRequest(sdkMcpServers=["theirs"]))  # nothing of ours: no conflict
        peer = Peer()
        async with peer.session(hooks={"Stop": [HookMatcher(hook)]}, mcp_servers={"c": Server()}) as session:
            matchers = {"Stop": [HookCallbackMatcher(hookCallbackIds=["x"])]}
            for request in InitializeRequest(hooks=matchers), InitializeRequest(sdkMcpServers=["x"]):
                with pytest.raises(ValueError, match="twice"):
                    await session.initialize(request)
            assert peer.lines == []

    async def hook(request: HookCallbackRequest) -> None: ...

    backend.run(main)


@every_backend
def test_hooks_that_must_block_need_a_cli_that_can(backend: Backend) -> None:
    async def main() -> None:
        for can in ({}, {"hook_on_failure_supported": True, "hooks_applied": False}):
            async with Peer({"initialize": can}).session(hooks={"Stop": [blocking]}) as session:
                with pytest.raises(RequestError, match="must block"):
                    await session.initialize()
        async with Peer({"initialize": {"hook_on_failure_supported": True}}).session(hooks={"Stop": [blocking]}) as s:
            await s.initialize()

    async def hook(request: HookCallbackRequest) -> None: ...

    blocking = HookMatcher(hook, on_failure="block")
    backend.run(main)


# --- prompts ----------------------------------------------------------------------------------------------------------


@every_backend
def test_query_sends_text_blocks_whole_messages_and_all_of_an_iterable(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            await session.query("text", session_id="s")
            await session.query([TextBlock("block")], uuid="11111111-1111-4111-8111-111111111111")
            await session.query(UserMessage.of("whole", uuid="u2"))
            await session.query(UserMessage.of("whole", uuid="u2"), uuid="u3")

            async def prompts() -> AsyncIterator[str | UserMessage]:
                yield "one"
                yield UserMessage.of("two", uuid="u4")

            await session.query(prompts())
            with pytest.raises(TypeError, match="uuid"):
                await session.query(prompts(), uuid="one for all")
        sent = peer.prompts()
        contents = [message["message"]["content"] for message in sent]
        assert contents == ["text", [{"type": "text", "text": "block"}], "whole", "whole", "one", "two"]
        assert all(message["message"]["role"] == "user" for message in sent)
        assert sent[0]["session_id"] == "s"
        uuids = [message["uuid"] for message in sent]
        assert uuids[1:4] == ["11111111-1111-4111-8111-111111111111", "u2", "u3"]
        assert uuids[5] == "u4"
        assert len(set(uuids)) == len(uuids)

    backend.run(main)


@every_backend
def test_query_raises_what_sending_raises_and_owes_no_turn(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            peer.failure = OSError("broken")
            with pytest.raises(OSError, match="broken"):
                await session.query("x")
            assert [message async for message in session.receive_run()] == []

    backend.run(main)


@every_asyncio
def test_what_sends_is_cancelled_by_nobody_in_the_session(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):

            async def cancelled() -> None:
                import asyncio

                future = asyncio.get_running_loop().create_future()
                future.cancel()
                await future

            peer.hold = cancelled
            with pytest.raises(HandleError, match="cancelled"):
                await session.query("x")
            peer.hold = anyio.lowlevel.checkpoint
            await session.query("y")

    backend.run(main)


@every_backend
def test_nobody_else_reads_while_ask_sends_its_prompt(backend: Backend) -> None:
    """What answers the prompt would be taken by another task."""

    async def main() -> None:
        async with opened() as (peer, session):
            go = anyio.Event()
            peer.hold = go.wait
            async with anyio.create_task_group() as group:
                group.start_soon(session.ask, "x")
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(HandleError, match="ask"), anyio.fail_after(60):
                    await session.__anext__()
                go.set()
                (prompt,) = await peer.until(peer.prompts)
                peer.say(INIT, {**RESULT, "user_message_uuids": [prompt["uuid"]]})

    backend.run(main)


@every_backend
def test_all_who_wait_to_send_are_told_that_the_session_was_closed(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer()
        told: list[int] = []

        async def send(session: Session, number: int) -> None:
            with pytest.raises(HandleError, match="closed"):
                await session.query(str(number))
            told.append(number)

        async with anyio.create_task_group() as group, peer.session() as session:
            peer.hold = anyio.sleep_forever
            for number in range(4):
                group.start_soon(send, session, number)
            await anyio.wait_all_tasks_blocked()
            await session.aclose()
            with anyio.fail_after(60):
                while len(told) < 4:
                    await anyio.sleep(0.001)
        assert peer.lines == []

    backend.run(main)


@every_backend
def test_a_cancelled_query_leaves_no_half_line(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            begun, go = anyio.Event(), anyio.Event()

            async def hold() -> None:
                begun.set()
                await go.wait()

            peer.hold = hold
            async with anyio.create_task_group() as group:
                group.start_soon(session.query, "first")
                await begun.wait()
                group.cancel_scope.cancel()
            go.set()
            await session.query("second")
            assert [prompt["message"]["content"] for prompt in peer.prompts()] == ["first", "second"]

    backend.run(main)


# --- turns and runs ---------------------------------------------------------------------------------------------------


@every_backend
def test_receive_response_ends_with_the_result_and_leaves_the_rest(backend: Backend) -> None:
    async def main() -> None:
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
            assert numbers(third) == [3]  # the output ended first
            assert [message async for message in session] == []

    backend.run(main)


@every_backend
def test_batches_give_the_same_in_lists(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            peer.say(numbered(1), {"type": "keep_alive"}, numbered(2))
            peer.say({"type": "keep_alive"}, state("idle"))  # nothing of it is for the consumer
            peer.say(numbered(3))
            peer.output.end()
            batches = [batch async for batch in session.batches()]
            assert all(batches)
            assert numbers(message for batch in batches for message in batch) == [1, 2, 3]

    backend.run(main)


def state(name: str, *, hidden: bool = True) -> dict[str, Any]:
    message: dict[str, Any] = {"type": "system", "subtype": "session_state_changed", "state": name}
    return {**message, "sdk_host_only": True} if hidden else message


@every_backend
def test_keep_alives_and_states_for_the_host_are_not_shown(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            peer.say({"type": "keep_alive"}, state("running"), numbered(1), state("idle", hidden=False), numbered(2))
            peer.output.end()
            got = [message async for message in session]
            assert [message.type if isinstance(message, UnknownMessage) else type(message).__name__ for message in got]
            assert len(got) == 3
            assert numbers([got[0], got[2]]) == [1, 2]

    backend.run(main)


def started(task_id: str, kind: str = "local_agent") -> dict[str, Any]:
    about = {"task_id": task_id, "description": "d", "task_type": kind}
    return {"type": "system", "subtype": "task_started", **about}


def ended(task_id: str) -> dict[str, Any]:
    about = {"task_id": task_id, "status": "completed", "output_file": "", "summary": ""}
    return {"type": "system", "subtype": "task_notification", **about}


def updated(task_id: str, status: str) -> dict[str, Any]:
    return {"type": "system", "subtype": "task_updated", "task_id": task_id, "patch": {"status": status}}


#: The result of a turn that the end of background work began.
WOKEN = {**RESULT, "origin": {"kind": "task-notification"}}

#: By what they show: what the CLI says to one prompt, in two parts, of which the first must not end the run, nor the
#: second be missing from it.
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
def test_receive_run_goes_on_to_the_end_of_the_run(backend: Backend, case: str) -> None:
    first, second = RUNS[case]

    async def main() -> None:
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
            # Nothing is owed: the next one ends at once, and a later prompt is followed as before.
            assert [message async for message in session.receive_run()] == []
            await session.query("y")
            peer.say(RESULT, *([state("idle")] if "state" in repr(first) else []))
            assert len([message async for message in session.receive_run()]) == 1

    backend.run(main)


@every_backend
def test_a_shell_in_the_background_is_not_waited_for_beyond_the_ceiling(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            await session.query("x")
            peer.say(INIT, started("t", "local_bash"), RESULT)
            assert len([message async for message in session.receive_run()]) == 3
            # This one says that it is not idle, and never does.
            await session.query("x")
            peer.say(state("running"), INIT, started("u", "local_bash"), RESULT)
            assert len([message async for message in session.receive_run(ceiling=0.05)]) == 3

    backend.run(main)


@every_backend
def test_the_ceiling_does_not_end_a_turn_that_is_under_way(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            await session.query("x")

            async def later() -> None:
                await anyio.sleep(0.15)
                peer.say(RESULT)

            async with anyio.create_task_group() as group:
                group.start_soon(later)
                got = [message async for message in session.receive_run(ceiling=0.02)]
            assert len(got) == 1

    backend.run(main)


@every_backend
def test_a_prompt_that_was_had_already_is_owed_nothing(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            for _ in range(2):
                await session.query("x", uuid="u")
                if len(peer.prompts()) == 1:
                    peer.say(RESULT)
                async for _ in session.receive_run():
                    pass

    backend.run(main)


@every_backend
def test_a_result_that_is_read_before_the_sender_goes_on_is_that_of_its_prompt(backend: Backend) -> None:
    async def main() -> None:
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

    backend.run(main)


@every_backend
def test_ask_returns_the_result(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            peer.say(INIT, numbered(1), RESULT, numbered(2))
            result = await session.ask("x")
            assert isinstance(result, ResultSuccess)
            assert result.result == "done"
            peer.output.end()
            with pytest.raises(SessionEndedError, match="before the result"):
                await session.ask("y")

    backend.run(main)


#: By the class of the error, fields of results that are one.
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
            # The next turn is not blamed for this one.
            peer.say(INIT, {**RESULT, "is_error": True, "api_error_status": 500})
            with pytest.raises(ApiError) as later:
                await session.ask("x")
            assert type(later.value) is ApiError

    backend.run(main)


def limit(status: str, resets_at: object) -> dict[str, Any]:
    return {"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": resets_at}}


@every_backend
def test_a_rate_limit_says_when_it_ends_if_the_cli_has_said_so(backend: Backend) -> None:
    """For as long as the last event says that the limit is used up."""
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

    async def main() -> None:
        async with opened() as (peer, session):
            for events, resets_at in said:
                peer.say(INIT, *events, refused)
                with pytest.raises(RateLimitError) as info:
                    await session.ask("x")
                assert info.value.resets_at == resets_at
                assert ("try again after 2030-01-01 00:00:00 UTC" in str(info.value)) is (resets_at is not None)

    backend.run(main)


@every_backend
def test_ask_passes_over_the_result_of_a_prompt_that_was_given_up(backend: Backend) -> None:
    async def main() -> None:
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

    backend.run(main)


@every_backend
def test_a_prompt_that_is_cancelled_before_its_turn_to_be_sent_is_not_sent(backend: Backend) -> None:
    async def main() -> None:
        go = anyio.Event()
        sent: list[bytes] = []

        async def send(data: bytes) -> None:
            await go.wait()
            sent.append(data)

        async with Session(MessageStream(Peer().output), send) as session, anyio.create_task_group() as group:
            scopes = [anyio.CancelScope(), anyio.CancelScope()]

            async def ask(scope: anyio.CancelScope, text: str) -> None:
                with scope:
                    await session.query(text)

            for scope, text in zip(scopes, ("first", "second"), strict=True):
                group.start_soon(ask, scope, text)
                await anyio.wait_all_tasks_blocked()
            for scope in scopes:
                scope.cancel()  # the first in the middle of being sent, and so it is sent
            await anyio.wait_all_tasks_blocked()
            go.set()
            await anyio.wait_all_tasks_blocked()
            assert len(sent) == 1
            assert b"first" in sent[0]
            assert not session._reading.run.over

    backend.run(main)


@every_backend
def test_ask_passes_over_the_turn_of_background_work_and_refuses_what_would_wait_for_ever(backend: Backend) -> None:
    async def main() -> None:
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

    backend.run(main)


@every_backend
@pytest.mark.parametrize("states", [True, False])
def test_a_result_that_was_not_read_yet_is_not_that_of_a_later_prompt(backend: Backend, states: bool) -> None:
    def state(name: str) -> list[dict[str, Any]]:
        changed = {"type": "system", "subtype": "session_state_changed", "state": name, "sdk_host_only": True}
        return [changed] if states else []

    async def main() -> None:
        async with opened() as (peer, session):
            for number in range(2):
                await session.query(str(number))
                uuid = peer.prompts()[number]["uuid"]
                if number == 0:
                    peer.say(*state("running"), INIT, {**RESULT, "user_message_uuids": [uuid]}, *state("idle"))
            peer.say(*state("running"), INIT, {**RESULT, "user_message_uuids": [uuid]}, *state("idle"))
            got = [message async for message in session.receive_run()]
            assert sum(isinstance(message, ResultMessage) for message in got) == 2

    backend.run(main)


@every_backend
def test_a_prompt_that_the_cli_has_taken_out_of_its_queue_is_owed_nothing(backend: Backend) -> None:
    async def main() -> None:
        async with opened(Peer({"cancel_async_message": {"cancelled": True}})) as (peer, session):
            await session.query("x", uuid="u")
            assert (await session.request(CancelAsyncMessageRequest(message_uuid="u"))).cancelled
            assert [message async for message in session.receive_run()] == []
            await session.query("y", uuid="v")
            peer.answers["interrupt"] = {"cancelled": ["v"]}
            await session.interrupt(cancel_queued=True)
            assert [message async for message in session.receive_run()] == []

    backend.run(main)


@every_backend
def test_a_prompt_that_the_cli_has_begun_already_is_owed_its_result(backend: Backend) -> None:
    """Though it was to be taken out of the queue."""

    async def main() -> None:
        async with opened(Peer({"cancel_async_message": {"cancelled": False}})) as (peer, session):
            await session.query("x", uuid="u")
            assert not (await session.request(CancelAsyncMessageRequest(message_uuid="u"))).cancelled
            peer.say(INIT, {**RESULT, "user_message_uuids": ["u"]})
            got = [type(message) async for message in session.receive_run()]
            assert got == [InitMessage, ResultSuccess]

    backend.run(main)


@every_backend
@pytest.mark.parametrize("prompt", [{"type": "user"}, ["one", "two"], [], b"bytes", 5], ids=str)
def test_what_is_no_prompt_is_refused_and_not_sent(backend: Backend, prompt: Any) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            with pytest.raises(TypeError, match="a prompt is text"):
                await session.query(prompt)
            assert peer.prompts() == []

    backend.run(main)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"can_use_tool": "ask"}, TypeError, "can_use_tool"),
        ({"on_received": b""}, TypeError, "on_received"),
        ({"on_sent": 5}, TypeError, "on_sent"),
        ({"on_elicitation": 5}, TypeError, "on_elicitation"),
        ({"hooks": {"Stop": [print]}}, TypeError, "Stop"),
        ({"hooks": {"Stop": HookMatcher(print)}}, TypeError, "Stop"),
        ({"hooks": [HookMatcher(print)]}, TypeError, "hooks must be a dict"),
        ({"mcp_servers": [Server()]}, TypeError, "mcp_servers must be a dict"),
        ({"dialogs": [print]}, TypeError, "dialogs must be a dict"),
        ({"mcp_servers": {"calc": {"command": "x"}}}, TypeError, "InProcessMcpServer"),
        ({"dialogs": {"survey": None}}, TypeError, "survey"),
        ({"callback_timeout": 0}, ValueError, "callback_timeout"),
        ({"callback_timeout": "5"}, TypeError, "callback_timeout"),
        ({"request_timeout": -1}, ValueError, "request_timeout"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_argument_is_refused_at_once_in_words_of_its_own(
    arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    for make in (lambda: Peer().session(**arguments), lambda: open_session(["claude"], **arguments)):
        with pytest.raises(error, match=says):
            make()


def test_what_a_session_speaks_over_is_refused_at_once_if_it_is_something_else() -> None:
    with pytest.raises(TypeError, match="stream must be a Process or a MessageStream, not Output"):
        Session(Peer().output, allow)
    with pytest.raises(TypeError, match="send must be a function"):
        Session(Peer().stream, 5)


@pytest.mark.parametrize(("ceiling", "error"), [("5", TypeError), (-1, ValueError), (float("nan"), ValueError)])
def test_a_wrong_ceiling_is_refused_at_once(ceiling: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="ceiling"):
        Peer().session().receive_run(ceiling=ceiling)


def test_a_permission_callback_beside_another_permission_prompt_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="stdio"):
        open_session(ClaudeOptions(cli_path="claude", permission_prompt_tool="mcp__a__b"), can_use_tool=allow)


@every_backend
def test_a_prompt_that_comes_back_is_a_message_that_says_so_and_no_turn(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            await session.query("x", uuid="u")
            echo = {"type": "user", "message": {"role": "user", "content": "x"}, "uuid": "u", "isReplay": True}
            peer.say(echo, INIT, RESULT)
            got = [message async for message in session.receive_response()]
            assert isinstance(got[0], UserMessage)
            assert (got[0].isReplay, got[0].uuid) == (True, "u")
            await session.query("x", uuid="u")  # of which the CLI starts no turn
            peer.say(echo)
            assert [message async for message in session.receive_run()] == []
            assert (await session.__anext__()).isReplay is True

    backend.run(main)
