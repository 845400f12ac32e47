"""The page of a session with hostile lines shows each text as text. No text creates an element or an attribute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from claude_wire.testing import Recording
from claude_wire_kit.commands.app import cli
from markdown_samples import ATTACKS
from pages_html import HtmlPage
from recordings import load, names
from sessions import outputs, scenarios, transcripts, unpack
from shown import RUNNER

#: A text that closes any element or attribute around it, followed by markup that a browser would run, hide or reorder.
HOSTILE = (
    "\u202e\"'><script>alert(1)</script>-->]]></title></style></pre></summary></details></main><img src=x onerror=a>`"
    "<svg/onload=alert(1)><a href=javascript:alert(1)>`<b>`**<i>**&lt;&#60;\u202e\u2066\u200b\u2028\x00\x1b[31m\x7f\x85"
    "\ud800\ufeff\U000e0001"
)
#: The keys whose values distinguish lines and blocks. With other values, the page would show little of a line.
STRUCTURE = {"type", "subtype"}
#: The keys whose values decide how the page shows a block.
MEANING = STRUCTURE | {
    *("name", "role", "timestamp", "media_type", "data", "decision", "source", "non_execution_kind", "status", "level"),
    *("hook_event_name", "tool_name", "behavior", "decision", "terminal_reason", "agentId", "toolUseId", "method"),
}


def hostile(value: Any, kept: set[str]) -> Any:
    """Append HOSTILE to each text of a JSON value, except to the values of the keys in `kept`."""
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, list):
        return [hostile(item, kept) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in kept and isinstance(item, str) else hostile(item, kept) for key, item in value.items()
        }
    return value


def hostile_lines(data: bytes, kept: set[str]) -> bytes:
    lines: list[bytes] = []
    for line in data.splitlines():
        try:
            lines.append(json.dumps(hostile(json.loads(line), kept)).encode())
        except (ValueError, RecursionError):  # not JSON, or nested too deeply
            lines.append(line + HOSTILE.encode("utf-8", "surrogatepass").replace(b"\n", b" "))
    return b"\n".join(lines) + b"\n"


def shown(source: str, stdin: bytes = b"") -> HtmlPage:
    done = RUNNER.invoke(cli, ["view", "--html", source], input=stdin)
    assert done.exit_code == 0, done.output
    return HtmlPage(done.stdout)


@pytest.mark.parametrize("kept", [STRUCTURE, MEANING], ids=["all", "texts"])
@pytest.mark.parametrize("name", names())
def test_recording_of_both_sides(name: str, kept: set[str], tmp_path: Path) -> None:
    recording = load(name)
    files = {
        "stdout.ndjson": hostile_lines(recording.stdout, kept),
        "stdin.ndjson": hostile_lines(recording.stdin, kept),
    }
    folder = Recording.from_files(files).save(tmp_path / "r").path or ""
    page = shown(folder)
    if page.count.get("section"):  # the pages of some recordings are empty
        assert "<script>alert(1)</script>" in page.text
        assert "\\u202e" in page.text


@pytest.mark.parametrize("kept", [STRUCTURE, MEANING], ids=["all", "texts"])
@pytest.mark.parametrize("scenario", scenarios())
def test_session_on_disk_and_its_stream(scenario: str, kept: set[str], tmp_path: Path) -> None:
    folder = unpack(scenario, tmp_path)
    for name, data in transcripts(scenario).items():
        (folder.parent / name).write_bytes(hostile_lines(data, kept))
    for path in folder.glob("*/*.jsonl"):
        assert "<script>alert(1)</script>" in shown(str(path)).text
    for output in outputs(scenario):
        assert "<script>alert(1)</script>" in shown("-", hostile_lines(output, kept)).text


def test_names_of_members_are_texts_too() -> None:
    given = {HOSTILE: HOSTILE, "command": "x", "todos": [{"content": HOSTILE, "status": HOSTILE}]}
    block = {"type": "tool_use", "id": HOSTILE, "name": f"mcp__{HOSTILE}__{HOSTILE}", "input": given}
    line = {"type": "assistant", "message": {"role": "assistant", "content": [block]}, "parent_tool_use_id": None}
    page = shown("-", json.dumps(line).encode() + b"\n")
    assert page.text.count("<script>alert(1)</script>") >= 3


@pytest.mark.parametrize(
    "source",
    [
        {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIj4="},
        {"type": "base64", "media_type": "text/html", "data": "PHNjcmlwdD4="},
        {"type": "base64", "media_type": 'image/png" onload="alert(1)', "data": "AAAA"},
        {"type": "base64", "media_type": "image/png", "data": 'AAAA" onerror="alert(1)'},
        {"type": "base64", "media_type": "image/png", "data": "AAAA\n"},
        {"type": "url", "url": "javascript:alert(1)"},
        {"type": "url", "url": "https://elsewhere.example/x.png"},
    ],
    ids=lambda source: f"{source.get('media_type', 'url')[:14]}-{source.get('data', '')[:5]!a}",
)
def test_only_a_picture_whose_bytes_are_in_the_line_is_an_element(source: dict[str, str]) -> None:
    """A page loads nothing from other hosts, and an SVG picture could contain a script."""
    content = [{"type": "image", "source": source}, {"type": "text", "text": "and this"}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": content}
    lines = [
        {"type": "user", "message": {"role": "user", "content": content}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
        {"type": "assistant", "message": {"role": "assistant", "content": content}},
    ]
    page = shown("-", b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert "img" not in page.count
    assert page.text.count("and this") == 5  # the title and the heading repeat it


@pytest.mark.parametrize(
    "text",
    ["<b>\u202e", "`<i>`**x**", "```\n</pre><script>\n", "**" * 9 + "`", "\n", "\x00\x1b]2;", "[x](javascript:a) "],
    ids=ascii,
)
def test_a_text_of_a_megabyte_makes_a_small_page_of_our_elements(text: str) -> None:
    """The text is an answer, the input of a call, its result, a change of a file, and a name."""
    long = text * (1_000_000 // len(text))
    edit = {"file_path": long, "old_string": long, "new_string": f"{long}x"}
    calls = [
        {"type": "tool_use", "id": "e", "name": "Edit", "input": edit},
        {"type": "tool_use", "id": long, "name": long, "input": {long: long}},
    ]
    blocks = [{"type": "text", "text": long}, {"type": "thinking", "thinking": long, "signature": ""}, *calls]
    patch = {"structuredPatch": [{"oldStart": 1, "newStart": 1, "lines": [f"+{long}", long]}]}
    result = {"type": "tool_result", "tool_use_id": "e", "content": long, "is_error": True}
    lines = [
        {"type": "system", "subtype": "init", "cwd": long, "model": long, "session_id": long},
        {"type": "user", "message": {"role": "user", "content": long}},
        {"type": "assistant", "message": {"id": "m", "role": "assistant", "model": long, "content": blocks}},
        {"type": "user", "message": {"role": "user", "content": [result]}, "tool_use_result": patch},
        {"type": "result", "subtype": long, "is_error": True, "result": long, "errors": [long]},
    ]
    page = shown("-", b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert len(page.text) < 3_000_000
    assert sum(page.count.values()) < 200_000


@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_markdown_that_attacks(attack: str) -> None:
    """Hostile Markdown creates only elements that :class:`HtmlPage` knows. Its links open web pages in another tab."""
    line = {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": attack}]}}
    page = shown("-", json.dumps(line).encode() + b"\n")
    assert page.classes["markdown"] == 1


def test_markdown_that_names_characters_that_are_not_seen() -> None:
    text = "&#x202e;abc &#8203; `&#x202e;` [a](https://x.example/&#x202e;)"
    line = {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}
    assert "\\u202eabc \\u200b" in shown("-", json.dumps(line).encode() + b"\n").text
