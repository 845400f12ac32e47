"""Processes: how they end, and whether the end leaves a turn unfinished."""

from __future__ import annotations

import contextlib
import json
import pickle
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import recordings
from async_backends import every_backend
from children import linux_only, python
from claude_wire import (
    Decoder,
    HandleError,
    InvalidLine,
    InvalidLineError,
    Process,
    ProcessError,
    UnfinishedTurnError,
    UserMessage,
    open_process,
)
from plain_processes import INIT, PROMPT, RESULT, SECRET, everything, plain

pytestmark = [linux_only, pytest.mark.usefixtures("nothing_is_left")]


async def collect(process: Process[Any], got: list[Any]) -> None:
    """Append all messages to ``got``, so the caller also has those before an error."""
    async for message in process:
        got.append(message)


# --- waiting ----------------------------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize(
    ("code", "returncode"),
    [("", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", -9), ("os.kill(os.getpid(), 15)", -15)],
)
async def test_waiting_gives_the_exit_code_to_all_who_wait(code: str, returncode: int) -> None:
    async with plain(python("os.read(0, 1)\n" + code)) as process:
        got: list[int] = []

        async def wait() -> None:
            got.append(await process.wait())

        with anyio.move_on_after(0.01):
            await process.wait()
            pytest.fail("it runs")
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(wait)
            await process.end_input()
        assert got == [returncode] * 5
        assert process.returncode == await process.wait() == returncode


@every_backend
async def test_waiting_does_not_hold_up_one_that_writes_more_than_its_pipe_holds() -> None:
    async with plain(python("for n in range(2000): say(n=n, text='x' * 500)")) as process:
        assert await process.wait() == 0
        assert [message["n"] for message in await everything(process)] == list(range(2000))


# --- unfinished turns -------------------------------------------------------------------------------------------------

#: A signal without a name. Its number differs between C libraries; macOS has none.
NAMELESS = [signal.SIGRTMIN + 5] if sys.platform == "linux" else []


@every_backend
@pytest.mark.parametrize(
    ("code", "returncode", "number", "text"),
    [
        ("sys.exit(1)", 1, None, "exited with code 1"),
        ("sys.exit(2)", 2, None, "exited with code 2 (invalid arguments)"),
        ("sys.exit(255)", 255, None, "exited with code 255"),
        ("sys.exit(130)", 130, signal.SIGINT, "SIGINT"),
        ("sys.exit(143)", 143, signal.SIGTERM, "SIGTERM"),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, signal.SIGKILL, "SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15, signal.SIGTERM, "SIGTERM"),
        *[(f"os.kill(os.getpid(), {number})", -number, number, str(number)) for number in NAMELESS],
    ],
)
async def test_an_exit_code_that_is_not_0_is_an_error(
    code: str, returncode: int, number: int | None, text: str
) -> None:
    said = f"""
say(type="system", subtype="init", cwd="{SECRET}")
say(type="result", subtype="success", result="{SECRET}")
os.write(2, b"{SECRET}\\n" * 9 + b"Error: no such flag\\n    at {SECRET}\\n")
{code}
"""
    async with plain(python(said, SECRET), extra_env={"SECRET": SECRET}) as process:
        got: list[Any] = []
        with pytest.raises(ProcessError) as raised:
            await collect(process, got)
        assert [message["type"] for message in got] == ["system", "result"]
        error = raised.value
        assert type(error) is ProcessError
        for same in (error, pickle.loads(pickle.dumps(error))):
            assert type(same) is ProcessError
            assert same.returncode == returncode == process.returncode
            assert same.signal == number
            assert same.stderr_tail.startswith(SECRET.encode())
            assert same.last_result == got[-1] == process.last_result
            assert text in str(same)
            assert str(same).endswith('; on its standard error: "Error: no such flag"')
            assert SECRET not in str(same) + repr(same)
        # The iteration raises the error once and is then over.
        for _ in range(2):
            with pytest.raises(StopAsyncIteration):
                await process.__anext__()


OPEN = "say(type='system', subtype='init'); say(type='assistant', message={'role': 'assistant', 'content': []})\n"
DONE = "say(type='result', subtype='success')\n"


@every_backend
@pytest.mark.parametrize(("returncode", "decoder"), [(0, None), (1, dict), (-9, None)])
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (OPEN, "in the middle of a turn"),
        (OPEN + DONE + OPEN, "in the middle of a turn"),
        ("say(type='stream_event', event={'type': 'message_stop'})\n", "in the middle of a turn"),
        (OPEN + DONE + 'os.write(1, b\'{"type":"assis\')\n', "in the middle of a line"),
        (OPEN + 'os.write(1, b\'{"type":"assis\')\n', "in the middle of a line"),
    ],
    ids=["init", "second turn", "stream event", "line after a result", "line in a turn"],
)
async def test_an_output_that_ends_early_is_an_error_whatever_the_exit_code(
    code: str, text: str, returncode: int, decoder: Any
) -> None:
    end = f"sys.exit({returncode})" if returncode >= 0 else f"os.kill(os.getpid(), {-returncode})"
    argv = python(code + f"os.write(2, b'{SECRET}\\nerror: it broke\\n')\n" + end, SECRET)
    async with open_process(argv, Decoder(decoder) if decoder else None, grace=30.0) as process:
        got: list[Any] = []
        with pytest.raises(UnfinishedTurnError, match=text) as raised:
            await collect(process, got)
        assert len(got) == process.stats.lines
        error = raised.value
        for same in (error, pickle.loads(pickle.dumps(error))):
            assert type(same) is UnfinishedTurnError
            assert isinstance(same, ProcessError)
            assert same.returncode == returncode
            assert same.stderr_tail.startswith(SECRET.encode())
            assert same.last_result == process.last_result
            assert text in str(same)
            assert str(same).endswith('; on its standard error: "error: it broke"') == (returncode != 0)
            assert SECRET not in str(same) + repr(same)
        assert (error.last_result is None) == (DONE not in code)
        with pytest.raises(StopAsyncIteration):
            await process.__anext__()


