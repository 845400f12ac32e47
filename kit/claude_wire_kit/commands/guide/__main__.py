"""Run the agent: ``python -m claude_wire_kit.commands.guide``, with flags of the CLI."""

from claude_wire_kit.commands.guide.agent import agent
from claude_wire_kit.commands.guide.waking import take_input

take_input()
agent.main()
