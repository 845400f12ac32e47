"""Messages that the current Claude Code CLI does not have, but dialects of other agents.

Three dialects add messages: those of miriad-code and of CLI 2.1.7, and the ``permission_request`` dialect.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from claude_wire.messages.base import MessageBase, Sender, constant
from claude_wire.messages.blocks.content import ContentBlock, ToolResultBlock
from claude_wire.messages.conversation.results import ErrorInfo
from claude_wire.messages.system import SystemMessage
from claude_wire.messages.unknown import OrUnknownBlock

#: Members in which agents may put the tool of a permission request.
_NESTED = ("tool", "tool_use", "request")


class ControlMessage(MessageBase, tag="control", kw_only=True, frozen=True):
    """The host interrupts the turn or asks for the status, in miriad-code's dialect.

    It has no request id. The current CLI uses an ``interrupt`` control request instead.
    """

    sent_by: ClassVar[Sender] = "host"

    # one of interrupt, status
    action: str
    """``interrupt`` ends the turn; ``status`` asks for a :class:`StatusMessage`."""


class QueuedMessage(SystemMessage, kw_only=True, frozen=True):
    """A prompt that was sent during a turn waits in the queue, in miriad-code's dialect."""

    subtype: Literal["queued"] = constant("queued")
    position: int
    """The place of the prompt in the queue, from 1."""


class InjectedMessage(SystemMessage, kw_only=True, frozen=True):
    """Waiting prompts were put into the running turn as one user message, in miriad-code's dialect."""

    subtype: Literal["injected"] = constant("injected")
    message_count: int
    """The number of the prompts."""
    content_length: int
    """The length of the joined text."""


class ConsolidationMessage(SystemMessage, kw_only=True, frozen=True):
    """The numbers of entries that a consolidation has created, changed and archived, in miriad-code's dialect."""

    subtype: Literal["consolidation"] = constant("consolidation")
    entries_created: int
    entries_updated: int
    entries_archived: int | None = None
    summary: str | None = None


class InterruptedMessage(SystemMessage, kw_only=True, frozen=True):
    """The turn was interrupted, in miriad-code's dialect. The result that follows is a :class:`ResultCancelled`.

    Its fields are not documented. Keys without a field here are in ``extra``.
    """

    subtype: Literal["interrupted"] = constant("interrupted")
    message: str | None = None


class SystemToolResultMessage(SystemMessage, kw_only=True, frozen=True):
    """The result of a tool call as a ``system`` message, in two dialects.

    The current CLI sends a :class:`UserMessage` instead.
    """

    subtype: Literal["tool_result"] = constant("tool_result")
    tool_result: ToolResultBlock | OrUnknownBlock | None = None
    """The whole block. Only in miriad-code's dialect."""
    tool_use_id: str | None = None
    """The ``id`` of the tool call. Only in CLI 2.1.7."""
    content: str | list[ContentBlock] | None = None
    """The result: a text, or blocks. Only in CLI 2.1.7."""


class SystemErrorMessage(SystemMessage, kw_only=True, frozen=True):
    """An error of the agent, in two dialects."""

    subtype: Literal["error"] = constant("error")
    message: str | None = None
    """The error as a text. Only in miriad-code's dialect."""
    error: ErrorInfo | None = None
    """The error as an object. Only in the ``permission_request`` dialect."""


class PermissionRequestMessage(SystemMessage, kw_only=True, frozen=True):
    """The agent asks whether it may use a tool, in the ``permission_request`` dialect.

    The host answers with a :class:`PermissionReply`. Only type and subtype are certain. The tool and its input may
    also be in a nested object: see :attr:`call`. All other keys are in ``extra``.
    """

    subtype: Literal["permission_request"] = constant("permission_request")
    tool_name: str | None = None
    """The name of the tool, or None if another key has it."""
    input: dict[str, Any] | None = None
    """The input of the tool, or None if another key has it."""
    name: str | None = None
    """The name of the tool, as another key for ``tool_name``."""
    args: dict[str, Any] | None = None
    """The input of the tool, as another key for ``input``."""

    @property
    def call(self) -> tuple[str, dict[str, Any]] | None:
        """The name of the tool and its input; None if the request is ambiguous. Deny such a request.

        Both may also be inside an object ``tool``, ``tool_use`` or ``request``. A request with two different names, or
        without a name, is ambiguous, and so is a request whose input must be in an unknown key.
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
    """The host's answer to a :class:`PermissionRequestMessage`: a bare ``{"allow": true}``.

    It has neither ``type`` nor id. It is recognised by the key ``allow``. All other keys are in ``extra``.
    """

    sent_by: ClassVar[Sender] = "host"

    allow: bool
    """True if the tool may run."""
    updatedInput: dict[str, Any] | None = None
    """The input to use instead of the input of the request; None to leave it unchanged."""


class ToolResultMessage(MessageBase, tag="tool_result", kw_only=True, frozen=True):
    """The result of a tool call as a separate message, in the ``permission_request`` dialect.

    It shares its tag with :class:`ToolResultBlock`, but has ``result`` rather than ``content``.
    """

    tool_use_id: str
    """The ``id`` of the tool call."""
    result: ContentBlock | str | list[ContentBlock]
    """The result: a content block, a text, or a list of blocks."""
    is_error: bool | None = None
    """True if the tool failed or was refused."""
