"""Event loops with virtual time. When no task can run, the time jumps to the next deadline.

A wait of an hour takes no real time, every run is the same, and an endless wait is an error. This works only within one
process and one thread.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import anyio
import pytest

__all__ = ["FOREVER", "VIRTUAL_BACKENDS", "VirtualBackend", "every_virtual_backend"]

T = TypeVar("T")

#: Virtual seconds after which a wait counts as endless.
FOREVER = 1e6


class _Selector(selectors.DefaultSelector):
    """A selector that never waits. It reports how long it would have waited."""

    def __init__(self, pass_time: Callable[[float], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events and timeout != 0:
            if timeout is None:
                raise RuntimeError("all tasks wait, and nothing will ever happen")
            self._pass_time(timeout)
        return events


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._seconds = 0.0
        super().__init__(_Selector(self._pass_time))

    def time(self) -> float:
        return self._seconds

    def _pass_time(self, seconds: float) -> None:
        self._seconds += seconds


class VirtualBackend(NamedTuple):
    """Like :class:`async_backends.Backend`, but with virtual time."""

    id: str

    def run(self, main: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run ``main(*args)`` in a new loop. Fail if the loop's exception handler was called."""
        reported: list[dict[str, Any]] = []

        async def bounded() -> T:
            if self.id == "asyncio":
                asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
            with anyio.fail_after(FOREVER):
                return await main(*args)

        options: dict[str, Any]
        if self.id == "trio":
            testing = pytest.importorskip("trio.testing")
            options = {"clock": testing.MockClock(autojump_threshold=0)}
        else:
            options = {"loop_factory": _VirtualLoop}
        result = anyio.run(bounded, backend=self.id, backend_options=options)
        assert reported == []
        return result


VIRTUAL_BACKENDS = [VirtualBackend("asyncio"), VirtualBackend("trio")]


def every_virtual_backend(test: Any) -> Any:
    """Run a test with virtual time on asyncio and on trio. An async test need not name the argument ``virtual``."""
    ids = [f"virtual-{backend.id}" for backend in VIRTUAL_BACKENDS]
    parametrized = pytest.mark.parametrize("virtual", VIRTUAL_BACKENDS, ids=ids)
    return pytest.mark.usefixtures("virtual")(parametrized(test))
