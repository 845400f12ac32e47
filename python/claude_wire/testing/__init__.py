"""Recordings of the CLI, played by a child process that stands in for it, with faults that can be ordered.

::

    from claude_wire.testing import Kill, Recording, Replay

    recording = Recording.load("recordings/hello")
    path = Replay(recording, faults=[Kill(at_byte=5000)]).script(tmp_path / "claude")   # for cli_path=
    async with open_process(Replay(recording, speed=1.0).argv()) as process: ...

For pytest there is a fixture in :mod:`claude_wire.testing.fixtures`; for a shell, the command ``claude-wire replay``.

Which module holds what: ``recording`` reads recordings, ``faults`` names what can be ordered, ``replay`` makes commands
and scripts of both, ``player`` is the program that they start.
"""

from __future__ import annotations

from claude_wire.testing import faults
from claude_wire.testing.faults import *
from claude_wire.testing.recording import Recording, Step
from claude_wire.testing.replay import Replay, ReplayCLI, Writes

__all__ = ["Recording", "Replay", "ReplayCLI", "Step", "Writes"]
__all__ += faults.__all__
