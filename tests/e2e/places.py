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

#: The real CLI, which the wheel of claude-agent-sdk brings with it.
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
        """The environment of the CLI, all of it."""
        return sandbox.environment(self.home, self.url)

    async def file(self, name: str) -> None:
        """Wait until the working directory has a file of this name. The caller sets the time limit."""
        while not (self.work / name).exists():
            await anyio.sleep(0.02)

    async def asked(self, script: str) -> None:
        """Wait until the API has been asked for a reply of that script, as long as `file` does."""
        assert self.api is not None
        while not self.api.asked(script):
            await anyio.sleep(0.02)


def new_place(folder: Path, api: FakeAPI) -> Place:
    """Make a place in a folder that is not there yet. Raises RuntimeError where no CLI may run."""
    return Place(api.url, folder / "home", folder / "work", api)


def fresh_api() -> FakeAPI:
    """An API that has answered nothing yet, so that its first failures are still to come."""
    return FakeAPI(SCRIPTS)
