"""The program that runs a CLI without a network: ``python -m drift.inside CLI FOLDER``.

It writes the recordings of all sessions into the folder, and ``cli.json``, which has the CLI's version, its flags, and
why a scenario failed. The program must run in a network namespace that has only a loopback interface: otherwise
`sandbox.require` raises an error before the CLI starts.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from claude_wire.flags.flags import Flags, flag_of
from claude_wire.support.text import one_line
from drift import disk
from drift.flags import find_flags
from drift.scenarios import SCENARIOS, SCRIPTS, Stage
from offline import sandbox
from offline.fake_api import FakeAPI

__all__ = ["HELP_BYTES", "said_by"]

#: Timeouts in seconds for a scenario, and for a CLI that prints its help. Then the maximum number of bytes to read from
#: the help.
SCENARIO_SECONDS, HELP_SECONDS, HELP_BYTES = 300.0, 60.0, 1 << 18
#: How many scenarios run in parallel. Most of their time is spent waiting.
AT_ONCE = 3


def main(cli: Path, folder: Path) -> None:
    """Run all scenarios and write the results."""
    sandbox.bring_loopback_up()
    sandbox.require()
    home = Path.home()

    def said(arguments: list[str]) -> str:
        sandbox.require()
        return said_by([str(cli), *arguments], home)

    versions = (line for line in said(["--version"]).splitlines() if re.search(r"\d\.\d", line))
    version = one_line(next(versions, ""))
    flags = find_flags(said)
    known = {field.name: flag.name for field in dataclasses.fields(Flags) if (flag := flag_of(field))}
    refused = frozenset(field for field, name in known.items() if name in flags.gone)
    failed = anyio.run(_drive, cli, folder, home, refused)
    found: dict[str, Any] = {"version": version, "failed": failed, "flags": dataclasses.asdict(flags)}
    (folder / "cli.json").write_text(json.dumps(found))


def said_by(command: list[str], home: Path) -> str:
    """Run a command. Return what it writes to both streams before it exits, or within :data:`HELP_SECONDS`."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=sandbox.environment(home, "http://127.0.0.1:9"),
        cwd=home,
        start_new_session=True,
    ) as process:
        end = partial(os.killpg, process.pid, signal.SIGKILL)  # also kills its children, which may keep the pipe open
        timer = threading.Timer(HELP_SECONDS, end)
        timer.start()
        try:
            assert process.stdout is not None
            return process.stdout.read(HELP_BYTES).decode(errors="replace")
        finally:
            timer.cancel()
            timer.join()  # once this child is reaped, the timer might kill another process group with the same id
            with suppress(ProcessLookupError):
                end()


async def _drive(cli: Path, folder: Path, home: Path, refused: frozenset[str]) -> dict[str, str]:
    """Run all scenarios. Return the name of each scenario that failed, and why."""
    failed: dict[str, str] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def scene(name: str) -> None:
        async with limiter:
            if sys.stderr.isatty():
                print(f"  {name}", file=sys.stderr)
            try:
                await _scene(name, cli, folder, home / name, refused)
            except Exception as error:
                failed[name] = one_line(f"{type(error).__name__}: {error}", 400)

    async with anyio.create_task_group() as group:
        for name in SCENARIOS:
            group.start_soon(scene, name)
    return failed


async def _scene(name: str, cli: Path, folder: Path, place: Path, refused: frozenset[str]) -> None:
    home, work = place / "home", place / "work"
    home.mkdir(parents=True)
    work.mkdir()
    (work / "notes.txt").write_text("A note.\nAnother note.\n")
    with FakeAPI(SCRIPTS) as api:
        stage = Stage(cli, api, home, work, folder, name, refused)
        try:
            with anyio.fail_after(SCENARIO_SECONDS):
                await SCENARIOS[name](stage)
        finally:
            for recorder in stage.recorders:
                recorder.close()
            disk.keep(home, folder, name)


if __name__ == "__main__":
    try:
        main(*map(Path, sys.argv[1:]))
    except (OSError, RuntimeError) as error:
        sys.exit(one_line(str(error), 400))
