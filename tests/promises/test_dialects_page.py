"""Check docs/dialects.md: its example host can drive its example agent, and its tables match the dialects."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from claude_wire import dialects
from folders import ROOT

PAGE = (ROOT / "docs" / "dialects.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+)[^>]*-->\n```python\n(.*?)```", PAGE, re.S))


def test_every_example_is_run() -> None:
    assert EXAMPLES.keys() == {"host", "agent"}
    assert PAGE.count("```python") == len(EXAMPLES)


@pytest.mark.parametrize("command", ['["miriad-code", "--stdio", "--db", "agent.db"]', '["./agent.py"]'])
def test_the_host_of_the_page_talks_with_the_agent_of_the_page(command: str, tmp_path: Path) -> None:
    for name in ("miriad-code", "agent.py"):
        agent = tmp_path / name
        agent.write_text(EXAMPLES["agent"])
        agent.chmod(0o755)
    assert f"open_session({command}, dialect=MIRIAD)" in PAGE
    host = re.sub(r"open_session\(\[.*?\]", lambda _: f"open_session({command}", EXAMPLES["host"])
    paths = [str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", host],
        cwd=tmp_path,
        env={**os.environ, "PATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("You said: Read /tmp/test.txt 0\n", "")


def test_every_dialect_has_its_row() -> None:
    rows = re.findall(r"^\| `([A-Z_0-9]+)` \|", PAGE, re.M)
    assert set(rows) == {name for name in dialects.__all__ if name.isupper()} - {"AUTO"}
    with_status = [row for row in rows if re.search(rf"^\| `{row}` .* yes \|$", PAGE, re.M)]
    assert with_status == [row for row in rows if getattr(dialects, row).has_status]
