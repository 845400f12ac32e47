"""Let the agent begin a turn without the host, as the CLI does when background work ends.

A turn of an agent begins with a prompt. So :func:`take_input` replaces standard input with a pipe. A thread passes the
host's lines into this pipe, and :func:`wake` adds a prompt.
"""

from __future__ import annotations

import os
import queue
import threading

from claude_wire.codec import encode
from claude_wire.messages import MessageParam, UserMessage

#: The text of the prompt that :func:`wake` adds. The host does not see it.
WOKEN = "<task-notification/>"

#: Lines for the agent; None after the last one. While the queue is full, ``_read`` waits.
_lines: queue.Queue[bytes | None] = queue.Queue(16)


def take_input() -> None:
    """Replace this process's standard input with a pipe. Call this before the agent starts to read."""
    host = os.dup(0)
    read, write = os.pipe()
    os.dup2(read, 0)
    os.close(read)
    for function, descriptor in ((_read, host), (_write, write)):
        threading.Thread(target=function, args=(descriptor,), daemon=True).start()


def wake(seconds: float) -> None:
    """Begin a turn after this many seconds. Does nothing if :func:`take_input` was not called."""
    line = encode(UserMessage(message=MessageParam("user", WOKEN), isSynthetic=True))
    timer = threading.Timer(seconds, _lines.put, [line])
    timer.daemon = True
    timer.start()


def _read(host: int) -> None:
    with open(host, "rb") as file:
        for line in file:
            _lines.put(line)
    _lines.put(None)


def _write(descriptor: int) -> None:
    with open(descriptor, "wb", buffering=0) as file:
        while (line := _lines.get()) is not None:
            file.write(line)
