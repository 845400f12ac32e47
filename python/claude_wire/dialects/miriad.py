"""The dialect of miriad-code: ``control`` messages without ids, and prompts that are injected into a turn."""

from __future__ import annotations

from claude_wire.dialects.dialect import Dialect

__all__ = ["MIRIAD"]

#: What miriad-code speaks over its pipes.
MIRIAD: Dialect = Dialect("miriad", busy="inject", names_session=True)
