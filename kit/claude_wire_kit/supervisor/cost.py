"""A cost limit for a session. It asks the CLI for the cost every second during a run, and interrupts at the limit.

The session can exceed the limit, because model calls continue until the next answer shows their cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from claude_wire.codec import encode
from claude_wire.errors import PayloadError
from claude_wire.messages import (
    ControlRequest,
    ControlResponse,
    GetUsageRequest,
    InitMessage,
    InterruptRequest,
    ResultMessage,
)

#: Seconds between two requests for the cost.
ASK_SECONDS = 1.0
#: Prefix of this module's request ids.
PREFIX = "claude_wire_supervisor_cost_"


class CostLimit:
    """Watches one session's cost.

    Args:
        most: the limit in US dollars.
        send: writes a line to the CLI. It may raise OSError.
        reached: called once with the cost in US dollars, when the session reaches the limit.
        runs: returns True while a turn is under way or a subagent works in the background.
    """

    def __init__(
        self,
        most: float,
        send: Callable[[bytes], object],
        reached: Callable[[float], object],
        runs: Callable[[], bool],
    ) -> None:
        self._most = most
        self._cost = 0.0
        self._send = send
        self._reached = reached
        self._runs = runs
        self._loop = asyncio.get_running_loop()
        self._asked = 0
        # True from a cost request until its answer.
        self._asks = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def reason(self) -> str:
        """Say why the session refuses prompts. Empty below the limit."""
        if self._cost < self._most:
            return ""
        return f"the session has cost ${self._cost:.2f}, and may cost ${self._most:.2f} (limit: cost_usd)"

    def received(self, message: object) -> None:
        """Handle a message from the CLI: the start of a turn, a result, or the answer to a cost request."""
        if isinstance(message, InitMessage):
            self._watch()
        elif isinstance(message, ResultMessage):
            self._spent(float(message.total_cost_usd or 0.0))
        elif isinstance(message, ControlResponse):
            id = message.request_id
            if isinstance(id, str) and id.startswith(PREFIX):
                self._asks = False
                with suppress(PayloadError):  # the answer has no cost
                    usage = message.payload_as(GetUsageRequest)
                    if usage.session is not None:
                        self._spent(float(usage.session.total_cost_usd))

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(ASK_SECONDS, self._ask_again)

    def _ask_again(self) -> None:
        self._timer = None
        if self._runs():
            if not self._asks:
                self._asks = self._ask(GetUsageRequest(skip_behaviors=True))
            self._watch()

    def _spent(self, cost: float) -> None:
        had, self._cost = self._cost, max(cost, self._cost)
        if had < self._most <= self._cost:
            self._ask(InterruptRequest())
            self._reached(self._cost)

    def _ask(self, request: GetUsageRequest | InterruptRequest) -> bool:
        """Send a request. Return False if the journal cannot be written, so the request was not sent."""
        self._asked += 1
        try:
            self._send(encode(ControlRequest(request_id=f"{PREFIX}{self._asked}", request=request)))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Stop asking. A second call does nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
