"""Read the sessions that the CLI keeps on disk: their records, trees and conversations."""

from __future__ import annotations

from claude_wire.transcripts.conversation import message_of, messages
from claude_wire.transcripts.edit import delete_session, fork_session, rename_session, tag_session
from claude_wire.transcripts.read import LineReader, read
from claude_wire.transcripts.recognise import LineDialect
from claude_wire.transcripts.records import attachments, base, state, system
from claude_wire.transcripts.records import conversation as conversations
from claude_wire.transcripts.records.attachments import *
from claude_wire.transcripts.records.base import *
from claude_wire.transcripts.records.conversation import *
from claude_wire.transcripts.records.state import *
from claude_wire.transcripts.records.system import *
from claude_wire.transcripts.sessions import SessionInfo, find_sessions
from claude_wire.transcripts.transcript import MAX_BYTES, Permission, Subagent, SubagentMeta, Transcript, Turn
from claude_wire.transcripts.tree import Node, Tree

__all__ = [
    "MAX_BYTES",
    "LineDialect",
    "LineReader",
    "Node",
    "Permission",
    "SessionInfo",
    "Subagent",
    "SubagentMeta",
    "Transcript",
    "Tree",
    "Turn",
    "delete_session",
    "find_sessions",
    "fork_session",
    "message_of",
    "messages",
    "read",
    "rename_session",
    "tag_session",
]
__all__ += attachments.__all__
__all__ += base.__all__
__all__ += conversations.__all__
__all__ += state.__all__
__all__ += system.__all__
