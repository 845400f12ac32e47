"""The service uses internals of uvicorn and websockets. It reports a clear error if a new version changes them."""

from __future__ import annotations

import asyncio
import re
from importlib.metadata import version

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.web import Config, create_app
from claude_wire_kit.web.server import TESTED_UVICORN, TESTED_WEBSOCKETS, ServiceServer


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (H11Protocol, "send_400_response", f"tested up to uvicorn {TESTED_UVICORN}; .* H11Protocol has no "),
        (WebSocketsSansIOProtocol, "handle_ping", "uvicorn .* WebSocketsSansIOProtocol has no "),
        (ServerProtocol, "reject", f"tested up to websockets {TESTED_WEBSOCKETS}; .* ServerProtocol has no "),
    ],
)
def test_a_part_that_is_gone_is_named_when_the_service_starts(
    owner: type, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ServiceServer(create_app(connect("/nowhere"), Config(), "t" * 43, port=1))
    monkeypatch.delattr(owner, name)
    with pytest.raises(ImportError, match=said + name):
        asyncio.run(server.serve())


@pytest.mark.parametrize(("package", "tested"), [("uvicorn", TESTED_UVICORN), ("websockets", TESTED_WEBSOCKETS)])
def test_the_newest_version_that_was_tested_is_named(package: str, tested: str) -> None:
    installed, named = (tuple(map(int, re.findall(r"\d+", text))) for text in (version(package), tested))
    assert installed <= named
