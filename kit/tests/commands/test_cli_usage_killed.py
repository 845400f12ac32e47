"""If ``claude-wire usage`` is killed while it writes its index, the next run has the right sums."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from cli_lines import line
from long_tests import LONG

#: The number of kills, and the number of answers that each file gains before each kill. The answers fill more pages of
#: the index than SQLite keeps in memory, so SQLite also writes pages before the transaction ends.
KILLS, ANSWERS = (100, 400) if LONG else (10, 400)
FILES = 12


def grow(folder: Path, times: int) -> None:
    """Add answers to each file. Every tenth answer is in all files, as after a fork."""
    for file in range(FILES):
        lines: list[bytes] = []
        for number in range(ANSWERS):
            id = f"{times}-{number if number % 10 == 0 else (file, number)}"
            message = {"id": id, "model": "m", "role": "assistant", "content": [], "usage": {"output_tokens": 1}}
            record = {"type": "assistant", "uuid": id, "sessionId": f"s{file}", "requestId": id, "message": message}
            lines.append(line({**record, "timestamp": "2026-01-02T03:04:05Z"}))
        with open(folder / f"{file}.jsonl", "ab") as opened:
            opened.write(b"".join(lines))


def test_the_next_run_has_the_right_sums_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    folder, cache = tmp_path / "projects", tmp_path / "cache"
    folder.mkdir()
    command = [sys.executable, "-m", "claude_wire_kit", "usage", "--by", "model", "--csv", str(folder)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}

    def whole() -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
        assert done.stderr == ""  # no note about a damaged index
        return done.stdout

    grow(folder, 0)
    began = time.monotonic()
    whole()
    usual = time.monotonic() - began
    chance = random.Random(17)
    killed = 0
    for times in range(1, KILLS + 1):
        grow(folder, times)
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                # Kill the first process immediately, and the others at any moment.
                process.wait(usual * chance.uniform(0.3, 1.1) if times > 1 else 0)
            except subprocess.TimeoutExpired:
                process.kill()
            assert process.stderr is not None
            assert process.stderr.read() == b""
        killed += process.returncode == -signal.SIGKILL
        answers = (times + 1) * (FILES * ANSWERS * 9 // 10 + ANSWERS // 10)
        assert whole().splitlines()[1].startswith(f"m,{answers},0,{answers},")
    assert killed > 0
    assert list(cache.rglob("*-journal")) == []
