"""Processes that speak other dialects: how to interrupt and end them, and the meaning of their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from async_backends import Backend, every_backend
from children import python
from claude_wire import ClaudeOptions, ProcessError, ResultMessage, SessionEndedError, UnfinishedTurnError, open_session
from claude_wire.dialects import CLASSIC, JSON_RPC, MIRIAD
from claude_wire.errors import AuthenticationError, DialectError, ExecutionError, TurnCancelledError
from claude_wire.messages import InitializeRequest

#: A program that writes an init after a prompt, and ends its turn when it receives SIGINT.
INTERRUPTED = """
def stop(number, frame):
    say(type="result", subtype="interrupted", session_id="s")
    os._exit(130)
signal.signal(signal.SIGINT, stop)
sys.stdin.readline()
say(type="system", subtype="init", session_id="s")
while True:
    signal.pause()
"""
#: A program that reports an error and exits.
FATAL = """
sys.stdin.readline()
say(type="system", subtype="error", error={"message": "API key not found", "code": sys.argv[1]})
sys.exit(1)
"""


@every_backend
async def test_classic_is_interrupted_by_a_signal() -> None:
    async with open_session(python(INTERRUPTED), dialect=CLASSIC) as session:
        await session.query("go")
        assert (await session.__anext__()).subtype == "init"
        await session.interrupt()
        with pytest.raises(DialectError, match="cancel_queued"):
            await session.interrupt(cancel_queued=True)
        result = await session.__anext__()
        assert isinstance(result, ResultMessage)
        assert isinstance(result.to_error(), TurnCancelledError)
        with pytest.raises(ProcessError, match=r"was ended by SIGINT \(exit code 130\)"):
            await session.__anext__()


@every_backend
@pytest.mark.parametrize(("code", "error"), [("auth_error", AuthenticationError), ("other", ExecutionError)])
async def test_a_fatal_error_of_classic_is_the_error_of_the_turn(code: str, error: type[Exception]) -> None:
    async with open_session(python(FATAL, code), dialect=CLASSIC) as session:
        with pytest.raises(error, match="API key not found") as caught:
            await session.ask("go")
        assert isinstance(caught.value.__cause__, ProcessError)


@every_backend
async def test_invalid_arguments_are_named() -> None:
    async with open_session(python("sys.exit(2)"), dialect=CLASSIC) as session:
        with pytest.raises(ProcessError, match=r"exited with code 2 \(invalid arguments\)"):
            await session.__anext__()


@every_backend
@pytest.mark.parametrize(
    ("says", "where"),
    [("", "before the turn that was asked for"), ('"type":"assistant","message":{"content":[]}', "in the middle")],
)
async def test_an_agent_of_json_rpc_that_ends_in_a_run_leaves_it_unfinished(says: str, where: str) -> None:
    child = f"""
sys.stdin.readline()
if {says!r}:
    os.write(1, b'{{"jsonrpc":"2.0","id":"u","result":{{' + {says!r}.encode() + b'}}}}\\n')
"""
    async with open_session(python(child), dialect=JSON_RPC) as session:
        await session.query("go", uuid="u")
        with pytest.raises(UnfinishedTurnError, match=where):
            async for _ in session:
                pass
        with pytest.raises(SessionEndedError):
            await session.status()


@every_backend
async def test_the_result_of_a_run_is_known_to_its_process() -> None:
    child = """
import json
asked = json.loads(sys.stdin.readline())
say(jsonrpc="2.0", id=asked["id"], result={"type": "result", "subtype": "success", "result": "Hi"})
sys.stdin.read()
"""
    async with open_session(python(child), dialect=JSON_RPC) as session:
        assert (await session.ask("go")).result == "Hi"
        assert session.process is not None
        assert session.process.last_result.result == "Hi"


@every_backend
@pytest.mark.parametrize("dialect", [MIRIAD, JSON_RPC, CLASSIC], ids=str)
def test_a_turn_under_way_is_interrupted_when_the_session_is_left(
    backend: Backend, dialect: object, tmp_path: Path
) -> None:
    log = tmp_path / "lines"
    child = """
with open(sys.argv[1], "wb") as log:
    log.write(("STATE" if "CLAUDE_CODE_SDK_READS_SESSION_STATE" in os.environ else "").encode())
    log.write(sys.stdin.buffer.readline())
    say(type="assistant", message={"content": []})
    log.write(sys.stdin.buffer.read())
"""

    async def main() -> None:
        with anyio.fail_after(60):
            async with open_session(python(child, log), dialect=dialect) as session:
                await session.query("go")
                await session.__anext__()

    backend.run(main)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert len(lines) == (1 if dialect is CLASSIC else 2)
    if dialect is MIRIAD:
        assert lines[1] == {"type": "control", "action": "interrupt"}
    if dialect is JSON_RPC:
        assert (lines[0]["method"], lines[1]["method"]) == ("run", "cancel")


@every_backend
async def test_a_turn_of_classic_is_interrupted_when_the_session_is_left(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = """
def stop(number, frame):
    with open(sys.argv[1], "w") as log:
        log.write("interrupted")
    os._exit(130)
signal.signal(signal.SIGINT, stop)
sys.stdin.readline()
if sys.argv[2] == "under way":
    say(type="assistant", message={"content": []})
else:
    say(type="result", subtype="success")
sys.stdin.read()
while sys.argv[2] == "under way":
    signal.pause()
"""

    for turn in ("over", "under way"):
        async with open_session(python(child, log, turn), dialect=CLASSIC) as session:
            await session.query("go")
            await session.__anext__()
        assert log.exists() == (turn == "under way")


def test_what_only_the_cli_has_is_refused() -> None:
    with pytest.raises(TypeError, match="ClaudeOptions are flags of the CLI; for miriad pass a command line as a list"):
        open_session(ClaudeOptions(cli_path="claude"), dialect=MIRIAD)
    with pytest.raises(DialectError, match="the dialect miriad has no initialize"):
        open_session(["agent"], initialize=InitializeRequest(), dialect=MIRIAD)
