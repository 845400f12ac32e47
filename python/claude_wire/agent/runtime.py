"""``Runtime``: the part of a :class:`Service` that :class:`Turn` and :class:`HostRequests` use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from claude_wire.agent.protocol import AgentProtocol
from claude_wire.agent.questions import Questions
from claude_wire.agent.session import AgentSession, TurnRecord


class Runtime(Protocol):
    """Runs an agent over a pair of streams. :class:`~claude_wire.agent.service.Service` implements the methods."""

    session: AgentSession
    protocol: AgentProtocol
    questions: Questions

    @property
    def crowded(self) -> bool: ...

    def flush(self) -> bool: ...

    def moved(self) -> None: ...

    async def until_uncrowded(self) -> None: ...

    async def call(self, function: Callable[..., Any], argument: Any) -> Any: ...

    def start(self, function: Callable[[], Any]) -> None: ...

    def interrupt_turn(self, record: TurnRecord | None) -> None: ...

    def end_input(self) -> None: ...
