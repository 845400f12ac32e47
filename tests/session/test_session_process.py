"""Session over a child process, and the bytes that ``on_received`` and ``on_sent`` see."""

from __future__ import annotations

import logging
import re
import sys
from contextlib import suppress
from unittest import mock

import anyio
import pytest

from async_backends import DEADLINE, Backend, every_backend
from children import ASKS, exists, python
from claude_wire import (
    CanUseToolRequest,
    ControlRequest,
    Decoder,
    HandleError,
    ProcessError,
    ProcessInputError,
    RateLimitError,
    RequestError,
    RequestTimeoutError,
    ResultMessage,
    Session,
    SessionEndedError,
    open_process,
    open_session,
)
from claude_wire.errors import ExecutionError
from claude_wire.messages import PermissionResult, ResultSuccess
from session_peer import RESULT, Peer, allow, line, numbered, numbers

# --- on_received and on_sent ------------------------------------------------------------------------------------------


@every_backend
async def test_all_bytes_of_both_directions_are_shown_in_order() -> None:
    received: list[bytes] = []
    sent: list[bytes] = []
    peer = Peer()
    session = peer.session(on_received=received.append, on_sent=sent.append, can_use_tool=allow)
    async with session:
        await session.initialize()
        said = [numbered(number) for number in range(50)]
        peer.say(*said, Peer.permission("p"), size=100)
        await peer.answer_to("p")  # read ahead
        for _ in range(25):
            await session.__anext__()
        peer.say(*said, RESULT, size=100)
        await session.query("x")
        async for _ in session.receive_response():
            pass
    whole = b"".join(received)
    assert whole.endswith(b"".join(map(line, [*said, Peer.permission("p"), *said, RESULT])))
    assert whole.count(b"\n") == 103
    assert b"".join(sent).count(b"\n") == len(sent) == len(peer.lines) == 3


@every_backend
async def test_who_is_shown_the_bytes_and_raises_takes_none_of_them_away(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(data: bytes) -> None:
        raise ValueError

    peer = Peer()
    async with peer.session(on_received=refuse, on_sent=refuse, can_use_tool=allow) as session:
        await session.initialize()
        peer.say(*map(numbered, range(10)), Peer.permission("p"), size=50)
        await peer.answer_to("p")  # read ahead
        peer.say(*map(numbered, range(10, 20)), RESULT, size=50)
        assert numbers([message async for message in session.receive_response()][:-1]) == list(range(20))
    assert {record.getMessage() for record in caplog.records} == {
        "on_received raised ValueError",
        "on_sent raised ValueError",
    }


# --- a process --------------------------------------------------------------------------------------------------------

#: An agent that answers all requests, asks for permission in each turn, and ends the turn with the decision as the
#: result. It exits with its first argument. Its version is the value of the environment variable that the second
#: argument names.
CHILD = """
for text in sys.stdin:
    message = json.loads(text)
    if message["type"] == "control_request":
        say(type="control_response", response={"subtype": "success", "request_id": message["request_id"],
            "response": {"pid": os.getpid(), "claude_code_version": os.environ.get(sys.argv[2])}})
    elif message["type"] == "user":
        say(type="system", subtype="init", session_id="s")
        say(type="control_request", request_id=message["uuid"], request={"subtype": "can_use_tool", "tool_name": "Bash",
            "input": {"text": message["message"]["content"]}, "tool_use_id": "t"})
    elif message["type"] == "control_response":
        say(type="result", subtype="success", is_error=False, result=json.dumps(message["response"]["response"]))
sys.exit(int(sys.argv[1]))
"""


@every_backend
async def test_a_process_is_opened_asked_and_ended() -> None:
    async with open_session(
        python(CHILD, 0, "CLAUDE_CODE_SDK_READS_SESSION_STATE", *ASKS), can_use_tool=allow
    ) as session:
        assert session.info is not None
        assert session.info.claude_code_version == "1"
        for text in "first", "second":
            result = await session.ask(text)
            assert isinstance(result, ResultSuccess)
            assert f'"updatedInput": {{"text": "{text}"}}' in (result.result or "")
        await session.end_input()
        assert [message async for message in session] == []
        with pytest.raises(SessionEndedError) as info:
            await session.interrupt()
        assert isinstance(info.value.__cause__, (ProcessError, type(None)))


@every_backend
async def test_a_wait_for_a_turn_without_a_prompt_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def turn(session: Session, **arguments: float | None) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, session, arguments)
            await anyio.wait_all_tasks_blocked()
            await session.query("later")

    async def read(session: Session, arguments: dict[str, float | None]) -> None:
        assert [message async for message in session.receive_response(**arguments)]

    logged: list[int] = []
    async with open_session(python(CHILD, 0, "-", *ASKS), can_use_tool=allow) as session:
        await session.query("first")
        await read(session, {})
        logged.append(len(caplog.records))
        await turn(session, ceiling=None)
        logged.append(len(caplog.records))
        await turn(session)
        await turn(session)
    assert logged == [0, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "receive_response() waits, but no prompt was sent since the last result: call query() first; if another task "
        "calls it later, pass ceiling="
    ]


