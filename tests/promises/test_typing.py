"""The types are part of the product: what mypy and pyright infer for users, in ``typing/``, where nothing is run.

Each file asserts types; what must be refused is marked with an ignore comment, and an ignore that is not needed is an
error. So both checkers find what they should, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from folders import KIT_TESTS, TESTS

FILES = sorted(path for tests in (TESTS, KIT_TESTS) for path in tests.joinpath("typing").glob("*.py"))


def run(*command: str, cwd: Path = TESTS.parent) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, timeout=600)


def mypy(*files: Path, cache: Path) -> str:
    done = run("mypy", "--strict", "--no-error-summary", f"--cache-dir={cache}", *map(str, files))
    return done.stdout + done.stderr


def pyright(*what: str) -> list[tuple[str, int, str]]:
    """Each finding's file, line and text. ``what`` is a file, or ``-p`` and a folder with a configuration."""
    done = run("pyright", "--outputjson", "--pythonpath", sys.executable, *what)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert report["summary"]["filesAnalyzed"] == (len(FILES) if "-p" in what else 1)
    return [
        (Path(found["file"]).name, found["range"]["start"]["line"] + 1, found["message"])
        for found in report["generalDiagnostics"]
    ]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def test_mypy_infers_what_is_asserted(cache: Path) -> None:
    pytest.importorskip("mypy")
    assert mypy(*FILES, cache=cache) == ""


def test_pyright_infers_what_is_asserted() -> None:
    pytest.importorskip("pyright")
    assert pyright("-p", str(TESTS / "typing")) == []


WRONG = """\
# pyright: strict, reportUnusedCallResult=false
from typing_extensions import assert_type
from claude_wire import Decoder, Message, decode
assert_type(decode(b""), int)
assert_type(Decoder().feed(b""), list[Message])
decode(5)
"""


def test_mypy_would_find_a_wrong_type(tmp_path: Path, cache: Path) -> None:
    # Were the package seen as Any, all assertions would hold.
    pytest.importorskip("mypy")
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    lines = [line for line in mypy(file, cache=cache).splitlines() if ": error: " in line]
    assert [int(line.split(":")[1]) for line in lines] == [4, 5, 6]


def test_pyright_would_find_a_wrong_type(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    assert sorted({line for _, line, _ in pyright(str(file))}) == [4, 5, 6]
