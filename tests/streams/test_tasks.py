"""Tasks outside of task groups: how they run and end, and that their errors do not reach other tasks."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from async_backends import ASYNCIO, TRIO, Backend, every_asyncio, every_backend
from claude_wire.streams.tasks import Task, current_task
from claude_wire.support import waiting
from claude_wire.support.waiting import TESTED_ANYIO, cancel_scope, move_on_after

VARIABLE = contextvars.ContextVar("VARIABLE", default="none")


def errors(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return the exception type and the message of each logged error. Fail if another logger has logged anything."""
    assert {record.name for record in caplog.records} <= {"claude_wire"}
    assert all(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)
    return [(type(record.exc_info[1]).__name__, record.getMessage()) for record in caplog.records if record.exc_info]


@every_backend
async def test_it_runs_until_it_ends_while_its_parent_goes_on() -> None:
    steps: list[str] = []
    go = anyio.Event()

    async def function() -> None:
        steps.append("begun")
        await go.wait()
        steps.append("ended")

    task = Task(function)
    assert steps == []
    await anyio.wait_all_tasks_blocked()
    assert (steps, task.done) == (["begun"], False)
    go.set()
    await task.wait()
    assert (steps, task.done) == (["begun", "ended"], True)
    await task.wait()
    task.cancel()


@every_backend
async def test_it_has_the_context_of_its_caller() -> None:
    seen: list[str] = []

    async def function() -> None:
        seen.append(VARIABLE.get())
        VARIABLE.set("the task's")

    token = VARIABLE.set("the caller's")
    task = Task(function)
    VARIABLE.reset(token)
    await task.wait()
    assert (seen, VARIABLE.get()) == (["the caller's"], "none")


@every_backend
async def test_it_lives_while_nobody_holds_it() -> None:
    ended = anyio.Event()

    async def function() -> None:
        await anyio.sleep(0)
        gc.collect()
        await anyio.sleep(0)
        ended.set()

    Task(function)
    gc.collect()
    await ended.wait()


@every_backend
async def test_its_name_is_what_debuggers_and_repr_show() -> None:
    names: list[str | None] = []

    async def function() -> None:
        names.append(anyio.get_current_task().name)

    task = Task(function, name="a name")
    assert repr(task) == "<Task 'a name', running>"
    await task.wait()
    assert (names, repr(task)) == (["a name"], "<Task 'a name', ended>")
    assert function.__qualname__ in repr(Task(function))
    await anyio.wait_all_tasks_blocked()


