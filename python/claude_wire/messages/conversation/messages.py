"""The conversation itself: user and assistant messages, and the stream events between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import ByHand, MessageBase, Number, Sender, null
from claude_wire.messages.blocks.content import ContentBlock, ToolResultBlock, ToolUseBlock
from claude_wire.messages.blocks.text import TextBlock
from claude_wire.messages.conversation.api import ApiMessage, MessageParam
from claude_wire.messages.conversation.events import ContentBlockDeltaEvent, Event, TextDelta
from claude_wire.messages.conversation.origins import MessageOrigin
from claude_wire.messages.conversation.usage import ContextUsage, UsageReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self


def _blocks(content: Iterable[ContentBlock]) -> list[ContentBlock]:
    if not isinstance(content, Iterable):
        raise TypeError(f"content must be a str or blocks, not {type(content).__name__}")
    return list(content)


class UserMessage(MessageBase, tag="user", kw_only=True, frozen=True, metaclass=ByHand):
    """To the agent: a prompt. From the agent: tool results, and prompts that the CLI injects or echoes.

    To the agent, ``message`` suffices. A repeated ``uuid`` starts no turn, prompts sent during a turn wait and may be
    merged, and ``shouldQuery`` false adds the message without asking the model.

    From the agent, ``tool_use_result`` is the tool's structured output, any JSON. ``isSynthetic`` marks text by the
    CLI; ``isReplay`` marks an echo of a prompt (``--replay-user-messages``) or of a local command's output. A non-null
    ``parent_tool_use_id`` means a subagent, which ``agent_id``, ``subagent_type`` and ``task_description`` describe.
    ``uuid`` and ``session_id`` may be missing in both directions.
    """

    sent_by: ClassVar[Sender] = "both"

    repr_first: ClassVar[tuple[str, ...]] = ("content",)
    repr_unwraps: ClassVar[str] = "message"

    message: MessageParam
    parent_tool_use_id: str | None = null()
    agent_id: str | None = None
    session_id: str | None = None
    uuid: str | None = None
    timestamp: str | None = None
    tool_use_result: Any = None
    tool_result_meta: Any = None
    isReplay: bool | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    isSynthetic: bool | None = None
    # one of now, next, later
    priority: str | None = None
    origin: MessageOrigin | None = None
    shouldQuery: bool | None = None
    client_composed: bool | None = None
    pasted_content: list[str | list[ContentBlock]] | None = None
    inline_pastes: list[str] | None = None
    file_attachments: list[Any] | None = None
    interrupted_message_id: str | None = None
    refused_message_id: str | None = None
    retracted_message_uuids: list[str] | None = None
    plugin_prompt: dict[str, Any] | None = None

    @classmethod
    def of(
        cls,
        content: str | Sequence[ContentBlock],
        *,
        session_id: str = "",
        uuid: str | None = None,
        verbatim: bool = False,
    ) -> Self:
        """Make a prompt from text or blocks. ``session_id`` is always sent; it is empty if it is not known yet.

        ``verbatim`` sets ``client_composed``: the CLI then reads no file for an ``@path`` in the text, and runs no
        command for a ``/`` at its start.
        """
        content = content if isinstance(content, str) else _blocks(content)
        composed = True if verbatim else None
        return cls(message=MessageParam("user", content), session_id=session_id, uuid=uuid, client_composed=composed)

    @property
    def content(self) -> str | list[ContentBlock]:
        """The prompt's text, or its blocks (tool results among them)."""
        return self.message.content

    @property
    def text(self) -> str:
        """The text of the message, or of all its text blocks, joined."""
        content = self.message.content
        if isinstance(content, str):
            return content
        return "".join(block.text for block in content if isinstance(block, TextBlock))

    @property
    def tool_results(self) -> list[ToolResultBlock]:
        """The tool results in this message, in order."""
        content = self.message.content
        return [] if isinstance(content, str) else [block for block in content if isinstance(block, ToolResultBlock)]


