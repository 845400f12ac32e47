"""A process ends with its host when the host is interrupted, exits without closing it, or is killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from async_backends import ASYNCIO, BACKENDS, Backend
from children import LADDER, Host, exists, linux_only, python, wait_until
from folders import SUPPORT
from ladders import Ladder, eventually_gone, watched

pytestmark = linux_only


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    with watched():
        yield


HOST = """
import anyio, asyncio
sys.path.append(sys.argv.pop())
import patience
patience.begin()
from claude_wire import Decoder, open_process
backend, child, grace = sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])

async def main():
    async with open_process(child, Decoder(dict), grace=grace) as process:
        say(**await process.__anext__())
        {body}

anyio.run(main, backend="trio" if backend == "trio" else "asyncio", backend_options={options}.get(backend, {}))
"""


def host(backend: Backend, ladder: Ladder, body: str) -> Host:
    code = HOST.replace("{body}", body).replace("{options}", "{'uvloop': {'use_uvloop': True}}")
    argv = json.dumps(python(LADDER, ladder.path, ladder.ends_at))
    return Host(code, backend.id, argv, ladder.grace, SUPPORT)


@pytest.mark.parametrize("backend", BACKENDS, ids=[backend.id for backend in BACKENDS])
@pytest.mark.parametrize(
    "body",
    ["await anyio.sleep(3600)", "await process.__anext__()", "await process.wait()", "while True: pass"],
    ids=["sleeping", "iterating", "waiting", "busy"],
)
def test_a_host_that_is_interrupted_ends_it(backend: Backend, body: str, tmp_path: Path) -> None:
    if "while" in body and backend.name == "asyncio":
        pytest.skip("asyncio only cancels the main task at the first interrupt, which this one does not notice")
    ladder = Ladder(tmp_path / "met")
    with host(backend, ladder, body) as interrupted:
        ladder.pid = interrupted.says()["pid"]
        interrupted.interrupt()
        assert interrupted.ends() != 0
        ladder.check()
        # Before Python 3.11 the loop reports a CancelledError instead of the KeyboardInterrupt.
        assert b"KeyboardInterrupt" in interrupted.errors or sys.version_info < (3, 11)


@pytest.mark.parametrize("backend", BACKENDS, ids=[backend.id for backend in BACKENDS])
def test_a_host_that_is_interrupted_twice_leaves_no_orphan(backend: Backend, tmp_path: Path) -> None:
    # On trio the second interrupt ends the shutdown early; asyncio finishes the shutdown before it ends its loop.
    ladder = Ladder(tmp_path / "met", grace=30.0 if backend.name == "trio" else 1.0)
    with host(backend, ladder, "await anyio.sleep(3600)") as interrupted:
        ladder.pid = interrupted.says()["pid"]
        interrupted.interrupt()
        wait_until(lambda: ladder.met() != [])  # the shutdown has begun
        interrupted.interrupt()
        assert interrupted.ends() != 0
        eventually_gone(ladder)
        # Both the exit of the interpreter and the shutdown thread may have sent SIGTERM.
        met = ladder.met()
        assert met[:2] == ["eof", "term"]
        assert set(met[1:]) == {"term"}


@pytest.mark.parametrize("ends_at", ["eof", "term", "kill"])
@pytest.mark.parametrize("how", ["sys.exit(5)", "raise Boom", "return"])
def test_a_host_that_ends_with_a_process_that_nobody_closed_leaves_no_orphan(
    ends_at: str, how: str, tmp_path: Path
) -> None:
    ladder = Ladder(tmp_path / "met", ends_at)
    code = """
import asyncio
from claude_wire import Decoder, open_process
keep = []
class Boom(Exception): pass

async def main():
    process = open_process(json.loads(sys.argv[1]), Decoder(dict))
    keep.append(process)
    await process.__aenter__()
    say(**await process.__anext__())
    {how}

asyncio.run(main())
"""
    with Host(code.replace("{how}", how), json.dumps(python(LADDER, ladder.path, ends_at))) as ending:
        ladder.pid = ending.says()["pid"]
        assert ending.ends() == {"sys.exit(5)": 5, "raise Boom": 1, "return": 0}[how]
        assert not exists(ladder.pid)
        assert b"Exception ignored" not in ending.errors


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_host_that_is_killed_ends_one_that_ends_with_its_input(number: int, tmp_path: Path) -> None:
    ladder = Ladder(tmp_path / "met", "eof")
    with host(ASYNCIO, ladder, "await anyio.sleep(3600)") as killed:
        ladder.pid = killed.says()["pid"]
        os.kill(killed.popen.pid, number)
        assert killed.ends() == -number
        # The child has a new parent that may never collect its exit code, so check only that it saw the end of its
        # input.
        wait_until(lambda: ladder.met() == ["eof"])