@every_backend
@pytest.mark.parametrize(
    ("only", "code", "unfinished"),
    [
        ({"assistant"}, OPEN, False),
        ({"assistant"}, OPEN + DONE, False),
        ({"assistant", "result"}, OPEN, True),
        ({"assistant", "result"}, OPEN + DONE, False),
        ({"result"}, OPEN + DONE, False),
        ({"assistant"}, OPEN + 'os.write(1, b\'{"type":"assis\')\n', True),
    ],
)
async def test_a_decoder_with_only_shows_as_much_of_a_turn_as_it_lets_through(
    only: set[str], code: str, unfinished: bool
) -> None:
    async with open_process(python(code), Decoder(only=only)) as process:
        with pytest.raises(UnfinishedTurnError) if unfinished else contextlib.nullcontext():
            await everything(process)


@every_backend
@pytest.mark.parametrize("typed", [True, False])
async def test_a_prompt_to_which_nothing_came_is_an_unfinished_turn(typed: bool) -> None:
    async with plain(python("os.read(0, 65536)"), grace=30.0) as process:
        await process.send(UserMessage(message=PROMPT["message"]) if typed else PROMPT)
        with pytest.raises(UnfinishedTurnError, match="before the turn") as raised:
            await everything(process)
        assert raised.value.returncode == 0
        assert raised.value.last_result is None


@pytest.mark.parametrize(
    "code",
    [
        "",
        "say(type='system', subtype='hook_started')",
        "say(type='control_response', response={'subtype': 'success', 'request_id': '1'})",
        DONE,
        OPEN + DONE,
        OPEN + DONE + "say(type='system', subtype='session_state_changed')",
        OPEN + DONE + "say(type='user', message={'role': 'user', 'content': 'a'}, isReplay=True)",
        OPEN + DONE + "say(type='assistant', parent_tool_use_id='t', message={'role': 'assistant', 'content': []})",
        'os.write(1, b\'{"type":"result","subtype":"success"}\')',  # the last line is complete, but has no line feed
    ],
)
@pytest.mark.parametrize("decoder", [None, dict], ids=["typed", "plain"])
async def test_an_output_that_ends_between_turns_with_exit_code_0_is_no_error(code: str, decoder: Any) -> None:
    async with open_process(python(code), Decoder(decoder) if decoder else None, grace=30.0) as process:
        await process.end_input()
        await everything(process)
    assert process.returncode == 0


#: Recordings that end early, because their reader went away, was too slow, or the recording was stopped.
CUT = {"17_sdk_client_full", "19_slowread_long_6"}


@pytest.mark.parametrize("decoder", [None, dict], ids=["typed", "plain"])
def test_of_the_recorded_sessions_those_that_were_cut_and_no_others_are_unfinished(
    decoder: Any, tmp_path: Path
) -> None:
    """A child writes each recording and exits with the recorded exit code."""
    from async_backends import ASYNCIO

    unfinished = []

    async def main() -> None:
        for name in recordings.names():
            recording = recordings.load(name)
            # One recording has no exit code; use 0 for it.
            returncode = json.loads(recording.files.get("exit.json", b'{"rc": 0}'))["rc"]
            path = tmp_path / name
            path.write_bytes(recording.stdout)
            argv = ["/bin/sh", "-c", f"cat {path}; exit {returncode}"]
            async with open_process(argv, Decoder(decoder) if decoder else None, grace=30.0) as process:
                try:
                    async for _ in process.batches():
                        pass
                    assert returncode == 0, name
                except UnfinishedTurnError:
                    unfinished.append(name)
                except ProcessError:
                    assert returncode != 0, name
            assert process.stats.bytes == len(recording.stdout)

    ASYNCIO.run(main)
    assert len(recordings.names()) == 135
    expected = {name for name in recordings.names() if name in CUT or name.startswith("18_stdout_closed_by_reader")}
    assert set(unfinished) == expected
    assert len(expected) > 2