class AssistantMessage(MessageBase, tag="assistant", kw_only=True, rename={"model_": "model"}, frozen=True):
    """A finished block of the model's answer, or text that the CLI wrote in the model's place.

    One line comes per block, so several share ``message.id``; ``supersedes`` lists uuids of earlier lines to drop, and
    ``aborted`` marks a block cut off by an interrupt. ``error`` is an open set. It is beside ``message`` on lines that
    report an API failure; some dialects put it, or ``model``, on the other level, or write null. Use
    :attr:`error_reason`. A non-null ``parent_tool_use_id`` names the tool call whose subagent speaks.
    """

    repr_first: ClassVar[tuple[str, ...]] = ("content", "model", "error_reason")
    repr_unwraps: ClassVar[str] = "message"

    message: ApiMessage
    parent_tool_use_id: str | None = null()
    agent_id: str | None = None
    local_command_source: str | None = None
    session_id: str | None = None
    uuid: str | None = None
    timestamp: str | None = None
    request_id: str | None = None
    tool_use_meta: list[dict[str, Any]] | None = None
    context_usage: ContextUsage | None = None
    local_command_run: dict[str, Any] | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    local_command_outcome: dict[str, Any] | None = None
    aborted: bool | None = None
    # one of authentication_failed, oauth_org_not_allowed, account_on_hold, verification_required, billing_error,
    # rate_limit, overloaded, invalid_request, model_not_found, server_error, unknown, max_output_tokens,
    # cloud_credential_error
    error: str | UnsetType | None = UNSET
    is_api_error_message: bool | None = None
    api_error_status: int | None = None
    api_error_type: str | None = None
    thinking_duration_ms: Number | None = None
    thinking_display: str | None = None
    resume_reason: str | None = None
    resumed_from_incomplete_thinking: bool | None = None
    supersedes: list[str] | None = None
    usage_report: UsageReport | None = None
    model_: str | None = None
    refused_message_id: str | None = None
    api_error: str | None = None
    api_error_params: dict[str, Any] | None = None
    api_error_code: str | None = None
    api_error_origin: str | None = None
    error_details: str | None = None

    @classmethod
    def of(
        cls, content: str | Sequence[ContentBlock], *, model: str | None = None, session_id: str | None = None
    ) -> Self:
        """Make an answer from text or blocks."""
        blocks: list[ContentBlock] = [TextBlock(content)] if isinstance(content, str) else _blocks(content)
        return cls(message=ApiMessage(role="assistant", content=blocks, model=model), session_id=session_id)

    @property
    def content(self) -> list[ContentBlock]:
        """The content blocks. While streaming, each message has one finished block."""
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
        """The model that answered: ``message.model``, or the field beside ``message`` in some dialects."""
        return self.message.model or self.model_

    @property
    def error_reason(self) -> str | None:
        """Why the API refused: ``error``, or ``message.error`` in some dialects. None if it did not refuse."""
        return self.error or self.message.error or None


class StreamEvent(MessageBase, tag="stream_event", kw_only=True, frozen=True):
    """One event of the model's answer while it streams, sent only with ``--include-partial-messages``.

    The finished blocks come as :class:`AssistantMessage` lines among these events, so showing both shows the text
    twice. ``ttft_ms``, the milliseconds to the first token, is only on message starts; ``api_message_id`` is the
    ``message.id`` that the event belongs to.
    """

    event: Event
    session_id: str | None = None
    parent_tool_use_id: str | None = null()
    uuid: str | None = None
    api_message_id: str | None = None
    ttft_ms: Number | None = None
    thinking_display: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    owed_rows: list[Any] | None = None
    abandoned_blocks: dict[str, Any] | None = None
    resume_reason: str | None = None
    text_runs_joined: bool | None = None

    @property
    def text_delta(self) -> str | None:
        """The piece of text that this event adds, or None if it adds none."""
        event = self.event
        if isinstance(event, ContentBlockDeltaEvent) and isinstance(event.delta, TextDelta):
            return event.delta.text
        return None
