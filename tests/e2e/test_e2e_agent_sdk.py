"""On the real CLI, claude-agent-sdk gives the same messages with `WireTransport` as with its own transport."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from accounts import of_sdk
from checks import CHECKS
from claude_wire.integrations.agent_sdk import WireTransport
from places import Place
from same import comparable
from through_sdk import CONVERSATIONS, SDK, hold


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_same_messages_calls_and_error_as_with_the_transport_of_the_sdk(
    name: str, places: Callable[[str], Place]
) -> None:
    stock = SDK(places("stock"))
    wire = SDK(places("wire"), WireTransport)

    async def both() -> None:
        await hold(CONVERSATIONS[name], stock)
        await hold(CONVERSATIONS[name], wire)

    anyio.run(both)
    for sdk in (stock, wire):
        CHECKS[name](of_sdk(sdk))
    assert comparable(wire.seen.messages, wire.place) == comparable(stock.seen.messages, stock.place)
    assert comparable(wire.seen.calls, wire.place) == comparable(stock.seen.calls, stock.place)
    assert type(wire.seen.error) is type(stock.seen.error)
    assert comparable(str(wire.seen.error), wire.place) == comparable(str(stock.seen.error), stock.place)


# ClaudeSDKClient.receive_response does not close its generators, and trio warns about that.
@pytest.mark.filterwarnings("ignore:Async generator 'claude_agent_sdk:ResourceWarning")
@pytest.mark.parametrize("name", ["simple", "permission", "mcp", "interrupt"])
def test_on_trio_too(name: str, place: Place) -> None:
    wire = SDK(place, WireTransport)
    anyio.run(hold, CONVERSATIONS[name], wire, backend="trio")
    CHECKS[name](of_sdk(wire))
