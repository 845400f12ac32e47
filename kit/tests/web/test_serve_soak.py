"""A short soak test: the installed commands under load from killed clients. ``CLAUDE_WIRE_LONG=1`` runs it longer."""

from __future__ import annotations

import re
import subprocess
import sys

from folders import ROOT
from long_tests import LONG

#: The arguments of ``soak.py``: the duration and the number of sessions.
SHAPE = ("5m", "--sessions=100") if LONG else ("10s", "--sessions=6")


def test_killed_clients_lose_nothing_and_get_nothing_twice() -> None:
    """The processes also keep no descriptors or threads open. Only the long test compares their memory."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "soak.py", *SHAPE], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fault" not in done.stdout
    assert re.search(r"\d+ prompts, .* compared", done.stdout), done.stdout
