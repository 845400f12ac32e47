"""Generate a transcript of any size from a seed: ``corpus.py PATH MEGABYTES [SEED]``.

The lines have the shapes and about the sizes of recorded lines. 1% have an unknown type. 1% are cut off, or have half
of an emoji. 5% are copies, as in a fork: with the same ids, but in another session. A copied
answer has the id of the session that made the request, in ``requestSessionId``.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["lines", "write"]

WORDS = [
    *["the", "file", "test", "error", "result", "line", "value", "path", "name", "return", "import", "class"],
    *["self", "assert", "README.md", "src/main.rs", "of", "and"],
]
#: One word in fifty is one of these. In recorded sessions, seven bytes in a thousand are not ASCII.
OTHERS = ["naïve", "—", "日本", "😀"]
MODELS = ["claude-opus-5-5", "claude-sonnet-5", "claude-haiku-5"]
ESCAPES = ["\n", '"', "\\", "\t"]


def _text(rng: random.Random, words: int) -> str:
    found: list[str] = []
    for _ in range(rng.randrange(1, words)):
        found.append(rng.choice(OTHERS if rng.random() < 0.02 else WORDS))
        found.append(rng.choice(ESCAPES) if rng.random() < 0.06 else " ")
    return "".join(found)


class _Session:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.id = self.uuid()
        #: The session id of copies that are created during this session.
        self.fork = self.uuid()
        self.parent: str | None = None
        self.seconds = rng.randrange(10**8)

    def uuid(self) -> str:
        digits = f"{self.rng.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def envelope(self, before: dict[str, Any], **after: Any) -> dict[str, Any]:
        self.seconds += 1
        parent, self.parent = self.parent, self.uuid()
        days, seconds = divmod(self.seconds, 86400)
        minutes, second = divmod(seconds, 60)
        day = f"20{20 + days % 7:02}-{1 + days % 12:02}-{1 + days % 28:02}"
        return {
            "parentUuid": parent,
            "isSidechain": False,
            **before,
            "uuid": self.parent,
            "timestamp": f"{day}T{minutes // 60:02}:{minutes % 60:02}:{second:02}.{self.rng.randrange(1000):03}Z",
            **after,
            "userType": "external",
            "entrypoint": "cli",
            "cwd": "/home/user/src/project",
            "sessionId": self.id,
            "version": "2.1.331",
            "gitBranch": "main",
        }

    def answer(self) -> Iterator[dict[str, Any]]:
        rng = self.rng
        usage = {
            "input_tokens": rng.randrange(3000),
            "cache_creation_input_tokens": rng.randrange(5000),
            "cache_read_input_tokens": rng.randrange(100_000),
            "output_tokens": rng.randrange(2000),
            "output_tokens_details": {"thinking_tokens": 0},
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": rng.randrange(5000)},
            "inference_geo": "not_available",
        }
        message = f"msg_{rng.getrandbits(96):024x}"
        request = f"req_{rng.getrandbits(96):024x}"
        call = f"toolu_{rng.getrandbits(96):024x}"
        blocks: list[dict[str, Any]] = [{"type": "text", "text": _text(rng, 120)}]
        if rng.random() < 0.6:
            command = {"command": _text(rng, 30), "description": _text(rng, 6)}
            blocks.append({"type": "tool_use", "id": call, "name": "Bash", "input": command})
        for block in blocks:
            body = {
                "id": message,
                "type": "message",
                "role": "assistant",
                "model": MODELS[rng.getrandbits(4) % 3],
                "content": [block],
                "stop_reason": "tool_use" if len(blocks) > 1 else "end_turn",
                "stop_sequence": None,
                "usage": usage,
            }
            yield self.envelope({"message": body, "requestId": request, "type": "assistant"}, madeBy="model")
        if len(blocks) > 1:
            output = _text(rng, 700)
            content: Any = output if rng.random() < 0.6 else [{"type": "text", "text": output}]
            result = {"tool_use_id": call, "type": "tool_result", "content": content, "is_error": False}
            body = {"role": "user", "content": [result]}
            yield self.envelope({"type": "user", "message": body}, toolUseResult={"stdout": output, "stderr": ""})

    def turn(self) -> Iterator[dict[str, Any]]:
        rng = self.rng
        prompt = _text(rng, 60)
        yield {"type": "queue-operation", "operation": "enqueue", "sessionId": self.id, "content": prompt}
        yield self.envelope({"type": "user", "message": {"role": "user", "content": prompt}})
        attachment = {"type": "skill_listing", "content": _text(rng, 500), "isInitial": True}
        yield self.envelope({"attachment": attachment, "type": "attachment"})
        for _ in range(rng.randrange(1, 6)):
            yield from self.answer()
        yield {"type": "last-prompt", "lastPrompt": prompt[:80], "leafUuid": self.parent, "sessionId": self.id}


def lines(size: int, seed: int = 1) -> Iterator[bytes]:
    """Yield lines with their line feeds, of about ``size`` bytes in total."""
    rng = random.Random(seed)
    recent: list[dict[str, Any]] = []
    made = 0
    session = _Session(rng)
    while made < size:
        if rng.random() < 0.02:
            session = _Session(rng)
        for line in session.turn():
            chance = rng.random()
            if chance < 0.01:
                line = {"type": f"of-tomorrow-{rng.randrange(9)}", "sessionId": session.id, "payload": {"a": [1, "x"]}}
            encoded = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
            if 0.01 <= chance < 0.015:
                encoded = encoded[: rng.randrange(1, len(encoded))].decode(errors="ignore").encode()
            elif 0.015 <= chance < 0.02:
                # Put half an emoji into the branch name and into the texts.
                encoded = encoded.replace(b'main"', b'main \\ud83d"').replace(b" the ", b" \\ud83d ")
            elif 0.02 <= chance < 0.07 and recent:
                original = rng.choice(recent)
                copied = {**original, "sessionId": session.fork}
                if "requestId" in copied:
                    copied["requestSessionId"] = original["sessionId"]
                encoded = json.dumps(copied, ensure_ascii=False, separators=(",", ":")).encode()
            else:
                recent.append(line)
                del recent[:-200]
            made += len(encoded) + 1
            yield encoded + b"\n"


def write(path: Path, size: int, seed: int = 1) -> None:
    """Write a file of about ``size`` bytes."""
    with open(path, "wb") as file:
        file.writelines(lines(size, seed))


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]) * 1_000_000, *map(int, sys.argv[3:]))
