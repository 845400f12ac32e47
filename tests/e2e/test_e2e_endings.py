"""The real CLI ends in different ways, and `open_process` reports each."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from claude_wire import (
    ClaudeOptions,
    Process,
    ProcessError,
    StreamEvent,
    UnfinishedTurnError,
    UserMessage,
    open_process,
)
from places import CLI, Place
from through_sdk import DEADLINE


def start(place: Place, **options: Any) -> Process[Any]:
    argv = ClaudeOptions(cli_path=CLI, system_prompt="", include_partial_messages=True, **options).argv()
    # While the CLI waits for the API, closing its input does not end it, but SIGTERM does.
    return open_process(argv, cwd=place.work, env=place.environment, grace=1.0)


def within_deadline(main: Callable[[], Awaitable[None]], backend: str = "asyncio") -> None:
    async def bounded() -> None:
        with anyio.fail_after(DEADLINE):
            await main()

    anyio.run(bounded, backend=backend)


async def until_it_speaks(process: Process[Any]) -> None:
    """Start a turn that never ends, and return while it runs."""
    await process.send(UserMessage.of("[[stall]]"))
    async for message in process:
        if isinstance(message, StreamEvent) and message.text_delta == "two ":
            return


def test_a_flag_that_it_does_not_know_is_an_error_with_what_it_wrote_about_it(place: Place) -> None:
    async def main() -> None:
        async with start(place, extra_args={"no-such-flag": None}) as process:
            with pytest.raises(ProcessError) as caught:
                [_ async for _ in process]
        assert (caught.value.returncode, caught.value.signal) == (1, None)
        assert b"no-such-flag" in caught.value.stderr_tail
        assert "no-such-flag" in str(caught.value)

    within_deadline(main)


def test_input_that_is_not_json_is_an_error_with_what_it_wrote_about_it(place: Place) -> None:
    async def main() -> None:
        async with start(place) as process:
            await process.send_bytes(b"this is no JSON\n")
            with pytest.raises(ProcessError) as caught:
                [_ async for _ in process]
        assert caught.value.returncode == 1
        assert caught.value.stderr_tail.count(b"\n") >= 1

    within_deadline(main)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_in_the_middle_of_a_turn_is_an_unfinished_turn(number: signal.Signals, place: Place) -> None:
    async def main() -> None:
        async with start(place) as process:
            await until_it_speaks(process)
            os.kill(process.pid, number)
            with pytest.raises(UnfinishedTurnError) as caught:
                [_ async for _ in process]
        # The CLI handles SIGTERM, and exits with 128 plus the number of the signal.
        code = -signal.SIGKILL if number == signal.SIGKILL else 128 + signal.SIGTERM
        assert (caught.value.returncode, caught.value.signal) == (code, number)

    within_deadline(main)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_leaving_in_the_middle_of_a_turn_ends_it(backend: str, place: Place) -> None:
    async def main() -> None:
        async with start(place) as process:
            await until_it_speaks(process)
            pid = process.pid
        assert process.returncode is not None
        # The process was reaped, so not even a zombie has its pid.
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    within_deadline(main, backend)
