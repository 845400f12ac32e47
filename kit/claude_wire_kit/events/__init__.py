"""Messages in, events for a front end out: text, progress, operations, subagents, questions for permission. Sans-IO."""

from __future__ import annotations

from claude_wire_kit.events.bridge import MAX_CONVERSATIONS, Bridge
from claude_wire_kit.events.events import (
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
