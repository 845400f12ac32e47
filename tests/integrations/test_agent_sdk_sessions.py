"""Queries, clients and callbacks of claude-agent-sdk work over WireTransport as over the SDK's own transport."""

from __future__ import annotations

import dataclasses
import gc
import pathlib
import warnings
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    InMemorySessionStore,
    PermissionResultAllow,
    create_sdk_mcp_server,
    query,
    tool,
)

from async_backends import DEADLINE
from claude_wire.integrations.agent_sdk import WireProcessError, WireTransport
from sdk_cli import MARKS, ONE_TURN, allow, ask, is_alive, read, texts_of

pytestmark = MARKS


async def test_a_query_gives_what_it_gives_with_the_transport_of_the_sdk(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli(ONE_TURN))
    theirs = [message async for message in query(prompt="hi", options=options)]
    ours = [message async for message in ask(options)]
    assert ours == theirs
    assert len(ours) == 3


async def test_a_query_with_a_stream_of_prompts(cli: Callable[..., str]) -> None:
    async def prompts() -> AsyncIterator[dict[str, Any]]:
        for text in "one", "two":
            yield {"type": "user", "message": {"role": "user", "content": text}}

    options = ClaudeAgentOptions(
        cli_path=cli("while (message := prompt()): init(); assistant(message['message']['content']); result()")
    )
    transport = WireTransport(prompts(), options)
    assert await texts_of(query(prompt=prompts(), options=options, transport=transport)) == [
        "one",
        "done",
        "two",
        "done",
    ]
    assert not transport.is_ready()
    assert transport.process is None


