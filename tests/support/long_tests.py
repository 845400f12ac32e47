"""Whether to run the long forms of tests: ``CLAUDE_WIRE_LONG=1`` in the environment.

Every long test also has a short form that always runs.
"""

from __future__ import annotations

import os

__all__ = ["LONG"]

LONG = bool(os.environ.get("CLAUDE_WIRE_LONG"))