#: An agent that answers the first request. After the second request it writes three messages and exits.
ANSWERS_ONCE = """
request = json.loads(sys.stdin.readline())
say(type="control_response", response={"subtype": "success", "request_id": request["request_id"], "response": {}})
sys.stdin.readline()
for number in range(3):
    say(type="user", message={"role": "user", "content": f"{number} "}, session_id="")
say(type="result", subtype="success", is_error=False)
"""


@every_backend
async def test_a_second_initialize_that_fails_takes_no_messages_away() -> None:
    async with open_session(python(ANSWERS_ONCE)) as session:
        with pytest.raises(SessionEndedError):
            await session.initialize()
        assert numbers([message async for message in session][:-1]) == [0, 1, 2]


@every_backend
def test_debug_logs_name_processes_prompts_and_requests_but_quote_nothing(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            async with open_session(python(CHILD, 0, "-", *ASKS), can_use_tool=allow) as session:
                await session.query("the secret of the prompt")
                async for _ in session.receive_response():
                    pass

    with caplog.at_level(logging.DEBUG, "claude_wire"):
        backend.run(main)
    logged = [record.getMessage() for record in caplog.records if record.name == "claude_wire"]
    kinds = [
        re.sub(r"(process|prompt|request) \S+", r"\1 ID", text).replace(sys.executable, "PROGRAM") for text in logged
    ]
    assert kinds == [
        "process ID started: PROGRAM",
        "request ID sent: initialize",
        "request ID succeeded: initialize",
        "prompt ID sent",
        "request ID received: CanUseToolRequest",
        "request ID answered",
        "process ID ended: exit code 0",
    ]
    assert "secret" not in caplog.text


@every_backend
async def test_a_process_that_ends_instead_of_answering_is_an_error_of_the_block() -> None:
    with pytest.raises(ProcessError) as info:
        async with open_session(python("sys.stderr.write('cannot'); sys.exit(3)")):
            pytest.fail("the block was entered")
    assert info.value.returncode == 3
    assert b"cannot" in info.value.stderr_tail
    failed = """
sys.stdin.readline()
say(type="result", subtype="error_during_execution", is_error=True, errors=["No conversation found"])
sys.exit(1)
"""
    with pytest.raises(ExecutionError) as turn:
        async with open_session(python(failed)):
            pytest.fail("the block was entered")
    assert isinstance(turn.value.result, ResultMessage)


@every_backend
async def test_a_session_whose_beginning_is_cancelled_leaves_no_process() -> None:
    """Cancel the session while it waits for the answer to initialize, before the body of the block starts."""
    session = open_session(python("sys.stdin.readline()\nos.write(2, b'asked')\nsys.stdin.read()"))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(session.__aenter__)
            assert session.process is not None
            with anyio.fail_after(60):
                while not (session.process._exchange.child and session.process.stderr_tail):
                    await anyio.sleep(0.001)
            assert exists(session.process.pid)
            scope.cancel()
    assert not exists(session.process.pid)
    with pytest.raises(HandleError, match="closed"):
        await session.query("x")


@every_backend
async def test_a_process_that_never_answers_times_out_and_is_ended() -> None:
    with pytest.raises(RequestTimeoutError):
        async with open_session(python("sys.stdin.read()"), request_timeout=0.2):
            pytest.fail("the block was entered")


@every_backend
async def test_exit_code_one_behind_a_failed_result_is_that_turns_error() -> None:
    code = CHILD.replace("is_error=False", "is_error=True, api_error_status=429").replace(
        'say(type="result"', 'say(type="keep_alive") or say(type="result"'
    )

    async with open_session(python(code, 1, "HOME", *ASKS), can_use_tool=allow) as session:
        with pytest.raises(RateLimitError):
            await session.ask("x")
        await session.end_input()
        with pytest.raises(RateLimitError) as info:
            async for _ in session:
                pass
        assert isinstance(info.value.__cause__, ProcessError)
        assert info.value.__cause__.returncode == 1


@every_backend
@pytest.mark.parametrize("code", [0, 2, 3])
async def test_another_exit_code_behind_a_failed_result_is_that_of_the_process(code: int) -> None:
    child = f"""
say(type="control_response", response={{
    "subtype": "success", "request_id": json.loads(sys.stdin.readline())["request_id"], "response": {{}}}})
sys.stdin.readline()
say(type="result", subtype="error_during_execution", is_error=True, errors=["no"])
sys.exit({code})
"""

    async with open_session(python(child)) as session:
        await session.query("x")
        assert isinstance(await session.__anext__(), ResultMessage)
        with pytest.raises(ProcessError if code else StopAsyncIteration) as info:
            await session.__anext__()
        assert not isinstance(info.value, ExecutionError)


@every_backend
async def test_requests_of_a_process_that_dies_fail_with_its_exit_code() -> None:
    dies = """
request = json.loads(sys.stdin.readline())
say(type="control_response", response={"subtype": "success", "request_id": request["request_id"], "response": {}})
sys.stdin.readline()
sys.exit(9)
"""

    async with open_session(python(dies)) as session:
        with pytest.raises(SessionEndedError) as info:
            await session.interrupt()
        assert isinstance(info.value.__cause__, ProcessError)
        assert info.value.__cause__.returncode == 9


def test_request_bodies_are_those_of_the_envelope() -> None:
    """The requests of the test peer decode as the library's request types.

    Otherwise the other tests would prove nothing.
    """
    [request] = Decoder().feed(line(Peer.permission("p")))
    assert isinstance(request, ControlRequest)
    assert isinstance(request.request, CanUseToolRequest)


@every_backend
async def test_a_process_that_closes_its_input_and_lives_on_does_not_hold_up_the_block() -> None:
    child = python("os.close(0); say(type='x'); time.sleep(60)")

    with pytest.raises((ProcessInputError, SessionEndedError, RequestTimeoutError)):
        async with open_session(child, grace=0.1, request_timeout=0.5):
            raise AssertionError


@every_backend
async def test_after_a_callback_has_closed_the_session_the_process_has_ended_at_the_end_of_the_block() -> None:
    async def decide(request: CanUseToolRequest) -> PermissionResult:
        await session.aclose()
        return request.allow()

    async with open_session(python(CHILD, "0", "NONE", *ASKS), can_use_tool=decide) as session:
        await session.query("x")
        async for _ in session:
            pass
    assert session.process is not None
    assert session.process.returncode is not None


#: An agent that, like the CLI, continues its turn after the end of its input. It exits with 7 if the turn was
#: interrupted, and with 0 if there was no turn.
TURNING = """
turn = interrupted = False
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "user":
        turn = True
        say(type="system", subtype="init", session_id="s", cwd="/", tools=[], model="m")
    elif message["request"]["subtype"] == "interrupt":
        interrupted = message["request"]["cancel_queued"]
        say(type="result", subtype="error_during_execution", is_error=True)
    else:
        answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        say(type="control_response", response=answer)
if turn and not interrupted:
    time.sleep(60)
sys.exit(7 if interrupted else 0)
"""


@every_backend
@pytest.mark.parametrize("how", ["the block", "aclose()", "cancellation", "an exception", "asked for only", "no turn"])
async def test_leaving_a_session_interrupts_the_turn_that_is_under_way_and_no_other(how: str) -> None:
    sent: list[bytes] = []
    # A long grace: SIGTERM would change the exit code.
    session = open_session(python(TURNING), on_sent=sent.append, grace=DEADLINE)
    async with anyio.create_task_group() as group:
        with suppress(ValueError):
            async with session:
                if how != "no turn":
                    await session.query("x")
                if how not in ("no turn", "asked for only"):
                    await session.__anext__()
                if how == "aclose()":
                    async with anyio.create_task_group() as others:
                        others.start_soon(session.aclose)
                elif how == "cancellation":
                    group.cancel_scope.cancel()
                elif how == "an exception":
                    raise ValueError
    assert session.process is not None
    assert session.process.returncode == (0 if how == "no turn" else 7)
    interrupts = [line for line in sent if b'"interrupt"' in line]
    assert len(interrupts) == (how != "no turn")


@every_backend
@pytest.mark.parametrize("how", ["full", "ended", "in use"])
async def test_an_input_that_takes_nothing_is_not_waited_for(how: str) -> None:
    async with open_process(python("time.sleep(60)"), grace=0.05) as process, anyio.create_task_group() as group:
        if how == "full":
            with anyio.move_on_after(0.05):
                await process.send_bytes(b"x" * 10_000_000 + b"\n")
        elif how == "in use":
            group.start_soon(process.send_bytes, b'{"type":"user"}' + b" " * 10_000_000 + b"\n")
            await anyio.wait_all_tasks_blocked()
        else:
            await process.send_bytes(b'{"type":"user"}\n')
            await process.end_input()
        assert process._exchange.run.unfinished_turn() or how == "full"
        assert not process._exchange.write_in_turn(b"x\n")
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        # the program may end before the session sends initialize
        ("echo", "the output has ended|the process exited with code 0"),
        ("cat", "unsupported_request"),
        ("has ended", "initialize: the process exited with code 0"),
    ],
)
def test_a_program_that_is_no_agent_is_suspected(program: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if program == "has ended":
        gone = ProcessInputError("the process exited with code 0")
        monkeypatch.setattr(Session, "request", mock.AsyncMock(side_effect=gone))
        program = "echo"

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            async with open_session([program]):
                pass

    with pytest.raises(RequestError, match=rf"({words}).*is the program an agent that speaks stream-json\?"):
        anyio.run(main)


def test_for_instead_of_async_for_says_so() -> None:
    async def main() -> None:
        async with Peer().session() as session:
            iter(session.receive_run())

    with pytest.raises(TypeError, match="async for"):
        anyio.run(main)
