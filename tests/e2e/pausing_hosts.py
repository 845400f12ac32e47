"""Start several hosts of ``pausing.py`` at a time, and collect their counts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from offline.fake_api import FakeAPI
from pausing import PATIENCE, Count

__all__ = ["at_once"]


def at_once(hosts: Sequence[tuple[str, str, str]], api: FakeAPI, folder: Path, seconds: float) -> list[Count]:
    """Run hosts concurrently, each given as (host, pause, backend). Return their counts in that order.

    Raises RuntimeError if one of them fails, and subprocess.TimeoutExpired if one does not end.
    """
    program = str(Path(__file__).with_name("pausing.py"))
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number, (supervisor, pause, backend) in enumerate(hosts):
            arguments = [
                supervisor,
                pause,
                backend,
                api.url,
                str(folder / f"{supervisor}-{pause}-{backend}-{number}"),
                str(seconds),
            ]
            running.append(
                subprocess.Popen([sys.executable, program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            )
        counts = []
        for process in running:
            stdout, stderr = process.communicate(timeout=seconds + 2 * PATIENCE)
            if process.returncode:
                raise RuntimeError(f"{process.args!r} failed:\n{stderr.decode(errors='replace')}")
            counts.append(Count(**json.loads(stdout)))
        return counts
    finally:
        for process in running:
            process.kill()
            process.communicate()
