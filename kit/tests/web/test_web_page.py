"""The Python program of docs/web.md runs against a real service."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from claude_wire.testing import Replay
from folders import ROOT
from pages import blocks
from recordings import load
from served import TOKEN, Profile, agent_profile, served

(PROGRAM,) = (block.text for block in blocks(ROOT / "docs" / "web.md") if block.language == "python")


async def printed(url: str) -> str:
    """Run the program of the page. Return its output."""
    command = [sys.executable, "-W", "error", "-c", PROGRAM, url, TOKEN]
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    child = await asyncio.create_subprocess_exec(*command, **pipes, env={**os.environ, "NO_PROXY": "*"})
    out, faults = await asyncio.wait_for(child.communicate(), 60)
    assert (child.returncode, faults) == (0, b"")
    return out.decode()


async def test_the_program_asks_its_question(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    async with served(tmp_path, work=agent_profile(tmp_path)) as service:
        assert await printed(service.url) == "0 What is in this folder?\n$0.0000\n"


async def test_the_program_with_a_recorded_session(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    recording = tmp_path / "recording"
    recording.mkdir()
    for name, content in load("04_tools_bypass_partial").files.items():
        (recording / name).write_bytes(content)
    profile = Profile(roots=[os.fspath(tmp_path)], argv=Replay(recording, wait=False).argv())
    async with served(tmp_path, work=profile) as service:
        *texts, cost = (await printed(service.url)).splitlines()
    assert texts
    assert cost.startswith("$0.")
