"""Messages and connections for the tests of dialects."""

from __future__ import annotations

from typing import Any

from claude_wire import InitMessage, UserMessage, decode
from claude_wire.dialects import CLASSIC, JSON_RPC, MIRIAD, Connection, Dialect
from claude_wire.messages import ContentBlock, MessageParam, ResultErrorDuringExecution, ResultSuccess, Usage

__all__ = ["INIT", "OTHERS", "RESULT", "STOPPED", "USED", "read", "started", "text", "user"]


OTHERS = [CLASSIC, MIRIAD, JSON_RPC]
INIT = InitMessage(session_id="S", model="m", tools=["Bash"], uuid="u")
USED = Usage(input_tokens=1, output_tokens=2)
RESULT = ResultSuccess(session_id="S", result="Hi", duration_ms=5, num_turns=1, is_error=False, usage=USED)
STOPPED = ResultErrorDuringExecution(
    session_id="S", terminal_reason="aborted_tools", is_error=True, num_turns=2, duration_ms=5
)


def read(line: str | bytes) -> Any:
    return decode(line)


def text(line: bytes) -> str:
    return line.decode().removesuffix("\n")


def user(*blocks: ContentBlock) -> UserMessage:
    return UserMessage(message=MessageParam("user", list(blocks)))


def started(dialect: Dialect) -> Connection:
    """Return the connection of an agent that has received a prompt and has written its ``init`` message."""
    connection = dialect.connect()
    prompt = '{"type":"user","message":{"role":"user","content":"a"},"session_id":"S"}'
    if dialect is JSON_RPC:
        prompt = '{"jsonrpc":"2.0","id":7,"method":"run","params":{"prompt":"a","session_id":"S"}}'
    (given,) = connection.from_host(read(prompt))
    assert (given.text, given.session_id, given.uuid) == ("a", "S", None)
    connection.to_host(INIT)
    return connection
