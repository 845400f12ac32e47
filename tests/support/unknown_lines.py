"""Lines with unknown types, and known lines to put next to them."""

from __future__ import annotations

import json
from typing import Any

from claude_wire import Decoder

__all__ = ["INIT", "KEEP_ALIVE", "RESULT", "TYPES", "decoded", "line_of"]


KEEP_ALIVE = b'{"type":"keep_alive"}'
INIT = b'{"type":"system","subtype":"init","cwd":"/"}'
RESULT = b'{"type":"result","subtype":"success"}'

#: Types that the protocol tables do not contain.
TYPES = ["of_tomorrow", "von_übermorgen", 'with "quotes" and \\']


def line_of(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def decoded(*lines: bytes, decoder: Decoder[Any] | None = None) -> list[Any]:
    decoder = Decoder() if decoder is None else decoder
    return decoder.feed(b"\n".join([*lines, b""]))
