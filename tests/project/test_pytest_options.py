"""The project's own pytest settings, in an environment that has more plugins than the project installs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from folders import ROOT

PLUGIN = """
import warnings
def pytest_configure(config):
    warnings.warn("the option asyncio_default_fixture_loop_scope is unset")
"""


@pytest.mark.parametrize("path", ["tests/support_package", "benches/test_decode.py"])
def test_tests_and_benches_are_collected_where_pytest_asyncio_is_installed(path: str, tmp_path: Path) -> None:
    # pytest-asyncio registers itself under the name "asyncio" and warns like this when pytest configures it.
    (tmp_path / "asyncio_stand_in.py").write_text(PLUGIN)
    metadata = tmp_path / "asyncio_stand_in-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: asyncio-stand-in\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[pytest11]\nasyncio = asyncio_stand_in\n")
    # Remove the PYTEST_ variables of the outer pytest: with them pytest-benchmark believes that it runs in a worker.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", path],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
