"""Session: hooks, MCP servers, elicitation, dialogs, and other requests of the CLI."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

import claude_wire.protocol.questions as questions_module
import claude_wire.session.session as session_module
from async_backends import Backend, every_backend
from claude_wire import (
    AsyncHookOutput,
    CanUseToolRequest,
    ElicitationRequest,
    ElicitationResponse,
    HookCallbackRequest,
    HookMatcher,
    HookOutput,
    MessageStream,
    RequestRefusedError,
    Session,
    UnknownMessage,
    UserDialogCancelled,
    UserDialogCompleted,
)
from claude_wire.messages import (
    InitializeRequest,
    PermissionResult,
    PreToolUseHookInput,
    PreToolUseHookSpecificOutput,
    RequestUserDialogRequest,
    UnknownObject,
    UserDialogResult,
)
from claude_wire.session.callbacks import Callbacks
from session_peer import RESULT, Peer, Server, allow, hook_ids, hook_request, line, numbered, opened, stays_unanswered

# --- callbacks: hooks -------------------------------------------------------------------------------------------------


@every_backend
async def test_hooks_are_called_by_their_ids_and_give_any_kind_of_output() -> None:
    inputs: list[Any] = []

    def returns(output: Any) -> Any:
        async def hook(request: HookCallbackRequest) -> Any:
            inputs.append(request.input)
            return output

        return hook

    outputs: list[tuple[Any, Any]] = [
        (None, {}),
        ({"continue": False, "stopReason": "enough"}, {"continue": False, "stopReason": "enough"}),
        (HookOutput(decision="block", reason="r"), {"decision": "block", "reason": "r"}),
        (AsyncHookOutput(async_=True, asyncTimeout=5), {"async": True, "asyncTimeout": 5}),
        ({}, {}),
    ]

    hooks = {
        "PreToolUse": [HookMatcher(*(returns(output) for output, _ in outputs))],
        "Stop": [HookMatcher(returns("wrong"))],
    }
    async with opened(hooks=hooks) as (peer, _):
        told = (await peer.asked("initialize"))["hooks"]
        ids = told["PreToolUse"][0]["hookCallbackIds"]
        peer.say(*(hook_request(f"h{number}", callback_id) for number, callback_id in enumerate(ids)))
        for number, (_, expected) in enumerate(outputs):
            answer = await peer.answer_to(f"h{number}")
            assert (answer["subtype"], answer["response"]) == ("success", expected)
        peer.say(hook_request("wrong", told["Stop"][0]["hookCallbackIds"][0], "Stop"))
        peer.say(hook_request("unknown", "nobody's"))
        assert (await peer.answer_to("wrong"))["subtype"] == "error"
        assert (await peer.answer_to("unknown"))["subtype"] == "error"
    assert all(isinstance(given, PreToolUseHookInput) for given in inputs[: len(outputs)])
    assert inputs[0].tool_input == {"command": "ls"}


def ids_of(hooks: dict[str, list[HookMatcher]]) -> list[str]:
    told = Callbacks(None, hooks, None, None, None, None).complete(InitializeRequest()).hooks or {}
    return [id for matchers in told.values() for matcher in matchers for id in matcher.hookCallbackIds]


def test_the_id_of_a_hook_is_made_of_its_event_its_matcher_and_its_name_and_not_of_the_order() -> None:
    async def other(request: HookCallbackRequest) -> None: ...

    here = test_the_id_of_a_hook_is_made_of_its_event_its_matcher_and_its_name_and_not_of_the_order.__qualname__
    one = [HookMatcher(guard, matcher="Bash"), HookMatcher(other, Guard().check)]
    ids = ids_of({"pre-tool-use": one, "Stop": [HookMatcher(guard)]})
    assert ids == [
        "PreToolUse:Bash:guard",
        f"PreToolUse::{here}.<locals>.other",
        "PreToolUse::Guard.check",
        "Stop::guard",
    ]
    assert sorted(ids_of({"Stop": [HookMatcher(guard)], "PreToolUse": one[::-1]})) == sorted(ids)
    assert ids_of({"Stop": [HookMatcher(partial(guard), Guard(), name=None)]}) == ["Stop::guard", "Stop::Guard"]
    assert ids_of({"Stop": [HookMatcher(lambda request: None, name="n")]}) == ["Stop::n"]


def test_hooks_that_are_equal_get_a_number_behind_and_no_two_ids_are_the_same() -> None:
    assert ids_of({"Stop": [HookMatcher(guard, guard), HookMatcher(guard, name="guard")]}) == [
        "Stop::guard",
        "Stop::guard#2",
        "Stop::guard#3",
    ]
    named = [HookMatcher(guard, name=name) for name in ("n", "n#2", "n", "n", "n#2")]
    assert ids_of({"Stop": named}) == ["Stop::n", "Stop::n#2", "Stop::n#3", "Stop::n#4", "Stop::n#2#2"]


def test_the_name_of_a_matcher_is_a_text_that_is_not_empty() -> None:
    with pytest.raises(TypeError, match="name must be a str such as 'guard', not int"):
        HookMatcher(guard, name=1)
    with pytest.raises(ValueError, match="name must not be empty"):
        HookMatcher(guard, name="")


async def guard(request: HookCallbackRequest) -> None: ...


class Guard:
    async def check(self, request: HookCallbackRequest) -> None: ...
    async def __call__(self, request: HookCallbackRequest) -> None: ...


DENY = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}


@every_backend
@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ({"permissionDecision": "deny"}, "permissionDecision belongs in hookSpecificOutput"),
        ({"hookSpecificOutput": DENY, "updatedInput": {}}, "updatedInput belongs in hookSpecificOutput"),
        ({"decision": "deny"}, "decision must be one of 'approve', 'block', not 'deny'"),
        (HookOutput(decision="blocked"), "(did you mean 'block'?)"),
        ({"hookSpecificOutput": {**DENY, "permissionDecision": "denied"}}, "(did you mean 'deny'?)"),
        (HookOutput(hookSpecificOutput=PreToolUseHookSpecificOutput(permissionDecision="denied")), "not 'denied'"),
        ({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "no"}}}, "behavior"),
        ({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": "deny!"}}, "behavior"),
        ({"decision": ["block"]}, "not ['block']"),
        ({"decision": "approve"}, None),
        ({"decision": None, "hookSpecificOutput": None}, None),
        ({"hookSpecificOutput": DENY, "of_tomorrow": 1}, None),
        ({"hookSpecificOutput": UnknownObject({**DENY, "permissionDecision": "postpone"})}, None),
        ({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}, None),
        ({"async": True}, None),
    ],
)
async def test_an_answer_of_a_hook_that_would_guard_nothing_refuses_the_action(
    output: Any, problem: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    def guard(request: HookCallbackRequest) -> Any:
        return output

    async with opened(hooks={"PreToolUse": [HookMatcher(guard)]}) as (peer, _):
        told = (await peer.asked("initialize"))["hooks"]
        peer.say(hook_request("h", told["PreToolUse"][0]["hookCallbackIds"][0]))
        answer = await peer.answer_to("h")
    assert answer["subtype"] == "success"
    words = "the hook guard returned an output that has no effect for PreToolUse: "
    assert (words in caplog.text) == bool(problem)
    if problem is not None:
        refused = answer["response"]["hookSpecificOutput"]
        assert refused["permissionDecision"] == "deny"
        for text in refused["permissionDecisionReason"], caplog.text:
            assert words in text
            assert problem in text


def deny(event: str, **decision: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **decision}}


WRONG = "the hook guard returned bool for {}; return a HookOutput, an AsyncHookOutput, a dict or None"


@every_backend
@pytest.mark.parametrize("on_failure", [None, "continue", "block"])
async def test_a_hook_that_returns_no_answer_refuses_unless_on_failure_says_what_to_do(on_failure: Any) -> None:
    refused = {
        "PreToolUse": lambda why: deny("PreToolUse", permissionDecision="deny", permissionDecisionReason=why),
        "PermissionRequest": lambda why: deny("PermissionRequest", decision={"behavior": "deny", "message": why}),
        "UserPromptSubmit": lambda why: {"decision": "block", "reason": why},
    }

    def guard(request: HookCallbackRequest) -> Any:
        return False

    events = [*refused, "PostToolUse"]
    hooks = {event: [HookMatcher(guard, on_failure=on_failure)] for event in events}
    peer = Peer({"initialize": {"hook_on_failure_supported": True}})
    async with opened(peer, hooks=hooks):
        for event, id in zip(events, hook_ids(peer), strict=True):
            peer.say(hook_request(event, id, event))
            answer = await peer.answer_to(event)
            why = WRONG.format(event)
            if on_failure is None and event in refused:
                assert answer["response"] == refused[event](why)
            else:
                assert (answer["subtype"], answer["error"]) == ("error", why)


# --- callbacks: MCP servers -------------------------------------------------------------------------------------------


def rpc(request_id: str, server: str, method: str, **fields: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method, **fields}
    return Peer.request(request_id, "mcp_message", server_name=server, message=message)


@every_backend
async def test_mcp_servers_are_connected_called_and_closed() -> None:
    calc, other = Server(), Server()
    peer = Peer({"mcp_message": None})
    async with opened(peer, mcp_servers={"calc": calc, "other": other}) as (_, session):
        assert calc.send is not None
        peer.say(
            rpc("request", "calc", "tools/list", id=7),
            rpc("notification", "calc", "notifications/initialized"),
            rpc("raises", "calc", "raise", id=8),
            rpc("unknown", "nobody", "tools/list", id=9),
            rpc("notifies", "other", "notify", id=10),
        )

        async def response(request_id: str) -> dict[str, Any]:
            answer = await peer.answer_to(request_id)
            assert answer["subtype"] == "success"
            value: dict[str, Any] = answer["response"]["mcp_response"]
            assert value["jsonrpc"] == "2.0"
            return value

        assert (await response("request"))["result"] == {"echo": "tools/list"}
        assert (await response("request"))["id"] == 7
        assert (await response("notification"))["result"] == {}
        raised, unknown = await response("raises"), await response("unknown")
        assert (raised["id"], raised["error"]["code"]) == (8, -32603)
        assert "inside" not in raised["error"]["message"]
        assert (unknown["id"], unknown["error"]["code"]) == (9, -32601)
        assert (await response("notifies"))["id"] == 10
        # A request that the MCP server sends to the CLI.
        await calc.send({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        sent = [(asked["server_name"], asked["message"]["method"]) for asked in peer.requests("mcp_message")]
        assert sent == [("other", "notifications/progress"), ("calc", "roots/list")]
        assert session.info is not None
    assert (calc.closed, other.closed) == (1, 1)


@every_backend
async def test_mcp_requests_before_the_answer_to_initialize_are_served() -> None:
    peer = Peer()
    del peer.answers["initialize"]
    async with peer.session(mcp_servers={"calc": Server()}, can_use_tool=allow) as session:
        async with anyio.create_task_group() as group:
            group.start_soon(session.initialize)
            asked = await peer.asked("initialize")
            peer.say(rpc("m", "calc", "initialize", id=0))
            await peer.answer_to("m")
            peer.say(rpc("n", "calc", "notifications/initialized"))
            await peer.answer_to("n")
            assert session.info is None
            peer.answer(asked["request_id"], {})
        assert session.info is not None


@every_backend
async def test_an_mcp_server_that_does_not_close_or_raises_does_not_hold_up_the_rest() -> None:
    class Bad(Server):
        async def aclose(self) -> None:
            raise ValueError("cannot close")

    good = Server()
    async with opened(mcp_servers={"bad": Bad(), "good": good}):
        pass
    assert good.closed == 1


# --- callbacks: elicitation and dialogs -------------------------------------------------------------------------------


@every_backend
async def test_elicitation_is_asked_or_declined() -> None:
    async def elicit(request: ElicitationRequest) -> ElicitationResponse:
        if request.message == "wrong":
            return {"action": "accept"}
        return ElicitationResponse(action="accept", content={"name": request.mcp_server_name})

    def elicitation(request_id: str, message: str = "m") -> dict[str, Any]:
        return Peer.request(request_id, "elicitation", mcp_server_name="srv", message=message)

    async with opened(on_elicitation=elicit) as (peer, _):
        peer.say(elicitation("e"), elicitation("w", "wrong"))
        assert (await peer.answer_to("e"))["response"] == {"action": "accept", "content": {"name": "srv"}}
        assert (await peer.answer_to("w"))["subtype"] == "error"
    async with opened() as (peer, _):
        peer.say(elicitation("e"))
        assert (await peer.answer_to("e"))["response"] == {"action": "decline"}


@every_backend
async def test_dialogs_of_known_kinds_are_shown_and_others_never_answered() -> None:
    async def survey(request: RequestUserDialogRequest) -> Any:
        return {"done": UserDialogCompleted(result=[1]), "closed": UserDialogCancelled()}.get(request.payload["x"])

    def dialog(request_id: str, kind: str, x: str = "done") -> dict[str, Any]:
        return Peer.request(request_id, "request_user_dialog", dialog_kind=kind, payload={"x": x})

    async with opened(dialogs={"survey": survey}) as (peer, _):
        peer.say(dialog("d", "survey"), dialog("c", "survey", "closed"), dialog("w", "survey", "wrong"))
        peer.say(dialog("u", "of tomorrow"))
        assert (await peer.answer_to("d"))["response"] == {"behavior": "completed", "result": [1]}
        assert (await peer.answer_to("c"))["response"] == {"behavior": "cancelled"}
        assert (await peer.answer_to("w"))["subtype"] == "error"
        await stays_unanswered(peer, "u")


# --- unsupported and repeated requests --------------------------------------------------------------------------------


@every_backend
async def test_unknown_requests_get_the_error_answer_that_the_cli_expects() -> None:
    async with opened() as (peer, session):
        # The session treats a request that only hosts may send ("interrupt") like an unknown one.
        peer.say(Peer.request("u", "of_tomorrow", x=1), Peer.request("h", "interrupt"), numbered(1), RESULT)
        for request_id, subtype in ("u", "of_tomorrow"), ("h", "interrupt"):
            answer = await peer.answer_to(request_id)
            assert answer["error"] == f"Unsupported control request subtype: {subtype}"
            assert answer["error_code"] == "unsupported_request"
        assert len([message async for message in session.receive_response()]) == 2


@every_backend
async def test_a_request_that_cannot_be_read_gets_an_error_answer() -> None:
    async with opened(can_use_tool=allow) as (peer, session):
        peer.say(
            {"type": "control_request", "request_id": "no request"},
            {"type": "control_request", "request_id": "no object", "request": 7},
            {"type": "control_request", "request_id": "no subtype", "request": {}},
            Peer.request("misfit", "can_use_tool", tool_name=7),
            {"type": "control_request", "request": {"subtype": "interrupt"}},
            {"type": "control_request", "request_id": 7, "request": {"subtype": "interrupt"}},
            {"type": "control_response"},
            {"type": "control_response", "response": 7},
            {"type": "control_cancel_request"},
            {"type": "control_of_tomorrow"},
            Peer.permission("fine"),
            RESULT,
        )
        for request_id in "no request", "no object", "no subtype", "misfit":
            assert (await peer.answer_to(request_id))["subtype"] == "error"
        assert (await peer.answer_to("fine"))["subtype"] == "success"
        got = [message async for message in session.receive_response()]
        assert all(isinstance(message, UnknownMessage) for message in got[:-1])
        assert "control_of_tomorrow" in [message.type for message in got if isinstance(message, UnknownMessage)]

        def answers() -> list[dict[str, Any]]:
            return [message for message in peer.lines if message["type"] == "control_response"]

        await peer.until(lambda: len(answers()) >= 7)  # requests with a missing or numeric id get an answer, too
        await anyio.wait_all_tasks_blocked()
        assert len(answers()) == 7


@every_backend
async def test_a_request_without_an_id_or_with_a_number_is_answered_as_the_cli_does() -> None:
    """Like the CLI, leave out the id if the request has none, and otherwise repeat it, whatever its type."""
    async with opened(can_use_tool=allow) as (peer, session):
        question = Peer.permission("x")
        nameless = {key: value for key, value in question.items() if key != "request_id"}
        for message in (
            nameless,
            {**question, "request_id": 7},
            {**question, "request_id": "7"},
            {**question, "request_id": 7.0},  # equal to the id 7, which was answered already
            {**question, "request_id": 0.5},
            {**question, "request_id": None},
            {"type": "control_request", "request_id": 8},
            {"type": "control_request"},
            Peer.permission("last"),
        ):
            peer.say(message)
        peer.say(RESULT)
        assert [message async for message in session.receive_response()]

        def answers() -> list[tuple[str, str]]:
            found = [message["response"] for message in peer.lines if message["type"] == "control_response"]
            return sorted((repr(response.get("request_id", "none")), response["subtype"]) for response in found)

        expected = [
            ("'none'", "success"),
            ("7", "success"),
            ("'7'", "success"),
            ("0.5", "success"),
            ("None", "success"),
            ("8", "error"),
            ("'none'", "error"),
            ("'last'", "success"),
        ]
        await peer.until(lambda: len(answers()) >= len(expected))  # the callbacks may end in any order
        await anyio.wait_all_tasks_blocked()
        assert answers() == sorted(expected)


@every_backend
async def test_that_too_many_requests_wait_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(questions_module, "MAX_OPEN", 3)

    async def wait(_: CanUseToolRequest) -> bool:
        await anyio.sleep_forever()
        return False

    async with opened(can_use_tool=wait) as (peer, session):
        peer.say(*(Peer.permission(f"{number}") for number in range(6)), RESULT)
        assert [message async for message in session.receive_response()]
    assert caplog.text.count("3 requests are waiting for an answer; further requests are not answered") == 1


@every_backend
async def test_a_withdrawn_request_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions_module, "MAX_OPEN", 3)

    async def decide(request: CanUseToolRequest) -> Any:
        if request.tool_name != "Quick":
            await anyio.sleep_forever()
        return request.allow()

    async with opened(can_use_tool=decide) as (peer, _):
        for number in range(6):
            peer.say(Peer.permission(f"{number}"), Peer.cancel(f"{number}"))
        peer.say(Peer.permission("last", "Quick"))
        assert (await peer.answer_to("last"))["subtype"] == "success"


@every_backend
async def test_a_request_with_a_number_is_withdrawn_by_it() -> None:
    cancelled = anyio.Event()

    async def wait(request: CanUseToolRequest) -> bool:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return True

    async with opened(can_use_tool=wait) as (peer, _):
        peer.say({**Peer.permission("x"), "request_id": 7})
        await anyio.wait_all_tasks_blocked()
        peer.say({"type": "control_cancel_request"}, {"type": "control_cancel_request", "request_id": 7})
        await cancelled.wait()


@every_backend
async def test_a_request_that_comes_twice_is_answered_once() -> None:
    go = anyio.Event()
    calls: list[str | None] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        calls.append(request.tool_use_id)
        await go.wait()
        return request.allow()

    async with opened(can_use_tool=decide) as (peer, _):
        peer.say(Peer.permission("p"), Peer.permission("p"))
        await stays_unanswered(peer, "p")
        peer.say(Peer.permission("p"))
        go.set()
        await peer.answer_to("p")
        peer.say(Peer.permission("p"))
        await stays_unanswered(peer)
        assert len(peer.answers_to("p")) == 1
        assert calls == ["use-p"]


@every_backend
async def test_of_answered_requests_the_last_4096_are_remembered() -> None:
    """A repeated request gets a second answer only if 4096 other requests were answered in between."""
    answers: Counter[str] = Counter()

    class Forgetful(Peer):
        def took(self, message: dict[str, Any]) -> None:
            if message["type"] == "control_response":
                answers[message["response"]["request_id"]] += 1
            self._changed.set()

    def all_answered(count: int) -> bool:
        return sum(answers.values()) == count

    peer = Forgetful()
    async with peer.session():
        ids = [f"r{number}" for number in range(4097)]
        for first, last in ((0, 1), (1, 2), (2, 1000), (1000, 2000), (2000, 3000), (3000, 4097)):
            peer.say(*(Peer.request(request_id, "nonsense") for request_id in ids[first:last]))
            await peer.until(partial(all_answered, last))
        # The oldest id that the session remembers, the newest one, and the id that it has just forgotten.
        peer.say(*(Peer.request(request_id, "nonsense") for request_id in (ids[1], ids[-1], ids[0])))
        await peer.until(lambda: answers[ids[0]] == 2)
        await anyio.wait_all_tasks_blocked()
        assert answers == {request_id: 1 + (request_id == ids[0]) for request_id in ids}


@every_backend
@pytest.mark.parametrize("kind", ["a success", "an error"])
@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
async def test_requests_that_ride_on_the_answer_to_initialize_are_answered_once(kind: str, again: bool) -> None:
    async def survey(request: RequestUserDialogRequest) -> UserDialogCancelled:
        return UserDialogCancelled()

    peer = Peer()
    del peer.answers["initialize"]
    async with peer.session(can_use_tool=allow, dialogs={"survey": survey}) as session:
        async with anyio.create_task_group() as group:

            async def initialize() -> None:
                with suppress(RequestRefusedError):
                    await session.initialize()

            group.start_soon(initialize)
            asked = await peer.asked("initialize")
            dialog = Peer.request("d", "request_user_dialog", dialog_kind="survey", payload={})
            elicitation = Peer.request("e", "elicitation", mcp_server_name="s", message="m")
            peer.answer(
                asked["request_id"],
                {} if kind == "a success" else Exception("Already initialized"),
                pending_permission_requests=[Peer.permission("p")],
                pending_user_dialog_requests=[dialog],
                pending_elicitation_requests=[elicitation],
            )
            if again:
                peer.say(Peer.permission("p"), dialog, elicitation)
        for request_id in "p", "d", "e":
            assert (await peer.answer_to(request_id))["subtype"] == "success"
        await stays_unanswered(peer)
        for request_id in "p", "d", "e":
            assert len(peer.answers_to(request_id)) == 1


@every_backend
async def test_callbacks_begin_in_the_order_of_their_requests() -> None:
    begun: list[str] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        begun.append(str(request.tool_use_id))
        await anyio.lowlevel.checkpoint()
        return request.allow()

    # trio schedules ready tasks in random order, so a wrong order may need several tries to show
    for _ in range(10):
        begun.clear()
        async with opened(can_use_tool=decide) as (peer, _):
            numbers = range(20)
            before, after = ([Peer.permission(f"{kind}{number}") for number in numbers] for kind in "pq")
            peer.say(*before, Peer.permission("w"), Peer.cancel("w"), *after)
            await peer.answer_to("p19")
            await peer.answer_to("q19")
            assert begun == [f"use-{kind}{number}" for kind in "pq" for number in numbers]


@every_backend
async def test_an_answer_that_cannot_be_sent_does_not_end_the_session() -> None:
    async with opened(can_use_tool=allow) as (peer, session):
        tried = anyio.Event()

        async def fail() -> None:
            tried.set()
            raise OSError("broken")

        hold, peer.hold = peer.hold, fail
        peer.say(Peer.permission("p"))
        await tried.wait()
        peer.hold = hold
        peer.say(Peer.permission("q"), RESULT)
        await peer.answer_to("q")
        assert len([message async for message in session.receive_response()]) == 1


@every_backend
async def test_a_session_that_cannot_begin_closes_no_server_of_another() -> None:
    class Once(Server):
        def connect(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
            if self.send is not None:
                raise RuntimeError("already serves a session")
            super().connect(send)

    server = Once()
    async with opened(mcp_servers={"a": server}) as (peer, _):
        own = Server()
        with pytest.raises(RuntimeError):
            async with Peer().session(mcp_servers={"own": own, "a": server}):
                raise AssertionError
        assert (own.closed, server.closed) == (1, 0)
        peer.say(rpc("r", "a", "tools/list", id=1))
        assert "result" in (await peer.answer_to("r"))["response"]["mcp_response"]
    assert server.closed == 1


@every_backend
async def test_the_spelling_of_claude_agent_sdk_is_that_of_the_wire_in_a_plain_output() -> None:
    async def stop(request: HookCallbackRequest) -> dict[str, Any]:
        return {"continue_": False, "stopReason": "enough"}

    async def later(request: HookCallbackRequest) -> dict[str, Any]:
        return {"async_": True}

    async with opened(hooks={"PreToolUse": [HookMatcher(stop, later)]}) as (peer, _):
        first, second = hook_ids(peer)
        peer.say(hook_request("a", first), hook_request("b", second))
        assert (await peer.answer_to("a"))["response"] == {"continue": False, "stopReason": "enough"}
        assert (await peer.answer_to("b"))["response"] == {"async": True}


@every_backend
async def test_a_known_request_that_does_not_fit_is_not_called_unsupported() -> None:
    async with opened() as (peer, _):
        peer.say(Peer.request("r", "can_use_tool", tool_name=[], input={}))
        answer = await peer.answer_to("r")
        assert answer["subtype"] == "error"
        assert "cannot be read" in answer["error"]
        assert "tool_name" in answer["error"]


@every_backend
async def test_an_mcp_server_whose_end_hangs_does_not_hold_up_the_others_nor_the_session_for_long(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "GRACE_SECONDS", 0.05)

    class Hangs(Server):
        async def aclose(self) -> None:
            await anyio.sleep_forever()

    good = Server()
    async with opened(mcp_servers={"hangs": Hangs(), "good": good}):
        pass
    assert good.closed == 1
    assert any("did not end" in record.getMessage() for record in caplog.records)


# --- Callbacks may be plain functions. A callback that cannot be called as it will be is named ------------------------


def plain_guard(request: HookCallbackRequest) -> HookOutput:
    return HookOutput(decision="block")


@every_backend
async def test_a_plain_function_answers_as_an_async_one_does() -> None:
    class Object:
        def __call__(self, request: CanUseToolRequest) -> PermissionResult:
            return request.allow()

    def decide(request: CanUseToolRequest) -> PermissionResult:
        return request.deny("no") if request.tool_name == "Bash" else request.allow()

    def bound(more: str, request: CanUseToolRequest) -> PermissionResult:
        return request.deny(more)

    def elicit(request: ElicitationRequest) -> ElicitationResponse:
        return ElicitationResponse(action="cancel")

    def show(request: RequestUserDialogRequest) -> UserDialogResult:
        return UserDialogCancelled()

    hooks = {"PreToolUse": [HookMatcher(plain_guard)]}
    async with opened(can_use_tool=decide, hooks=hooks, on_elicitation=elicit, dialogs={"d": show}) as (peer, _):
        peer.say(Peer.permission("p1", "Bash"), Peer.permission("p2", "Read"), hook_request("h", hook_ids(peer)[0]))
        elicitation = {"subtype": "elicitation", "mcp_server_name": "s", "message": "m"}
        peer.say({"type": "control_request", "request_id": "e", "request": elicitation})
        dialog = {"subtype": "request_user_dialog", "dialog_kind": "d", "payload": {}}
        peer.say({"type": "control_request", "request_id": "d", "request": dialog})
        assert (await peer.answer_to("p1"))["response"]["behavior"] == "deny"
        assert (await peer.answer_to("p2"))["response"]["behavior"] == "allow"
        assert (await peer.answer_to("h"))["response"] == {"decision": "block"}
        assert (await peer.answer_to("e"))["response"] == {"action": "cancel"}
        assert (await peer.answer_to("d"))["response"]["behavior"] == "cancelled"
    for callback, behavior in (Object(), "allow"), (functools.partial(bound, "why"), "deny"):
        async with opened(can_use_tool=callback) as (peer, _):
            peer.say(Peer.permission("p"))
            assert (await peer.answer_to("p"))["response"]["behavior"] == behavior


@every_backend
async def test_what_sends_may_be_a_plain_function() -> None:
    sent: list[bytes] = []
    peer = Peer()
    async with Session(peer.stream, sent.append) as session:
        await session.query("hello", uuid="u")
    assert [b'"hello"' in one for one in sent] == [True]


@every_backend
def test_what_is_no_answer_is_told_to_the_cli_and_the_log_by_name(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    def decide(request: CanUseToolRequest) -> Any:
        return True

    def hook(request: HookCallbackRequest) -> Any:
        return False

    def elicit(request: ElicitationRequest) -> Any:
        return "accept"

    said: list[str] = []

    async def main() -> None:
        hooks = {"pre-tool-use": [HookMatcher(hook)]}
        async with opened(can_use_tool=decide, hooks=hooks, on_elicitation=elicit) as (peer, _):
            elicitation = {"subtype": "elicitation", "mcp_server_name": "s", "message": "m"}
            peer.say(Peer.permission("p", "Bash"), hook_request("h", hook_ids(peer)[0]))
            peer.say({"type": "control_request", "request_id": "e", "request": elicitation})
            for request_id in "p", "h", "e":
                answer = await peer.answer_to(request_id)
                if request_id == "h":  # a PreToolUse hook that fails denies the tool
                    assert answer["response"]["hookSpecificOutput"]["permissionDecision"] == "deny"
                else:
                    assert answer["subtype"] == "error"
                    said.append(answer["error"])

    with caplog.at_level(logging.WARNING, "claude_wire"):
        backend.run(main)
    assert said == [
        "can_use_tool returned bool for Bash; return request.allow() or request.deny('why')",
        "on_elicitation returned str for s; return ElicitationResponse(action='accept', content={...}), or another "
        "action: 'decline', 'cancel'",
    ]
    logged = [record.getMessage() for record in caplog.records]
    hook_said = "the hook hook returned bool for PreToolUse; return a HookOutput, an AsyncHookOutput, a dict or None"
    assert sorted(text for text in logged if text in said) == sorted(said)
    assert any(text.startswith(hook_said) for text in logged)
    assert len(logged) == 3
    assert not any(record.exc_info for record in caplog.records)


async def two(name: str, tool_input: dict[str, Any]) -> Any: ...
async def three(tool_input: dict[str, Any], tool_use_id: str, context: Any) -> Any: ...
async def none() -> Any: ...
async def keyword(*, request: Any) -> Any: ...
async def yields(request: Any) -> Any:
    yield request


async def gives(data: Any) -> None: ...


WRONG_CALLABLES: list[tuple[str, Callable[[Any], object], str]] = [
    ("two", lambda stream: Session(stream, len, can_use_tool=two), "can_use_tool is called with one argument, the Can"),
    ("hook", lambda stream: HookMatcher(three), "a hook is called with one argument, the HookCallbackRequest"),
    ("none", lambda stream: Session(stream, len, on_elicitation=none), r"; none\(\) does not take that"),
    ("keyword", lambda stream: Session(stream, len, dialogs={"d": keyword}), r"dialogs\['d'\] is called with one"),
    ("yields", lambda stream: Session(stream, len, can_use_tool=yields), "yields is a generator: it has a yield"),
    (
        "shown",
        lambda stream: Session(stream, len, on_received=gives),
        "on_received must be a plain function, and gives",
    ),
    ("sent", lambda stream: Session(stream, len, on_sent=functools.partial(gives)), "on_sent must be a plain function"),
    ("send", lambda stream: Session(stream, none), "send is called with one argument, the bytes of a line"),
    ("called", lambda stream: Session(stream, len, can_use_tool=gives(1)), r"not its result: pass it without \(\)"),
]


@pytest.mark.parametrize(
    ("make", "text"), [row[1:] for row in WRONG_CALLABLES], ids=[row[0] for row in WRONG_CALLABLES]
)
def test_what_cannot_be_called_as_it_will_be_is_refused_at_once(make: Callable[[Any], object], text: str) -> None:
    async def lines() -> Any:
        yield line({"type": "keep_alive"})

    with pytest.raises(TypeError, match=text):
        make(MessageStream(lines()))


@pytest.mark.parametrize("function", [len, print, lambda *_: None, lambda request, more=1: None, Session, dict.get])
def test_whatever_takes_one_argument_can_be_a_hook(function: Any) -> None:
    if function is dict.get:
        with pytest.raises(TypeError):  # dict.get needs at least two arguments
            HookMatcher(function)
    else:
        assert HookMatcher(function).hooks == (function,)


# --- events -----------------------------------------------------------------------------------------------------------


@every_backend
async def test_the_events_of_hooks_are_those_of_the_protocol_and_may_be_written_with_dashes() -> None:
    hooks = {
        "PreToolUse": [HookMatcher(plain_guard)],
        "post-tool-use-failure": [HookMatcher(plain_guard)],
        "cwd-changed": [HookMatcher(plain_guard)],
        "OfTomorrow": [HookMatcher(plain_guard, unknown_event=True)],
    }
    async with opened(hooks=hooks) as (peer, session):
        await session.initialize()
        (asked,) = [one["request"] for one in peer.lines if one["type"] == "control_request"][-1:]
        assert sorted(asked["hooks"]) == ["CwdChanged", "OfTomorrow", "PostToolUseFailure", "PreToolUse"]


@pytest.mark.parametrize(
    ("event", "near"),
    [
        ("PreTooluse", " (did you mean 'PreToolUse'?)"),
        ("pre_tool_use", " (did you mean 'PreToolUse'?)"),
        ("Pre-Tool-Use", " (did you mean 'PreToolUse'?)"),
        ("pre-tool-uze", " (did you mean 'PreToolUse'?)"),
        ("STOP", " (did you mean 'Stop'?)"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_an_event_that_the_protocol_does_not_have_is_refused_at_once(event: str, near: str) -> None:
    with pytest.raises(ValueError, match="hooks: ") as caught:
        Peer().session(hooks={event: [HookMatcher(plain_guard)]})
    assert str(caught.value) == (
        f"hooks: there is no event {event!r}{near}; for an event that this version does not know: "
        "HookMatcher(..., unknown_event=True)"
    )


def test_an_event_is_given_once() -> None:
    hooks = {"PreToolUse": [HookMatcher(plain_guard)], "pre-tool-use": [HookMatcher(plain_guard)]}
    with pytest.raises(ValueError, match="hooks has 'PreToolUse' twice, in two spellings: give one"):
        Peer().session(hooks=hooks)
    with pytest.raises(ValueError, match="hooks has 'PreToolUse' twice, in two spellings: give one"):
        Peer().session(hooks=dict(reversed(hooks.items())))
