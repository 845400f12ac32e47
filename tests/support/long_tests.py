"""Whether the tests shall take their time: ``CLAUDE_WIRE_LONG=1`` in the environment.

What is only tested then has a shorter form that is always tested.
"""

from __future__ import annotations

import os

__all__ = ["LONG"]

LONG = bool(os.environ.get("CLAUDE_WIRE_LONG"))
