"""The version of the CLI whose protocol the message classes describe."""

from __future__ import annotations

__all__ = ["PROTOCOL_VERSION"]

PROTOCOL_VERSION = "2.1.332"
