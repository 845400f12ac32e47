"""Drains of each kind, and pipes that are closed behind a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from claude_wire.native.budget import DEFAULT_BYTE_BUDGET, set_byte_budget
from claude_wire.native.drain import Drain
from claude_wire.native.drain_thread import ThreadDrain
from drained_pipes import AnyDrain, Pipe, linux


@pytest.fixture(params=[pytest.param(Drain, marks=linux), ThreadDrain], ids=["native", "thread"])
def kind(request: pytest.FixtureRequest) -> type[AnyDrain]:
    cls: type[AnyDrain] = request.param
    return cls


@pytest.fixture(autouse=True)
def budget() -> Iterator[None]:
    """Whatever budget a test sets ends with it."""
    yield
    set_byte_budget(DEFAULT_BYTE_BUDGET)


@pytest.fixture
def pipes() -> Iterator[Callable[..., Pipe]]:
    made: list[Pipe] = []

    def make(kind: type[AnyDrain] = Drain, **options: Any) -> Pipe:
        made.append(Pipe(kind, **options))
        return made[-1]

    yield make
    for pipe in made:
        pipe.close()
