"""Messages in, events for a front end out: text, progress, operations, subagents, questions for permission. Sans-IO."""

from __future__ import annotations

from claude_wire.bridge.bridge import MOST_CONVERSATIONS, Bridge
from claude_wire.bridge.events import (
    ClaudeResponse,
    Notice,
    NoticeKind,
    Operation,
    OperationKind,
    OperationState,
    PermissionCancelled,
    PermissionRequest,
    ProgressUpdate,
    SubagentProgress,
    SubagentStatus,
    TurnComplete,
    UiEvent,
    UserPrompt,
    event_schema,
)
from claude_wire.bridge.operations import MOST_OPERATIONS
from claude_wire.bridge.permissions import MOST_QUESTION_BYTES, MOST_QUESTIONS
from claude_wire.bridge.progress import PROGRESS_RULES, ProgressRule, Step, find_step
from claude_wire.bridge.questions import Questions
from claude_wire.bridge.subagents import MOST_SUBAGENTS

__all__ = [
    "MOST_CONVERSATIONS",
    "MOST_OPERATIONS",
    "MOST_QUESTIONS",
    "MOST_QUESTION_BYTES",
    "MOST_SUBAGENTS",
    "PROGRESS_RULES",
    "Bridge",
    "ClaudeResponse",
    "Notice",
    "NoticeKind",
    "Operation",
    "OperationKind",
    "OperationState",
    "PermissionCancelled",
    "PermissionRequest",
    "ProgressRule",
    "ProgressUpdate",
    "Questions",
    "Step",
    "SubagentProgress",
    "SubagentStatus",
    "TurnComplete",
    "UiEvent",
    "UserPrompt",
    "event_schema",
    "find_step",
]
