"""Hooks in CLASSIC, whose description names hooks but has no frames for them: the host calls them itself.

The lines and the hook names are those of document [001].
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from async_backends import DEADLINE
from claude_wire import CanUseToolRequest, HookCallbackRequest, HookMatcher, HookOutput, MessageStream, Session
from claude_wire.dialects import CLASSIC
from claude_wire.errors import DialectError, PromptError
from dialect_peer import LinePeer

pytestmark = pytest.mark.anyio

USE = {"type": "tool_use", "id": "toolu_123", "name": "Read", "input": {"file_path": "/a"}}
USES = {"type": "assistant", "message": {"role": "assistant", "content": [USE]}}
ASKS = {"type": "system", "subtype": "permission_request", "tool_name": "Read", "input": {"file_path": "/a"}}
RETURNS = {"type": "tool_result", "tool_use_id": "toolu_123", "result": {"type": "text", "text": "File contents..."}}
RESULT = {"type": "result", "subtype": "success", "total_cost_usd": 0.023, "duration_ms": 3450}

BLOCK = HookOutput(decision="block", reason="no")
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
ALLOW = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}


class Told:
    """Hook callbacks that record their inputs in order and return preset answers."""

    def __init__(self, **answers: Any) -> None:
        self.names: list[tuple[str, Any]] = []
        self._answers = answers

    def hooks(self, *events: str) -> dict[str, Any]:
        return {event: self._hook(event) for event in events}

    def _hook(self, event: str) -> Any:
        def hook(msg: HookCallbackRequest) -> Any:
            self.names.append((event, msg.name or getattr(msg.input, "prompt", None)))
            return self._answers.get(event.replace("-", "_"))

        return hook


async def run(peer: LinePeer, session: Session, *frames: dict[str, Any]) -> None:
    """Run one turn in which the agent writes these frames."""
    await session.query("Hello")
    peer.say(*frames, RESULT)
    with anyio.fail_after(DEADLINE):
        async for _ in session.receive_response():
            pass


async def test_the_hooks_of_the_description_are_called_in_order_once() -> None:
    told, peer = Told(), LinePeer()
    hooks = told.hooks("pre-tool-use", "post-tool-use", "user-prompt-submit")
    async with peer.session(dialect=CLASSIC, hooks=hooks, can_use_tool=lambda request: True) as session:
        await run(peer, session, USES, ASKS)
        assert (await peer.got(2))[1] == {"allow": True}
        await run(peer, session, RETURNS)
        await anyio.wait_all_tasks_blocked()
    assert told.names == [
        ("user-prompt-submit", "Hello"),
        ("pre-tool-use", "Read"),
        ("user-prompt-submit", "Hello"),
        ("post-tool-use", "Read"),
    ]


@pytest.mark.parametrize("answer", [BLOCK, DENY, HookOutput(continue_=False)], ids=repr)
@pytest.mark.parametrize("frames", [(USES, ASKS), (ASKS,)], ids=["after the use", "alone"])
async def test_a_denial_is_the_answer_to_the_permission_request(answer: Any, frames: tuple[Any, ...]) -> None:
    def never(request: CanUseToolRequest) -> bool:
        raise AssertionError

    told, peer = Told(pre_tool_use=answer), LinePeer()
    hooks = told.hooks("pre-tool-use")
    async with peer.session(dialect=CLASSIC, hooks=hooks, can_use_tool=never) as session:
        await run(peer, session, *frames)
        assert (await peer.got(2))[1] == {"allow": False}
    assert told.names == [("pre-tool-use", "Read")]


@pytest.mark.parametrize(("answer", "allowed"), [(ALLOW, True), (None, False)])
async def test_without_can_use_tool_a_hook_has_to_allow(answer: Any, allowed: bool) -> None:
    peer = LinePeer()
    hooks = Told(pre_tool_use=answer).hooks("pre-tool-use")
    async with peer.session(dialect=CLASSIC, hooks=hooks) as session:
        await run(peer, session, USES, ASKS)
        assert (await peer.got(2))[1] == {"allow": allowed}


async def test_a_use_that_the_policy_must_decide_is_not_allowed_by_a_hook_alone() -> None:
    peer = LinePeer()
    hooks = Told(pre_tool_use=ALLOW).hooks("pre-tool-use")
    async with peer.session(dialect=CLASSIC, hooks=hooks, can_use_tool=lambda request: False) as session:
        await run(peer, session, USES, ASKS)
        assert (await peer.got(2))[1] == {"allow": False}


async def test_a_denial_that_nobody_asks_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    told, peer = Told(pre_tool_use=BLOCK), LinePeer()
    async with peer.session(dialect=CLASSIC, hooks=told.hooks("pre-tool-use")) as session:
        await run(peer, session, USES, RETURNS)
        await anyio.wait_all_tasks_blocked()
    assert told.names == [("pre-tool-use", "Read")]
    assert "a hook denied Read, but the tool ran: the agent did not ask for permission" in caplog.text


async def test_a_prompt_that_a_hook_blocks_is_not_sent() -> None:
    told, peer = Told(user_prompt_submit=BLOCK), LinePeer()
    async with peer.session(dialect=CLASSIC, hooks=told.hooks("user-prompt-submit")) as session:
        for send in (session.query, session.ask):
            with pytest.raises(PromptError, match="a hook has blocked the prompt: no"):
                await send("Hello")
    assert peer.sent == []


async def test_a_hook_that_fails_is_logged_and_blocks_only_if_it_should(caplog: pytest.LogCaptureFixture) -> None:
    def fails(msg: HookCallbackRequest) -> None:
        raise ValueError

    for on_failure, allowed in (("continue", True), ("block", False)):
        peer = LinePeer()
        hooks = {"pre-tool-use": [HookMatcher(fails, matcher="Read|Write", on_failure=on_failure)]}  # type: ignore[arg-type]
        async with peer.session(dialect=CLASSIC, hooks=hooks, can_use_tool=lambda request: True) as session:
            await run(peer, session, USES, ASKS)
            assert (await peer.got(2))[1] == {"allow": allowed}
    assert "raised ValueError" in caplog.text


async def test_a_matcher_chooses_tools() -> None:
    told, peer = Told(), LinePeer()
    hook = told.hooks("pre-tool-use")["pre-tool-use"]
    hooks = {"pre-tool-use": [HookMatcher(hook, matcher="Write")]}
    async with peer.session(dialect=CLASSIC, hooks=hooks, can_use_tool=lambda request: True) as session:
        await run(peer, session, USES, ASKS)
        await peer.got(2)
    assert told.names == []


def test_a_hook_that_the_description_does_not_have_is_refused() -> None:
    hooks = {"Stop": [HookMatcher(lambda msg: None)]}
    with pytest.raises(DialectError, match="Stop would never be called"):
        Session(MessageStream(LinePeer().output), print, dialect=CLASSIC, hooks=hooks)
