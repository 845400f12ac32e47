"""Callbacks may be plain functions. The error names a callback with the wrong parameters or the wrong return type."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import pytest

from async_backends import Backend, every_backend
from claude_wire import (
    CanUseToolRequest,
    ElicitationRequest,
    ElicitationResponse,
    HookCallbackRequest,
    HookMatcher,
    HookOutput,
    MessageStream,
    Session,
    UserDialogCancelled,
)
from claude_wire.messages import PermissionResult, RequestUserDialogRequest, UserDialogResult
from session_peer import Peer, hook_ids, hook_request, line, opened


def guard(request: HookCallbackRequest) -> HookOutput:
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

    hooks = {"PreToolUse": [HookMatcher(guard)]}
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


WRONG: list[tuple[str, Callable[[Any], object], str]] = [
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


@pytest.mark.parametrize(("make", "text"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
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
        "PreToolUse": [HookMatcher(guard)],
        "post-tool-use-failure": [HookMatcher(guard)],
        "cwd-changed": [HookMatcher(guard)],
        "OfTomorrow": [HookMatcher(guard, unknown_event=True)],
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
        Peer().session(hooks={event: [HookMatcher(guard)]})
    assert str(caught.value) == (
        f"hooks: there is no event {event!r}{near}; for an event that this version does not know: "
        "HookMatcher(..., unknown_event=True)"
    )


def test_an_event_is_given_once() -> None:
    hooks = {"PreToolUse": [HookMatcher(guard)], "pre-tool-use": [HookMatcher(guard)]}
    with pytest.raises(ValueError, match="hooks has 'PreToolUse' twice, in two spellings: give one"):
        Peer().session(hooks=hooks)
    with pytest.raises(ValueError, match="hooks has 'PreToolUse' twice, in two spellings: give one"):
        Peer().session(hooks=dict(reversed(hooks.items())))
