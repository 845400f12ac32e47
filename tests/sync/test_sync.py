"""``claude_wire.sync``: a session for code that is not async. However it ends, it leaves no process or thread."""

from __future__ import annotations

import contextvars
import gc
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

import recordings
from children import ASKS, in_own_process, linux_only, nothing_left, python
from claude_wire import CanUseToolRequest, HandleError, InitMessage, ProcessError, ResultMessage, UserMessage, sync
from claude_wire.errors import MaxTurnsError
from claude_wire.messages import McpStatusRequest, PermissionResult
from claude_wire.session import Session as AsyncSession
from claude_wire.sync.session import Session
from claude_wire.testing import Recording, Replay
from folders import ROOT

#: A fake CLI that answers all requests. The prompt selects its reply: the text of the prompt, the answer to a
#: permission question, many messages, a failed turn, or no reply.
AGENT = r"""
def result(text, **more):
    say(**{"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": "s", **more})
for text in sys.stdin:
    message = json.loads(text)
    if message["type"] == "control_request":
        say(type="control_response", response={"subtype": "success", "request_id": message["request_id"],
            "response": {"pid": os.getpid(), "mcpServers": [], "added": [], "removed": ["a"], "errors": {}}})
        if message["request"]["subtype"] == "interrupt":
            result("stopped", subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming")
    elif message["type"] == "control_response":
        result(message["response"]["response"]["behavior"])
    elif message["type"] == "user":
        words = message["message"]["content"]
        say(type="system", subtype="init", session_id="s")
        if words == "ask":
            say(type="control_request", request_id=message["uuid"], request={"subtype": "can_use_tool",
                "tool_name": "Bash", "input": {}, "tool_use_id": "t"})
        elif words == "fail":
            result("", subtype="error_max_turns", is_error=True)
        elif words.startswith("many"):
            for number in range(int(words[4:])):
                say(type="user", message={"role": "user", "content": str(number)}, session_id="s")
            result("done")
        elif words != "hold":
            result(words)
"""


def opened(**arguments: Any) -> Session:
    return sync.open_session(python(AGENT, *ASKS), **arguments)


def texts(messages: Iterator[Any]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]


# --- what it does -----------------------------------------------------------------------------------------------------


@linux_only
def test_a_session_is_asked_and_iterated_and_leaves_nothing() -> None:
    with nothing_left():
        with opened() as session:
            assert session.info is not None
            assert session.ask("hello").result == "hello"
            session.query("many3")
            messages = list(session.receive_response())
            assert texts(iter(messages)) == ["0", "1", "2"]
            assert isinstance(messages[-1], ResultMessage)
            session.query("many2")
            assert texts(session.receive_run()) == ["0", "1"]
            assert session.request(McpStatusRequest()).mcpServers == []
            session.set_model("opus")
            session.set_permission_mode("plan")
            assert session.set_mcp_servers({}).removed == ["a"]
            session.query("many2")
            session.end_input()
            assert texts(message for batch in session.batches() for message in batch) == ["0", "1"]
        assert "closed" in repr(session)


@linux_only
def test_one_prompt_is_asked_without_a_block() -> None:
    with nothing_left():
        assert sync.ask("hello", python(AGENT)).result == "hello"
        with pytest.raises(MaxTurnsError):
            sync.ask("fail", python(AGENT))


def test_an_iteration_that_is_dropped_half_way_leaves_the_rest_to_the_next_one() -> None:
    with opened() as session:
        session.query("many20")
        first = []
        for message in session:
            if isinstance(message, UserMessage):
                first.append(message.text)
                if len(first) == 7:
                    break
        assert first + texts(session.receive_response()) == list(map(str, range(20)))
        assert session.ask("hello").result == "hello"


def test_the_turn_is_interrupted_from_another_thread() -> None:
    with opened() as session:
        session.query("hold")
        interrupting = threading.Thread(target=session.interrupt)
        interrupting.start()
        *_, last = session.receive_response()
        interrupting.join()
        assert isinstance(last, ResultMessage)
        assert last.cancelled


