"""Check the types that mypy and pyright infer for users, with the files in ``typing/``, which are never run.

Each file asserts types. An ignore comment marks code that the checkers must reject, and an unneeded ignore comment is
an error. If the checkers saw the package as Any, the ignore comments would be unneeded, and the test would fail.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from folders import KIT_TESTS, ROOT, TESTS

FILES = sorted(path for tests in (TESTS, KIT_TESTS) for path in tests.joinpath("typing").glob("*.py"))


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_mypy_infers_what_is_asserted() -> None:
    pytest.importorskip("mypy")
    done = run("mypy", "--no-error-summary", *map(str, FILES))  # uses the same options and cache as `make lint`
    assert done.stdout + done.stderr == ""


def test_pyright_infers_what_is_asserted() -> None:
    pytest.importorskip("pyright")
    done = run("pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(TESTS / "typing"))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert report["summary"]["filesAnalyzed"] == len(FILES)
    assert report["generalDiagnostics"] == []
