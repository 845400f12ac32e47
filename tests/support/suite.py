"""Settings that the tests of both packages share: their conftest.py take the hooks from here."""

from __future__ import annotations

import gc
import os
import signal
import sys

import pytest
from hypothesis import settings

from long_tests import LONG

__all__ = ["pytest_runtest_setup", "pytest_runtest_teardown"]

# No deadline in either: a busy machine is slow, which says nothing of the code.
settings.register_profile("default", deadline=None, max_examples=200 if LONG else 40)
# The same examples on every run, so that a failure of one commit is a failure of that commit; and more of them.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=200 if LONG else 80, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell starts what it runs in the background with SIGINT ignored, and so would be the hosts that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


#: Tests between two times at which what pytest has kept of the tests before is set aside.
TESTS_PER_FREEZE = 25

_handled_before = pytest.StashKey[BaseException | None]()
_tests_run = 0
_module: str | None = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_handled_before] = sys.exc_info()[1]
    _set_aside(item.nodeid.partition("::")[0])


def _set_aside(module: str) -> None:
    """Many tests collect garbage, in a process that holds all tests and what pytest keeps of them.

    To look at these objects each time was half of the processor time of all tests. Therefore they are set aside before
    each module, and again after so many tests: pytest keeps some 20 objects of each.
    """
    global _tests_run, _module
    if module != _module or _tests_run % TESTS_PER_FREEZE == 0:
        _module = module
        gc.collect()
        gc.freeze()
    _tests_run += 1


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fails a test after which an exception is still being handled: it would be the context of all later exceptions."""
    handled = sys.exc_info()[1]
    if handled is not item.stash[_handled_before]:
        pytest.fail(f"{item.nodeid} leaves {type(handled).__name__} in sys.exc_info(), outside of any except block")
