"""The place of one CLI: its home, its working directory, its API, and the environment made from these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import anyio
import claude_agent_sdk

from offline import sandbox
from offline.fake_api import FakeAPI
from scripts import SCRIPTS

__all__ = ["CLI", "Place", "fresh_api", "new_place"]

#: The real CLI, which is part of the wheel of claude-agent-sdk.
CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"


@dataclass(frozen=True)
class Place:
    """A home and a working directory, both new, for one CLI."""

    #: The base URL of the API.
    url: str
    home: Path
    work: Path
    #: The fake API, if it runs in this process.
    api: FakeAPI | None = None

    def __post_init__(self) -> None:
        sandbox.require()
        self.home.mkdir(parents=True)
        self.work.mkdir()
        (self.work / "notes.txt").write_text("A note.\nAnother note.\n")

    @property
    def environment(self) -> dict[str, str]:
        """Return the complete environment of the CLI."""
        return sandbox.environment(self.home, self.url)

    async def file(self, name: str) -> None:
        """Wait until the working directory has a file of this name. The caller sets the time limit."""
        while not (self.work / name).exists():
            await anyio.sleep(0.02)

    async def transcribed(self, text: str) -> None:
        """Wait until a transcript of the CLI contains a text. The caller sets the time limit.

        The CLI writes its transcripts with a delay. A session that is killed before that cannot be resumed.
        """
        while not any(text in path.read_text() for path in self.home.glob(".claude/projects/*/*.jsonl")):
            await anyio.sleep(0.02)

    async def asked(self, script: str) -> None:
        """Wait until the API has received a request for this script. The caller sets the time limit."""
        assert self.api is not None
        while not self.api.asked(script):
            await anyio.sleep(0.02)


def new_place(folder: Path, api: FakeAPI) -> Place:
    """Make a place in a new folder. Raise RuntimeError outside the sandbox, where the CLI must not run."""
    return Place(api.url, folder / "home", folder / "work", api)


def fresh_api() -> FakeAPI:
    """Return a new fake API, whose scripted first failures are still to come."""
    return FakeAPI(SCRIPTS)
