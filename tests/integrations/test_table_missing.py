"""A package that is not there is asked for by name, and none is imported that nobody asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

EXTRAS = {"polars": "polars", "duckdb": "duckdb", "dask": "pandas", "ray": "pyarrow", "export": "pyarrow"}
#: What the advice names first.
NEEDS = {"polars": "polars>=", "duckdb": "duckdb>=", "dask": "dask", "ray": "ray", "export": "pyarrow>="}


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_package_is_asked_for(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"claude_wire.integrations.{extra}"
    monkeypatch.setitem(sys.modules, EXTRAS[extra], None)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=rf'pip install "{NEEDS[extra]}.*"$'):
        importlib.import_module(name)


def test_export_asks_for_it_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("click")
    from click.testing import CliRunner

    from claude_wire import integrations
    from claude_wire_kit.commands.app import cli

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "claude_wire.integrations.export", raising=False)
    monkeypatch.delattr(integrations, "export", raising=False)
    (tmp_path / "in").mkdir()
    result = CliRunner().invoke(cli, ["export", str(tmp_path / "in"), "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert result.output == 'Error: this needs pyarrow: pip install "pyarrow>=17"\n'
    assert not (tmp_path / "out").exists()


def test_nothing_is_imported_that_nobody_asked_for() -> None:
    code = (
        "import sys, claude_wire.columns, claude_wire.integrations.parts, claude_wire_kit.commands.export;"
        "print(*{'pyarrow', 'pandas', 'polars', 'duckdb', 'dask', 'ray'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"