async def test_a_client_with_turns_and_control_requests(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(
        cli_path=cli("while (message := prompt()): init(); assistant(message['message']['content']); result()")
    )
    async with ClaudeSDKClient(options, transport=WireTransport(None, options)) as client:
        for text in "one", "two":
            await client.query(text)
            assert await texts_of(client.receive_response()) == [text, "done"]
            await client.set_model("other")
        await client.interrupt()


async def test_a_client_connects_again(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("raw(b'bad\\n');" + ONE_TURN))
    transport = WireTransport(None, options)
    client = ClaudeSDKClient(options, transport=transport)
    pids = []
    for _ in range(2):
        with anyio.fail_after(DEADLINE):
            await client.connect("hi")
        assert transport.process is not None
        pids.append(transport.process.pid)
        assert await texts_of(client.receive_response()) == ["hello", "done"]
        assert transport.invalid_lines == 1
        await client.disconnect()
        assert not is_alive(pids[-1])
    assert pids[0] != pids[1]


async def test_a_transport_whose_cli_has_failed_connects_again_after_closing(
    cli: Callable[..., str], tmp_path: pathlib.Path
) -> None:
    failed = tmp_path / "failed"
    script = f"""
        if not os.path.exists({str(failed)!r}):
            open({str(failed)!r}, "w").close()
            sys.exit(4)
        hear(); init(); result(); hear()
    """
    transport = WireTransport(None, ClaudeAgentOptions(cli_path=cli(script)))
    await transport.connect()
    with pytest.raises(WireProcessError) as caught:
        await read(transport)
    error = weakref.ref(caught.value)
    await transport.close()
    del caught
    gc.collect()
    assert error() is None  # the transport keeps no reference to the error of the failed connection
    await transport.connect()
    await transport.write("{}\n")
    await transport.end_input()
    assert [message["type"] for message in await read(transport)] == ["system", "result"]
    await transport.close()


async def test_permission_prompts_hooks_and_tools_of_the_host(cli: Callable[..., str]) -> None:
    asked: list[Any] = []

    async def can_use_tool(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        asked.append((name, given))
        return PermissionResultAllow()

    async def hook(given: Any, tool_use_id: str | None, context: Any) -> Any:
        asked.append(given)
        return {"continue_": True}

    @tool("add", "adds", {"a": int})
    async def add(given: dict[str, Any]) -> dict[str, Any]:
        asked.append(given)
        return {"content": [{"type": "text", "text": "3"}]}

    script = """
        def mcp(method, params):
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = ask({"subtype": "mcp_message", "server_name": "calc", "message": message})
            return answer["response"]["mcp_response"]

        request = hear()
        hooks = request["request"]["hooks"]
        answer(request)
        prompt()
        init()
        client = {"name": "c", "version": "1"}
        mcp("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        said = [
            ask({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"a": 1}})["response"]["behavior"],
            ask({"subtype": "hook_callback", "callback_id": hooks["PreToolUse"][0]["hookCallbackIds"][0],
                 "input": {"b": 2}})["response"]["continue"],
            mcp("tools/call", {"name": "add", "arguments": {"a": 1}})["result"]["content"][0]["text"],
            "--permission-prompt-tool" in sys.argv,
        ]
        assistant(repr(said))
        result()
        hear()
    """
    options = ClaudeAgentOptions(
        cli_path=cli(script),
        can_use_tool=can_use_tool,
        hooks={"PreToolUse": [HookMatcher(hooks=[hook])]},
        mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
    )
    assert await texts_of(ask(options)) == ["['allow', True, '3', True]", "done"]
    assert asked == [("Bash", {"a": 1}), {"b": 2}, {"a": 1}]


async def test_a_shadowed_permission_callback_is_warned_of_once(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli(ONE_TURN), can_use_tool=allow, permission_mode="bypassPermissions")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert await texts_of(ask(options)) == ["hello", "done"]
    shadowed = [warning for warning in caught if issubclass(warning.category, sdk.CanUseToolShadowedWarning)]
    assert len(shadowed) == 1


def test_the_prompt_may_be_left_out_and_so_may_the_options() -> None:
    assert WireTransport()._options == ClaudeAgentOptions()


def test_options_that_contradict_each_other_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="can_use_tool callback cannot be used with permission_prompt_tool_name"):
        WireTransport("", ClaudeAgentOptions(can_use_tool=allow, permission_prompt_tool_name="stdio"))
    with pytest.raises(ValueError, match="session_store cannot be combined with enable_file_checkpointing"):
        WireTransport("", ClaudeAgentOptions(session_store=InMemorySessionStore(), enable_file_checkpointing=True))
    with pytest.raises(TypeError, match="options must be ClaudeAgentOptions, not dict"):
        WireTransport("", {})
    with pytest.raises(TypeError, match="on_invalid must be callable, not str"):
        WireTransport("", on_invalid="return")
    with pytest.raises(ValueError, match="overflow"):
        WireTransport("", overflow="drop")


@pytest.mark.parametrize(
    ("extra_args", "words"),
    [
        ({"permission-prompt-tool": "mcp__mine__ask"}, "with another permission_prompt_tool than 'stdio'"),
        ({"permission-prompt-tool": None}, "with another permission_prompt_tool than 'stdio'"),
        ({"permission-prompts": "none"}, "with the arguments '--permission-prompts', 'none'"),
    ],
)
async def test_a_permission_callback_that_extra_arguments_rule_out_is_refused_before_the_cli_starts(
    cli: Callable[..., str], extra_args: dict[str, str | None], words: str
) -> None:
    """The transport always adds ``--permission-prompt-tool`` for ``can_use_tool``, but extra_args can override it."""
    options = ClaudeAgentOptions(cli_path=cli(ONE_TURN), can_use_tool=allow, extra_args=extra_args)
    transport = WireTransport(None, options)
    with pytest.raises(ValueError, match=f"can_use_tool is never asked {words}"):
        await transport.connect()
    assert transport.process is None
    with pytest.raises(ValueError, match=f"can_use_tool is never asked {words}"):
        await ClaudeSDKClient(options, transport=WireTransport(None, options)).connect()
    alone = dataclasses.replace(options, can_use_tool=None)
    assert await texts_of(ask(alone)) == ["hello", "done"], "without a callback there is nothing to refuse"


async def test_the_options_are_not_changed(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli(ONE_TURN), can_use_tool=allow)
    before = dataclasses.replace(options)
    assert await texts_of(ask(options)) == ["hello", "done"]
    assert options == before


async def test_options_that_are_changed_before_connecting_count_as_with_the_sdk(cli: Callable[..., str]) -> None:
    script = """
        prompt()
        init()
        assistant(repr([os.getcwd(), [arg for arg in sys.argv if arg in ("--permission-prompt-tool", "late")]]))
        result()
        hear()
    """
    said = []
    for transport_of in (lambda options: None), (lambda options: WireTransport(None, options)):
        options = ClaudeAgentOptions(cli_path="/nowhere")
        client = ClaudeSDKClient(options, transport=transport_of(options))
        options.cli_path, options.cwd, options.model, options.can_use_tool = cli(script), "/", "late", allow
        with anyio.fail_after(DEADLINE):
            await client.connect("hi")
            said.append(await texts_of(client.receive_response()))
            await client.disconnect()
    theirs, ours = said
    assert ours == theirs == [repr(["/", ["late", "--permission-prompt-tool"]]), "done"]
