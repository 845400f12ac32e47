"""The recorded session that ships with the package, for the demo.

``data/session.ndjson.gz`` is what a real CLI (2.1.330, driven by claude-agent-sdk) wrote on its standard output during
the first three turns of a session, byte for byte, against a scripted model: tools allowed, denied and served by the
host over MCP, hooks, thinking, and a turn that is interrupted. ``data/session.reads.json`` has the number of bytes that
each read of the pipe returned.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

__all__ = ["Recording", "load"]


class Recording(NamedTuple):
    """What a CLI wrote, and in which pieces it was read."""

    #: All of it; it ends with a line feed.
    data: bytes
    #: Bytes of each read, in order; they add up to ``len(data)``.
    reads: list[int]

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes as they were read."""
        at = 0
        for size in self.reads:
            yield self.data[at : at + size]
            at += size


def load() -> Recording:
    """Read the recording from the package."""
    folder = files("claude_wire.cli") / "data"
    data = gzip.decompress((folder / "session.ndjson.gz").read_bytes())
    return Recording(data, json.loads((folder / "session.reads.json").read_bytes()))
