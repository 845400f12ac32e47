"""WireTransport loses no line, continues after an invalid line, and passes on the stderr of the CLI."""

from __future__ import annotations

import logging
import pathlib
import time
from collections.abc import Callable

import anyio
import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, query
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

import claude_wire
from async_backends import DEADLINE
from claude_wire.integrations.agent_sdk import WireTransport
from sdk_cli import MARKS, SECRET, ask, read, texts_of

pytestmark = MARKS


async def test_a_host_that_blocks_its_loop_loses_nothing(cli: Callable[..., str], tmp_path: pathlib.Path) -> None:
    done = tmp_path / "done"
    script = f"""
        prompt()
        init()
        for number in range(2000):
            assistant(str(number) + "x" * 500)
        result()
        open({str(done)!r}, "w").close()
    """
    options = ClaudeAgentOptions(cli_path=cli(script))
    texts = []
    with anyio.fail_after(DEADLINE):
        async for message in ask(options):
            if isinstance(message, AssistantMessage):
                texts.append(message.content[0].text)
                if len(texts) == 1:
                    # Block the event loop until the CLI has written everything: 1 MB, which does not fit into a pipe.
                    until_then = time.monotonic() + DEADLINE
                    while not done.exists():
                        assert time.monotonic() < until_then
                        time.sleep(0.01)
    assert texts == [str(number) + "x" * 500 for number in range(2000)]


async def test_lone_surrogates_are_kept_in_both_directions(cli: Callable[..., str]) -> None:
    script = """
        prompt()
        init()
        raw(b'{"type":"assistant","parent_tool_use_id":null,"session_id":"s","message":{"role":"assistant",'
            b'"model":"m","content":[{"type":"text","text":"cut \\\\ud83d"}]}}\\n')
        result(result=ascii(hear()["text"]))
        hear()
    """
    options = ClaudeAgentOptions(cli_path=cli(script))
    transport = WireTransport(None, options)
    async with ClaudeSDKClient(options, transport=transport) as client:
        await client.query("hi")
        await transport.write('{"text": "é \ud83d"}\n')
        assert await texts_of(client.receive_response()) == ["cut \ud83d", ascii("é \ud83d")]


BAD_LINES = f"""
    prompt()
    init()
    raw(b"[SandboxDebug] {SECRET}\\n\\n")
    raw(b'{{"type": "assistant", "{SECRET}\\n')
    raw(b'{{"type": "assistant", "{SECRET}": "\\xff"}}\\n')
    assistant("hello")
    result()
    hear()
"""


