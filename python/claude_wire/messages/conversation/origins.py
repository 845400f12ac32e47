"""The origin of a user message: a person, a channel, another agent, or the CLI itself."""

from __future__ import annotations

from typing import TypeAlias

from claude_wire.messages.base import Wire
from claude_wire.messages.unknown import OrUnknownObject


class HumanOrigin(Wire, tag_field="kind", tag="human", frozen=True):
    """A person typed the message."""


class ChannelOrigin(Wire, tag_field="kind", tag="channel", kw_only=True, frozen=True):
    """The message came in over a channel of an MCP server."""

    server: str
    """The name of the MCP server."""


class PeerOrigin(Wire, tag_field="kind", tag="peer", kw_only=True, rename={"from_": "from"}, frozen=True):
    """Another agent session sent the message.

    The wire key of ``from_`` is ``from``. The sender chooses ``from_``, ``name`` and ``fromSession``, so they prove
    nothing: only ``verifiedPeerPid`` identifies the sender.
    """

    from_: str
    """The address of the sender, for a reply."""
    # one of bypass, prompting
    fromMode: str | None = None
    """How the sender asks for permission: ``bypass`` if it runs tools without asking, else ``prompting``."""
    name: str | None = None
    """The sender's name for display, at most 64 characters."""
    fromSession: str | None = None
    """The id of the sender's session, for a link to it."""
    senderTaskId: str | None = None
    """The task of the subagent in this process that sent the message; None for another session."""
    body: str | None = None
    """The text of the message without its envelope, as the model reads it."""
    verifiedPeerPid: int | None = None
    """The process id of the connected sender, checked by the kernel. A relay counts as the sender."""


class TaskNotificationOrigin(Wire, tag_field="kind", tag="task-notification", kw_only=True, frozen=True):
    """A task or an event outside the conversation caused the message, not a person.

    The tag has a hyphen, ``task-notification``. On a result it marks a turn that the CLI began by itself, as when a
    background task ended.
    """

    # one of scheduled-trigger, peer-send-message, projects-relay, session-inbox, external-event
    subkind: str | None = None
    """What caused the message; None for the CLI's own background tasks. New values may come."""
    fireReason: str | None = None
    """Why a scheduled task ran, such as ``scheduled``, ``manual``, ``retry`` or ``catch_up``."""
    runId: str | None = None
    """The ``run_id`` of the messages about the background task."""
    producer: str | None = None
    """The part of the CLI that wrote the message. Observed: ``session-task``, for background tasks."""


class CoordinatorOrigin(Wire, tag_field="kind", tag="coordinator", frozen=True):
    """A coordinator of several agents sent the message."""


class UnclassifiedOrigin(Wire, tag_field="kind", tag="unclassified", frozen=True):
    """The origin of the message is not known."""


class ObserverOrigin(Wire, tag_field="kind", tag="observer", kw_only=True, rename={"from_": "from"}, frozen=True):
    """An observer agent sent the message. The wire key of ``from_`` is ``from``."""

    from_: str
    """The name of the observer agent."""
    senderTaskId: str
    """The task in which the observer runs."""


class AutoContinuationOrigin(Wire, tag_field="kind", tag="auto-continuation", frozen=True):
    """The CLI wrote the message itself, to make the model continue."""


class ObserverActivityOrigin(Wire, tag_field="kind", tag="observer-activity", frozen=True):
    """The message reports the activity of an observer agent."""


#: Who or what sent a user message.
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
