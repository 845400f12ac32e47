"""An agent as a program: arguments, streams, signals and exit codes, with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_host import Host
from claude_wire.agent import Agent, AgentSession, Turn
from claude_wire.agent.service import Service
from virtual_time import every_virtual_backend

#: Seconds after which a program counts as hanging.
SECONDS = 120
AGENT = """
import os, signal, subprocess, sys, time
import anyio
from claude_wire.agent import Agent, service

async def answer(turn):
    what, _, rest = turn.text.partition(" ")
    if what == "fail":
        raise LookupError(rest)
    if what == "structured":
        return {"said": rest}
    if what == "loud":
        print("print")
        sys.stdout.flush()
        os.write(1, b"descriptor\\n")
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
        await turn.say(repr(sys.stdin.read()))
    if what == "forever":
        await turn.say("working")
        await anyio.sleep_forever()
    if what == "flood":
        while True:
            await turn.say(rest * 100_000)
    if what == "deaf":
        service.LAST_SECONDS = service.CLEANUP_SECONDS = 0.2  # all this time it is at work
        while True:
            try:
                await turn.stream(rest)
            except BaseException:
                pass
    if what == "thread":
        await turn.say("working")
        await anyio.to_thread.run_sync(time.sleep, 1000, abandon_on_cancel=True)
    await turn.say(rest)
