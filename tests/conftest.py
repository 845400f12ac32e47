"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import settings

# No deadline in either: a busy machine is slow, which says nothing of the code.
settings.register_profile("default", deadline=None)
# The same examples on every run, so that a failure of one commit is a failure of that commit; and more of them.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=200, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell starts what it runs in the background with SIGINT ignored, and so would be the hosts that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def _collections_look_at_what_the_module_makes() -> None:
    """Many tests collect garbage, in a process that holds all tests and what pytest keeps of them.

    To look at these objects each time was half of the processor time of all tests.
    """
    gc.collect()
    gc.freeze()
