"""Settings that all tests share."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# No deadline in either: a busy machine is slow, which says nothing of the code.
settings.register_profile("default", deadline=None)
# The same examples on every run, so that a failure of one commit is a failure of that commit; and more of them.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=200, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell starts what it runs in the background with SIGINT ignored, and so would be the hosts that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
