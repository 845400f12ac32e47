"""Turn messages into events for a front end: text, tool calls, questions, progress, notices, cost.

:class:`Bridge` makes the events. A front end shows them without knowing the protocol. Sans-IO, except
:class:`Questions`.
"""

from __future__ import annotations

from claude_wire_kit.events import events
from claude_wire_kit.events.bridge import MAX_CONVERSATIONS, Bridge
from claude_wire_kit.events.events import *  # noqa: F403 - names all events once
from claude_wire_kit.events.operations import MAX_OPERATIONS
from claude_wire_kit.events.permissions import MAX_QUESTION_BYTES, MAX_QUESTIONS
from claude_wire_kit.events.progress import PROGRESS_RULES, ProgressRule, Step, find_step
from claude_wire_kit.events.questions import Questions
from claude_wire_kit.events.subagents import MAX_SUBAGENTS

__all__ = [
    "MAX_CONVERSATIONS",
    "MAX_OPERATIONS",
    "MAX_QUESTIONS",
    "MAX_QUESTION_BYTES",
    "MAX_SUBAGENTS",
    "PROGRESS_RULES",
    "Bridge",
    "ProgressRule",
    "Questions",
    "Step",
    "find_step",
]
# A new event becomes public by its line in the __all__ of the module events.
__all__ += events.__all__
