"""``python -m claude_wire_kit.commands.guide`` is the agent as a program, with the flags of the CLI."""

from claude_wire_kit.commands.guide.agent import agent
from claude_wire_kit.commands.guide.waking import take_input

take_input()
agent.main()
