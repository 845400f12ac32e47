"""DOC module conversation"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import Self

from claude_wire.messages._base import Number, Wire, null
from claude_wire.messages.api import ApiMessage, MessageParam
from claude_wire.messages.content import ContentBlock, ToolResultBlock, ToolUseBlock
from claude_wire.messages.events import ContentBlockDeltaEvent, Event, TextDelta
from claude_wire.messages.text import TextBlock
from claude_wire.messages.unknown import UnknownObject
from claude_wire.messages.usage import ContextUsage, UsageReport

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "AssistantMessage",
    "AutoContinuationOrigin",
    "ChannelOrigin",
    "CoordinatorOrigin",
    "HumanOrigin",
    "MessageOrigin",
    "ObserverActivityOrigin",
    "ObserverOrigin",
    "PeerOrigin",
    "StreamEvent",
    "TaskNotificationOrigin",
    "UnclassifiedOrigin",
    "UserMessage",
]


class HumanOrigin(Wire, tag_field="kind", tag="human", frozen=True):
    """DOC HumanOrigin"""


class ChannelOrigin(Wire, tag_field="kind", tag="channel", kw_only=True, frozen=True):
    """DOC ChannelOrigin"""

    server: str


class PeerOrigin(Wire, tag_field="kind", tag="peer", kw_only=True, rename={"from_": "from"}, frozen=True):
    """DOC PeerOrigin"""

    from_: str
    # one of bypass, prompting
    fromMode: str | None = None
    name: str | None = None
    fromSession: str | None = None
    senderTaskId: str | None = None
    body: str | None = None
    verifiedPeerPid: int | None = None


class TaskNotificationOrigin(Wire, tag_field="kind", tag="task-notification", kw_only=True, frozen=True):
    """DOC TaskNotificationOrigin"""

    # one of scheduled-trigger, peer-send-message, projects-relay, session-inbox, external-event
    subkind: str | None = None
    fireReason: str | None = None
    runId: str | None = None


class CoordinatorOrigin(Wire, tag_field="kind", tag="coordinator", frozen=True):
    """DOC CoordinatorOrigin"""


class UnclassifiedOrigin(Wire, tag_field="kind", tag="unclassified", frozen=True):
    """DOC UnclassifiedOrigin"""


class ObserverOrigin(Wire, tag_field="kind", tag="observer", kw_only=True, rename={"from_": "from"}, frozen=True):
    """DOC ObserverOrigin"""

    from_: str
    senderTaskId: str


class AutoContinuationOrigin(Wire, tag_field="kind", tag="auto-continuation", frozen=True):
    """DOC AutoContinuationOrigin"""


class ObserverActivityOrigin(Wire, tag_field="kind", tag="observer-activity", frozen=True):
    """DOC ObserverActivityOrigin"""


KnownMessageOrigin: TypeAlias = (
    HumanOrigin
    | ChannelOrigin
    | PeerOrigin
    | TaskNotificationOrigin
    | CoordinatorOrigin
    | UnclassifiedOrigin
    | ObserverOrigin
    | AutoContinuationOrigin
    | ObserverActivityOrigin
)
if TYPE_CHECKING:
    MessageOrigin: TypeAlias = KnownMessageOrigin | UnknownObject
else:
    MessageOrigin = KnownMessageOrigin


class UserMessage(Wire, tag_field="type", tag="user", kw_only=True, frozen=True):
    """DOC UserMessage"""

    message: MessageParam
    parent_tool_use_id: str | None = null()
    isSynthetic: bool | None = None
    tool_use_result: Any = None
    # one of now, next, later
    priority: str | None = None
    origin: MessageOrigin | None = None
    shouldQuery: bool | None = None
    timestamp: str | None = None
    client_composed: bool | None = None
    pasted_content: list[str | list[ContentBlock]] | None = None
    inline_pastes: list[str] | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    isReplay: bool | None = None
    file_attachments: list[Any] | None = None
    tool_result_meta: Any = None
    uuid: str | None = None
    session_id: str | None = None

    @classmethod
    def of(cls, content: str | list[ContentBlock], *, session_id: str = "", uuid: str | None = None) -> Self:
        """Make a prompt out of its text or its blocks. ``session_id`` is always sent, empty if it is not known yet."""
        return cls(message=MessageParam("user", content), session_id=session_id, uuid=uuid)

    @property
    def content(self) -> str | list[ContentBlock]:
        """The prompt's text, or its blocks (tool results among them)."""
        return self.message.content

    @property
    def text(self) -> str:
        """The text, or that of all text blocks, joined."""
        content = self.message.content
        if isinstance(content, str):
            return content
        return "".join(block.text for block in content if isinstance(block, TextBlock))

    @property
    def tool_results(self) -> list[ToolResultBlock]:
        """The results of tools that this message brings to the model, in order."""
        content = self.message.content
        return [] if isinstance(content, str) else [block for block in content if isinstance(block, ToolResultBlock)]


class AssistantMessage(Wire, tag_field="type", tag="assistant", kw_only=True, rename={"model_": "model"}, frozen=True):
    """DOC AssistantMessage"""

    message: ApiMessage
    # one of authentication_failed, oauth_org_not_allowed, account_on_hold, verification_required, billing_error,
    # rate_limit, overloaded, invalid_request, model_not_found, server_error, unknown, max_output_tokens,
    # cloud_credential_error
    error: str | None = None
    parent_tool_use_id: str | None = null()
    request_id: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    resume_reason: str | None = None
    resumed_from_incomplete_thinking: bool | None = None
    supersedes: list[str] | None = None
    aborted: bool | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    timestamp: str | None = None
    context_usage: ContextUsage | None = None
    usage_report: UsageReport | None = None
    model_: str | None = None
    uuid: str | None = None
    session_id: str | None = None

    @classmethod
    def of(cls, content: str | list[ContentBlock], *, model: str | None = None, session_id: str | None = None) -> Self:
        """Make an answer out of its text or its blocks."""
        blocks: list[ContentBlock] = [TextBlock(content)] if isinstance(content, str) else content
        return cls(message=ApiMessage(role="assistant", content=blocks, model=model), session_id=session_id)

    @property
    def content(self) -> list[ContentBlock]:
        """The content blocks; while streaming, one message carries one finished block."""
        return self.message.content

    @property
    def text(self) -> str:
        """The text of all text blocks, joined; empty if there are none."""
        return "".join(block.text for block in self.message.content if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> list[ToolUseBlock]:
        """The calls of tools that the host or the CLI runs, in order."""
        return [block for block in self.message.content if isinstance(block, ToolUseBlock)]

    @property
    def model(self) -> str | None:
        """The model that answered: ``message.model``, or where a dialect puts it, beside ``message``."""
        return self.message.model or self.model_

    @property
    def error_reason(self) -> str | None:
        """Why the API refused, if it did: ``error``, or where a dialect puts it, ``message.error``."""
        return self.error or self.message.error


class StreamEvent(Wire, tag_field="type", tag="stream_event", kw_only=True, frozen=True):
    """DOC StreamEvent"""

    event: Event
    parent_tool_use_id: str | None = null()
    ttft_ms: Number | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    resume_reason: str | None = None
    api_message_id: str | None = None
    thinking_display: str | None = None
    uuid: str | None = None
    session_id: str | None = None

    @property
    def text_delta(self) -> str | None:
        """The piece of text that this event adds, or None if it adds none."""
        event = self.event
        if isinstance(event, ContentBlockDeltaEvent) and isinstance(event.delta, TextDelta):
            return event.delta.text
        return None
