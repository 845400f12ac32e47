"""Measure ``claude-wire usage`` on a folder of transcripts: the CPU seconds, and whether the sums are right.

``usage.py [FILES [ROUNDS [CCUSAGE]]]`` generates a folder with ``FILES`` files of 1 MB. ``CCUSAGE`` is the command of
the peer, the npm package ccusage, which is run with ``--offline``. The claims:

* a second run on an unchanged folder takes at most 0.03 seconds per GB, besides the start of the process;
* the start of the command takes at most 0.2 seconds;
* a second run after ten files grew reads only the bytes appended to these files;
* the sums are those of the API in every recorded session. If a peer has other sums, its time is marked.
"""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from claude_wire_kit.usage import UsageIndex
from claude_wire_kit.usage.index import By
from sessions import measured_scenarios, truth, unpack

#: How many different transcripts are generated. The other files are copies with other ids.
TEMPLATES = 8
SIZE = 1_000_000


def write(folder: Path, files: int, size: int = SIZE) -> None:
    """Write a folder of ``files`` files. Nine in ten are sessions, and one in ten is a subagent of a session."""
    templates = [b"".join(corpus.lines(size, seed)) for seed in range(TEMPLATES)]
    for number in range(files):
        session = f"{number - number % 10 // 9:08x}-0000-4000-8000-000000000000"
        data = templates[number % TEMPLATES]
        for prefix in (b"msg_", b"req_"):
            data = data.replace(prefix, prefix + b"%06x" % number)
        data = re.sub(rb'"sessionId":"[^"]*"', f'"sessionId":"{session}"'.encode(), data)
        project = folder / f"-home-user-src-{number // 10 % 50}"
        path = project / f"{session}.jsonl"
        if number % 10 == 9:
            path = project / session / "subagents" / f"agent-{number:x}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def in_process(job: Callable[[], object]) -> float:
    begin = time.process_time()
    job()
    return time.process_time() - begin


def of_command(*command: str, **environment: str) -> tuple[float, bytes]:
    """Run a command. Return its CPU seconds and its output."""

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    begin = used()
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **environment})
    return used() - begin, done.stdout


def totals_of(counts: dict[str, dict[str, int]]) -> tuple[int, ...]:
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return tuple(sum(each[name] for each in counts.values()) for name in names)


def wrong(folder: Path, tool: Callable[[Path], tuple[int, ...]]) -> list[str]:
    """Return the recorded scenarios in which a tool's sums differ from the API's."""
    found: list[str] = []
    for scenario in measured_scenarios():
        place = folder / scenario
        unpack(scenario, place)
        (place / "projects").mkdir(parents=True, exist_ok=True)
        if tool(place) != totals_of(truth(scenario)["sums"]["expected_from_transcripts"]):
            found.append(scenario)
    return found


def ours(place: Path) -> tuple[int, ...]:
    with UsageIndex(place / "projects", ":memory:") as index:
        models = index.sums().get("", {})
        return totals_of({model: vars(totals) for model, totals in models.items()})


def ccusage(command: str, place: Path) -> tuple[float, tuple[int, ...]]:
    environment = {"CLAUDE_CONFIG_DIR": str(place), "HOME": str(place)}
    seconds, output = of_command(*command.split(), "claude", "daily", "--json", "--offline", **environment)
    sums: dict[str, Any] = json.loads(output).get("totals") or {}
    names = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
    return seconds, tuple(sums.get(name, 0) for name in names)


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    peer = sys.argv[3] if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary, "home")
        projects, place = home / "projects", Path(temporary, "index.sqlite3")
        write(projects, files)
        grown = sorted(projects.rglob("*.jsonl"))[:: max(files // 10, 1)]
        line = b'{"type":"mode","mode":"normal","sessionId":"s"}\n'
        taken: dict[str, list[float]] = {}
        read: list[int] = []

        def look(by: By = "day") -> None:
            with UsageIndex(projects, place) as index:
                index.sums(by)
                read.append(index.bytes_read)

        def command() -> float:
            here = [sys.executable, "-m", "claude_wire_kit", "usage", "--json"]
            return of_command(*here, str(projects), XDG_CACHE_HOME=temporary)[0]

        command()
        for _ in range(rounds):
            place.unlink(missing_ok=True)
            for name, job in (
                ("first look", lambda: in_process(look)),
                ("second look, by day", lambda: in_process(look)),
                ("second look, by project", lambda: in_process(lambda: look("project"))),
                ("second look, the command", command),
            ):
                taken.setdefault(name, []).append(job())
            for path in grown:
                with open(path, "ab") as file:
                    file.write(line)
            taken.setdefault("second look, ten files grew", []).append(in_process(look))
            command()  # runs with the index that the command writes
            if peer:
                taken.setdefault("ccusage", []).append(ccusage(peer, home)[0])
        size = sum(path.stat().st_size for path in projects.rglob("*.jsonl"))
        print(f"{files:,} files, {size / 1e9:.2f} GB, {rounds} rounds; CPU seconds, median (lowest), and a GB")
        for name, seconds in taken.items():
            median = statistics.median(seconds)
            print(f"{name:<30} {median:8.3f} ({min(seconds):.3f}) {median / size * 1e9:8.3f}")
        print(f"of ten files that grew by {len(line) * len(grown):,} bytes, {read[-1]:,} bytes were read")
        print(f"wrong sums, of {len(measured_scenarios())} recorded scenarios:")
        print(f"  ours: {wrong(Path(temporary, 'ours'), ours) or 'none'}")
        if peer:
            print(f"  ccusage: {wrong(Path(temporary, 'peer'), lambda folder: ccusage(peer, folder)[1]) or 'none'}")


if __name__ == "__main__":
    main()
