"""The agent's side of the protocol, for programs that replace the CLI and answer its hosts."""

from claude_wire.agent.agent import Agent
from claude_wire.agent.options import AgentOptions
from claude_wire.agent.protocol import AgentProtocol, Finished, Interrupted, InvalidInput, TurnStarted, TurnStopped
from claude_wire.agent.questions import Decision, Hooked, McpResult, ToolOutcome
from claude_wire.agent.session import AgentSession, McpConnection, TurnRecord
from claude_wire.agent.turn import PlainTurn, Turn

__all__ = [
    "Agent",
    "AgentOptions",
    "AgentProtocol",
    "AgentSession",
    "Decision",
    "Finished",
    "Hooked",
    "Interrupted",
    "InvalidInput",
    "McpConnection",
    "McpResult",
    "PlainTurn",
    "ToolOutcome",
    "Turn",
    "TurnRecord",
    "TurnStarted",
    "TurnStopped",
]
