"""The dialect whose permission questions are ``system/permission_request``, answered by ``{"allow": true}``."""

from __future__ import annotations

from claude_wire.dialects.dialect import Dialect

__all__ = ["CLASSIC"]

#: An early description of the Claude CLI: no ids, so one question at a time; SIGINT interrupts.
CLASSIC: Dialect = Dialect("classic", busy="each", permission="always", failed_code=1, interrupted_code=130)
