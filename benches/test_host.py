"""A host: what a supervisor holds and takes for each session, and what the way through it adds.

The supervisor is a process of its own (house.py), and only what it holds and takes is counted: memory as the kernel
shares it out among processes (Pss), processor time as its scheduler has it. Each session has a real process as its
CLI, so the supervisor holds all that it does for one; see house.py for who writes the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import house
from conftest import Contest

#: Of the memory that a supervisor holds for an idle session: 48 KiB, in MB.
MOST_MEMORY = 0.049


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], house.House]]:
    """A function that starts a supervisor on an event loop."""
    houses: list[house.House] = []

    def open_one(loop: str = "asyncio") -> house.House:
        houses.append(house.House(tmp_path / str(len(houses)), loop))
        return houses[-1]

    yield open_one
    for one in houses:
        one.close()


@pytest.mark.parametrize("sessions", [100, 1_000])
@pytest.mark.parametrize("attached", [False, True], ids=["alone", "attached"])
def test_idle(contest: Contest, opened: Callable[..., house.House], sessions: int, attached: bool) -> None:
    """Sessions whose CLI has answered ``initialize``, with what it has answered; without clients, or with one each."""

    def held() -> float:
        supervisor = opened()
        supervisor.open(10, attached=attached)  # what is made once is made now
        before = supervisor.resident
        supervisor.open(sessions, attached=attached)
        return (supervisor.resident - before) / sessions

    followed = "with a client" if attached else "without clients"
    contest.memory(f"a supervisor's memory for an idle session {followed}, of {sessions:,}", held, claim=MOST_MEMORY)
