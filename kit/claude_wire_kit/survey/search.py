"""Read everything that was said in a session, and match it against a pattern."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from claude_wire import read
from claude_wire.codec import Kind
from claude_wire.messages import ContentBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from claude_wire.transcripts import AssistantRecord, AttachmentRecord, Record, UserRecord
from claude_wire.transcripts.files import open_regular

Role: TypeAlias = Literal["user", "assistant", "thinking", "tool"]

#: Remember the tool names of at most this many calls in a file, to return each name with the call's result.
MAX_CALLS = 10_000

#: A file is searched in blocks of this many bytes.
BLOCK_BYTES = 1 << 20

#: Matches characters that JSON does not escape and that have no special meaning in a regular expression.
_PLAIN = re.compile(r"[A-Za-z0-9 _,:;@=~-]+")


class Said(NamedTuple):
    """A part of a conversation: text, thinking, or the input or result of a tool."""

    role: Role
    #: The tool's name. None if this is not an input or a result, or if the result's call is not in the file.
    tool: str | None
    time: str | None
    text: str


class Pattern(NamedTuple):
    search: Callable[[str], re.Match[str] | None]
    #: Every line with a match contains these bytes. Empty if no such bytes are known for the pattern.
    bytes: bytes

    @classmethod
    def of(cls, text: str, *, fixed: bool = False, ignore_case: bool = False) -> Pattern:
        """Compile a regular expression, or with ``fixed`` plain text.

        Raises:
            ValueError: the pattern is invalid.
        """
        try:
            pattern = re.compile(re.escape(text) if fixed else text, re.IGNORECASE if ignore_case else 0)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from error
        is_plain = _PLAIN.fullmatch(text) and not ignore_case
        return cls(pattern.search, text.encode() if is_plain else b"")

    def may_be_in(self, path: Path) -> bool:
        """Return False if the file certainly has no match. Raises OSError if the file cannot be read."""
        return not self.bytes or _has(path, self.bytes)


def _has(path: Path, bytes: bytes) -> bool:
    """Return True if a file contains these bytes. Raises OSError if the file cannot be read."""
    with open_regular(path) as file:
        before = b""
        for block in iter(partial(file.read, BLOCK_BYTES), b""):
            if bytes in before + block:
                return True
            before = block[-len(bytes) :]
    return False


def files_of(session: Path) -> Iterator[Path]:
    """Yield a session's file, then its subagents' files."""
    yield session
    yield from sorted((session.with_suffix("") / "subagents").rglob("*.jsonl"))


def said_in(path: Path) -> Iterator[Said]:
    """Yield everything that was said in a file, in order. Raises OSError if the file cannot be read."""
    calls: dict[str, str] = {}
    kinds: set[str | Kind] = {"user", "assistant"}
    # Attachments can be large, so they are decoded only if one of them is a prompt that was sent during a turn.
    if _has(path, b'"queued_command"'):
        kinds.add(Kind("attachment"))
    with open_regular(path) as file, read(file, Record, only=kinds) as records:
        for record in records:
            if isinstance(record, (UserRecord, AssistantRecord, AttachmentRecord)) and record.message is not None:
                content = record.message.content
                role: Role = "assistant" if isinstance(record, AssistantRecord) else "user"
                if isinstance(content, str):
                    yield Said(role, None, record.timestamp, content)
                    continue
                for block in content:
                    said = _said(block, role, record.timestamp, calls)
                    if said is not None:
                        yield said


def _said(block: ContentBlock, role: Role, time: str | None, calls: dict[str, str]) -> Said | None:
    if isinstance(block, TextBlock):
        return Said(role, None, time, block.text)
    if isinstance(block, ThinkingBlock):
        return Said("thinking", None, time, block.thinking)
    if isinstance(block, ToolUseBlock):
        if len(calls) < MAX_CALLS:
            calls[block.id] = block.name
        return Said("tool", block.name, time, _json(block.input))
    if isinstance(block, ToolResultBlock):
        return Said("tool", calls.get(block.tool_use_id), time, _result(block.content))
    return None


def _result(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content or () if isinstance(block, TextBlock))


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""
