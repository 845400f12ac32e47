"""The base classes of dialects: the form of messages on the wire for one kind of agent, and the features it has.

The messages inside a host and inside an agent are always those of stream-json; a :class:`Connection` turns them into
frames of its dialect, and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from claude_wire.codec.encoder import encode
from claude_wire.errors import DialectError
from claude_wire.messages import ControlCancelRequest, ControlRequest, ControlResponse, UnknownRequest

#: Seconds without a line after which an expected line is given up, if the agent is known to leave it out sometimes.
SILENCE_SECONDS = 3.0

#: The types of control messages.
CONTROL = (ControlRequest, ControlResponse, ControlCancelRequest)


class Connection:
    """Translates the messages of one stream, and keeps the state that this needs.

    A host calls :meth:`to_agent` and :meth:`from_agent`; an agent calls :meth:`to_host`, :meth:`from_host` and
    :meth:`reply`.

    The methods here are those of stream-json, which needs no translation.
    """

    #: The dialect of the other side, as far as it is known.
    dialect: Dialect
    #: Number of prompts that a host has sent and that have no result yet.
    owed: int = 0

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        # Lines of an agent that wait for reply().
        self._replies: list[bytes] = []

    def to_agent(self, message: Any) -> bytes:
        """Translate a message of a host to a line; ``b""`` if the dialect does not send it.

        Raises:
            DialectError: the dialect cannot express the message. The state has not changed then.
        """
        return encode(message)

    def from_agent(self, message: Any) -> list[Any]:
        """Translate a decoded line of an agent to messages for a host.

        Call this once for each line, in their order.
        """
        return [message]

    @property
    def result_may_be_missing(self) -> bool:
        """True if the agent has stopped the turn under way, and may write no result for it.

        After :data:`SILENCE_SECONDS` without a line, a host then uses :meth:`missing_result`.
        """
        return False

    def missing_result(self) -> list[Any]:
        """A result for a turn that the agent has stopped without one."""
        return []

    @property
    def interrupt_may_be_unanswered(self) -> bool:
        """True if the agent may not answer an interrupt that is sent now, because no turn is known to run."""
        return False

    def to_host(self, message: Any) -> bytes:
        """Translate a message of an agent to lines; ``b""`` if the dialect leaves it out.

        Raises:
            DialectError: the message is a request that the dialect does not have. The state has not changed then.
        """
        return encode(message)

    def from_host(self, message: Any) -> list[Any]:
        """Translate a decoded line of a host, or an :class:`~claude_wire.InvalidLine`, to messages for an agent."""
        return [message]

    def reply(self) -> bytes:
        """Take the lines with which an agent answers the last input at once; often ``b""``."""
        replies = b"".join(self._replies)
        self._replies.clear()
        return replies

    def cannot(self, problem: str) -> DialectError:
        """The error for something that the dialect cannot express: "the dialect NAME", and then the ``problem``."""
        return DialectError(self.dialect.name, problem)

    def cannot_ask(self, message: ControlRequest) -> DialectError:
        """The error for a request that the dialect does not have."""
        body = message.request
        subtype = body.type if isinstance(body, UnknownRequest) else body.__struct_config__.tag
        return self.cannot(f"has no request {subtype}")


@dataclass(frozen=True, eq=False)
class Dialect:
    """The form of messages on the wire, and the behaviour of agents with this dialect. Compared by identity.

    Attributes:
        name: such as ``"stream-json"``.
        connection: the class that translates the messages of one stream.
        initializes: true if a host begins with ``initialize``.
        has_status: true if a host can ask for the status, also during a turn.
        signals: true if a host interrupts by SIGINT.
        host_hooks: true if the dialect has no messages for hooks, so that a host calls them itself.
        busy: the handling of prompts during a turn. ``merge``: they enter the turn before the next request to the
            model, and those left at the end begin one turn together. ``inject``: waiting prompts enter the turn as one
            message, and those left get turns of their own; the agent reports ``queued`` and ``injected``. ``each``:
            each prompt gets a turn of its own. ``refuse``: the connection answers with an error.
        strict: true if a line of another type than ``user`` and ``control_request`` ends the agent.
        permission: whether an agent asks before it uses a tool: ``flag`` (as its flags say), ``always`` or ``never``.
        names_session: true if a prompt sets the id of the session.
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
        """True if messages need no translation (stream-json)."""
        return self.connection is Connection

    @property
    def merges(self) -> bool:
        """True if waiting prompts are answered together. Else each prompt that is not injected has its own result."""
        return self.busy == "merge"

    def connect(self) -> Connection:
        """A connection for a new stream."""
        return self.connection(self)

    def __repr__(self) -> str:
        return f"<Dialect {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name,)


#: Name -> dialect of this package; filled by :mod:`~claude_wire.dialects.known`.
BY_NAME: dict[str, Dialect] = {}


def _named(name: str) -> Dialect:
    return BY_NAME[name]
