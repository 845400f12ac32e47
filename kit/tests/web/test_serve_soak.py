"""A short soak: the shipped commands under a mixed load of killed clients; longer by ``CLAUDE_WIRE_LONG=1``."""

from __future__ import annotations

import re
import subprocess
import sys

from folders import ROOT
from long_tests import LONG

#: How long, and with how many sessions.
SHAPE = ("5m", "--sessions=100") if LONG else ("10s", "--sessions=6")


def test_killed_clients_lose_nothing_and_get_nothing_twice() -> None:
    """Neither do they leave descriptors or threads; memory is compared in the long form alone."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "soak.py", *SHAPE], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fault" not in done.stdout
    assert re.search(r"\d+ prompts, .* compared", done.stdout), done.stdout
