"""Stream events and Hypothesis strategies for their contents, for the tests of accumulators."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import strategies as st

from claude_wire import AssistantMessage, StreamEvent, decode
from claude_wire.accumulate.accumulator import Accumulator, PartialBlock, PartialMessage


def line(event: dict[str, Any], parent: str | None = None, session: str | None = "s", **rest: Any) -> StreamEvent:
    value = {"type": "stream_event", "event": event, "parent_tool_use_id": parent, "session_id": session, **rest}
    message = decode(json.dumps(value))
    assert isinstance(message, StreamEvent)
    return message


def message_start(api_id: str = "m", **fields: Any) -> dict[str, Any]:
    return {
        "type": "message_start",
        "message": {"id": api_id, "role": "assistant", "model": "x", "content": [], **fields},
    }


def block_start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", **fields}}


def text_delta(index: int, text: str) -> dict[str, Any]:
    return delta(index, "text", text=text)


def json_delta(index: int, text: str) -> dict[str, Any]:
    return delta(index, "input_json", partial_json=text)


def block_stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message_delta(stop_reason: str = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, "usage": usage}


MESSAGE_STOP = {"type": "message_stop"}
TEXT = block_start(0, type="text", text="")
TOOL = block_start(0, type="tool_use", id="t", name="Bash", input={})
THINKING = block_start(0, type="thinking", thinking="", signature="")


def folded(*events: dict[str, Any], into: Accumulator | None = None, **rest: Any) -> PartialMessage:
    accumulator = into or Accumulator()
    partial = None
    for event in events:
        partial = accumulator.add(line(event, **rest))
    assert partial is not None
    return partial


def only(partial: PartialMessage) -> PartialBlock:
    (block,) = partial.blocks
    return block


characters = st.sampled_from(["a", "B", " ", "\n", '"', "\\", "{", "é", "\u2028", "\U0001f600", "\U0001f680", "日"])
texts = st.lists(characters, max_size=12).map("".join)
#: Texts with lone surrogates. A low surrogate never follows a high one.
odd_texts = st.lists(characters | st.just("\udfff"), max_size=6).map("".join)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | odd_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
inputs = st.dictionaries(texts, values, max_size=3)
citations = st.builds(
    lambda text: {
        "type": "web_search_result_location",
        "cited_text": text,
        "encrypted_index": "i",
        "title": None,
        "url": "http://x",
    },
    texts,
)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """Cut a text between UTF-16 units as the CLI does, even within surrogate pairs."""
    units = text.encode("utf-16-le", "surrogatepass")
    cuts = sorted(draw(st.lists(st.integers(0, len(units) // 2), max_size=6)))
    return [
        units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
        for start, end in itertools.pairwise([0, *cuts, len(units) // 2])
    ]


def decoded(content: list[dict[str, Any]]) -> list[Any]:
    message = decode(json.dumps({"type": "assistant", "message": {"role": "assistant", "content": content}}))
    assert isinstance(message, AssistantMessage)
    return message.content
