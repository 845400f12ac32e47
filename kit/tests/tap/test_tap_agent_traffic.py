"""The redaction masks secrets in the traffic of a coding agent, and leaves harmless texts readable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_traffic_secrets import INNOCENT, LINES, TEXTS
from claude_wire_kit.tap.redact import Lines
from claude_wire_kit.tap.secrets import masked_text
from each import each
from secret_forms import result, tool


def shown(lines: bytes) -> str:
    """Redact lines. Return all keys and texts that remain, one per line."""
    redaction = Lines()
    redacted = redaction.feed(lines + b"\n") + redaction.close()
    return "\n".join(text for line in redacted.splitlines() for text in strings(json.loads(line)))


def strings(value: Any) -> list[str]:
    match value:
        case dict():
            return [text for key, item in value.items() for text in (key, *strings(item))]
        case list():
            return [text for item in value for text in strings(item)]
        case _:
            return [str(value)]


@each("name", TEXTS, str)
def test_no_secret_of_a_text_is_left(name: str) -> None:
    text, secrets = TEXTS[name]
    assert all(secret in text for secret in secrets)
    for line in result(text), tool({"command": text}), tool({"file_path": "a.txt", "content": text}):
        left = shown(line)
        assert [secret for secret in secrets if secret in left] == []


@each("name", LINES, str)
def test_no_secret_of_a_line_is_left(name: str) -> None:
    lines, secrets = LINES[name]
    left = shown(lines)
    assert [secret for secret in secrets if secret in left] == []


@each("text", INNOCENT, str)
def test_an_innocent_text_stays(text: str) -> None:
    for line in result(text), tool({"command": text}):
        assert text in shown(line)


def test_the_corpus_is_large() -> None:
    assert len(TEXTS) + len(LINES) >= 170
    assert len(INNOCENT) >= 170


@pytest.mark.parametrize("text", [f"(a) VALUES ({chr(39) * 3999}", "name=password " + "a=b " * 2000, "codes " * 2000])
def test_a_text_that_nearly_matches_stays(text: str) -> None:
    """The redaction takes linear time for each text. With quadratic time, this test would take minutes."""
    assert masked_text(text * 10) == text * 10
