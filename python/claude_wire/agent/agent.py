"""The class ``Agent``: the author's function and its settings. An agent can serve hosts over any pair of streams."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Literal, NoReturn

import msgspec

from claude_wire.agent.options import AgentOptions
from claude_wire.agent.protocol import AgentProtocol
from claude_wire.agent.service import Service
from claude_wire.agent.session import AgentSession
from claude_wire.agent.turn import Turn
from claude_wire.dialects import STREAM_JSON, Dialect, dialect_of
from claude_wire.messages import InitMessage
from claude_wire.messages.control.request_body import ControlRequestBody
from claude_wire.messages.version import PROTOCOL_VERSION
from claude_wire.support.arguments import require_function

Answer = Callable[[Turn], Awaitable[Any]] | Callable[[Any], Any]
Lifespan = Callable[[AgentSession], AbstractAsyncContextManager[Any]]


class Agent:
    """The CLI's side of the protocol. The author's function answers each prompt from a host.

    Args:
        answer: called with a :class:`Turn` for each prompt, one at a time. It returns the result: None (the last
            text that it sent), a str, a dict or a Struct (structured output), or a whole ``ResultMessage``. If it
            raises, the turn fails. A plain function runs in a thread, and calls the turn's methods without ``await``.
        dialect: the dialect that hosts speak; ``"auto"`` detects the dialect from the host's messages.
        options: the command line; :meth:`main` reads the process's command line instead.
        requests: control request class -> function, such as ``{SetModelRequest: f}``. The function gets the
            request and returns the payload of the answer, or None for the agent's own answer.
        init: fields of ``system/init``: an :class:`~claude_wire.InitMessage`, or a dict of its fields.
        model: the model's name; ``--model`` takes precedence.
        version: the agent's version, which hosts read as ``claude_code_version``. The default is the CLI version whose
            protocol the agent speaks.
        lifespan: function that gets the session and returns an asynchronous context manager. The agent enters it before
            the first prompt, and leaves it at the end.

    Raises:
        TypeError: an argument has the wrong type, or ``answer`` cannot be called with a turn.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        dialect: Dialect | Literal["auto"] = STREAM_JSON,
        options: AgentOptions | None = None,
        requests: Mapping[type, Callable[[Any], Any]] | None = None,
        init: InitMessage | Mapping[str, Any] | None = None,
        model: str = "agent",
        version: str = PROTOCOL_VERSION,
        lifespan: Lifespan | None = None,
    ) -> None:
        require_function("answer", answer, "the Turn")
        for kind, handler in (requests or {}).items():
            if not (isinstance(kind, type) and issubclass(kind, ControlRequestBody)):
                raise TypeError(f"requests takes classes of control requests, such as SetModelRequest, not {kind!r}")
            require_function(f"requests[{kind.__name__}]", handler, "the request")
        self.answer: Answer = answer
        self.dialect: Dialect = dialect_of(dialect)
        self.options: AgentOptions = AgentOptions() if options is None else options
        self.requests: dict[type, Callable[[Any], Any]] = dict(requests or {})
        self.init: InitMessage | Mapping[str, Any] | None = init
        self.model: str = model
        self.version: str = version
        self.lifespan: Lifespan | None = lifespan

    def __repr__(self) -> str:
        return f"<Agent {getattr(self.answer, '__qualname__', self.answer)!s}: {self.dialect!r}>"

    def init_message(self, session: AgentSession) -> InitMessage:
        """The ``system/init`` message of a session, without fields such as ``model`` that each turn sets."""
        default = InitMessage(
            cwd=session.cwd,
            slash_commands=[],
            apiKeySource="none",
            claude_code_version=self.version,
            output_style="default",
            agents=[],
            skills=[],
            plugins=[],
        )
        if self.init is None:
            return default
        given = msgspec.structs.asdict(self.init) if isinstance(self.init, InitMessage) else dict(self.init)
        return msgspec.structs.replace(default, **{name: value for name, value in given.items() if value is not None})

    async def serve(self, stdin: Any, stdout: Any) -> int:
        """Serve one host, until the input ends. Return the exit code.

        Args:
            stdin: a descriptor, or any source that a :class:`~claude_wire.MessageStream` takes.
            stdout: a descriptor, or an anyio ``ByteSendStream``.
        """
        return await service_of(self).run(stdin, stdout)

    def main(self, argv: Sequence[str] | None = None, *, backend: str = "asyncio") -> NoReturn:
        """Serve the host that started this process, then exit. Call this as a program's main function.

        The program accepts the CLI's arguments. ``--version`` prints one line. With a prompt (``-p "..."``, or a plain
        argument) there is one turn, and the program prints its text, or the format of ``--output-format``. Otherwise
        the host uses the standard streams. While the agent runs, ``print`` writes to the standard error, so it cannot
        put text between two lines; and ``sys.stdin`` is empty. SIGINT interrupts the turn, and the agent then
        exits; SIGTERM makes the agent exit without a result.

        Args:
            argv: the command line, starting with the program; None: the process's command line.
            backend: ``"asyncio"`` or ``"trio"``.

        Raises:
            SystemExit: with the exit code: 0; 1 if the last result is an error, or a line of the input or an argument
                is wrong; 143 after SIGTERM. Some dialects have other codes.
        """
        from claude_wire.agent.main import INTERRUPTED, leave, run_program

        try:
            code = run_program(
                partial(service_of, self), self.dialect, self.version, sys.argv if argv is None else argv, backend
            )
        except KeyboardInterrupt:  # from SIGINT before the event loop runs, and on Windows
            code = INTERRUPTED
        leave(code)


def service_of(agent: Agent, options: AgentOptions | None = None) -> Service:
    """Create the service that connects an agent to one host.

    Args:
        options: the command line; None: ``agent.options``.
    """
    options = agent.options if options is None else options
    session = AgentSession(options, agent.model, agent.version)
    protocol = AgentProtocol(session, agent.dialect, states=_states(options), init=agent.init_message(session))
    return Service(protocol, agent.answer, agent.requests, agent.lifespan)


def _states(options: AgentOptions) -> bool | None:
    """Return the argument ``states`` for :class:`AgentProtocol`, which depends on the environment."""
    if options.reads_session_state:
        return True
    return False if os.environ.get("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") == "1" else None
