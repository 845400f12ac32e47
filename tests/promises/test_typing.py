"""The types are part of the product: what mypy and pyright infer for users, in ``typing/``, where nothing is run.

Each file asserts types; what must be refused is marked with an ignore comment, and an ignore that is not needed is an
error. So both checkers find what they should, and nothing else: were the package seen as Any, no ignore were needed.
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
    done = run("mypy", "--no-error-summary", *map(str, FILES))  # with the options and the cache of the linters
    assert done.stdout + done.stderr == ""


def test_pyright_infers_what_is_asserted() -> None:
    pytest.importorskip("pyright")
    done = run("pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(TESTS / "typing"))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert report["summary"]["filesAnalyzed"] == len(FILES)
    assert report["generalDiagnostics"] == []
