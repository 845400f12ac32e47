"""The main job on generated traffic: text, thinking and tool input from three sessions."""

from __future__ import annotations

import pytest

import peers
import workloads
from conftest import Contest
from test_decode import aligned, by_hand, feeding

#: Variation -> our claims: our time divided by that of msgspec by hand is at most this, and we are at least this many
#: times as fast as the others.
CLAIMS = {
    "ASCII": (None, {}),
    "lines of 150 bytes to 1 MB": (None, {"orjson": 1.3, "fastsimdjson": 1.0}),
}
#: The claims of all other variations.
OTHERS = (0.67, {"fastsimdjson": 1.3})


@pytest.mark.parametrize("variation", workloads.VARIATIONS)
def test_typed(contest: Contest, variation: str) -> None:
    """``feed`` typed messages in chunks of 64 KiB."""
    data = workloads.made(variation)
    passes = max(1, 5_000_000 // len(data))
    chunks = workloads.chunks(data) * passes
    by_hand_claim, claims = CLAIMS.get(variation, OTHERS)
    contest(
        f"feed, typed, {variation}",
        workloads.count(data) * passes,
        feeding(chunks),
        at_most={"msgspec by hand at its best, blocks": (aligned(by_hand, data, passes), by_hand_claim)},
        faster_than=peers.entered(
            chunks,
            {
                "claude-agent-sdk": peers.by_agent_sdk,
                "orjson.loads (dicts)": peers.by_orjson,
                "fastsimdjson.loads_many (dicts)": peers.by_fastsimdjson,
            },
            claims,
        ),
    )
