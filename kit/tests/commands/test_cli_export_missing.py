"""Without pyarrow ``claude-wire export`` says what to install. Importing its modules loads no table library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from claude_wire_kit import commands
from claude_wire_kit.commands.app import cli
from shown import RUNNER


def test_export_asks_for_it_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "claude_wire_kit.commands.table_files", raising=False)
    monkeypatch.delattr(commands, "table_files", raising=False)
    (tmp_path / "in").mkdir()
    result = RUNNER.invoke(cli, ["export", str(tmp_path / "in"), "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert result.output == 'Error: this needs pyarrow: pip install "pyarrow>=17"\n'
    assert not (tmp_path / "out").exists()


def test_nothing_is_imported_that_nobody_asked_for() -> None:
    code = (
        "import sys, claude_wire.columns, claude_wire_kit.commands.export;"
        "print(*{'pyarrow', 'pandas', 'polars', 'duckdb', 'dask', 'ray'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"
