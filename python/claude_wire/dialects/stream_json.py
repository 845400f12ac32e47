"""The Claude Code CLI's dialect. The library uses the same messages, so this dialect needs no translation."""

from __future__ import annotations

from dataclasses import replace

from claude_wire.dialects.dialect import Dialect

#: The dialect of the Claude Code CLI, and of hosts such as claude-agent-sdk.
STREAM_JSON: Dialect = Dialect("stream-json", initializes=True, busy="merge", permission="flag", failed_code=1)
#: STREAM_JSON, with input checked as in CLI 2.1.7: the agent exits when it reads a line of an unknown type.
STREAM_JSON_2_1_7: Dialect = replace(STREAM_JSON, name="stream-json-2.1.7", strict=True)
