"""Replay recordings of the CLI in a child process that replaces the CLI, with optional injected faults.

::

    from claude_wire.testing import Kill, Recording, Replay

    recording = Recording.load("recordings/hello")
    path = Replay(recording, faults=[Kill(at_byte=5000)]).script(tmp_path / "claude")   # for cli_path=
    async with open_process(Replay(recording, speed=1.0).argv()) as process: ...

For pytest there is a fixture in :mod:`claude_wire.testing.fixtures`; for a shell, the command ``claude-wire replay``.

To test an agent without a process, use :func:`open_agent`::

    async with open_agent(answer) as session:
        assert (await session.ask("hi")).result == "You said: hi"

The modules: ``recording`` reads recordings, ``faults`` defines the faults, ``replay`` makes commands and scripts from
both, ``player`` is the program that these run, and ``in_memory`` connects an agent and a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_wire.testing import faults
from claude_wire.testing.faults import *
from claude_wire.testing.recording import Recording, Step
from claude_wire.testing.replay import Replay, ReplayCLI, Writes

if TYPE_CHECKING:
    from claude_wire.testing.in_memory import open_agent as open_agent

__all__ = ["Recording", "Replay", "ReplayCLI", "Step", "Writes", "open_agent"]
__all__ += faults.__all__


def __getattr__(name: str) -> Any:
    # Imported on first use, because playing recordings needs neither agents nor sessions.
    if name != "open_agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from claude_wire.testing.in_memory import open_agent

    return open_agent