"""
MAIN = """
from claude_wire import dialects
agent = Agent(answer, version="1.2.3", dialect=getattr(dialects, os.environ.get("DIALECT", "STREAM_JSON")))
agent.main(backend=os.environ.get("BACKEND", "asyncio"))
"""
BOTH = [pytest.param("asyncio"), pytest.param("trio")]
STREAM = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent(AGENT) + MAIN)
    return path


@pytest.fixture
def start(agent: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(
        *arguments: str, backend: str = "asyncio", dialect: str = "STREAM_JSON", command: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *(command or (str(agent),)), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "BACKEND": backend, "DIALECT": dialect},
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def prompt(text: str) -> bytes:
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}).encode() + b"\n"


def ended(process: subprocess.Popen[bytes], data: bytes = b"") -> tuple[int, list[dict[str, Any]], str]:
    """Write `data`, close stdin and wait for the end. Return the exit code, the messages and stderr."""
    out, err = process.communicate(data, timeout=SECONDS)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


def until(process: subprocess.Popen[bytes], kind: str) -> None:
    """Read lines through the first message of this type."""
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["type"] != kind:
        pass


def tell(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def results(messages: list[dict[str, Any]]) -> list[str]:
    return [message["subtype"] for message in messages if message["type"] == "result"]


# --- One answer -------------------------------------------------------------------------------------------------------


def test_the_version_is_one_line(start: Start) -> None:
    process = start(*STREAM, "-v")
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, b"1.2.3 (agent.py)\n", b"")


@pytest.mark.parametrize("arguments", [["-h"], [*STREAM, "--help"]])
def test_help_is_printed_without_a_look_at_the_input(start: Start, arguments: list[str]) -> None:
    process = start(*arguments)
    assert process.stdout is not None
    out = process.stdout.read().decode()  # stdin stays open: --help must not wait for it
    assert process.wait(SECONDS) == 0
    assert out.startswith("Usage: agent.py [FLAGS] [PROMPT]\n")
    for flag in ("--print", "--output-format", "--help", "--model", "--json-schema"):
        assert flag in out.replace(",", " ").split()


@pytest.mark.parametrize(
    ("arguments", "given", "printed"),
    [
        (["-p", "echo hello"], b"", b"hello\n"),
        (["echo hello"], b"", b"hello\n"),
        (["--print", "--output-format", "text", "--", "echo -p"], b"", b"-p\n"),
        (["-p"], "echo héllo".encode(), "héllo\n".encode()),
        (["-p", "structured é"], b"", '{"said":"é"}\n'.encode()),
    ],
)
def test_a_prompt_gets_one_answer(start: Start, arguments: list[str], given: bytes, printed: bytes) -> None:
    process = start(*arguments)
    out, err = process.communicate(given, timeout=SECONDS)
    assert (process.returncode, out, err) == (0, printed, b"")


def test_one_answer_as_json(start: Start) -> None:
    code, messages, _ = ended(start("-p", "echo hello", "--output-format", "json"))
    assert (code, [message["result"] for message in messages]) == (0, ["hello"])
    code, messages, _ = ended(start("-p", "echo hello", "--output-format=stream-json", "--verbose"))
    assert [message["type"] for message in messages] == ["system", "assistant", "result"]


def test_one_answer_that_fails(start: Start) -> None:
    process = start("-p", "fail nothing found")
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (1, b"LookupError: nothing found\n")
    assert b"raise LookupError(rest)" in err


def test_wrong_arguments(start: Start) -> None:
    process = start("--max-turns", "many")
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (1, b"")
    assert err == b"error: --max-turns expects an integer, got 'many'\n"


# --- Sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BOTH)
def test_a_session_ends_with_its_input(start: Start, backend: str) -> None:
    code, messages, err = ended(start(*STREAM, backend=backend), prompt("echo a"))
    assert (code, results(messages), err) == (0, ["success"], "")


def test_without_any_flag_the_host_speaks_over_the_streams(start: Start) -> None:
    code, messages, _ = ended(start(), prompt("echo a"))
    assert (code, results(messages)) == (0, ["success"])


def test_nothing_is_written_before_there_is_input(start: Start) -> None:
    assert ended(start(*STREAM)) == (0, [], "")


def test_the_exit_code_says_whether_the_last_turn_failed(start: Start) -> None:
    code, messages, _ = ended(start(*STREAM), prompt("echo a") + prompt("fail b"))
    assert (code, results(messages)[-1]) == (1, "error_during_execution")


def test_a_wrong_line_ends_it_with_1(start: Start) -> None:
    code, messages, err = ended(start(*STREAM), prompt("echo a") + b"{\n")
    assert (code, results(messages)) == (1, ["success"])
    assert err == "Error parsing streaming input line (type=unknown, 1 chars): SyntaxError\n"


@pytest.mark.parametrize("depth", [930, 1000, 100_000])
@pytest.mark.parametrize("odd", ["", "\xff"], ids=["utf8", "no utf8"])
def test_no_depth_of_a_prompt_is_ignored_without_a_word(start: Start, depth: int, odd: str) -> None:
    deep = "[" * depth + "]" * depth
    block = f'{{"type":"text","text":"echo deep{odd}","deep":{deep}}}'.encode("latin-1")
    line = b'{"type":"user","message":{"role":"user","content":[' + block + b"]}}\n"
    code, messages, err = ended(start(*STREAM), prompt("echo a") + line)
    if code == 0:
        assert (results(messages), err) == (["success", "success"], "")
    else:
        assert (code, results(messages)) == (1, ["success"])
        length = len(line.decode(errors="replace")) - 1
        assert err == f"Error parsing streaming input line (type=user, {length} chars): RangeError\n"


def test_nothing_but_lines_is_on_standard_output(start: Start) -> None:
    code, messages, err = ended(start(*STREAM), prompt("loud") + prompt("echo b"))
    assert (code, results(messages)) == (0, ["success", "success"])
    assert err.splitlines() == ["print", "descriptor", "child"]
    # The agent reads stdin itself, so the author's input() finds it empty.
    said = [message["message"]["content"][0]["text"] for message in messages if message["type"] == "assistant"]
    assert said[0] == "''"


@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize("work", ["forever", "thread"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signals(start: Start, backend: str, work: str, number: signal.Signals, code: int) -> None:
    """SIGINT ends the turn, then the agent. SIGTERM ends the agent immediately. Both work while a thread runs."""
    process = start(*STREAM, backend=backend)
    tell(process, prompt(work) + prompt("echo queued"))
    until(process, "assistant")
    process.send_signal(number)
    process.wait(SECONDS)
    got, messages, err = ended(process)
    assert got == code
    assert results(messages) == (["error_during_execution"] if number == signal.SIGINT else [])
    assert err == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signals_between_turns(start: Start, number: signal.Signals, code: int) -> None:
    process = start(*STREAM)
    tell(process, prompt("echo a"))
    until(process, "result")
    process.send_signal(number)
    assert process.wait(SECONDS) == code


@pytest.mark.parametrize(
    ("backend", "number", "code"),
    [("asyncio", signal.SIGINT, 0), ("asyncio", signal.SIGTERM, 143), ("trio", signal.SIGTERM, 143)],
)
def test_signals_while_nobody_reads(start: Start, backend: str, number: signal.Signals, code: int) -> None:
    process = start(*STREAM, backend=backend)
    tell(process, prompt("flood x"))
    until(process, "assistant")
    process.send_signal(number)
    assert process.wait(SECONDS) == code


@pytest.mark.parametrize("backend", BOTH)
def test_a_function_that_swallows_each_cancellation_is_left_behind(start: Start, backend: str) -> None:
    process = start(*STREAM, "--include-partial-messages", backend=backend)
    tell(process, prompt("deaf x"))
    until(process, "stream_event")
    tell(process, b'{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}\n')
    until(process, "result")
    assert ended(process)[0] == 1


@pytest.mark.parametrize("command", [True, False], ids=["command", "main"])
def test_a_host_that_reads_no_more_is_left_without_noise(start: Start, agent: Path, command: bool) -> None:
    process = start(*STREAM, command=("-m", "claude_wire_kit", "agent", str(agent)) if command else ())
    assert process.stdout is not None
    tell(process, prompt("echo a"))
    until(process, "result")
    process.stdout.close()
    tell(process, prompt("echo b"))
    assert process.wait(SECONDS) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_files_are_streams_too(agent: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(prompt("echo a") + prompt("loud")[:-1])
    with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("wb") as out:
        done = subprocess.run([sys.executable, agent, *STREAM], stdin=given, stdout=out, timeout=SECONDS, check=False)
    messages = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert (done.returncode, results(messages)) == (0, ["success", "success"])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_an_agent_at_a_terminal_says_that_it_waits_for_a_host(agent: Path) -> None:
    from screens import AtTerminal, terminal_environment  # screens imports pty, which does not exist on Windows

    with AtTerminal([sys.executable, str(agent)], terminal_environment()) as terminal:
        terminal.type_when("agent.py waits for a host's lines of JSON; agent.py PROMPT gives one answer", "\x04")
        assert terminal.end()[1] == 0


@pytest.mark.parametrize(("closed", "code"), [("<&-", 0), (">&-", 0), ("<&- >&-", 0)])
def test_streams_that_are_closed_are_empty(agent: Path, closed: str, code: int) -> None:
    for arguments in ("-p 'echo a'", " ".join(STREAM)):
        line = f"exec {sys.executable} {agent} {arguments} {closed}"
        done = subprocess.run(
            line, shell=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
        assert (done.returncode, done.stderr) == (code, b"")


LIFESPAN = """
from contextlib import asynccontextmanager
from claude_wire.agent import Agent
@asynccontextmanager
async def lifespan(session):
    raise LookupError("no database")
    yield
