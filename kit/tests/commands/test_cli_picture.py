"""The picture in docs/index.md shows the output of ``claude-wire demo``, which looks like ``run`` and ``view``."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from rich.console import Console
from rich.text import Text

from folders import ROOT

PICTURE = ROOT / "docs" / "view.svg"
#: The template of the picture. The default template of rich would load a font from another host.
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>A session in the terminal</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def printed() -> list[str]:
    """Run the demo. Return the rows of its second prompt, with colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "100", "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "claude_wire_kit", "demo", "--no-bench"]
    rows = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    plain = [Text.from_ansi(row).plain for row in rows]
    first = plain.index("> Please fix the bug.")
    return rows[first : plain.index("> Run the tests again.")]


def picture(rows: list[str]) -> str:
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=100, file=nowhere, force_terminal=True, color_system="truecolor")
        for row in rows:
            console.print(Text.from_ansi(row))
    return console.export_svg(title="claude-wire run", code_format=SVG, unique_id="view")


def words(rows: list[str]) -> list[str]:
    """Return the words of a session without its durations, such as "1.23 s"."""
    return re.sub(r"\d+\.\d\d s", "", " ".join(rows).replace("\N{NO-BREAK SPACE}", " ")).split()


def test_the_picture_of_a_session_is_what_the_demo_prints() -> None:
    rows = printed()
    if os.environ.get("CLAUDE_WIRE_PICTURES"):
        PICTURE.write_text(picture(rows), encoding="utf-8")
    drawn = PICTURE.read_text(encoding="utf-8")
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    matrix = drawn.partition('<g class="view-matrix">')[2]
    shown = [html.unescape(re.sub("<[^>]+>", "", text)) for text in re.findall(r"<text[^>]*>.*?</text>", matrix)]
    assert "".join(words(shown)) == "".join(words([Text.from_ansi(row).plain for row in rows]))