@every_backend
@pytest.mark.parametrize("batches", [False, True])
async def test_an_error_within_the_stream_does_not_end_it(batches: bool) -> None:
    code = """
say(type="a")
os.write(1, b"not JSON\\n")
say(type="b")
os.write(1, b"{cut")
sys.exit(5)
"""

    got: list[Any] = []
    async with open_process(python(code), Decoder(dict, on_invalid="raise")) as process:
        steps = process.batches() if batches else process
        while True:
            try:
                step = await steps.__anext__()
                got.extend(step if batches else [step])
            except StopAsyncIteration:
                break
            except (InvalidLineError, ProcessError) as error:
                got.append(type(error))
    assert got == [{"type": "a"}, InvalidLineError, {"type": "b"}, InvalidLineError, UnfinishedTurnError]


@every_backend
async def test_a_step_that_was_cancelled_loses_nothing() -> None:
    code = "for line in sys.stdin.buffer: say(n=int(line)); say(n=-int(line))\nsys.exit(9)"
    async with plain(python(code)) as process:
        got = []
        for n in range(1, 20):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(process.__anext__)
                    await anyio.sleep(0)
                    scope.cancel()
            await process.send_bytes(b"%d\n" % n)
            got += [(await process.__anext__())["n"], (await process.__anext__())["n"]]
        assert got == [value for n in range(1, 20) for value in (n, -n)]
        with anyio.move_on_after(0.05):
            await process.__anext__()
        await process.end_input()
        with pytest.raises(ProcessError, match="code 9"):
            await process.__anext__()


@every_backend
async def test_the_wait_for_the_exit_after_the_output_can_be_cancelled_and_resumed() -> None:
    async with plain(python("say(a=1); os.close(1); os.read(0, 1); sys.exit(9)"), grace=30.0) as process:
        assert await process.__anext__() == {"a": 1}
        with anyio.move_on_after(0.1) as scope:
            await process.__anext__()
        assert scope.cancelled_caught
        await process.end_input()
        with pytest.raises(ProcessError, match="code 9"):
            await process.__anext__()


@every_backend
@pytest.mark.parametrize("typed", [False, True], ids=["dicts", "typed"])
@pytest.mark.parametrize("how", ["raise", "callable"])
async def test_turns_are_followed_behind_invalid_lines(how: Any, typed: bool) -> None:
    """The start and the end of a turn count even if an exception for a bad line delays their messages."""

    def complain(line: InvalidLine) -> None:
        raise KeyError(line.line_number)

    def lines(*messages: dict[str, str] | None) -> list[str]:
        data = b"".join(b"bad\n" if message is None else json.dumps(message).encode() + b"\n" for message in messages)
        return python(f"os.write(1, {data!r})")  # a single write arrives as a single chunk

    async def rest(process: Process[Any]) -> list[BaseException]:
        raised: list[BaseException] = []
        while True:
            try:
                await everything(process)
                return raised
            except (InvalidLineError, KeyError, ProcessError) as error:
                raised.append(error)

    bad = InvalidLineError if how == "raise" else KeyError
    make = Decoder if typed else lambda **options: Decoder(dict, **options)
    decoders = [make(on_invalid="raise" if how == "raise" else complain) for _ in range(2)]
    async with open_process(lines(INIT, None, RESULT), decoders[0]) as process:
        assert list(map(type, await rest(process))) == [bad]
        assert (process.last_result.subtype if typed else process.last_result["subtype"]) == "success"
    async with open_process(lines(None, INIT, None), decoders[1]) as process:
        assert list(map(type, await rest(process))) == [bad, bad, UnfinishedTurnError]


@every_backend
async def test_two_tasks_cannot_iterate_at_once() -> None:
    async with plain(python("os.read(0, 1); say(a=1)")) as process:
        got: list[Any] = []

        async def iterate() -> None:
            got.extend(await everything(process))

        async with anyio.create_task_group() as group:
            group.start_soon(iterate)
            for _ in range(5):
                await anyio.sleep(0)
            with pytest.raises(HandleError, match="another task"):
                await process.__anext__()
            await process.end_input()
        assert got == [{"a": 1}]


@every_backend
async def test_closing_from_another_task_ends_an_iteration_without_an_error() -> None:
    """A line that is only half read is not reported as bad, and our own signal is not reported as a failure."""
    code = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
