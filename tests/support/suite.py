"""Settings for the tests of both packages. Their conftest.py files import the hooks from here."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from async_backends import ASYNCIO
from children import nothing_left
from long_tests import LONG

__all__ = ["nothing_is_left", "pytest_pyfunc_call", "pytest_runtest_setup", "pytest_runtest_teardown"]

# Neither profile has a deadline: a busy machine is slow, which says nothing about the code.
settings.register_profile("default", deadline=None, max_examples=200 if LONG else 40)
# CI runs the same examples every time, so a failure belongs to its commit. It also runs more of them.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=200 if LONG else 80, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell starts background processes with SIGINT ignored. The hosts that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


#: The number of tests after which pytest's objects are frozen again.
TESTS_PER_FREEZE = 25

_handled_before = pytest.StashKey[BaseException | None]()
_tests_run = 0
_module: str | None = None


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Check that a test leaves no new descriptors, threads or children."""
    with nothing_left():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test on the backend of its parametrization, or on asyncio. Tests marked ``anyio`` are anyio's."""
    test, values = pyfuncitem.obj, pyfuncitem.funcargs
    if not inspect.iscoroutinefunction(test) or "anyio_backend" in values:
        return None
    backend = values.get("backend") or values.get("virtual") or ASYNCIO
    backend.run(functools.partial(test, **{name: values[name] for name in inspect.signature(test).parameters}))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_handled_before] = sys.exc_info()[1]
    _set_aside(item.nodeid.partition("::")[0])


def _set_aside(module: str) -> None:
    """Freeze the existing objects, so that garbage collections in tests skip them.

    The process holds all tests and pytest's own objects. Scanning them in each collection took half of the processor
    time of all tests. So they are frozen before each module, and again after TESTS_PER_FREEZE tests, because pytest
    keeps about 20 objects per test.
    """
    global _tests_run, _module
    if module != _module or _tests_run % TESTS_PER_FREEZE == 0:
        _module = module
        gc.collect()
        gc.freeze()
    _tests_run += 1


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail a test that leaves an exception in ``sys.exc_info()``.

    Otherwise it would become the context of all later exceptions.
    """
    handled = sys.exc_info()[1]
    if handled is not item.stash[_handled_before]:
        pytest.fail(f"{item.nodeid} leaves {type(handled).__name__} in sys.exc_info(), outside of any except block")