async def test_bad_lines_are_skipped_and_told(cli: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    options = ClaudeAgentOptions(cli_path=cli(BAD_LINES))
    lines: list[claude_wire.InvalidLine] = []
    transport = WireTransport("hi", options, on_invalid=lines.append)
    with caplog.at_level(logging.DEBUG):
        assert await texts_of(query(prompt="hi", options=options, transport=transport)) == ["hello", "done"]
    assert [line.line_number for line in lines] == [3, 5, 6]
    assert all(SECRET.encode() in line.raw for line in lines)
    assert transport.invalid_lines == 3
    told = [record for record in caplog.records if record.name == "claude_wire" and record.levelname == "WARNING"]
    assert len(told) == 3
    assert SECRET not in caplog.text


BAD_LINE_OF_EACH_KIND: list[tuple[str, bytes, type[Exception] | None]] = [
    ("broken", b'{"type": "assistant", "mess', sdk.CLIJSONDecodeError),
    ("bad UTF-8", b'{"type": "keep_alive", "a": "\xff"}', UnicodeDecodeError),
    ("no object", b"[debug] [1]", None),
    ("NaN", b'{"type": "keep_alive", "a": NaN}', None),
    ("no double", b'{"type": "keep_alive", "a": 1e999}', None),
]


@pytest.mark.parametrize(("line", "error"), [pytest.param(*rest, id=name) for name, *rest in BAD_LINE_OF_EACH_KIND])
async def test_a_bad_line_may_end_the_session_of_the_sdk_but_not_ours(
    line: bytes, error: type[Exception] | None, cli: Callable[..., str]
) -> None:
    options = ClaudeAgentOptions(
        cli_path=cli(f"prompt(); init(); raw({line!r} + bytes([10])); assistant('a'); result(); hear()")
    )
    lines: list[claude_wire.InvalidLine] = []
    assert await texts_of(ask(options, on_invalid=lines.append)) == ["a", "done"]
    assert [bad.raw for bad in lines] == [line]
    transport = SubprocessCLITransport("", options)
    await transport.connect()
    await transport.write('{"type": "user"}\n')
    await transport.end_input()
    if error is None:
        assert len(await read(transport)) >= 3
    else:
        with pytest.raises(error):
            await read(transport)
    await transport.close()


async def test_what_on_invalid_raises_ends_nothing(cli: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    def on_invalid(line: claude_wire.InvalidLine) -> None:
        raise ValueError(line.raw)

    options = ClaudeAgentOptions(cli_path=cli(BAD_LINES))
    assert await texts_of(ask(options, on_invalid=on_invalid)) == ["hello", "done"]
    assert "on_invalid raised ValueError" in caplog.text
    assert SECRET not in caplog.text


async def test_a_line_above_max_buffer_size_is_skipped(cli: Callable[..., str]) -> None:
    script = "prompt(); init(); assistant('x' * 2000); assistant('short'); result(); hear()"
    lines: list[claude_wire.InvalidLine] = []
    options = ClaudeAgentOptions(cli_path=cli(script), max_buffer_size=1000)
    assert await texts_of(ask(options, on_invalid=lines.append)) == ["short", "done"]
    assert [(line.reason, line.length > 2000) for line in lines] == [("longer than max_line_bytes", True)]


async def test_a_line_far_above_the_limit_of_the_sdk_is_not(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("prompt(); init(); assistant('x' * 3_000_000); result(); hear()"))
    assert await texts_of(ask(options)) == ["x" * 3_000_000, "done"]


async def test_an_old_cli_is_warned_of_as_the_sdk_does(
    cli: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    script = "prompt(); init(claude_code_version=None); result(); hear()"
    options = ClaudeAgentOptions(cli_path=cli(script))
    await texts_of(query(prompt="hi", options=options))
    theirs = [(record.name, record.getMessage()) for record in caplog.records]
    caplog.clear()
    await texts_of(ask(options))
    assert [(record.name, record.getMessage()) for record in caplog.records] == theirs
    assert len(theirs) == 1


# --- Standard error ---------------------------------------------------------------------------------------------------


STDERR = (
    r"prompt(); sys.stderr.write('one  \n\n  two\nthr'); sys.stderr.flush(); init(); assistant('a'); result(); hear()"
)


async def test_the_stderr_callback_gets_what_it_gets_from_the_sdk(cli: Callable[..., str]) -> None:
    theirs: list[str] = []
    ours: list[str] = []
    path = cli(STDERR)
    assert await texts_of(query(prompt="hi", options=ClaudeAgentOptions(cli_path=path, stderr=theirs.append)))
    assert await texts_of(ask(ClaudeAgentOptions(cli_path=path, stderr=ours.append)))
    assert ours == theirs == ["one", "  two", "thr"]


async def test_what_the_stderr_callback_raises_ends_nothing(cli: Callable[..., str]) -> None:
    lines: list[str] = []

    def callback(line: str) -> None:
        lines.append(line)
        raise ValueError(line)

    assert await texts_of(ask(ClaudeAgentOptions(cli_path=cli(STDERR), stderr=callback))) == ["a", "done"]
    assert lines == ["one", "  two", "thr"]


async def test_without_a_callback_stderr_is_that_of_the_host(
    cli: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert await texts_of(ask(ClaudeAgentOptions(cli_path=cli(STDERR)))) == ["a", "done"]
    assert capfd.readouterr().err == "one  \n\n  two\nthr"
