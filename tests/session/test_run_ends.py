"""The end of a run: how long it waits for background work, what ends each wait, and which error a failure raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from claude_wire import (
    MaxBudgetError,
    ResultMessage,
    Session,
    SessionEndedError,
    UserMessage,
)
from claude_wire.errors import ExecutionError, PromptCancelledError, SubagentStoppedError
from claude_wire.protocol.run import SETTLE_SECONDS
from run_messages import BACKGROUND, IDLE, RUNNING, ended, listed, started
from session_peer import INIT, RESULT, Peer
from virtual_time import VirtualBackend, every_virtual_backend

#: The result of a turn that began because background work ended.
WOKEN = {**RESULT, "result": "woken", **BACKGROUND}
FAILED = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["no"]}

#: The CLI's reply to one prompt: messages (dicts), pauses in seconds (numbers), and None for the end of the output.
Script = list[Any]


class Talking(Peer):
    """A peer that waits for a prompt and then plays a script."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script
        self.at: list[float] = []

    async def talk(self) -> None:
        while not self.prompts():
            await anyio.sleep(0.01)
        for part in self.script:
            if isinstance(part, (int, float)):
                await anyio.sleep(part)
            elif part is None:
                self.output.end()
            else:
                self.say(part)


async def in_session(script: Script, use: Callable[[Session], Any]) -> tuple[Any, float]:
    """Run ``use`` on a session whose CLI plays the script.

    Return the result or the exception, and the seconds it took.
    """
    peer = Talking(script)
    async with anyio.create_task_group() as group:
        async with peer.session() as session:
            await session.initialize()
            began = anyio.current_time()
            group.start_soon(peer.talk)
            try:
                outcome = await use(session)
            except Exception as error:
                outcome = error
            seconds = anyio.current_time() - began
        group.cancel_scope.cancel()
    return outcome, seconds


async def ask(session: Session, **how: Any) -> str | None:
    return (await session.ask("go", **how)).result


async def run(session: Session, **how: Any) -> tuple[int, str | None, Any]:
    """Send a prompt and read its run.

    Return the number of results, the reason of the end, and the type of the error.
    """
    await session.query("go")
    messages = session.receive_run(**how)
    count = len([message async for message in messages if isinstance(message, ResultMessage)])
    return count, messages.end, None if messages.error is None else type(messages.error)


AGENT = [RUNNING, INIT, listed(t="local_agent"), started("t"), RESULT]
SHELL = [RUNNING, INIT, listed(s="local_bash"), started("s", "local_bash"), RESULT, IDLE]
NO_STATE = [INIT, started("t"), RESULT]


@every_virtual_backend
@pytest.mark.parametrize(
    ("script", "how", "outcome", "seconds"),
    [
        # A subagent works for 20 s: ask() returns the last result of the run or, with until="turn", the first result.
        ([*AGENT, 20, ended("t"), listed(), INIT, WOKEN, IDLE], {}, "woken", 20),
        ([*AGENT, 20, ended("t"), listed(), INIT, WOKEN, IDLE], {"until": "turn"}, "done", 0),
        ([*NO_STATE, 20, ended("t"), INIT, WOKEN], {}, "woken", 20),
        # ask() waits `shells` seconds for a background command, and for the turn that follows its end.
        ([*SHELL, 8, ended("s"), listed(), RUNNING, INIT, WOKEN, IDLE], {}, "done", 0),
        ([*SHELL, 8, ended("s"), listed(), RUNNING, INIT, WOKEN, IDLE], {"shells": 5}, "done", 5),
        ([*SHELL, 8, ended("s"), listed(), 0.5, RUNNING, INIT, WOKEN, IDLE], {"shells": 9}, "woken", 8.5),
        ([*SHELL, 8, ended("s"), listed(), 0.5, RUNNING, INIT, WOKEN, IDLE], {"shells": None}, "woken", 8.5),
        # No turn follows a background command that was stopped.
        ([*SHELL, 8, ended("s", "stopped"), listed(), IDLE], {"shells": 9}, "done", 8),
        ([*SHELL, 8, ended("s", "stopped"), listed()], {"shells": 9}, "done", 8 + SETTLE_SECONDS),
        # The CLI does not report the end of the task, but drops it from the list of background tasks.
        ([*AGENT, 20, listed(), IDLE], {}, "done", 20),
        # The run does not wait for a foreground task, even if the task continues after the result of its turn.
        ([RUNNING, INIT, started("t", is_backgrounded=False), RESULT, IDLE, 9, ended("t")], {}, "done", 0),
        # The CLI ends, after its work or in the middle of it.
        ([RUNNING, INIT, RESULT, 1, None], {}, "done", 1),
        ([*AGENT, 5, None], {}, SessionEndedError, 5),
        ([*AGENT, 5, None], {"until": "turn"}, "done", 0),
        # The turn of the prompt fails, or a later turn of the run does. ask() waits for the whole run before it raises.
        ([RUNNING, INIT, started("t"), FAILED, 20, ended("t"), INIT, WOKEN, IDLE], {}, ExecutionError, 20),
        ([*AGENT, 20, ended("t"), INIT, {**FAILED, "origin": WOKEN["origin"]}, IDLE], {}, ExecutionError, 20),
        # A subagent exceeds the budget: the CLI stops the subagent, and no result follows.
        ([*AGENT, 4, ended("t", "stopped"), listed(), IDLE], {}, SubagentStoppedError, 4),
        ([*NO_STATE, 4, ended("t", "stopped"), listed()], {}, SubagentStoppedError, 4 + SETTLE_SECONDS),
        (
            [*AGENT[:-1], {**FAILED, "subtype": "error_max_budget_usd"}, ended("t", "stopped"), listed(), IDLE],
            {},
            MaxBudgetError,
            0,
        ),
        # The host stops the subagent by a request: another turn follows.
        ([*AGENT, 4, ended("t", "stopped"), listed(), 1, INIT, WOKEN, IDLE], {}, "woken", 5),
        ([*NO_STATE, 4, ended("t", "stopped"), listed(), 1, INIT, WOKEN], {}, "woken", 5),
        # The CLI never reports that it is idle, although no work is known to be running: `ceiling` ends the wait.
        ([RUNNING, INIT, RESULT], {"ceiling": 30}, "done", 30),
    ],
)  # fmt: skip
def test_ask_waits_for_the_run_and_each_wait_ends(
    virtual: VirtualBackend, script: Script, how: dict[str, Any], outcome: Any, seconds: float
) -> None:
    got, took = virtual.run(in_session, script, lambda session: ask(session, **how))
    assert got == outcome or type(got) is outcome, got
    assert took == pytest.approx(seconds, abs=0.1)


