"""What both halves of the control protocol share: the sending of lines."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

__all__ = ["Send", "send_quietly"]

Send = Callable[[bytes], Awaitable[object]]

_log = logging.getLogger("claude_wire")


async def send_quietly(send: Send, line: bytes) -> None:
    """Send what nobody waits for. That it cannot be sent is seen by whoever reads, or sends next."""
    try:
        await send(line)
    except Exception as error:
        _log.debug("a control message could not be sent: %s", type(error).__name__)
