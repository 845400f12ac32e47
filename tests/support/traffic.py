"""Generated traffic in the style of the CLI, for tests and benchmarks. The same arguments give the same bytes.

Several sessions take turns, as on a shared pipe. Each writes whole messages: ``message_start``, blocks with their
deltas, the ``assistant`` line of each block, ``message_stop``, and sometimes a ``result``. The keys, their order and
the other fields are those of recorded lines.

This module knows the format of lines. It must not import the library, because it produces the library's test data.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Literal

__all__ = ["Kind", "Order", "Size", "Style", "Text", "dumps", "pieces", "traffic"]

Size = Literal["small", "mixed", "large"]
Text = Literal["ascii", "cjk", "emoji", "mixed"]
Order = Literal["cli", "session", "shuffled"]
Style = Literal["compact", "python"]
Kind = Literal["text", "thinking", "tool"]

WORDS = {
    "ascii": [
        *["the", "line", "of", "a", "stream", "is", "read", "and", "then", "cut", "it", "parses", "to", "word", "0x0A"],
        *['"quoted"', "back\\slash", "two\nlines", "\ttab", "{braces}", '"type":"result"', "a/b", "\x1b[31mred"],
    ],
    "cjk": ["日本語", "の", "文字列", "中文", "字符", "流", "한국어", "텍스트", "「引用」", "。", "\n", "ab", "\u2028"],
    "emoji": ["ok", "😀", "🚀", "👩‍💻", "🏳️‍🌈", "done", "🎉🎉", "café", "🧵", "\n"],
}
WORDS["mixed"] = [*WORDS["ascii"], *WORDS["cjk"], *WORDS["emoji"]]
#: The number of words in the pool from which all blocks take their text.
POOL_WORDS = 4_000

USAGE = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 1,
    "service_tier": "standard",
}
MODEL = "claude-opus-5-5"


def traffic(
    seed: int = 0,
    *,
    lines: int = 1_600,
    sessions: int = 2,
    size: Size = "small",
    text: Text = "ascii",
    order: Order = "cli",
    style: Style = "compact",
    kinds: tuple[Kind, ...] = ("text", "thinking", "tool"),
    halves: bool = True,
    deltas_only: bool = False,
) -> bytes:
    """Return a stream of ``lines`` lines with their line feeds. The last messages of the sessions may be incomplete.

    Args:
        seed: another seed gives another stream of the same kind.
        lines: the number of lines.
        sessions: the number of sessions, which take turns at random.
        size: the size of delta lines: ``small``, 150 to 500 bytes; ``large``, 100 to 500 KB; ``mixed``, mostly small,
            some of a few KB, and a few of at most 1 MB. An ``assistant`` line has the text of its whole block.
        text: the kind of words in the text.
        order: the order of keys: the CLI's, a different one in each session, or a different one in each line.
        style: JSON in the style of JavaScript, without spaces and escapes, or of Python's ``json.dumps``, with both.
        kinds: the kinds of blocks, in rotation.
        halves: cut deltas between UTF-16 units, even within a surrogate pair; otherwise cut between characters.
        deltas_only: leave out all lines that are not text, thinking or tool input deltas.
    """
    rng = random.Random(seed)
    talks = [_Session(rng, size, text, style, kinds, halves) for _ in range(sessions)]
    speaking = [talk.messages() for talk in talks]
    written: list[bytes] = []
    while len(written) < lines:
        which = rng.randrange(sessions)
        message = next(speaking[which])
        if deltas_only and not _is_delta(message):
            continue
        if order == "session":
            message = _in_order(message, talks[which].place)
        elif order == "shuffled":
            message = _shuffled(message, rng)
        written.append(dumps(message, style) + b"\n")
    return b"".join(written)


def dumps(value: Any, style: Style) -> bytes:
    """Write JSON in one of the two styles. Lone surrogates become escapes in both."""
    if style == "python":
        return json.dumps(value).encode()
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # The CLI escapes U+2028 and U+2029, because JavaScript treats them as line ends.
    written = written.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return written.encode("utf-8", "backslashreplace")


def pieces(text: str, sizes: list[int], halves: bool = True) -> list[str]:
    """Cut a text into pieces of these numbers of UTF-16 units; the last piece takes the rest.

    ``halves`` allows cuts within surrogate pairs.
    """
    units = text.encode("utf-16-le")
    cut: list[str] = []
    at = 0
    for size in [*sizes[:-1], len(units)]:
        end = min(at + 2 * size, len(units))
        if not halves and end < len(units) and 0xDC <= units[end + 1] <= 0xDF:
            end += 2
        cut.append(units[at:end].decode("utf-16-le", "surrogatepass"))
        at = end
    return cut


class _Session:
    def __init__(
        self, rng: random.Random, size: Size, text: Text, style: Style, kinds: tuple[Kind, ...], halves: bool
    ) -> None:
        self.rng = rng
        self.size = size
        self.style = style
        self.kinds = kinds
        self.halves = halves
        self.id = _uuid(rng)
        self.places: dict[str, float] = {}
        self.pool = " ".join(rng.choice(WORDS[text]) for _ in range(POOL_WORDS))
        #: The average number of bytes in a line per UTF-16 unit of the pool.
        self.bytes_per_unit = len(dumps(self.pool, style)) / (len(self.pool.encode("utf-16-le")) // 2)

    def messages(self) -> Iterator[dict[str, Any]]:
        yield self.line("system", subtype="init", cwd="/home/user", tools=["Bash", "Read"], model=MODEL)
        number = 0
        while True:
            number += 1
            yield from self.message(f"msg_{self.rng.randrange(10**12):012}", number)
            if self.rng.random() < 0.3:
                yield self.result()

    def message(self, message_id: str, number: int) -> Iterator[dict[str, Any]]:
        rng = self.rng
        parent = f"toolu_{rng.randrange(10**12):012}" if rng.random() < 0.25 else None
        rest: dict[str, Any] = {"api_message_id": message_id}
        if rng.random() < 0.3:
            rest["thinking_display"] = "updates"
        # Agents other than the CLI leave out some fields.
        bare = self.size != "large" and rng.random() < 0.1

        def event(kind: str, **fields: Any) -> dict[str, Any]:
            inner = {"type": kind, **fields}
            if bare:
                return {"type": "stream_event", "event": inner, "session_id": self.id}
            head = {"type": "stream_event", "event": inner, "session_id": self.id, "parent_tool_use_id": parent}
            return {**head, "uuid": _uuid(rng), **rest}

        started = {"id": message_id, "type": "message", "role": "assistant", "model": MODEL, "content": []}
        yield event("message_start", message={**started, "stop_reason": None, "stop_sequence": None, "usage": USAGE})
        for index in range(1 + rng.randrange(3)):
            kind = self.kinds[(number + index) % len(self.kinds)]
            opening, key, content, whole = self.block(kind)
            yield event("content_block_start", index=index, content_block=opening)
            tag = {"text": "text_delta", "thinking": "thinking_delta", "partial_json": "input_json_delta"}[key]
            for piece in content:
                yield event("content_block_delta", index=index, delta={"type": tag, key: piece})
            if kind == "thinking":
                signed = {"type": "signature_delta", "signature": whole["signature"]}
                yield event("content_block_delta", index=index, delta=signed)
            said = {**started, "content": [whole], "stop_reason": None, "stop_sequence": None, "usage": USAGE}
            yield {
                "type": "assistant",
                "message": said,
                "parent_tool_use_id": parent,
                "session_id": self.id,
                "uuid": _uuid(rng),
                "timestamp": "2026-01-01T00:00:00.000Z",
                "request_id": message_id,
            }
            yield event("content_block_stop", index=index)
        yield event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage=USAGE)
        yield event("message_stop")

    def block(self, kind: Kind) -> tuple[dict[str, Any], str, list[str], dict[str, Any]]:
        """Return the block as it starts, the key of its deltas' text, these texts, and the whole block."""
        rng = self.rng
        sizes = [self.units() for _ in range(1 + rng.randrange(2 if self.size == "large" else 40))]
        start = rng.randrange(len(self.pool))
        length = sum(sizes)
        text = (self.pool[start:] + self.pool * (length // len(self.pool) + 1))[:length]
        if kind == "text":
            cut = pieces(text, sizes, self.halves)
            return {"type": "text", "text": ""}, "text", cut, {"type": "text", "text": text}
        if kind == "thinking":
            signature = f"{rng.randrange(2**256):064x}"
            opening = {"type": "thinking", "thinking": "", "signature": ""}
            cut = pieces(text, sizes, self.halves)
            return opening, "thinking", cut, {"type": "thinking", "thinking": text, "signature": signature}
        tool = {"type": "tool_use", "id": f"toolu_{rng.randrange(10**12):012}", "name": "Bash"}
        arguments = {"command": text, "timeout": 1000}
        cut = pieces(json.dumps(arguments, ensure_ascii=False), [0, *sizes], self.halves)
        return {**tool, "input": {}}, "partial_json", cut, {**tool, "input": arguments}

    def units(self) -> int:
        """Return the number of UTF-16 units in the next delta."""
        rng = self.rng
        chance = rng.random()
        if self.size == "large":
            size = 100_000 + rng.randrange(400_000)
        elif self.size == "small" or chance < 0.8:
            size = rng.randrange(120) if chance < 0.1 else rng.randrange(20)
        elif chance < 0.95:
            size = 100 + rng.randrange(4_000)
        elif chance < 0.997:
            size = 4_000 + rng.randrange(60_000)
        else:
            size = 64_000 + rng.randrange(930_000)
        return round(size / self.bytes_per_unit)

    def place(self, key: str) -> float:
        """Return a sort position for a key. Each session has its own random order of keys."""
        if key not in self.places:
            self.places[key] = random.Random(self.id + key).random()
        return self.places[key]

    def line(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": kind, **fields, "session_id": self.id, "uuid": _uuid(self.rng)}

    def result(self) -> dict[str, Any]:
        """Return a result in the CLI's order of keys: ``type`` is late, and the text comes before it."""
        return {
            "duration_api_ms": 685,
            "stop_reason": "end_turn",
            "session_id": self.id,
            "total_cost_usd": 0.04004,
            "usage": USAGE,
            "modelUsage": {MODEL: {"inputTokens": 10, "costUSD": 0.04004}},
            "permission_denials": [],
            "terminal_reason": "completed",
            "is_error": False,
            "num_turns": 1,
            "subtype": "success",
            "result": self.pool[: self.rng.randrange(2_000)],
            "ttft_ms": 1026,
            "type": "result",
            "duration_ms": 1048,
            "uuid": _uuid(self.rng),
        }


def _uuid(rng: random.Random) -> str:
    digits = f"{rng.randrange(2**128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _is_delta(message: dict[str, Any]) -> bool:
    delta = message.get("event", {}).get("delta", {})
    return delta.get("type") in ("text_delta", "thinking_delta", "input_json_delta")


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, list):
        return [_shuffled(item, rng) for item in value]
    if not isinstance(value, dict):
        return value
    places = {key: rng.random() for key in value}
    return {key: _shuffled(value[key], rng) for key in sorted(value, key=places.__getitem__)}


def _in_order(value: Any, place: Callable[[str], float]) -> Any:
    if isinstance(value, list):
        return [_in_order(item, place) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _in_order(value[key], place) for key in sorted(value, key=place)}
