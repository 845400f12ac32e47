"""Run the programs of docs/how-to/tables.md that start other processes, and therefore may write to stderr."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import sessions
from all_sessions import needed
from pages import Block, blocks, matches
from recipes import PAGE

BLOCKS = blocks(PAGE)
PROGRAMS = {
    package: at
    for package in ("dask", "ray")
    for at, block in enumerate(BLOCKS)
    if f"from lines_in_{package} import" in block.text
}


@pytest.mark.parametrize("package", PROGRAMS)
def test_the_program_prints_what_stands_beneath_it(package: str, tmp_path: Path) -> None:
    needed(package)
    program, output = BLOCKS[PROGRAMS[package]], BLOCKS[PROGRAMS[package] + 1]
    assert "test_table_pages.py" in program.said["test"]
    assert "output" in output.said
    sessions.unpack("two_folders", tmp_path)
    for block in BLOCKS:
        if block.title is not None:
            (tmp_path / block.title).write_text(block.text)
    (tmp_path / "program.py").write_text(program.text)
    assert matches(output.text, ran(program, tmp_path)), output.text


def ran(program: Block, folder: Path) -> str:
    # Ray sends no usage statistics, writes nothing to HOME, and needs a short folder for the names of its sockets.
    ray = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as own:
        done = subprocess.run(
            [sys.executable, "program.py"],
            cwd=folder,
            env={**os.environ, **ray, "RAY_TMPDIR": own, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, f"line {program.line}: {done.stderr}"
    return done.stdout
