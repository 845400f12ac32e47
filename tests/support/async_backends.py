"""The event loops that every asynchronous promise is tested on: asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import anyio
import pytest

__all__ = [
    "ASYNCIO",
    "BACKENDS",
    "DEADLINE",
    "TRIO",
    "UVLOOP",
    "Backend",
    "backend_of",
    "every_asyncio",
    "every_backend",
]

T = TypeVar("T")

#: Seconds after which a test that waits for something that never happens fails.
DEADLINE = 60.0


class Backend(NamedTuple):
    """An event loop, and how to run something in a new one."""

    #: What a test is called after it.
    id: str
    #: What :func:`anyio.run` calls it.
    name: str
    options: dict[str, Any]

    def run(self, main: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run ``main(*args)`` in a new loop. It fails if anything was left to the loop's exception handler.

        That is where asyncio reports tasks that were destroyed while pending, and exceptions nobody took.
        """
        pytest.importorskip("uvloop" if self.options.get("use_uvloop") else self.name)
        reported: list[dict[str, Any]] = []

        async def bounded() -> T:
            if self.name == "asyncio":
                import asyncio

                asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
            with anyio.fail_after(DEADLINE):
                result = await main(*args)
            gc.collect()  # what was dropped must say what it has to say before the loop is gone
            return result

        result = anyio.run(bounded, backend=self.name, backend_options=self.options)
        gc.collect()
        assert reported == []
        return result


ASYNCIO = Backend("asyncio", "asyncio", {"use_uvloop": False})
UVLOOP = Backend("uvloop", "asyncio", {"use_uvloop": True})
TRIO = Backend("trio", "trio", {})
BACKENDS = [ASYNCIO, UVLOOP, TRIO]


def backend_of(id: str) -> Backend:
    return next(backend for backend in BACKENDS if backend.id == id)


every_backend = pytest.mark.parametrize("backend", BACKENDS, ids=[backend.id for backend in BACKENDS])
every_asyncio = pytest.mark.parametrize("backend", [ASYNCIO, UVLOOP], ids=["asyncio", "uvloop"])
