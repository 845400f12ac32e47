"""With the real CLI, `ask` returns only after the subagents of the run have ended, unless the caller says otherwise."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from claude_wire import ClaudeOptions, Decoder, ResultMessage, ask, sync
from claude_wire.errors import SubagentStoppedError
from claude_wire.messages import TaskNotificationMessage
from claude_wire.session.open import STATE_VARIABLE
from places import CLI, Place
from through_sdk import DEADLINE
from through_session import Talk


def asked(place: Place, prompt: str, **how: Any) -> ResultMessage:
    async def main() -> ResultMessage:
        with anyio.fail_after(DEADLINE):
            options = ClaudeOptions(cli_path=CLI, system_prompt="", allowed_tools=["Bash"])
            return await ask(prompt, options, cwd=place.work, env=place.environment, **how)

    return anyio.run(main)


def test_a_subagent_of_20_seconds_has_done_its_work_when_ask_returns(place: Place) -> None:
    assert asked(place, "[[long_agent]]").result == "It is back."
    assert (place.work / "marker").exists()


def test_so_it_has_where_the_cli_says_no_state_and_code_is_not_async(place: Place) -> None:
    options = ClaudeOptions(cli_path=CLI, system_prompt="", allowed_tools=["Bash"])
    environment = {**place.environment, STATE_VARIABLE: ""}
    assert sync.ask("[[long_agent]]", options, cwd=place.work, env=environment).result == "It is back."
    assert (place.work / "marker").exists()


def test_the_turn_alone_does_not_wait_for_it(place: Place) -> None:
    assert asked(place, "[[long_agent]]", until="turn").result == "It is on its way."
    assert not (place.work / "marker").exists()


def test_a_command_of_8_seconds_is_waited_for_if_that_is_asked_for(place: Place) -> None:
    assert asked(place, "[[shell_of_8]]", shells=DEADLINE).result == "It has ended."
    assert (place.work / "ran").exists()


@pytest.mark.parametrize("states", ["1", ""], ids=["states", "no states"])
def test_a_budget_that_trips_in_a_subagent_ends_the_run_with_an_error_that_says_so(states: str, place: Place) -> None:
    output = bytearray()

    def received(data: bytes) -> None:
        output.extend(data)
        if b'"type":"result"' in output:
            assert place.api is not None
            place.api.open("spender")

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            options = {"allowed_tools": ["Bash"], "max_budget_usd": 0.5, "env": {STATE_VARIABLE: states}}
            async with Talk(place).session(host={"on_received": received}, **options) as session:
                with pytest.raises(SubagentStoppedError) as caught:
                    await session.ask("[[spending_agent]]")
                assert (caught.value.result.result, caught.value.count) == ("It is on its way.", 1)

    anyio.run(main)
    messages = Decoder().feed(bytes(output))
    assert [one.status for one in messages if isinstance(one, TaskNotificationMessage)] == ["stopped"]