@every_backend
def test_cancelling_interrupts_it_where_it_waits(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        steps: list[str] = []

        async def function() -> None:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                steps.append("cancelled")
                raise

        task = Task(function)
        await anyio.wait_all_tasks_blocked()
        task.cancel()
        assert not task.done
        await task.wait()
        assert (steps, task.done) == (["cancelled"], True)

    backend.run(main)
    assert errors(caplog) == []


@every_backend
async def test_cancelled_before_its_first_step_it_never_calls_its_function() -> None:
    called: list[str] = []

    async def function() -> None:
        called.append("it")

    task = Task(function)
    task.cancel()
    await task.wait()
    assert called == []


@every_backend
async def test_any_task_can_cancel_it_and_the_task_itself_too() -> None:
    async def itself() -> None:
        own[0].cancel()
        await anyio.sleep_forever()

    own = [Task(itself)]
    await own[0].wait()

    other = Task(anyio.sleep_forever)
    await anyio.wait_all_tasks_blocked()

    async def cancel() -> None:
        other.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(cancel)
    await other.wait()


@every_backend
async def test_a_shield_holds_the_cancellation_off() -> None:
    go = anyio.Event()
    steps: list[str] = []

    async def function() -> None:
        with anyio.CancelScope(shield=True):
            await go.wait()
            steps.append("shielded")
        await anyio.lowlevel.checkpoint()
        steps.append("not reached")

    task = Task(function)
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    await anyio.wait_all_tasks_blocked()
    assert not task.done
    go.set()
    await task.wait()
    assert steps == ["shielded"]


@every_backend
async def test_who_waits_can_be_cancelled_without_the_task() -> None:
    go = anyio.Event()
    task = Task(go.wait)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await task.wait()
    assert scope.cancelled_caught
    assert not task.done
    go.set()
    await task.wait()


@every_backend
async def test_the_cancellation_of_its_parent_does_not_reach_it() -> None:
    go = anyio.Event()
    tasks: list[Task] = []
    with anyio.CancelScope() as scope:
        tasks.append(Task(go.wait))
        scope.cancel()
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()
    assert not tasks[0].done
    go.set()
    await tasks[0].wait()


class Odd(BaseException):
    """A BaseException that event loops do not treat specially."""


@every_backend
@pytest.mark.parametrize("error", [ValueError, Odd], ids=["Exception", "BaseException"])
def test_what_it_raises_is_logged_by_type_and_reaches_nobody(
    backend: Backend, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async def function() -> None:
            await anyio.lowlevel.checkpoint()
            raise error("what it says")

        task = Task(function, name="bad")
        await task.wait()
        assert task.done

    backend.run(main)
    assert errors(caplog) == [(error.__name__, f"the task bad raised {error.__name__}")]


@every_backend
def test_an_error_out_of_a_task_group_is_logged(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def fail() -> None:
            raise ValueError

        async def function() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(fail)
                await anyio.sleep_forever()

        await Task(function, name="bad").wait()

    backend.run(main)
    assert errors(caplog) == [("ExceptionGroup", "the task bad raised ExceptionGroup")]


@every_backend
def test_an_error_while_it_is_cancelled_is_logged(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def function() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError

        task = Task(function)
        await anyio.wait_all_tasks_blocked()
        task.cancel()
        await task.wait()

    backend.run(main)
    assert [name for name, _ in errors(caplog)] == ["ValueError"]


@every_backend
def test_at_the_end_of_the_loop_it_ends_quietly(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    steps: list[str] = []
    tasks: list[Task] = []

    async def main() -> None:
        async def function() -> None:
            try:
                # on trio this raises a group of several Cancelled exceptions
                async with anyio.create_task_group() as group:
                    group.start_soon(anyio.sleep_forever)
                    group.start_soon(anyio.sleep_forever)
                    await anyio.sleep_forever()
            finally:
                steps.append("ended")

        tasks.append(Task(function))
        await anyio.wait_all_tasks_blocked()
        tasks.append(Task(anyio.sleep_forever))  # the loop ends right after this, so the task may only get one step

    backend.run(main)
    assert steps == ["ended"]
    assert errors(caplog) == []
    assert [task.done for task in tasks] == [True, True]


@every_backend
def test_an_error_at_the_end_of_the_loop_is_logged(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def function() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError

        Task(function)
        await anyio.wait_all_tasks_blocked()

    backend.run(main)
    assert [name for name, _ in errors(caplog)] == ["ValueError"]


def test_an_error_among_cancellations_at_the_end_of_trio_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def fail() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError

        async def function() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep_forever)
                group.start_soon(fail)

        Task(function)
        await anyio.wait_all_tasks_blocked()

    TRIO.run(main)
    assert [name for name, _ in errors(caplog)] == ["ExceptionGroup"]


@every_asyncio
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_on_asyncio_an_exit_ends_the_loop_as_out_of_any_task(
    backend: Backend, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async def function() -> None:
            raise error

        Task(function)
        await anyio.sleep_forever()

    with pytest.raises(error):
        backend.run(main)
    gc.collect()
    assert errors(caplog) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_on_trio_an_exit_is_logged(error: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> str:
        async def function() -> None:
            raise error

        await Task(function).wait()
        return "went on"

    assert TRIO.run(main) == "went on"
    assert [name for name, _ in errors(caplog)] == [error.__name__]


async def test_a_task_that_asyncio_cancels_itself_has_ended() -> None:
    before = asyncio.all_tasks()
    tasks = [Task(asyncio.Event().wait)]
    await anyio.wait_all_tasks_blocked()
    tasks.append(Task(asyncio.Event().wait))
    for theirs in asyncio.all_tasks() - before:
        theirs.cancel()
    for task in tasks:
        await task.wait()


def test_without_an_event_loop_there_is_no_task() -> None:
    with pytest.raises(RuntimeError):
        Task(anyio.sleep_forever)


@every_backend
async def test_who_is_to_be_told_of_the_end_is_told_once_with_the_task() -> None:
    told: list[Task] = []

    async def returns() -> None:
        pass

    async def raises() -> None:
        raise ValueError

    tasks = [Task(function, then=told.append) for function in (returns, raises, anyio.sleep_forever)]
    tasks[2].cancel()  # before its first step
    for task in tasks:
        await task.wait()
        assert task.done
    assert len(told) == 3
    assert set(told) == set(tasks)


@every_backend
async def test_a_task_knows_itself_and_so_do_those_that_it_begins() -> None:
    seen: list[Task | None] = []

    async def look() -> None:
        seen.append(current_task())

    async def begin() -> None:
        await look()
        async with anyio.create_task_group() as group:
            group.start_soon(look)

    await look()
    task = Task(begin)
    await task.wait()
    await look()
    assert seen == [None, task, task, None]


# --- The cancel scopes on asyncio use internals of anyio, and raise a clear error if an anyio version changes these ---


class Moved:
    """A cancel scope of an anyio version with different internals."""

    def __init__(self, **_: Any) -> None:
        self.deadline = 0.0


@pytest.fixture(autouse=True)
def made_anew() -> Iterator[None]:
    waiting._asyncio_kind.cache_clear()
    yield
    waiting._asyncio_kind.cache_clear()


def test_with_other_internals_the_scopes_are_those_of_anyio(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(anyio, "CancelScope", Moved)
            scopes: list[Any] = [cancel_scope(), cancel_scope(shield=True), move_on_after(1.0)]
        assert {type(scope) for scope in scopes} == {Moved}

    ASYNCIO.run(main)
    (record,) = caplog.records
    said = record.getMessage()
    assert f"tested up to anyio {TESTED_ANYIO}; in anyio {version('anyio')}, Moved has no _cancel_handle, _host" in said


def test_the_newest_version_that_was_tested_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with cancel_scope():
            pass

    ASYNCIO.run(main)
    assert not caplog.records
    installed, named = (tuple(map(int, re.findall(r"\d+", text))) for text in (version("anyio"), TESTED_ANYIO))
    assert installed <= named
