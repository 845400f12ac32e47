"""`make instructions` compares counts: some differences fail, some ask for an update, and some are only shown."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from folders import ROOT

PATH = ROOT / "tools" / "instructions.py"
COMPILER = "rustc 1.0.0"


@pytest.fixture
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("instructions", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs the tool with given kept and new counts and returns its exit status."""
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "FILE", tmp_path / "kept.json")
    monkeypatch.setattr(tool.shutil, "which", lambda name: name)
    monkeypatch.setattr(tool, "build", lambda: "program")
    monkeypatch.setattr(tool.platform, "machine", lambda: "x86_64")

    def run(kept: dict[str, int], counted: dict[str, int], *arguments: str, compiler: str = COMPILER) -> int:
        content = {"rustc": COMPILER, "machine": "x86_64", "instructions": kept}
        tool.FILE.write_text(json.dumps(content))
        listed = "".join(f"plain\t{case}\n" for case in counted)
        answers = {"rustc": compiler + "\n", "program": listed, "valgrind": "valgrind-1\n"}
        monkeypatch.setattr(tool, "output", lambda *command: answers[command[0]])
        monkeypatch.setattr(tool, "count", lambda program, case: counted[case])
        monkeypatch.setattr(tool.sys, "argv", ["instructions.py", *arguments])
        try:
            tool.main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    return run


@pytest.mark.parametrize(("counted", "status"), [(1000, 0), (1030, 0), (1031, 1), (970, 0), (500, 0)])
def test_more_than_three_percent_more_fails(run: Any, counted: int, status: int) -> None:
    assert run({"a": 1000, "b": 7}, {"a": counted, "b": 7}) == status


@pytest.mark.parametrize(("counted", "asked"), [(1000, False), (970, False), (969, True)])
def test_more_than_three_percent_less_asks_for_an_update(
    run: Any, capsys: pytest.CaptureFixture[str], counted: int, asked: bool
) -> None:
    assert run({"a": 1000}, {"a": counted}) == 0
    assert ("Update the file" in capsys.readouterr().out) is asked


def test_a_case_that_is_not_kept_asks_for_an_update(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run({"a": 1000}, {"a": 1000, "new": 5}) == 0
    assert "Update the file" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "status"), [([], 0), (["--strict"], 1)])
def test_counts_of_another_compiler_are_shown_and_not_compared(
    run: Any, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int
) -> None:
    assert run({"a": 1000}, {"a": 5000}, *arguments, compiler="rustc 2.0.0") == status
    shown = capsys.readouterr().out
    assert "Not compared" in shown
    assert "5,000" in shown
    assert "TOO MANY" not in shown


def test_an_update_keeps_the_counts_and_their_compiler(run: Any, tool: Any) -> None:
    assert run({"a": 1000, "gone": 1}, {"a": 5000}, "--update", compiler="rustc 2.0.0") == 0
    kept = json.loads(tool.FILE.read_text())
    assert kept == {"rustc": "rustc 2.0.0", "machine": "x86_64", "instructions": {"a": 5000}}
    assert run(kept["instructions"], {"a": 5000}) == 0


def test_without_valgrind_it_says_so_and_fails(
    run: Any, tool: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool.shutil, "which", lambda name: None)
    assert run({"a": 1000}, {"a": 1000}) == 1
    assert "no valgrind" in capsys.readouterr().err


def test_what_is_kept_is_what_is_counted(tool: Any) -> None:
    kept = json.loads(tool.FILE.read_text())
    source = (tool.ROOT / "benches" / "native.rs").read_text()
    assert kept["instructions"]
    assert all(f'"{case}"' in source for case in kept["instructions"])
