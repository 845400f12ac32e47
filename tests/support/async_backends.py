"""The event loops on which all asynchronous tests run: asyncio, asyncio with uvloop, and trio."""

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

#: Seconds after which a waiting test fails.
DEADLINE = 60.0


class Backend(NamedTuple):
    """A kind of event loop, with a method that runs a coroutine function in a new loop."""

    #: The part of a test's id that names the backend.
    id: str
    #: The name that :func:`anyio.run` takes.
    name: str
    options: dict[str, Any]

    def run(self, main: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run ``main(*args)`` in a new loop. Fail if the loop's exception handler was called.

        asyncio calls this handler for pending tasks that were destroyed, and for exceptions that nobody retrieved.
        """
        pytest.importorskip("uvloop" if self.options.get("use_uvloop") else self.name)
        reported: list[dict[str, Any]] = []

        async def bounded() -> T:
            if self.name == "asyncio":
                import asyncio

                asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
            with anyio.fail_after(DEADLINE):
                result = await main(*args)
            gc.collect()  # report dropped tasks and exceptions while the loop still exists
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


def every_backend(test: Any) -> Any:
    """Run a test on every backend. An async test need not name the argument ``backend`` (see ``suite.py``)."""
    return _run_on(BACKENDS)(test)


def every_asyncio(test: Any) -> Any:
    """Run a test on asyncio and on uvloop."""
    return _run_on([ASYNCIO, UVLOOP])(test)


def _run_on(backends: list[Backend]) -> Any:
    parametrized = pytest.mark.parametrize("backend", backends, ids=[backend.id for backend in backends])
    return lambda test: pytest.mark.usefixtures("backend")(parametrized(test))
