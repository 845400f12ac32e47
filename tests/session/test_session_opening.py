"""Session: its arguments, entering it, and ``initialize``."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from async_backends import Backend, every_backend
from children import ASKS
from claude_wire import (
    ClaudeOptions,
    Decoder,
    HandleError,
    HookCallbackRequest,
    HookMatcher,
    MessageStream,
    RequestError,
    Session,
    SessionEndedError,
    UserDialogCancelled,
    open_process,
    open_session,
    sync,
)
from claude_wire.dialects import MIRIAD, STREAM_JSON
from claude_wire.errors import DialectError
from claude_wire.messages import (
    AgentDefinition,
    HookCallbackMatcher,
    InitializeRequest,
    InitializeResponse,
    InterruptRequest,
    RequestUserDialogRequest,
)
from session_peer import Peer, Server, allow, opened


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
async def test_it_is_used_in_its_block_and_entered_once() -> None:
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


@every_backend
async def test_one_that_is_closed_is_not_entered_and_leaves_its_stream_to_another() -> None:
    peer, server = Peer(), Server()
    session = peer.session(mcp_servers={"s": server})
    await session.aclose()
    with pytest.raises(HandleError, match="closed"):
        async with session:
            raise AssertionError
    assert server.send is None
    async with opened(peer):
        pass


@every_backend
async def test_a_stream_has_one_session() -> None:
    peer = Peer()
    async with peer.session():
        with pytest.raises(HandleError, match="session"):
            async with peer.session():
                pass


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
    for make in (lambda: Peer().session(**arguments), lambda: open_session(["agent", *ASKS], **arguments)):
        with pytest.raises(error, match=says):
            make()


def test_what_a_session_speaks_over_is_refused_at_once_if_it_is_something_else() -> None:
    with pytest.raises(TypeError, match="stream must be a Process, a MessageStream or a SessionTransport, not Output"):
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


FORMATS = ("--input-format", "stream-json", "--output-format", "stream-json")
#: Command lines of programs that never ask for permission, and the part of the error that says what to change.
NEVER_ASKS = {
    "agent": (["./agent.py"], "'--permission-prompt-tool', 'stdio': add both"),
    "another": (["./agent.py", "--permission-prompt-tool", "mcp__a__b"], "another permission_prompt_tool"),
    "joined": (["./agent.py", "--permission-prompt-tool=mcp__a__b"], "another permission_prompt_tool"),
    "the last counts": (["a", *ASKS, "--permission-prompt-tool", "mcp__a__b"], "another permission_prompt_tool"),
    "a prompt": (["a", "--", *ASKS], "add both"),
    "ssh": (["ssh", "host", "claude --output-format stream-json --input-format stream-json"], "add both"),
    "nobody": (["a", *ASKS, "--permission-prompts", "none"], "leave them out"),
    "behind a flag": (["a", *ASKS, "--verbose", "--debug", "--permission-prompts", "none"], "leave them out"),
    "in a value": (["a", *ClaudeOptions(debug="x --permission-prompt-tool stdio").arguments()], "add both"),
}
ASKING = (
    ["./agent.py", *ASKS],
    ["./agent.py", "--permission-prompt-tool=stdio"],
    ["./agent.py", "--permission-prompt-tool", "mcp__a__b", *ASKS],
    ["ssh", "host", "claude --output-format stream-json --input-format stream-json --permission-prompt-tool stdio"],
    ["sh", "-c", "exec claude --permission-prompt-tool='stdio'"],
    # The value of another flag may contain text that looks like a flag.
    ["./agent.py", *ASKS, *ClaudeOptions(debug="x --permission-prompts none").arguments()],
    ["./agent.py", *ASKS, *ClaudeOptions(managed_settings={"note": "say --permission-prompts none"}).arguments()],
    ["./agent.py", *ASKS, *ClaudeOptions(system_prompt="see --permission-prompt-tool mcp__a__b").arguments()],
    ["./agent.py", *ASKS, "--allowedTools", "Read", "Bash(claude --permission-prompts none)"],
    ["./agent.py", *ASKS, "--debug", "x --permission-prompts none"],
    ["claude", *FORMATS, *ASKS, "-p", "What is --permission-prompts none?"],
)


@pytest.mark.parametrize("case", NEVER_ASKS)
def test_a_permission_callback_that_a_command_line_never_calls_is_refused_at_once(case: str) -> None:
    argv, words = NEVER_ASKS[case]
    ways: list[Callable[[], object]] = [
        lambda: open_session(argv, can_use_tool=allow),
        lambda: sync.open_session(argv, can_use_tool=allow),
        lambda: Session(open_process(argv), can_use_tool=allow),
    ]
    for way in ways:
        with pytest.raises(ValueError, match=words):
            way()
    open_session(argv)


@pytest.mark.parametrize("argv", ASKING)
def test_a_permission_callback_is_taken_with_a_command_line_that_asks(argv: list[str]) -> None:
    open_session(argv, can_use_tool=allow)


def test_extra_flags_that_have_somebody_else_asked_are_refused() -> None:
    options = ClaudeOptions(cli_path="claude", extra_args={"permission-prompt-tool": "mcp__a__b"})
    with pytest.raises(ValueError, match="another permission_prompt_tool"):
        open_session(options, can_use_tool=allow)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["claude"], "'--input-format', 'stream-json', and the command line lacks it"),
        (["/opt/claude", "--input-format", "stream-json"], "'--output-format', 'stream-json'"),
        (["./agent.py", "--input-format=text"], "has 'text'"),
    ],
)
def test_a_command_line_that_cannot_speak_with_a_host_is_refused_at_once(argv: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        open_session(argv, hooks={"PreToolUse": [HookMatcher(allow)]})


def test_a_callback_for_elicitation_is_refused_where_a_dialect_has_none() -> None:
    with pytest.raises(DialectError, match="on_elicitation would never be called"):
        open_session(["./agent.py"], on_elicitation=allow, dialect=MIRIAD)


def test_a_program_that_asks_without_a_flag_is_taken_by_a_dialect_that_says_so() -> None:
    asks = dataclasses.replace(STREAM_JSON, permission="always")
    open_session(["./agent.py"], can_use_tool=allow, dialect=asks)


# --- initialize -------------------------------------------------------------------------------------------------------


@every_backend
def test_initialize_tells_of_the_callbacks_beside_what_is_asked_for(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer({"initialize": {"output_style": "default", "claude_code_version": "2.1.331"}})
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
            assert answer == InitializeResponse(output_style="default", claude_code_version="2.1.331")
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
            # this session has no servers, so there is no conflict
            await plain.initialize(InitializeRequest(sdkMcpServers=["theirs"]))
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
        async with Peer({"initialize": {}}).session(hooks={"Stop": [blocking]}) as session:
            with pytest.raises(RequestError, match="must block"):
                await session.initialize()
        async with Peer({"initialize": {"hook_on_failure_supported": True}}).session(hooks={"Stop": [blocking]}) as s:
            await s.initialize()

    async def hook(request: HookCallbackRequest) -> None: ...

    blocking = HookMatcher(hook, on_failure="block")
    backend.run(main)
