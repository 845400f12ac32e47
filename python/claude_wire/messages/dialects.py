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


class QueuedMessage(SystemMessage, kw_only=True, frozen=True):
    """A prompt that was sent during a turn waits in the queue at ``position``, in miriad-code's dialect."""

    subtype: Literal["queued"] = constant("queued")
    position: int


class InjectedMessage(SystemMessage, kw_only=True, frozen=True):
    """Waiting prompts were put into the running turn, in miriad-code's dialect.

    They are joined into one user message; ``message_count`` is their number.
    """

    subtype: Literal["injected"] = constant("injected")
    message_count: int
    content_length: int


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

    Miriad-code puts a block in ``tool_result``. CLI 2.1.7 writes ``tool_use_id`` and ``content``, a string or a list of
    blocks. The current CLI sends a :class:`UserMessage` instead.
    """

    subtype: Literal["tool_result"] = constant("tool_result")
    tool_result: ToolResultBlock | OrUnknownBlock | None = None
    tool_use_id: str | None = None
    content: str | list[ContentBlock] | None = None


class SystemErrorMessage(SystemMessage, kw_only=True, frozen=True):
    """An error of the agent, in two dialects.

    It has a ``message`` in miriad-code's dialect, and an ``error`` object in the ``permission_request`` dialect.
    """

    subtype: Literal["error"] = constant("error")
    message: str | None = None
    error: ErrorInfo | None = None


class PermissionRequestMessage(SystemMessage, kw_only=True, frozen=True):
    """The agent asks whether it may use a tool, in the ``permission_request`` dialect.

    The host answers with a :class:`PermissionReply`. Only type and subtype are certain. The tool and its input are in
    ``name`` and ``args``, or in ``tool_name`` and ``input``, or in a nested object: see :attr:`call`. All other keys
    are in ``extra``.
    """

    subtype: Literal["permission_request"] = constant("permission_request")
    tool_name: str | None = None
    input: dict[str, Any] | None = None
    name: str | None = None
    args: dict[str, Any] | None = None

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
    updatedInput: dict[str, Any] | None = None


class ToolResultMessage(MessageBase, tag="tool_result", kw_only=True, frozen=True):
    """The result of a tool call as a separate message, in the ``permission_request`` dialect.

    It shares its tag with :class:`ToolResultBlock`, but the result is in ``result`` rather than ``content``: a content
    block, a string, or a list of blocks. ``is_error`` is true if the tool failed or was not allowed.
    """

    tool_use_id: str
    result: ContentBlock | str | list[ContentBlock]
    is_error: bool | None = None
