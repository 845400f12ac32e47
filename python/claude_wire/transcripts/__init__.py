"""The sessions that the CLI keeps on disk: their records, trees and conversations."""

from __future__ import annotations

from claude_wire.transcripts.conversation import message_of, messages
from claude_wire.transcripts.read import LineReader, read
from claude_wire.transcripts.recognise import LineDialect
from claude_wire.transcripts.records.attachments import *
from claude_wire.transcripts.records.base import Entry, Record
from claude_wire.transcripts.records.conversation import *
from claude_wire.transcripts.records.state import *
from claude_wire.transcripts.records.system import *
from claude_wire.transcripts.sessions import SessionInfo, find_sessions
from claude_wire.transcripts.transcript import MOST_BYTES, Permission, Subagent, SubagentMeta, Transcript, Turn
from claude_wire.transcripts.tree import Node, Tree

__all__ = [
    "MOST_BYTES",
    "AgentListingDelta",
    "AgentNameRecord",
    "AiTitleRecord",
    "ApiErrorRecord",
    "ApiRequestBlobRecord",
    "ApiRequestRecord",
    "ApiRequestShapeRecord",
    "AssistantRecord",
    "AtisLatchRecord",
    "Attachment",
    "AttachmentRecord",
    "AutoMode",
    "CommandPermissions",
    "CompactBoundaryRecord",
    "CompactFacts",
    "CostStateRecord",
    "CurrentDate",
    "CurrentModel",
    "CustomTitleRecord",
    "DeferredToolsDelta",
    "Entry",
    "Environment",
    "FileContent",
    "FileHistoryDeltaRecord",
    "FileHistorySnapshotRecord",
    "HookAdditionalContext",
    "HookSystemMessage",
    "InformationalRecord",
    "Instructions",
    "KeptMessages",
    "KeptSegment",
    "LastPromptRecord",
    "LineDialect",
    "LineReader",
    "LocalCommandRecord",
    "MaxTurnsReached",
    "ModeRecord",
    "ModelFallbackRecord",
    "Node",
    "Permission",
    "PermissionOutcome",
    "PlanMode",
    "PlanModeExit",
    "PrLinkRecord",
    "ProgressRecord",
    "PromptSnapshot",
    "QueueOperationRecord",
    "Record",
    "RemoteSessionChange",
    "SessionContext",
    "SessionInfo",
    "SilentTurnReminder",
    "SkillListing",
    "StopHookSummaryRecord",
    "StructuredOutput",
    "Subagent",
    "SubagentMeta",
    "SummaryRecord",
    "SystemRecord",
    "ToolsUsedRecord",
    "TotalTokensReminder",
    "Transcript",
    "Tree",
    "Turn",
    "TurnPosition",
    "UserRecord",
    "find_sessions",
    "message_of",
    "messages",
    "read",
]
