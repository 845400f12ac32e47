"""What `make lint` says of the package's folders: which may import which, how large they are, how they are named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from folders import ROOT

LINT_IMPORTS = str(Path(sys.executable).parent / "lint-imports")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package's modules, to be spoilt."""
    copy = tmp_path / "claude_wire"
    shutil.copytree(
        ROOT / "python" / "claude_wire", copy, ignore=shutil.ignore_patterns("_native", "__pycache__", "data")
    )
    return copy


def run(*command: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(folder)}
    )
    return done.returncode, done.stdout + done.stderr


def lint_imports(package: Path) -> tuple[int, str]:
    return run(LINT_IMPORTS, "--no-cache", "--config", str(ROOT / "pyproject.toml"), folder=package.parent)


def rooms(package: Path) -> tuple[int, str]:
    return run(sys.executable, str(ROOT / "tools" / "rooms.py"), str(package), folder=package.parent)


def add(package: Path, module: str, text: str) -> None:
    (package / f"{module.replace('.', '/')}.py").write_text(text)


def test_package_keeps_the_rules(package: Path) -> None:
    assert rooms(package) == (0, "")
    status, said = lint_imports(package)
    assert status == 0, said


@pytest.mark.parametrize(
    ("folder", "imported"),
    [
        ("codec", "claude_wire.io.message_stream"),
        ("accumulate", "claude_wire.usage.meter"),
        ("foundation", "claude_wire.errors"),
        ("control", "claude_wire.native.library"),
        ("testing", "claude_wire.cli.app"),
        ("codec", "claude_wire"),
    ],
)
def test_import_of_what_is_not_below_is_found(package: Path, folder: str, imported: str) -> None:
    add(package, f"{folder}.wrong", f"import {imported}\n")
    status, said = lint_imports(package)
    assert status == 1
    assert f"claude_wire.{folder}.wrong -> {imported} (l.1)" in said


def test_import_for_type_checkers_is_no_import(package: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import claude_wire.io.message_stream\n"
    add(package, "codec.right", text)
    status, said = lint_imports(package)
    assert status == 0, said


def test_new_folder_needs_its_place_among_the_others(package: Path) -> None:
    (package / "attic").mkdir()
    (package / "attic" / "__init__.py").touch()
    status, said = lint_imports(package)
    assert status == 1
    assert "attic" in said


def test_module_of_more_than_500_lines_is_found(package: Path) -> None:
    add(package, "usage.long", "pass\n" * 500)
    assert rooms(package) == (0, "")
    add(package, "usage.long", "pass\n" * 501)
    status, said = rooms(package)
    assert status == 1
    assert said.startswith("claude_wire/usage/long.py has 501 lines, more than 500: split it")


def test_folder_of_more_than_12_modules_is_found(package: Path) -> None:
    crowded = package / "crowded"
    crowded.mkdir()
    for number in range(12):
        (crowded / f"m{number}.py").touch()
    (crowded / "__init__.py").touch()
    assert rooms(package) == (0, "")
    (crowded / "m12.py").touch()
    status, said = rooms(package)
    assert status == 1
    assert said.startswith("claude_wire/crowded has 13 modules, more than 12: make folders in it")


@pytest.mark.parametrize("path", ["usage/_meter.py", "_attic/__init__.py"])
def test_underscore_in_front_of_a_name_is_found(package: Path, path: str) -> None:
    (package / path).parent.mkdir(exist_ok=True)
    (package / path).touch()
    status, said = rooms(package)
    assert status == 1
    assert said.startswith(f"claude_wire/{path} begins with an underscore: name it without")


@pytest.mark.parametrize("defined", ["class Meter: ...", "def meter(): ...", "async def meter(): ..."])
def test_package_that_does_more_than_hand_names_on_is_found(package: Path, defined: str) -> None:
    (package / "usage" / "__init__.py").write_text(f"def __getattr__(name): ...\n{defined}\n")
    status, said = rooms(package)
    assert status == 1
    assert said.lower() == "claude_wire/usage/__init__.py:2 defines meter: move it into a module\n"
