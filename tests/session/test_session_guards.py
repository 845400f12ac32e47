"""Session.guards: the hooks and callbacks that the CLI has confirmed, the tools they match, and their calls."""

from __future__ import annotations

import logging

import anyio
import pytest

from async_backends import every_backend
from children import ASKS
from claude_wire import HookCallbackRequest, HookMatcher, RequestError, open_process, open_session, sync
from claude_wire.control.matchers import fits_tool
from claude_wire.dialects import CLASSIC, MIRIAD
from claude_wire.session import Guard, Session
from claude_wire_kit.supervisor.frames import Started
from session_peer import INIT, RESULT, Peer, Server, allow, hook_ids, hook_request, opened
from supervisor_peer import SupervisorPeer

TOOLS = ["Task", "Bash", "Edit", "Write", "mcp__calc__add"]


async def guard(request: HookCallbackRequest) -> None: ...


async def other(request: HookCallbackRequest) -> None: ...


HOOKS = {"PreToolUse": [HookMatcher(guard, matcher="Bash")], "Stop": [HookMatcher(other, name="n")]}


@every_backend
async def test_guards_say_what_the_cli_has_confirmed_and_how_often_each_was_called() -> None:
    peer = Peer({"initialize": {"hooks_applied": True}})
    session = peer.session(can_use_tool=allow, hooks=HOOKS)
    permission = Guard(name="allow", event="can_use_tool")
    tool, stop = Guard(name="guard", event="PreToolUse", matcher="Bash"), Guard(name="n", event="Stop")
    assert session.guards == (permission, tool, stop)
    async with session:
        await session.initialize()
        assert [one.confirmed for one in session.guards] == [None, True, True]
        peer.say(hook_request("h", hook_ids(peer)[0]), Peer.permission("p"), Peer.permission("q"))
        for request_id in "h", "p", "q":
            await peer.answer_to(request_id)
        assert [(one.event, one.calls) for one in session.guards] == [
            ("can_use_tool", 2),
            ("PreToolUse", 1),
            ("Stop", 0),
        ]
    assert session.guards[0].calls == 2
    with pytest.raises(AttributeError):
        session.guards[0].calls = 0  # type: ignore[misc]


@every_backend
async def test_hooks_that_the_cli_has_not_registered_are_an_error_at_the_beginning() -> None:
    for answer in ({"hooks_applied": False}, {"hooks_applied": False, "hook_on_failure_supported": True}):
        async with Peer({"initialize": answer}).session(hooks=HOOKS) as session:
            with pytest.raises(RequestError, match="has not registered the hooks and would never call them"):
                await session.initialize()
            assert [one.confirmed for one in session.guards] == [None, None]
        async with opened(Peer({"initialize": answer}), can_use_tool=allow) as (_, plain):
            assert plain.guards == (Guard(name="allow", event="can_use_tool"),)
    async with opened(hooks=HOOKS) as (_, silent):  # an older CLI does not report which guards it has
        assert [one.confirmed for one in silent.guards] == [None, None]


def test_a_permission_callback_is_confirmed_by_the_command_line_or_the_dialect() -> None:
    sessions = [
        (open_session(["agent", *ASKS], can_use_tool=allow), True),
        (sync.open_session(["agent", *ASKS], can_use_tool=allow), True),
        (Session(open_process(["agent", *ASKS]), can_use_tool=allow), True),
        (open_session(["agent"], can_use_tool=allow, dialect=CLASSIC), True),
        (Peer().session(can_use_tool=allow), None),
        (open_session(["agent"], can_use_tool=allow, dialect="auto"), None),
    ]
    for session, confirmed in sessions:
        assert [one.confirmed for one in session.guards] == [confirmed]
    assert open_session(["agent"], dialect=MIRIAD).guards == ()


@pytest.mark.parametrize(
    ("matcher", "fits"),
    [
        (None, True),
        ("", True),
        ("*", True),
        ("Bash", True),
        ("bash", False),
        ("Bas", False),
        ("Read|Edit", True),
        ("Read, Write", True),
        ("Read|edit", False),
        ("Agent", True),
        ("Task", True),
        ("mcp__calc__add", True),
        ("mcp__calc", False),
        ("mcp__calc__.*", True),
        ("^(Bash|Read)$", True),
        (".*sh", True),
        ("^bash$", False),
        ("Read.*", False),
        ("(?<name>Bash", True),  # not a valid pattern in Python, but perhaps one in JavaScript
    ],
)
def test_a_matcher_is_compared_as_the_cli_compares_it(matcher: str | None, fits: bool) -> None:
    assert fits_tool(matcher, TOOLS) is fits


@every_backend
async def test_a_matcher_that_fits_no_tool_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    hooks = {
        "PreToolUse": [HookMatcher(guard, matcher="bash"), HookMatcher(guard, matcher="Bash")],
        "PostToolUse": [HookMatcher(other)],
        "SessionStart": [HookMatcher(guard, matcher="resume")],
    }

    def warnings() -> list[str]:
        return [record.message for record in caplog.records if record.levelno == logging.WARNING]

    pending = {**INIT, "tools": TOOLS, "mcp_servers": [{"name": "s", "status": "pending"}]}
    ready = {**INIT, "tools": TOOLS, "mcp_servers": [{"name": "s", "status": "connected"}]}
    async with opened(hooks=hooks) as (peer, session):
        assert [one.fits for one in session.guards] == [None] * 4
        for init, fits in ((pending, None), (ready, False), (ready, False)):
            peer.say(init, RESULT)
            with anyio.fail_after(60):
                async for _ in session.receive_response():
                    pass
            assert [one.fits for one in session.guards] == [fits, True, True, None]
            assert len(warnings()) == (0 if fits is None else 1)
    [warning] = warnings()
    assert "the PreToolUse hook guard is never called: matcher='bash' matches none of the 5 tools" in warning


@every_backend
async def test_an_agent_that_lists_no_tools_is_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(hooks={"PreToolUse": [HookMatcher(guard, matcher="Bash")]}) as (peer, session):
        peer.say({**INIT, "tools": []}, RESULT)
        with anyio.fail_after(60):
            async for _ in session.receive_response():
                pass
        assert [one.fits for one in session.guards] == [None]
    assert caplog.text == ""


@every_backend
async def test_a_client_is_told_what_the_cli_of_a_supervisor_was_started_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def confirmed(started: Started | None, role: str = "driver") -> list[bool | None]:
        host = SupervisorPeer()
        host.started = started
        caplog.clear()
        _, session = host.connect(role=role, can_use_tool=allow, hooks=HOOKS, mcp_servers={"calc": Server()})
        async with session:
            return [one.confirmed for one in session.guards]

    ids = ["PreToolUse:Bash:guard", "Stop::n"]
    assert await confirmed(Started(hooks=ids, mcp=["calc"], asks=True)) == [True, None, None]
    assert caplog.text == ""
    assert await confirmed(Started(hooks=ids[1:])) == [False, False, None]
    assert "without: can_use_tool, the PreToolUse hook guard, the MCP server calc" in caplog.text
    assert await confirmed(None) == [None, None, None]  # an older supervisor does not report guards
    assert await confirmed(Started(), role="viewer") == [None, None, None]
    assert caplog.text == ""
