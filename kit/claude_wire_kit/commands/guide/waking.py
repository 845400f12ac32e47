"""Lets the agent begin a turn by itself, as the CLI does when work in the background has ended.

An agent speaks in turns, and a prompt begins each. So :func:`take_input` puts a pipe before the standard input, through
which the host's lines pass, and into which :func:`wake` writes a prompt of the agent's own.
"""

from __future__ import annotations

import os
import queue
import threading

from claude_wire.codec import encode
from claude_wire.messages import MessageParam, UserMessage

#: The text of the agent's own prompt. The host does not see it.
WOKEN = "<task-notification/>"

#: Lines for the agent, and None at the end. The host has to wait while so many wait.
_lines: queue.Queue[bytes | None] = queue.Queue(16)


def take_input() -> None:
    """Put the pipe before the standard input of this process. Call this before the agent begins."""
    host = os.dup(0)
    read, write = os.pipe()
    os.dup2(read, 0)
    os.close(read)
    for function, descriptor in ((_read, host), (_write, write)):
        threading.Thread(target=function, args=(descriptor,), daemon=True).start()


def wake(seconds: float) -> None:
    """Begin a turn after so many seconds. Does nothing where :func:`take_input` was not called."""
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
