"""An emoji cut between two lines: claude_wire loses no line and rejoins the halves; the page lists other tools."""

from __future__ import annotations

import sys

import pytest

from claude_wire import Accumulator, Decoder, StreamEvent, encode
from folders import ROOT

sys.path.append(str(ROOT / "benches"))

import cut_emoji

PAGE = (ROOT / "docs" / "how-to" / "decode.md").read_text(encoding="utf-8")
START = b'{"type":"stream_event","event":{"type":"message_start","message":{"role":"assistant","content":[]}}}\n'
BLOCK = (
    b'{"type":"stream_event","event":{"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}}\n'
)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_each_half_is_kept_and_is_written_as_it_was(size: int) -> None:
    decoder = Decoder()
    messages = [
        message
        for at in range(0, len(cut_emoji.LINES), size)
        for message in decoder.feed(cut_emoji.LINES[at : at + size])
    ]
    assert all(isinstance(message, StreamEvent) for message in messages)
    assert [getattr(message, "text_delta", None) for message in messages] == ["Hi ", "\ud83d", "\ude00", "!"]
    assert b"\\ud83d" in encode(messages[1])
    assert b"\\ude00" in encode(messages[2])


def test_halves_meet_again_where_deltas_are_merged_or_accumulated() -> None:
    assert cut_emoji.outcome(cut_emoji.with_claude_wire_merging) == ["Hi \N{GRINNING FACE}!"]
    accumulator = Accumulator()
    for message in Decoder().feed(START + BLOCK + cut_emoji.LINES):
        assert not isinstance(message, type(None))
        partial = accumulator.add(message)
    assert partial is not None
    assert [block.text for block in partial.blocks] == ["Hi \N{GRINNING FACE}!"]


@pytest.mark.parametrize("label", ["orjson, a bad line skipped", "DuckDB", "DuckDB, ignore_errors", "polars"])
def test_another_reader_does_what_the_page_says(label: str) -> None:
    package, _ = cut_emoji.READERS[label]
    pytest.importorskip(package)
    line = next(line for line in cut_emoji.report() if line.startswith(label + " "))
    [written] = [line for line in PAGE.splitlines() if line.startswith(label + " ")]
    # The line has a label, a version and a behavior. If a later version behaves differently, update the page.
    assert line[36:].strip() == written[36:].strip()


def test_the_page_shows_what_ours_prints() -> None:
    for label in ("claude_wire", "claude_wire, coalesce=True"):
        [line] = [line for line in cut_emoji.report() if line[:27].rstrip() == label]
        [written] = [line for line in PAGE.splitlines() if line[:27].rstrip() == label and "[" in line]
        assert line[36:].strip() == written[36:].strip()
