"""The CLI's side of the protocol: an agent of your own, which any host of the CLI can drive."""

from __future__ import annotations

from claude_wire.agent.options import AgentOptions as AgentOptions
