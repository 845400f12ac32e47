"""The origins of user messages: a person, a channel, another agent, or the CLI."""

from __future__ import annotations

from typing import TypeAlias

from claude_wire.messages.base import Wire
from claude_wire.messages.unknown import OrUnknownObject


class HumanOrigin(Wire, tag_field="kind", tag="human", frozen=True):
    """A person typed the message."""


class ChannelOrigin(Wire, tag_field="kind", tag="channel", kw_only=True, frozen=True):
    """The message came through a channel of an MCP server."""

    server: str
    """The name of the MCP server."""


class PeerOrigin(Wire, tag_field="kind", tag="peer", kw_only=True, rename={"from_": "from"}, frozen=True):
    """Another agent session sent the message.

    Do not trust ``from_``, ``name`` and ``fromSession``, which the sender chooses. Only ``verifiedPeerPid`` identifies
    the sender.
    """

    from_: str
    """The sender's address for a reply; the key on the wire is ``from``."""
    # one of bypass, prompting
    fromMode: str | None = None
    """``bypass`` if the sender runs tools without asking, else ``prompting``."""
    name: str | None = None
    """The sender's name for display, at most 64 characters."""
    fromSession: str | None = None
    """The id of the sender's session, for a link."""
    senderTaskId: str | None = None
    """The task of the sender, if it is a subagent of this process; None for another session."""
    body: str | None = None
    """The text for the model, without the envelope."""
    verifiedPeerPid: int | None = None
    """The process id of the connected sender or relay, from the kernel."""


class TaskNotificationOrigin(Wire, tag_field="kind", tag="task-notification", kw_only=True, frozen=True):
    """A task or an event outside the conversation caused the message.

    On a result: the CLI itself started the turn, for example because a background task ended.
    """

    # one of scheduled-trigger, peer-send-message, projects-relay, session-inbox, external-event
    subkind: str | None = None
    """What caused the message; None for the CLI's own background tasks."""
    fireReason: str | None = None
    """Why a scheduled task ran, such as ``scheduled``, ``manual``, ``retry`` or ``catch_up``."""
    runId: str | None = None
    """The ``run_id`` of the messages about the background task."""
    producer: str | None = None
    """The part of the CLI that wrote the message; observed: ``session-task``, for background tasks."""


class CoordinatorOrigin(Wire, tag_field="kind", tag="coordinator", frozen=True):
    """A coordinator of several agents sent the message."""


class UnclassifiedOrigin(Wire, tag_field="kind", tag="unclassified", frozen=True):
    """The origin of the message is not known."""


class ObserverOrigin(Wire, tag_field="kind", tag="observer", kw_only=True, rename={"from_": "from"}, frozen=True):
    """An observer agent sent the message."""

    from_: str
    """The name of the observer agent; the key on the wire is ``from``."""
    senderTaskId: str
    """The observer's task."""


class AutoContinuationOrigin(Wire, tag_field="kind", tag="auto-continuation", frozen=True):
    """The CLI wrote the message to make the model continue."""


class ObserverActivityOrigin(Wire, tag_field="kind", tag="observer-activity", frozen=True):
    """The message reports the activity of an observer agent."""


#: The sender of a user message.
MessageOrigin: TypeAlias = (
    HumanOrigin
    | ChannelOrigin
    | PeerOrigin
    | TaskNotificationOrigin
    | CoordinatorOrigin
    | UnclassifiedOrigin
    | ObserverOrigin
    | AutoContinuationOrigin
    | ObserverActivityOrigin
    | OrUnknownObject
)