agent = Agent(lambda turn: "hi", lifespan=lifespan)
"""


def test_a_lifespan_that_raises_ends_it_with_1(start: Start, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text(LIFESPAN)
    code, messages, err = ended(by_command(start, str(tmp_path / "mine"), *STREAM), prompt("hi"))
    assert (code, messages) == (1, [])
    assert 'raise LookupError("no database")' in err
    assert err.endswith("LookupError: no database\n")


# --- Other dialects ---------------------------------------------------------------------------------------------------


def test_exit_codes_are_those_of_the_dialect(start: Start) -> None:
    """Check the exit codes of CLASSIC in real processes. tests/agent/test_agent_dialects.py checks every dialect."""
    assert ended(start(dialect="CLASSIC"), prompt("echo a"))[0] == 0
    assert ended(start(dialect="CLASSIC"), prompt("fail a"))[0] == 1
    assert ended(start("--max-turns", "many", dialect="CLASSIC"))[0] == 2
    process = start(dialect="CLASSIC")
    tell(process, prompt("forever"))
    assert process.stdout is not None
    while b"working" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 130


@pytest.mark.parametrize("dialect", ["CLASSIC", "MIRIAD", "JSON_RPC", "AUTO"])
def test_a_prompt_gets_one_answer_in_every_dialect(start: Start, dialect: str) -> None:
    process = start("-p", "echo hello", dialect=dialect)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, b"hello\n", b"")


# --- claude-wire agent ------------------------------------------------------------------------------------------------


def by_command(start: Start, script: str, *flags: str) -> subprocess.Popen[bytes]:
    return start("agent", script, *flags, command=("-m", "claude_wire_kit"))


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("async def answer(turn): await turn.say('function')", "", "function"),
        ("from claude_wire.agent import Agent\nagent = Agent(lambda turn: 'object')\nanswer = 1", "", "object"),
        ("def other(turn): return 'named'", ":other", "named"),
        ("import helper\nanswer = helper.answer", "", "imported"),
        ("print('while it is imported')\ndef answer(turn): return 'quiet'", "", "quiet"),
        ("import sys\ndef answer(turn): return ' '.join(sys.argv[1:3])", "", "-p hello"),
    ],
)
def test_a_file_is_an_agent(start: Start, tmp_path: Path, source: str, name: str, said: str) -> None:
    (tmp_path / "helper.py").write_text("def answer(turn): return 'imported'")
    (tmp_path / "mine").write_text(source)
    process = by_command(start, f"{tmp_path / 'mine'}{name}", "-p", "hello")
    out, _ = process.communicate(timeout=SECONDS)
    assert (process.returncode, out.decode()) == (0, f"{said}\n")


def test_a_file_may_be_called_as_a_module_of_python(start: Start, tmp_path: Path) -> None:
    made = "from dataclasses import dataclass\n@dataclass\nclass Said:\n    text: 'str'\n"
    source = f"{made}answer = lambda turn: Said('hi').text"
    (tmp_path / "dataclasses.py").write_text(source)
    process = by_command(start, str(tmp_path / "dataclasses.py"), "-p", "x")
    assert process.communicate(timeout=SECONDS)[0] == b"hi\n"


def test_the_flags_of_the_command_are_the_agents(start: Start, agent: Path) -> None:
    process = by_command(start, str(agent), "--version")
    assert process.communicate(timeout=SECONDS)[0] == b"1.2.3 (agent.py)\n"


@pytest.mark.parametrize(
    ("source", "name", "told"),
    [
        (None, "", "No such file or directory"),
        ("x = 1", "", "neither an Agent 'agent' nor a function 'answer'; SCRIPT:NAME"),
        ("x = 1", ":x", "no Agent or function 'x'"),
        ("def f(:", "", "SyntaxError"),
    ],
)
def test_a_file_that_is_none_is_told(start: Start, tmp_path: Path, source: str | None, name: str, told: str) -> None:
    if source is not None:
        (tmp_path / "mine").write_text(source)
    process = by_command(start, f"{tmp_path / 'mine'}{name}")
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode != 0, out) == (True, b"")
    assert told in err.decode()


def test_a_file_that_raises_is_told_by_its_own_lines(start: Start, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("def load():\n    raise LookupError('no model')\n\nload()\n")
    process = by_command(start, str(tmp_path / "mine"))
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (1, b"")
    assert err.decode().count("  File ") == 2
    assert err.decode().endswith("LookupError: no model\n")


def test_an_executable_file_needs_no_more_than_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text("#!/usr/bin/env -S claude-wire agent\ndef answer(turn): return 'hi'")
    path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([path, "-p", "x"], capture_output=True, env=environment, timeout=SECONDS, check=True)
    assert done.stdout == b"hi\n"


# --- An agent ends on request, whatever its author's lifespan function does -------------------------------------------


async def answer(turn: Turn) -> None:
    pass


@pytest.mark.parametrize(
    ("when", "signal", "code"),
    [("begins", Service.terminate, 143), ("ends", Service.terminate, 143), ("begins", Service.interrupt, 0)],
    ids=["SIGTERM as it begins", "SIGTERM as it ends", "SIGINT as it begins"],
)
@every_virtual_backend
async def test_a_lifespan_that_waits_for_ever_does_not_hold_up_a_signal(
    when: str, signal: Callable[[Service], None], code: int
) -> None:
    @asynccontextmanager
    async def lifespan(session: AgentSession) -> AsyncIterator[None]:
        if when == "begins":
            await anyio.sleep_forever()
        yield
        await anyio.sleep_forever()

    host = Host()
    async with anyio.create_task_group() as group:
        host.start(Agent(answer, lifespan=lifespan), group)
        await anyio.sleep(1)
        signal(host.service)
    host.end()
    assert host.code == code
