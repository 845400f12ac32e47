"""Fixtures that close drained pipes and restore the byte budget after a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from claude_wire.native.budget import DEFAULT_BYTE_BUDGET, set_byte_budget
from drained_pipes import Pipe


@pytest.fixture(autouse=True)
def budget() -> Iterator[None]:
    """Restore the default byte budget after each test."""
    yield
    set_byte_budget(DEFAULT_BYTE_BUDGET)


@pytest.fixture
def pipes() -> Iterator[Callable[..., Pipe]]:
    made: list[Pipe] = []

    def make(**options: Any) -> Pipe:
        made.append(Pipe(**options))
        return made[-1]

    yield make
    for pipe in made:
        pipe.close()
