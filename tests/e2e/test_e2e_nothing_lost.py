"""A host that pauses for 10 s in the middle of an answer still receives all of it through a pipe of 64 KiB.

``CLAUDE_WIRE_E2E_ROUNDS`` sets how often each case runs (1 by default), and ``CLAUDE_WIRE_E2E_PAUSE`` the length of the
pause in seconds. About 2 s after its answer the CLI stops waiting for the reader, so the pause must be longer.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from offline.fake_api import FakeAPI
from pausing import EVENTS
from pausing_hosts import at_once

ROUNDS = int(os.environ.get("CLAUDE_WIRE_E2E_ROUNDS", "1"))
SECONDS = float(os.environ.get("CLAUDE_WIRE_E2E_PAUSE", "10"))

#: Hosts of pausing.py. Three use `open_process`: with the prompt as an argument, with input closed right after the
#: prompt, and with input closed after the result. Two use claude-agent-sdk with `WireTransport`.
HOSTS = ("one_shot", "closed_early", "session", "wire_query", "wire_client")


#: How a host pauses, and the event loop that it runs on.
CASES = (("await", "asyncio"), ("await", "trio"), ("block", "asyncio"), ("block", "trio"), ("gil", "asyncio"))


@pytest.mark.parametrize("round", range(ROUNDS))
@pytest.mark.parametrize(("pause", "backend"), CASES)
def test_everything_arrives(pause: str, backend: str, round: int, api: FakeAPI, tmp_path: Path) -> None:
    # All hosts run at the same time, each in a separate process.
    counts = at_once([(host, pause, backend) for host in HOSTS], api, tmp_path, SECONDS)
    for host, count in zip(HOSTS, counts, strict=True):
        assert count.pipe == 64 * 1024, host
        assert count.paused >= SECONDS, host
        assert count.error is None, (host, count)
        assert (count.events, count.whole) == (EVENTS, True), (host, count)
        assert (count.assistant, count.result, count.invalid) == (1, 1, 0), (host, count)
