"""The base classes of dialects: :class:`Dialect` describes a kind of agent, :class:`Connection` translates messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from claude_wire.codec.encoder import encode
from claude_wire.errors import DialectError
from claude_wire.messages import ControlCancelRequest, ControlRequest, ControlResponse, UnknownRequest

#: A host stops waiting for a line that agents sometimes omit if no line arrives for this many seconds.
SILENCE_SECONDS = 3.0

#: The types of control messages.
CONTROL = (ControlRequest, ControlResponse, ControlCancelRequest)


class Connection:
    """Translates the messages of one stream to lines of a dialect, and lines to messages.

    A host calls :meth:`to_agent` and :meth:`from_agent`; an agent calls :meth:`to_host`, :meth:`from_host` and
    :meth:`reply`. This class is for stream-json, which needs no translation. Other dialects have subclasses.
    """

    dialect: Dialect
    """The other side's dialect. AUTO until it is detected."""
    owed: int = 0
    """For a host: the number of prompts without a result."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        # An agent's lines that reply() will return.
        self._replies: list[bytes] = []

    def to_agent(self, message: Any) -> bytes:
        """Translate a host's message to a line, or to ``b""`` if the dialect does not have the message.

        Raises:
            DialectError: the dialect cannot express the message. The state is then unchanged.
        """
        return encode(message)

    def from_agent(self, message: Any) -> list[Any]:
        """Translate an agent's decoded line to messages for a host.

        Call this once for each line, in the order of the lines.
        """
        return [message]

    @property
    def result_may_be_missing(self) -> bool:
        """True if the agent stopped the turn, perhaps without a result.

        After :data:`SILENCE_SECONDS` without a line, a host then uses :meth:`missing_result`.
        """
        return False

    def missing_result(self) -> list[Any]:
        """Return a result for a turn that the agent stopped without a result. Empty if there is no such turn."""
        return []

    @property
    def interrupt_may_be_unanswered(self) -> bool:
        """True if the agent might not answer an interrupt sent now, because no turn is known to run."""
        return False

    def to_host(self, message: Any) -> bytes:
        """Translate an agent's message to lines, or to ``b""`` if the dialect does not have the message.

        Raises:
            DialectError: the message is a request that the dialect does not have. The state is then unchanged.
        """
        return encode(message)

    def from_host(self, message: Any) -> list[Any]:
        """Translate a host's decoded line, or an :class:`~claude_wire.InvalidLine`, to messages for an agent."""
        return [message]

    def reply(self) -> bytes:
        """Pop the lines that an agent's connection itself sends in answer to the last input; often ``b""``."""
        replies = b"".join(self._replies)
        self._replies.clear()
        return replies

    def cannot(self, problem: str) -> DialectError:
        """Return the error for a message that the dialect cannot express: "the dialect NAME PROBLEM"."""
        return DialectError(self.dialect.name, problem)

    def cannot_ask(self, message: ControlRequest) -> DialectError:
        """Return the error for a request that the dialect does not have."""
        body = message.request
        subtype = body.type if isinstance(body, UnknownRequest) else body.__struct_config__.tag
        return self.cannot(f"has no request {subtype}")


@dataclass(frozen=True, eq=False)
class Dialect:
    """How messages look on the wire, and how agents with this dialect behave. Dialects are compared by identity.

    Attributes:
        name: the dialect's name, such as ``"stream-json"``.
        connection: the class that translates the messages of one stream.
        initializes: True if a host begins with ``initialize``.
        has_status: True if a host can ask for the status, even during a turn.
        signals: True if a host interrupts with SIGINT.
        host_hooks: True if the dialect has no messages for hooks: a host then calls hooks itself.
        busy: how an agent handles prompts during a turn. ``merge``: they enter the turn before the next request to the
            model; prompts still waiting when the turn ends begin one turn together. ``inject``: waiting prompts enter
            the turn as one message; each prompt still waiting at the end gets a separate turn; the agent reports
            ``queued`` and ``injected``. ``each``: each prompt gets a separate turn. ``refuse``: the connection answers
            with an error.
        strict: True if the agent exits when it reads a line whose type is neither ``user`` nor ``control_request``.
        permission: whether an agent asks before it uses a tool: ``flag`` (its flags decide), ``always`` or ``never``.
        names_session: True if a prompt sets the session id.
        failed_code: exit code of an agent whose last result is an error.
        interrupted_code: exit code of an agent after SIGINT.
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
        """True if messages need no translation (stream-json)."""
        return self.connection is Connection

    @property
    def merges(self) -> bool:
        """True if one result may answer several prompts. If false, each prompt that is not injected has a result."""
        return self.busy == "merge"

    def connect(self) -> Connection:
        """Create a connection for a new stream."""
        return self.connection(self)

    def __repr__(self) -> str:
        return f"<Dialect {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name,)


#: Name -> dialect of this package. :mod:`~claude_wire.dialects.known` fills this dict.
BY_NAME: dict[str, Dialect] = {}


def _named(name: str) -> Dialect:
    return BY_NAME[name]
