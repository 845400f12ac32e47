"""Messages that the current CLI does not send: from miriad-code, CLI 2.1.7, and the ``permission_request`` dialect."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from claude_wire.messages.base import MessageBase, Sender, constant
from claude_wire.messages.blocks.content import ContentBlock, ToolResultBlock
from claude_wire.messages.conversation.results import ErrorInfo
from claude_wire.messages.system import SystemMessage
from claude_wire.messages.unknown import OrUnknownBlock

#: Keys under which an agent may put the tool of a permission request.
_NESTED = ("tool", "tool_use", "request")


class ControlMessage(MessageBase, tag="control", kw_only=True, frozen=True):
    """The host interrupts the turn or asks for the status, in miriad-code's dialect, without a request id."""

    sent_by: ClassVar[Sender] = "host"

    # one of interrupt, status
    action: str
    """``interrupt`` ends the turn; ``status`` asks for a :class:`StatusMessage`."""


class QueuedMessage(SystemMessage, kw_only=True, frozen=True):
    """The agent queued a prompt that arrived during a turn, in miriad-code's dialect."""

    subtype: Literal["queued"] = constant("queued")
    position: int
    """The 1-based position of the prompt in the queue."""


class InjectedMessage(SystemMessage, kw_only=True, frozen=True):
    """The agent added queued prompts to the running turn as one user message, in miriad-code's dialect."""

    subtype: Literal["injected"] = constant("injected")
    message_count: int
    """The number of the prompts."""
    content_length: int
    """The length of the joined text."""


class ConsolidationMessage(SystemMessage, kw_only=True, frozen=True):
    """The number of entries that a consolidation created, changed and archived, in miriad-code's dialect."""

    subtype: Literal["consolidation"] = constant("consolidation")
    entries_created: int
    entries_updated: int
    entries_archived: int | None = None
    summary: str | None = None


class InterruptedMessage(SystemMessage, kw_only=True, frozen=True):
    """The turn was interrupted, in miriad-code's dialect. The fields are not documented. See ``extra`` for other keys.

    A :class:`ResultCancelled` may follow.
    """

    subtype: Literal["interrupted"] = constant("interrupted")
    message: str | None = None


class SystemToolResultMessage(SystemMessage, kw_only=True, frozen=True):
    """The result of a tool call as a ``system`` message, in two dialects. The CLI sends a :class:`UserMessage`."""

    subtype: Literal["tool_result"] = constant("tool_result")
    tool_result: ToolResultBlock | OrUnknownBlock | None = None
    """The whole block; only in miriad-code's dialect."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call; only in CLI 2.1.7."""
    content: str | list[ContentBlock] | None = None
    """The result, as text or blocks; only in CLI 2.1.7."""


class SystemErrorMessage(SystemMessage, kw_only=True, frozen=True):
    """An error of the agent, in two dialects."""

    subtype: Literal["error"] = constant("error")
    message: str | None = None
    """The error as text; only in miriad-code's dialect."""
    error: ErrorInfo | None = None
    """The error as an object; only in the ``permission_request`` dialect."""


class PermissionRequestMessage(SystemMessage, kw_only=True, frozen=True):
    """The agent asks whether it may run a tool, in the ``permission_request`` dialect.

    The host answers with a :class:`PermissionReply`. Agents use different keys: read :attr:`call`.
    """

    subtype: Literal["permission_request"] = constant("permission_request")
    tool_name: str | None = None
    """The name of the tool, unless another key has the name."""
    input: dict[str, Any] | None = None
    """The input of the tool, unless another key has the input."""
    name: str | None = None
    """Another key for ``tool_name``."""
    args: dict[str, Any] | None = None
    """Another key for ``input``."""

    @property
    def call(self) -> tuple[str, dict[str, Any]] | None:
        """The name of the tool and its input; None if the request is ambiguous. Deny an ambiguous request.

        Both may also be in an object ``tool``, ``tool_use`` or ``request``. A request is ambiguous if it has no name,
        two different names or inputs, or no input but an unknown key that may have the input.
        """
        extra = self.extra or {}
        places: list[dict[str, Any]] = [
            {"tool_name": self.tool_name, "name": self.name, "input": self.input, "args": self.args},
            *(extra[key] for key in _NESTED if isinstance(extra.get(key), dict)),
        ]
        if isinstance(extra.get("tool"), str):
            places.append({"name": extra["tool"]})
        names = [place[key] for place in places for key in ("tool_name", "name") if place.get(key) is not None]
        inputs = [place[key] for place in places for key in ("input", "args") if place.get(key) is not None]
        others: list[Any] = [
            value for key, value in extra.items() if key not in _NESTED and isinstance(value, (dict, list))
        ]
        if not names or not isinstance(names[0], str) or not names[0].strip() or any(one != names[0] for one in names):
            return None
        if any(not isinstance(one, dict) or one != inputs[0] for one in inputs) or (others and not inputs):
            return None
        return names[0], inputs[0] if inputs else {}


class PermissionReply(MessageBase, tag=False, frozen=True):
    """The host's answer to a :class:`PermissionRequestMessage`: ``{"allow": true}``, without a type or an id."""

    sent_by: ClassVar[Sender] = "host"

    allow: bool
    """True if the tool may run."""
    updatedInput: dict[str, Any] | None = None
    """The tool's new input; None to keep the input."""


class ToolResultMessage(MessageBase, tag="tool_result", kw_only=True, frozen=True):
    """The result of a tool call as a separate message, in the ``permission_request`` dialect.

    The tag is that of :class:`ToolResultBlock`, but the result is in ``result``, not in ``content``.
    """

    tool_use_id: str
    """The ``id`` of the tool call."""
    result: ContentBlock | str | list[ContentBlock]
    """The result, as a content block, text, or a list of blocks."""
    is_error: bool | None = None
    """True if the tool failed or was refused."""
