"""User and assistant messages, and the stream events between them."""

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
    """From a host: a prompt. From an agent: tool results, and prompts that the CLI injects or echoes.

    A prompt needs only ``message``. The CLI queues a prompt that arrives during a turn, and may merge queued prompts.
    """

    sent_by: ClassVar[Sender] = "both"

    repr_first: ClassVar[tuple[str, ...]] = ("content",)
    repr_unwraps: ClassVar[str] = "message"

    message: MessageParam
    """The content, with its role."""
    parent_tool_use_id: str | None = null()
    """The tool call that started the subagent; None in the main conversation."""
    agent_id: str | None = None
    """The id of the subagent; None in the main conversation."""
    session_id: str | None = None
    """The id of the session; empty in a prompt if not yet known."""
    uuid: str | None = None
    """The id of this message; a prompt with the uuid of an earlier prompt does not start a turn."""
    timestamp: str | None = None
    """When the message was written, in ISO 8601."""
    tool_use_result: Any = None
    """The result as JSON in a format that depends on the tool; the model reads ``content`` instead."""
    tool_result_meta: Any = None
    """A list with the permission decision for each tool result, or why the tool did not run."""
    isReplay: bool | None = None
    """True for a prompt or a local command's output that the CLI echoes."""
    subagent_type: str | None = None
    """The type of the subagent, such as ``general-purpose``."""
    task_description: str | None = None
    """The task of the subagent, in a few words."""
    isSynthetic: bool | None = None
    """True if the CLI wrote the text, not a user."""
    # one of now, next, later
    priority: str | None = None
    """When the CLI handles a prompt that arrives during a turn."""
    origin: MessageOrigin | None = None
    """Where the prompt comes from, if no person typed it."""
    shouldQuery: bool | None = None
    """False adds the message to the conversation without asking the model."""
    client_composed: bool | None = None
    """True takes the text literally: the CLI reads no ``@path`` and runs no ``/`` command."""
    pasted_content: list[str | list[ContentBlock]] | None = None
    """Pasted text for the CLI to append to the prompt; the CLI ignores blocks other than text."""
    inline_pastes: list[str] | None = None
    """Pasted text that is also in ``message``, each paste as one string."""
    file_attachments: list[Any] | None = None
    """Files sent with the prompt; the format of an item is unknown."""
    interrupted_message_id: str | None = None
    refused_message_id: str | None = None
    """The API's id of the answer that a safety classifier stopped."""
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
        """Return a prompt with this text or these blocks.

        Args:
            session_id: empty if not yet known. The prompt always has this field.
            verbatim: take the text literally (``client_composed``): the CLI reads no file for ``@path``, and runs no
                command for ``/`` at the start.
        """
        content = content if isinstance(content, str) else _blocks(content)
        composed = True if verbatim else None
        return cls(message=MessageParam("user", content), session_id=session_id, uuid=uuid, client_composed=composed)

    @property
    def content(self) -> str | list[ContentBlock]:
        """The text of the message, or its blocks."""
        return self.message.content

    @property
    def text(self) -> str:
        """The text of the message, or the joined text of its text blocks."""
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
    """A finished block of the model's answer, or text that the CLI wrote instead of the model.

    The CLI writes a line for each block. ``error`` and ``model`` are in different places in some dialects: read
    :attr:`error_reason` and :attr:`model`.
    """

    repr_first: ClassVar[tuple[str, ...]] = ("content", "model", "error_reason")
    repr_unwraps: ClassVar[str] = "message"

    message: ApiMessage
    """The API's message, with its content, model and usage."""
    parent_tool_use_id: str | None = null()
    """The tool call that started the subagent; None in the main conversation."""
    agent_id: str | None = None
    """The id of the subagent; None in the main conversation."""
    local_command_source: str | None = None
    """The output of a local command as in the transcript, with tags."""
    session_id: str | None = None
    uuid: str | None = None
    """The id of this line; lines of one answer share ``message.id``."""
    timestamp: str | None = None
    """When the message was written, in ISO 8601."""
    request_id: str | None = None
    """The API's id of the request."""
    tool_use_meta: list[dict[str, Any]] | None = None
    """The id of each MCP tool call, and the names of tool and server for display."""
    context_usage: ContextUsage | None = None
    """The data of the report, if the text is the output of ``/context``."""
    local_command_run: dict[str, Any] | None = None
    """The ``command`` and its ``args``, if the text is the output of a local command."""
    user_message_uuid: str | None = None
    """The uuid of the prompt that this turn answers."""
    user_message_uuids: list[str] | None = None
    """The uuids of all prompts that this turn answers."""
    subagent_type: str | None = None
    """The type of the subagent, such as ``general-purpose``."""
    task_description: str | None = None
    """The task of the subagent, in a few words."""
    local_command_outcome: dict[str, Any] | None = None
    """Why a local command has no result, with a ``kind`` such as ``unavailable_headless`` or ``failed``."""
    aborted: bool | None = None
    """True for a block that an interrupt cut off."""
    # one of authentication_failed, oauth_org_not_allowed, account_on_hold, verification_required, billing_error,
    # rate_limit, overloaded, invalid_request, model_not_found, server_error, unknown, max_output_tokens,
    # cloud_credential_error
    error: str | UnsetType | None = UNSET
    """Why the API refused; other values are possible."""
    is_api_error_message: bool | None = None
    """True if the text is about an error of the API."""
    api_error_status: int | None = None
    """The HTTP status, if the API failed."""
    api_error_type: str | None = None
    """The API's type of the error, such as ``rate_limit_error``; None if the line reports no error."""
    thinking_duration_ms: Number | None = None
    """How long the model thought, in milliseconds; only with thinking blocks."""
    thinking_display: str | None = None
    """How thinking is shown; observed: ``updates``."""
    resume_reason: str | None = None
    """Why the turn continues after a restart of the worker, such as ``interrupted_turn``; None in other turns."""
    resumed_from_incomplete_thinking: bool | None = None
    """True if the answer continues thinking that the token limit cut off."""
    supersedes: list[str] | None = None
    """The uuids of earlier lines that this line replaces."""
    usage_report: UsageReport | None = None
    """The data of the report, if the text is the output of ``/usage`` with a subscription."""
    model_: str | None = None
    """``model`` next to ``message``, in some dialects; read :attr:`model` instead."""
    refused_message_id: str | None = None
    """The API's id of the answer that a safety classifier stopped."""
    api_error: str | None = None
    """The CLI's name for the error; observed: ``usage_limit_reached``."""
    api_error_params: dict[str, Any] | None = None
    """Data about the error, such as ``rate_limit_info`` of a :class:`RateLimitEvent`."""
    api_error_code: str | None = None
    api_error_origin: str | None = None
    error_details: str | None = None
    """More text about the error."""

    @classmethod
    def of(
        cls, content: str | Sequence[ContentBlock], *, model: str | None = None, session_id: str | None = None
    ) -> Self:
        """Return an answer with this text or these blocks."""
        blocks: list[ContentBlock] = [TextBlock(content)] if isinstance(content, str) else _blocks(content)
        return cls(message=ApiMessage(role="assistant", content=blocks, model=model), session_id=session_id)

    @property
    def content(self) -> list[ContentBlock]:
        """The content blocks. The CLI writes one block in each message."""
        return self.message.content

    @property
    def text(self) -> str:
        """The joined text of all text blocks; empty if there are none."""
        return "".join(block.text for block in self.message.content if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> list[ToolUseBlock]:
        """The calls to tools that the CLI or the host runs, in order."""
        return [block for block in self.message.content if isinstance(block, ToolUseBlock)]

    @property
    def model(self) -> str | None:
        """The model that answered, from ``message`` or, in some dialects, from the field next to ``message``."""
        return self.message.model or self.model_

    @property
    def error_reason(self) -> str | None:
        """Why the API refused: ``error``, or ``message.error`` in some dialects. None if the API did not refuse."""
        return self.error or self.message.error or None


class StreamEvent(MessageBase, tag="stream_event", kw_only=True, frozen=True):
    """An event of the model's answer, sent only with ``--include-partial-messages``.

    The finished blocks also arrive as :class:`AssistantMessage` lines between the events. Do not show both.
    """

    event: Event
    """The event, as the API streams it."""
    session_id: str | None = None
    parent_tool_use_id: str | None = null()
    """The tool call that started the subagent; None in the main conversation."""
    uuid: str | None = None
    """The id of this message."""
    api_message_id: str | None = None
    """The ``message.id`` of the answer."""
    ttft_ms: Number | None = None
    """Milliseconds from the request to the first token; only in ``message_start`` events."""
    thinking_display: str | None = None
    """How thinking is shown; observed: ``updates``, on message starts and thinking."""
    user_message_uuid: str | None = None
    """The uuid of the prompt that this turn answers; only on the first event of the turn."""
    user_message_uuids: list[str] | None = None
    """The uuids of all prompts that this turn answers; only with ``user_message_uuid``."""
    owed_rows: list[Any] | None = None
    """Observed in ``message_start`` events: always empty."""
    abandoned_blocks: dict[str, Any] | None = None
    """``api_message_id``, and ``from_block_index``, the index of the first block that an interrupt cut off."""
    resume_reason: str | None = None
    """Why the turn continues after a restart of the worker, such as ``interrupted_turn``; None in other turns."""
    text_runs_joined: bool | None = None

    @property
    def text_delta(self) -> str | None:
        """The text that the event adds; None if it adds none."""
        event = self.event
        if isinstance(event, ContentBlockDeltaEvent) and isinstance(event.delta, TextDelta):
            return event.delta.text
        return None