def test_several_threads_ask_one_after_the_other() -> None:
    found: dict[str, str | None] = {}
    with opened() as session:

        def ask(words: str) -> None:
            found[words] = session.ask(words).result

        threads = [threading.Thread(target=ask, args=(f"words {number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {f"words {number}": f"words {number}" for number in range(8)}


def test_it_has_the_methods_of_the_async_session() -> None:
    """The parameters are the same, too. The missing methods are only useful for streams without a process."""
    left_out = {"aclose", "initialize", "status"}
    for name, method in inspect.getmembers(AsyncSession, inspect.isfunction):
        if not name.startswith("_") and name not in left_out:
            ours, theirs = inspect.signature(getattr(Session, name)), inspect.signature(method)
            assert list(ours.parameters) == list(theirs.parameters), name
            for parameter in ours.parameters:
                assert ours.parameters[parameter].default == theirs.parameters[parameter].default, name


# --- callbacks --------------------------------------------------------------------------------------------------------

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")


def test_callbacks_are_plain_or_async_and_run_while_nobody_waits() -> None:
    answered = threading.Event()
    seen: list[object] = []

    def plain(request: CanUseToolRequest) -> PermissionResult:
        seen.append((VARIABLE.get(), threading.current_thread() is threading.main_thread()))
        answered.set()
        return request.deny("no")

    async def waits(request: CanUseToolRequest) -> PermissionResult:
        await anyio.sleep(0)
        return plain(request)

    VARIABLE.set("of the caller")
    for callback in plain, waits:
        answered.clear()
        with opened(can_use_tool=callback) as session:
            session.query("ask")
            assert answered.wait(60)
            *_, last = session.receive_response()
            assert isinstance(last, ResultMessage)
            assert last.result == "deny"
    assert seen == [("of the caller", False)] * 2


def test_a_callback_that_calls_back_is_refused_and_may_use_the_async_session() -> None:
    errors: list[HandleError] = []

    def calls_back(request: CanUseToolRequest) -> PermissionResult:
        calls: list[Callable[[], object]] = [
            session.interrupt,
            lambda: next(iter(session)),
            session.close,
            opened().__enter__,
        ]
        for call in calls:
            with pytest.raises(HandleError) as refused:
                call()
            errors.append(refused.value)
        return request.allow()

    with opened(can_use_tool=calls_back) as session:
        assert session.ask("ask").result == "allow"
    assert [str(error)[:24] for error in errors] == ["a callback runs in the e"] * 3 + ["an event loop runs in th"]

    async def uses_the_async_one(request: CanUseToolRequest) -> PermissionResult:
        await session.session.set_model("opus")
        return request.allow()

    with opened(can_use_tool=uses_the_async_one) as session:
        assert session.ask("ask").result == "allow"


# --- where it cannot be used ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_it_is_refused_where_an_event_loop_runs(backend: str) -> None:
    async def main() -> None:
        with pytest.raises(HandleError, match=r"await claude_wire\.ask"):
            sync.ask("hello", python(AGENT))
        with pytest.raises(HandleError, match=r"await claude_wire\.ask"):
            session.ask("hello")
        # In a worker thread the sync session does not block the event loop, so it is allowed.
        result = await anyio.to_thread.run_sync(session.ask, "hello")
        assert result.result == "hello"

    with opened() as session:
        anyio.run(main, backend=backend)


def test_outside_of_its_block_it_says_so() -> None:
    session = opened()
    with pytest.raises(HandleError, match="use it in its block"):
        session.ask("hello")
    with session, pytest.raises(HandleError, match="only once"), session:
        pytest.fail("it was entered twice")
    for call in session.interrupt, lambda: next(iter(session)), session.__enter__:
        with pytest.raises(HandleError, match="open another one"):
            call()
    session.close()
    with pytest.raises(TypeError, match="session"):
        Session()
    never = opened()
    never.close()
    with pytest.raises(HandleError, match="open another one"):
        never.__enter__()


# --- what is left -----------------------------------------------------------------------------------------------------


@linux_only
def test_nothing_is_left_when_the_block_is_left_by_an_exception() -> None:
    with nothing_left():
        with suppress(KeyError), opened() as session:
            session.query("hold")
            raise KeyError
        with pytest.raises(MaxTurnsError), opened() as session:
            session.ask("fail")


@linux_only
def test_nothing_is_left_when_the_session_does_not_begin() -> None:
    with nothing_left():
        with pytest.raises(ProcessError), sync.open_session(python("sys.exit(3)")):
            pytest.fail("it was entered")
        with pytest.raises(FileNotFoundError), sync.open_session(["/nosuch/program"]):
            pytest.fail("it was entered")


@linux_only
def test_nothing_is_left_when_another_thread_closes_the_session_that_begins() -> None:
    with nothing_left():
        begun = threading.Event()
        silent = python("sys.stderr.write('begun\\n'); sys.stderr.flush(); sys.stdin.read()")
        session = sync.open_session(silent, stderr=lambda line: begun.set())
        closing = threading.Thread(target=lambda: (begun.wait(), session.close()))
        closing.start()
        with pytest.raises(HandleError, match="the session is closed"):
            session.__enter__()
        closing.join()


@linux_only
def test_a_session_that_is_dropped_is_closed_by_its_thread() -> None:
    with nothing_left():
        session = opened().__enter__()
        session.query("hold")
        messages = iter(session)
        del session
        gc.collect()
        assert isinstance(next(messages), InitMessage)  # the iterator keeps the session alive
        del messages
        gc.collect()


@linux_only
def test_a_waiting_thread_is_told_that_the_session_is_closed() -> None:
    errors: list[BaseException] = []
    waiting = threading.Event()

    def wait(session: Session) -> None:
        try:
            for _ in session:
                waiting.set()
        except Exception as error:
            errors.append(error)

    with nothing_left():
        with opened() as session:
            session.query("hold")
            thread = threading.Thread(target=wait, args=(session,))
            thread.start()
            assert waiting.wait(60)
        thread.join(60)
        assert not thread.is_alive()
        assert all(isinstance(error, HandleError) for error in errors)
        errors.clear()


def ends_by_a_callback() -> None:
    """SystemExit in a callback ends the event loop, and the with block raises it on exit."""

    def leave(request: CanUseToolRequest) -> PermissionResult:
        raise SystemExit(5)

    with nothing_left():
        with pytest.raises(SystemExit) as exited, opened(can_use_tool=leave) as session, suppress(HandleError):
            session.ask("ask")
        assert exited.value.code == 5


@linux_only
def test_a_callback_that_ends_the_program_ends_the_session() -> None:
    in_own_process(ends_by_a_callback)


# --- The program of docs/how-to/sync.md runs and prints the expected text ---------------------------------------------


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "sync.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.S)
    Replay(Recording.from_files(recordings.load("05_perm_allow_deny").files)).script(tmp_path / "claude")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        *("Two writes. []", " ['Bash']", " ['Bash']", " ['Write']", "finished []", "True finished 0.0005")
    ]
