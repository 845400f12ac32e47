"""A fake CLI for claude-agent-sdk in a few lines of Python, and helpers for the tests of WireTransport."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    InMemorySessionStore,
    PermissionResultAllow,
    ResultMessage,
    Transport,
    project_key_for_directory,
    query,
)

from async_backends import DEADLINE
from claude_wire.integrations.agent_sdk import WireTransport

__all__ = [
    "MARKS",
    "ONE_TURN",
    "SECRET",
    "SESSION_ID",
    "allow",
    "ask",
    "is_alive",
    "left_over",
    "read",
    "run_python",
    "stored",
    "texts_of",
    "until",
]

#: The marks for every test file of WireTransport.
MARKS = [
    pytest.mark.anyio,
    # The SDK drops its generators in the middle of an iteration, and trio warns about them.
    pytest.mark.filterwarnings("ignore:Async generator 'claude_agent_sdk:ResourceWarning"),
    pytest.mark.skipif(sys.platform == "win32", reason="the CLI of these tests is a script with a shebang"),
]

#: A fake prompt or token. No log may contain it.
SECRET = "sk-ant-hunter2"

ONE_TURN = "prompt(); init(); assistant('hello'); result(); hear()"


async def until(condition: Callable[[], Any]) -> None:
    with anyio.fail_after(DEADLINE):
        while not condition():
            await anyio.sleep(0.005)


async def texts_of(messages: AsyncIterator[Any]) -> list[Any]:
    """Return the texts of the assistant messages and of the result."""
    found: list[Any] = []
    with anyio.fail_after(DEADLINE):
        async for message in messages:
            if isinstance(message, AssistantMessage):
                found += [block.text for block in message.content]
            elif isinstance(message, ResultMessage):
                found.append(message.result)
    return found


def ask(options: ClaudeAgentOptions, prompt: str = "hi", **more: Any) -> AsyncIterator[Any]:
    return query(prompt=prompt, options=options, transport=WireTransport(prompt, options, **more))


async def read(transport: Transport) -> list[dict[str, Any]]:
    with anyio.fail_after(DEADLINE):
        return [message async for message in transport.read_messages()]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def run_python(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


async def allow(*args: Any) -> PermissionResultAllow:
    return PermissionResultAllow()


SESSION_ID = "4b18c744-4cbf-47f5-8390-8f10b55cac4e"


async def stored(tmp_path: pathlib.Path) -> tuple[InMemorySessionStore, dict[str, str]]:
    store = InMemorySessionStore()
    key = {"project_key": project_key_for_directory(tmp_path), "session_id": SESSION_ID}
    await store.append(key, [{"type": "user", "uuid": str(uuid.uuid4())}])
    return store, key


def left_over(home: pathlib.Path) -> list[pathlib.Path]:
    return list(home.glob("claude-resume-*"))
