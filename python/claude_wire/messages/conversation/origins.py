"""The origin of a user message: a person, a channel, another agent, or the CLI itself."""

from __future__ import annotations

from typing import TypeAlias

from claude_wire.messages.base import Wire
from claude_wire.messages.unknown import OrUnknownObject


class HumanOrigin(Wire, tag_field="kind", tag="human", frozen=True):
    """A person typed the message."""


class ChannelOrigin(Wire, tag_field="kind", tag="channel", kw_only=True, frozen=True):
    """The message came in over a channel of the MCP server ``server``."""

    server: str


class PeerOrigin(Wire, tag_field="kind", tag="peer", kw_only=True, rename={"from_": "from"}, frozen=True):
    """Another agent session sent the message.

    The wire key of ``from_`` is ``from``; ``fromMode``, ``fromSession``, ``senderTaskId`` and ``verifiedPeerPid`` are
    camelCase on the wire.
    """

    from_: str
    # one of bypass, prompting
    fromMode: str | None = None
    name: str | None = None
    fromSession: str | None = None
    senderTaskId: str | None = None
    body: str | None = None
    verifiedPeerPid: int | None = None


class TaskNotificationOrigin(Wire, tag_field="kind", tag="task-notification", kw_only=True, frozen=True):
    """A task or an event outside the conversation caused the message, not a person.

    The tag has a hyphen, ``task-notification``. On a result it marks a turn that the CLI began by itself, as when a
    background task ended; ``subkind`` may have values not known today.
    """

    # one of scheduled-trigger, peer-send-message, projects-relay, session-inbox, external-event
    subkind: str | None = None
    fireReason: str | None = None
    runId: str | None = None
    producer: str | None = None


class CoordinatorOrigin(Wire, tag_field="kind", tag="coordinator", frozen=True):
    """A coordinator of several agents sent the message."""


class UnclassifiedOrigin(Wire, tag_field="kind", tag="unclassified", frozen=True):
    """The origin of the message is not known."""


class ObserverOrigin(Wire, tag_field="kind", tag="observer", kw_only=True, rename={"from_": "from"}, frozen=True):
    """An observer agent sent the message, from the task ``senderTaskId``.

    The wire key of ``from_`` is ``from``.
    """

    from_: str
    senderTaskId: str


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
