"""The pytest fixture ``replay_cli``: ``pytest_plugins = ["claude_wire.testing.fixtures"]`` in a ``conftest.py``.

Only this module of the package imports pytest.
"""

from __future__ import annotations

import pytest

from claude_wire.testing.replay import ReplayCLI

__all__ = ["replay_cli"]


@pytest.fixture(scope="session")
def replay_cli(tmp_path_factory: pytest.TempPathFactory) -> ReplayCLI:
    """Makes stand-ins for the CLI: ``replay_cli(recording, ...)`` returns the path of a program, for ``cli_path``.

    ::

        async def test_my_host(replay_cli):
            options = ClaudeAgentOptions(cli_path=replay_cli("recordings/hello"))
            messages = [message async for message in query(prompt="hi", options=options)]
    """
    return ReplayCLI(lambda: tmp_path_factory.mktemp("replay"))
