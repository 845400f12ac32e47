"""Show what a host that pauses loses, with claude-agent-sdk's own transport and with `WireTransport`.

``python tests/e2e/run.py --script tests/e2e/show_loss.py`` prints a table. This is a report and not a
test, because this project cannot promise what other transports lose.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pausing import EVENTS
from pausing_hosts import at_once
from places import fresh_api

ROUNDS = int(os.environ.get("CLAUDE_WIRE_E2E_ROUNDS", "1"))
SECONDS = float(os.environ.get("CLAUDE_WIRE_E2E_PAUSE", "10"))

#: The label of each row of the table, and the host that it measures.
ROWS = {
    'query("text"), claude-agent-sdk': "sdk_query",
    'query("text"), WireTransport': "wire_query",
    "ClaudeSDKClient, claude-agent-sdk": "sdk_client",
    "ClaudeSDKClient, WireTransport": "wire_client",
    "open_process, one-shot": "one_shot",
    "open_process, session": "session",
}


def main() -> int:
    """Print the table."""
    print(f"{'':34} {'pause':>6}  {'events':>13}  assistant  result  error   ({SECONDS:g} s away, 64 KiB pipe)")
    for _ in range(ROUNDS):
        for pause in ("await", "block"):
            with fresh_api() as api, tempfile.TemporaryDirectory() as folder:
                counts = at_once([(host, pause, "asyncio") for host in ROWS.values()], api, Path(folder), SECONDS)
            for row, count in zip(ROWS, counts, strict=True):
                print(
                    f"{row:34} {pause:>6}  {count.events:5} of {EVENTS:4}"
                    f"  {count.assistant:9}  {count.result:6}  {count.error or 'none'}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
