"""Feed a decoder with streams cut into chunks, and collect its messages."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable
from typing import Any

from claude_wire import Decoder
from claude_wire.native.line_buffer import LineBuffer
from delta_lines import EARNING, TEXT_KEYS, block

__all__ = ["cut", "earned", "fed", "said", "without_vectors"]


def cut(data: bytes, *sizes: int) -> list[bytes]:
    """Cut data into chunks whose sizes cycle through ``sizes``."""
    chunks: list[bytes] = []
    turns = itertools.cycle(sizes)
    at = 0
    while at < len(data):
        size = next(turns)
        chunks.append(data[at : at + size])
        at += size
    return chunks


def earned(decoder: Decoder[Any]) -> Decoder[Any]:
    """Feed the decoder enough deltas to make it merge (with ``coalesce``), and return it."""
    decoder.feed(block(*EARNING))
    return decoder


def fed(decoder: Decoder[Any], chunks: Iterable[bytes]) -> list[Any]:
    """Feed all chunks, close the decoder, and return all messages."""
    return [message for chunk in chunks for message in decoder.feed(chunk)] + decoder.close()


def without_vectors(decoder: Decoder[Any], *, coalesce: bool = False) -> Decoder[Any]:
    """Switch a new decoder to the native code without SIMD, and return it."""
    limit = decoder._buffer.max_line_bytes
    decoder._buffer = LineBuffer(limit, only=decoder.only, coalesce=coalesce, plain=True)
    decoder._feeder = decoder._native_feeder = decoder._lines.engine.new_feed(decoder._buffer.handle)
    return decoder


def said(messages: Iterable[Any]) -> list[Any]:
    """Normalize a stream of dicts, so that merged and unmerged deltas compare equal.

    The result has the other messages in order, and between them the joined texts of each key. Deltas share an entry if
    they differ only in text and uuid; the entry has the last uuid. Keys keep the order of their first delta.
    """
    found: list[Any] = []
    segment: dict[Any, list[list[Any]]] = {}
    for message in messages:
        key = _key(message)
        if key is None:
            if segment:
                found.append(list(segment.items()))
                segment = {}
            found.append(message)
            continue
        rest = copy.deepcopy(message)
        text = rest["event"]["delta"].pop(TEXT_KEYS[key[3]])
        uuid = rest.get("uuid")
        if isinstance(uuid, str):
            rest["uuid"] = "some"
        said = segment.setdefault(key, [])
        if said and said[-1][0] == rest:
            said[-1][1:] = [said[-1][1] + text, uuid]
        else:
            said.append([rest, text, uuid])
    found.append(list(segment.items()))
    for part in found:
        if isinstance(part, list):
            for _, said in part:
                for piece in said:
                    piece[1] = piece[1].encode("utf-16-le", "surrogatepass")  # join surrogate halves
    return found


def _key(message: Any) -> tuple[Any, ...] | None:
    event = message.get("event") if isinstance(message, dict) and message.get("type") == "stream_event" else None
    if not isinstance(event, dict) or event.get("type") != "content_block_delta":
        return None
    inner = event.get("delta")
    if not isinstance(inner, dict) or not isinstance(inner.get("type"), str) or inner["type"] not in TEXT_KEYS:
        return None
    if not isinstance(inner.get(TEXT_KEYS[inner["type"]]), str):
        return None
    owner = [json.dumps(message.get(name)) for name in ("session_id", "parent_tool_use_id")]
    return (*owner, json.dumps(event.get("index")), inner["type"])
