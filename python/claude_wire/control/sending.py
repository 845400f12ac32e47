"""Send a line with a control request or an answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

Send = Callable[[bytes], Awaitable[object]]

_log = logging.getLogger("claude_wire")


async def send_quietly(send: Send, line: bytes) -> None:
    """Send a line. Only log a failure, because the next read or send raises the same error."""
    try:
        await send(line)
    except Exception as error:
        _log.debug("a control message could not be sent: %s", type(error).__name__)
