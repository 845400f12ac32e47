"""Send a line of the control protocol; for both of its halves."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

Send = Callable[[bytes], Awaitable[object]]

_log = logging.getLogger("claude_wire")


async def send_quietly(send: Send, line: bytes) -> None:
    """Send a line whose sender does not wait. A failure is only logged: the next read or send raises it."""
    try:
        await send(line)
    except Exception as error:
        _log.debug("a control message could not be sent: %s", type(error).__name__)