say(type="system", subtype="init")
os.write(1, b'{"type":"assis')
while True: signal.pause()
"""
    for close_output in ("", "os.close(1)\n"):
        async with plain(python(code.replace("while True", close_output + "while True")), grace=0.2) as process:
            got: list[Any] = []

            async def iterate(process: Process[Any] = process, got: list[Any] = got) -> None:
                got.extend(await everything(process))

            assert await process.__anext__() == INIT
            async with anyio.create_task_group() as group:
                group.start_soon(iterate)
                await anyio.sleep(0.05)
                await process.aclose()
            # on a busy machine SIGTERM may take longer than the grace
            assert process.returncode in (143, -signal.SIGKILL)
        if not close_output:
            assert got == []


@every_backend
async def test_many_messages_that_are_there_already_do_not_starve_other_tasks() -> None:
    """The process has ended and all bytes are in the pipe, so no read ever waits."""
    async with plain(python("for n in range(60000): say(n=n, text='x' * 100)")) as process:
        await process.wait()
        steps = 0
        ended = False

        async def other() -> None:
            nonlocal steps
            while not ended:
                steps += 1
                await anyio.sleep(0)

        async with anyio.create_task_group() as group:
            group.start_soon(other)
            await anyio.sleep(0)
            before = steps
            assert len(await everything(process)) == 60000
            ended = True
        # The iteration yields to other tasks about every millisecond.
        assert steps - before >= 10


@every_backend
async def test_lines_with_strange_types_are_neither_turns_nor_errors() -> None:
    # Values of "type" that are unhashable, not UTF-8, or nested more deeply than a parser can follow.
    code = "import sys; sys.stdin.read(); print('{\"type\":[]}'); print('{\"type\":{}}')"

    async with open_process(python(code), Decoder(dict)) as process:
        await process.send_bytes(b'{"type":"\xff"}\n')
        await process.send_bytes(b'{"type":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
        await process.end_input()
        assert [message async for message in process] == [{"type": []}, {"type": {}}]


@every_backend
async def test_a_prompt_in_a_later_turn_that_is_not_answered_is_noticed() -> None:
    code = f"""
sys.stdin.readline()
for line in {[json.dumps(INIT), json.dumps(RESULT)]!r}:
    print(line, flush=True)
sys.stdin.read()
"""

    async def main(*prompts: dict[str, Any]) -> list[Any]:
        raised: list[Any] = []
        async with plain(python(code)) as process:
            await process.send({"type": "user", "uuid": "a"})
            assert [(await process.__anext__())["type"] for _ in range(2)] == ["system", "result"]
            for prompt in prompts:
                await process.send(prompt)
            await process.end_input()
            try:
                await everything(process)
            except UnfinishedTurnError as error:
                raised.append(str(error))
            return raised

    assert await main() == []
    unanswered = "the output ended before the turn that was asked for; the process exited with code 0"
    assert await main({"type": "user", "uuid": "b"}) == [unanswered]
    # The CLI starts no turn for a prompt whose uuid it already has.
    assert await main({"type": "user", "uuid": "a"}, {"type": "keep_alive"}) == []


def settled(uuid: str, state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state}


NAMING: dict[str, Any] = {**RESULT, "user_message_uuids": ["a"], "user_message_uuid": "a"}
#: Description -> the messages of the process after the prompts a and b, and whether its end is then too early.
FATES: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "a result for one of them": ([INIT, NAMING], True),
    "a result for both": ([INIT, {**NAMING, "user_message_uuids": ["a", "b"]}], False),
    "a result that names nobody": ([INIT, RESULT], False),
    "a result that names the last": ([INIT, {**RESULT, "user_message_uuid": "b"}], False),
    "one was answered before": ([settled("b", "completed"), INIT, NAMING], False),
    "one was taken out of the queue in mid-turn": ([INIT, settled("b", "cancelled"), NAMING], False),
    "one was taken out of the queue": ([INIT, NAMING, settled("b", "discarded")], False),
    "one waits": ([settled("b", "queued"), INIT, NAMING], True),
}


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("typed", [True, False])
async def test_an_end_before_the_turn_of_a_prompt_is_noticed_and_no_other(fate: str, typed: bool) -> None:
    said, early = FATES[fate]
    code = f"""
sys.stdin.read()
for line in {[json.dumps(message) for message in said]!r}:
    print(line, flush=True)
"""

    async with open_process(python(code), None if typed else Decoder(dict)) as process:
        for uuid in "ab":
            await process.send({**PROMPT, "uuid": uuid})
        await process.end_input()
        with pytest.raises(UnfinishedTurnError) if early else contextlib.nullcontext():
            await everything(process)
