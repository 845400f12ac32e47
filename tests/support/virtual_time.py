"""Event loops whose time is not the clock's: when nothing can run, it is the time of the next deadline at once.

So what takes an hour takes no time, what happens is the same on every run, and a wait without end is an error. Only
for what stays in one process and one thread.
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

#: Seconds, of virtual time, after which whatever still waits will wait for ever.
FOREVER = 1e6


class _Selector(selectors.DefaultSelector):
    """Does not wait: it says how long it would have waited."""

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
    """As :class:`async_backends.Backend`, in virtual time."""

    id: str

    def run(self, main: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run ``main(*args)`` in a new loop. It fails if anything was left to the loop's exception handler."""
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

every_virtual_backend = pytest.mark.parametrize(
    "virtual", VIRTUAL_BACKENDS, ids=[f"virtual-{backend.id}" for backend in VIRTUAL_BACKENDS]
)
