"""What a dialect is: how the messages of the protocol stand on the wire of one kind of agent, and what it can say.

Knows messages; not lines, nor who sends and reads them. The messages inside a host and inside an agent are always those
of stream-json; a :class:`Connection` turns them into frames of its dialect, and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from claude_wire.codec.encoder import encode
from claude_wire.errors import DialectError
from claude_wire.messages import ControlCancelRequest, ControlRequest, ControlResponse, UnknownRequest

__all__ = ["CONTROL", "SILENCE_SECONDS", "Connection", "Dialect"]

#: Seconds without a line after which an agent that may have nothing more to say has nothing more to say.
SILENCE_SECONDS = 3.0

#: The messages that requests are made of.
CONTROL = (ControlRequest, ControlResponse, ControlCancelRequest)


class Connection:
    """What one stream in a dialect remembers.

    A host calls :meth:`to_agent`, :meth:`from_agent` and :meth:`urgent`; an agent calls :meth:`to_host`,
    :meth:`from_host` and :meth:`reply`.

    The methods here are those of stream-json: a message stands on the wire as it is.
    """

    #: Each line of an agent that may concern a request, in either direction, has one of these.
    marks: tuple[bytes, ...] = (b"control_",)
    #: What the other side speaks, as far as it is known.
    dialect: Dialect
    #: Prompts that a host has sent and that no result has answered.
    owed: int = 0

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        # Lines of an agent that wait for reply().
        self._replies: list[bytes] = []

    def to_agent(self, message: Any) -> bytes:
        """The line of what a host says; nothing if the agent is not told.

        Raises:
            DialectError: the dialect has no words for it. Nothing has changed then.
        """
        return encode(message)

    def from_agent(self, message: Any) -> list[Any]:
        """What a decoded line means to a host.

        Each line is given once. One that is :meth:`urgent` may be given before lines that came earlier.
        """
        return [message]

    def urgent(self, message: Any) -> bool:
        """Whether a decoded line concerns a request, so that a host takes it at once."""
        return isinstance(message, CONTROL)

    @property
    def result_may_be_missing(self) -> bool:
        """Whether the agent has stopped the turn under way, and may leave the turn without a result.

        After :data:`SILENCE_SECONDS` without a line a host then takes :meth:`missing_result`.
        """
        return False

    def missing_result(self) -> list[Any]:
        """The result of a turn that the agent has left without one."""
        return []

    @property
    def interrupt_may_be_unanswered(self) -> bool:
        """Whether the agent may say nothing to an interrupt that is sent now, since no turn is known to run."""
        return False

    def to_host(self, message: Any) -> bytes:
        """The lines of what an agent says; nothing if the dialect leaves it out.

        Raises:
            DialectError: it is a request that the dialect has no words for. Nothing has changed then.
        """
        return encode(message)

    def from_host(self, message: Any) -> list[Any]:
        """What a decoded line, or an :class:`~claude_wire.InvalidLine`, means to an agent."""
        return [message]

    def reply(self) -> bytes:
        """Take the lines that an agent writes at once because of what was last read; often nothing."""
        replies = b"".join(self._replies)
        self._replies.clear()
        return replies

    def cannot(self, problem: str) -> DialectError:
        """The error for what the dialect has no words for: "the dialect NAME", and then the ``problem``."""
        return DialectError(self.dialect.name, problem)

    def cannot_ask(self, message: ControlRequest) -> DialectError:
        """The error for a request that the dialect does not have."""
        body = message.request
        subtype = body.type if isinstance(body, UnknownRequest) else body.__struct_config__.tag
        return self.cannot(f"has no request {subtype}")


@dataclass(frozen=True, eq=False)
class Dialect:
    """How messages stand on the wire, and what an agent does that speaks so. A value, which is compared by identity.

    Attributes:
        name: such as ``"stream-json"``.
        connection: the class of what one stream remembers.
        initializes: whether a host begins with ``initialize``.
        has_status: whether a host can ask for the status, while a turn is under way, too.
        signals: whether a host interrupts by SIGINT.
        host_hooks: whether hooks have no form on the wire, and a host calls them itself.
        busy: what becomes of a prompt that comes during a turn. ``merge``: it enters the turn before the next request
            to the model, and those left at the end begin one turn together. ``inject``: those that wait enter the turn
            as one message, and those left have turns of their own; the agent says ``queued`` and ``injected``.
            ``each``: it has a turn of its own. ``refuse``: it is answered with an error, by the connection.
        strict: whether a line of another type than ``user`` and ``control_request`` ends the agent.
        permission: whether an agent asks before it uses a tool: as its flags say, always or never.
        names_session: whether the id of the session is the one that the prompt has.
        failed_code: exit code of an agent whose last result is an error.
        interrupted_code: exit code of an agent that SIGINT has ended.
        usage_code: exit code of an agent whose arguments are wrong.
    """

    name: str
    connection: type[Connection] = Connection
    initializes: bool = False
    has_status: bool = False
    signals: bool = False
    host_hooks: bool = False
    busy: Literal["merge", "inject", "each", "refuse"] = "each"
    strict: bool = False
    permission: Literal["flag", "always", "never"] = "never"
    names_session: bool = False
    failed_code: int = 0
    interrupted_code: int = 0
    usage_code: int = 1

    @property
    def plain(self) -> bool:
        """Whether each message stands on the wire as it is, so that nobody needs a connection."""
        return self.connection is Connection

    @property
    def merges(self) -> bool:
        """Whether prompts that wait are answered together. Otherwise each that is not injected has its own result."""
        return self.busy == "merge"

    def connect(self) -> Connection:
        """What a new stream remembers."""
        return self.connection(self)

    def __repr__(self) -> str:
        return f"<Dialect {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name,)


#: The dialects of this package by their names; :mod:`~claude_wire.dialects.known` fills it.
BY_NAME: dict[str, Dialect] = {}


def _named(name: str) -> Dialect:
    return BY_NAME[name]
