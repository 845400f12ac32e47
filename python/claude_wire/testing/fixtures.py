"""The pytest fixture ``replay_cli``: ``pytest_plugins = ["claude_wire.testing.fixtures"]`` in a ``conftest.py``.

The only module of the package that imports pytest.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from claude_wire.testing.faults import Fault
from claude_wire.testing.recording import Recording
from claude_wire.testing.replay import Replay, Writes

__all__ = ["ReplayCLI", "replay_cli"]


class ReplayCLI:
    """What :func:`replay_cli` gives. Each call makes a stand-in of its own."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders

    def __call__(
        self,
        recording: Recording | str | os.PathLike[str],
        *,
        speed: float | None = None,
        writes: Writes = "lines",
        faults: Sequence[Fault] = (),
        wait: bool = True,
    ) -> str:
        """Return the path of an executable file that plays ``recording``; arguments as for ``Replay``."""
        replay = Replay(recording, speed=speed, writes=writes, faults=faults, wait=wait)
        return replay.script(self._folders.mktemp("replay") / "claude")


@pytest.fixture(scope="session")
def replay_cli(tmp_path_factory: pytest.TempPathFactory) -> ReplayCLI:
    """Makes stand-ins for the CLI: ``replay_cli(recording, ...)`` is the path of one, to be used as ``cli_path``.

    ::

        async def test_my_host(replay_cli):
            options = ClaudeAgentOptions(cli_path=replay_cli("recordings/hello"))
            messages = [message async for message in query(prompt="hi", options=options)]
    """
    return ReplayCLI(tmp_path_factory)