@every_virtual_backend
@pytest.mark.parametrize(
    ("script", "how", "outcome"),
    [
        ([*AGENT, 20, ended("t"), listed(), INIT, WOKEN, IDLE], {}, (2, "done", None)),
        (SHELL, {}, (1, "shells", None)),
        (SHELL, {"shells": 5}, (1, "shells", None)),
        ([*SHELL, 8, ended("s"), listed(), RUNNING, INIT, WOKEN, IDLE], {"shells": 9}, (2, "done", None)),
        ([*AGENT, 4, ended("t", "stopped"), listed(), IDLE], {}, (1, "done", SubagentStoppedError)),
        ([RUNNING, INIT, FAILED, IDLE], {}, (1, "done", ExecutionError)),
        ([RUNNING, INIT, RESULT], {"ceiling": 30}, (1, "ceiling", None)),
        ([*AGENT, None], {}, (1, "output", None)),
    ],
)
def test_an_iteration_says_how_it_has_ended(
    virtual: VirtualBackend, script: Script, how: dict[str, Any], outcome: Any
) -> None:
    assert virtual.run(in_session, script, lambda session: run(session, **how))[0] == outcome


@every_virtual_backend
def test_the_wait_for_a_result_that_never_comes_has_an_end(virtual: VirtualBackend) -> None:
    async def wait(session: Session) -> list[str | None]:
        await session.query("go")
        ends: list[str | None] = []
        for _ in range(2):
            messages = session.receive_response(ceiling=30)
            async for _ in messages:
                pass
            ends.append(messages.end)
        return ends

    script = [*AGENT, 4, ended("t", "stopped"), listed(), IDLE]
    got, seconds = virtual.run(in_session, script, wait)
    assert got == ["result", "ceiling"]
    assert seconds == pytest.approx(34, abs=0.1)


@every_virtual_backend
def test_a_prompt_that_is_taken_back_ends_the_wait_at_once(virtual: VirtualBackend) -> None:
    script = [{"type": "command_lifecycle", "command_uuid": "u", "state": "cancelled"}]

    async def wait(session: Session) -> Any:
        return await session.ask(UserMessage.of("go", uuid="u"))

    got, seconds = virtual.run(in_session, script, wait)
    assert type(got) is PromptCancelledError
    assert seconds < 1


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"until": "end"}, "until"),
        ({"until": "turn", "shells": 5}, "shells is for until='run'"),
        ({"shells": -1}, "shells"),
    ],
)
def test_what_would_be_without_effect_is_refused(how: dict[str, Any], problem: str) -> None:
    async def main() -> None:
        async with Peer().session() as session:
            with pytest.raises(ValueError, match=problem):
                await session.ask("go", **how)

    anyio.run(main)
