"""Numbers that the CLI writes as fractions are taken as fractions."""

from __future__ import annotations

import pytest

from claude_wire import RateLimitEvent, decode, encode
from claude_wire.bridge import Bridge

WARNING = (
    b'{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","surpassedThreshold":%s,'
    b'"unifiedWindows":{"five_hour":{"utilization":0.92,"resetsAt":1795545263,"surpassedThreshold":%s}}}}'
)


@pytest.mark.parametrize("written", [b"0.9", b"1"])
def test_a_rate_limit_warning_is_a_notice_at_any_threshold(written: bytes) -> None:
    line = WARNING % (written, written)
    message = decode(line)
    assert isinstance(message, RateLimitEvent)
    assert b'"surpassedThreshold":' + written + b"," in encode(message)
    assert Bridge().add(message)
