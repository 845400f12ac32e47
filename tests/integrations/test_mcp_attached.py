"""A server of the package mcp in a session that attaches to an already running CLI."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("mcp")

from async_backends import every_backend
from claude_wire.integrations.mcp import InProcessMcpServer
from mcp_servers import INITIALIZE, calculator
from session_peer import Peer
from supervisor_peer import SupervisorPeer

HANDSHAKE: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}


@every_backend
@pytest.mark.parametrize("when", ["open", "later"])
async def test_a_server_that_has_not_seen_the_handshake_is_called_all_the_same(when: str) -> None:
    host = SupervisorPeer()
    host.handshakes = {"calc": HANDSHAKE}
    call = Peer.request("call", "mcp_message", server_name="calc", message=CALL)
    if when == "open":
        host.say(call)
    wire, session = host.connect(mcp_servers={"calc": InProcessMcpServer(calculator())})
    async with session:
        if when == "later":
            host.say(call)
        answer = (await wire.answer_to("call"))["response"]["mcp_response"]
        assert answer["id"] == 7
        assert answer["result"]["content"][0]["text"] == "3"
        assert [line["type"] for line in wire.received] == ["control_response"]
