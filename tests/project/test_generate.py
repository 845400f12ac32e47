"""`make generate` derives all lists of messages from the message classes."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import generate
from folders import ROOT

SYSTEM = generate.MESSAGES / "system.py"
REQUESTS = generate.MESSAGES / "control" / "host_requests.py"
MESSAGE = '''

class TeaMessage(SystemMessage, kw_only=True, frozen=True):
    """The tea is ready."""

    subtype: Literal["tea"] = constant("tea")
    cups: int
'''
REQUEST = '''

class BrewResponse(Wire, kw_only=True, frozen=True):
    """How long the tea takes."""

    seconds: Number | None = None


class BrewRequest(ControlRequestBody[BrewResponse], tag="brew", kw_only=True, frozen=True):
    """Asks for tea."""
'''


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy the message classes to a temporary folder."""
    shutil.copytree(ROOT / generate.MESSAGES, tmp_path / generate.MESSAGES)
    return tmp_path


def _add(clone: Path, path: Path, source: str) -> None:
    with (clone / path).open("a", encoding="utf-8") as module:
        module.write(source)


def test_the_written_files_are_what_the_classes_say() -> None:
    generate.main(ROOT, check=True)


def test_a_new_message_is_in_the_union_the_kinds_the_names_and_the_page(clone: Path) -> None:
    _add(clone, SYSTEM, MESSAGE)
    generate.main(clone)
    registry = (clone / generate.MESSAGES / "registry.py").read_text()
    system = registry.partition("SystemSubtype: TypeAlias = (")[2].partition(")")[0]
    kinds, _, public = registry.partition("KindName: TypeAlias")[2].partition("__all__")
    assert "TeaMessage" in system
    assert '"system/tea"' in kinds
    assert '"TeaMessage"' in public
    kinds = generate.kinds_of_messages(clone)
    assert "- `system/tea`: `TeaMessage`\n" in kinds.partition("Sent by the agent")[2].partition("Sent by the host")[0]


def test_a_new_request_is_in_the_union_of_requests_and_its_answer_in_the_page(clone: Path) -> None:
    _add(clone, REQUESTS, REQUEST)
    generate.main(clone)
    payload = (clone / generate.MESSAGES / "control" / "payload.py").read_text()
    assert "BrewRequest" in payload.partition("ControlRequestPayload: TypeAlias = (")[2]
    assert '"control_request/brew"' in (clone / generate.MESSAGES / "registry.py").read_text()
    requests = generate.kinds_of_requests(clone).partition("Sent by the host")[2]
    assert "- `control_request/brew`: `BrewRequest`, answered by `BrewResponse`\n" in requests


def test_files_that_are_out_of_date_are_refused_with_what_to_do(clone: Path) -> None:
    generate.main(clone, check=True)
    _add(clone, SYSTEM, MESSAGE)
    with pytest.raises(SystemExit, match=r"registry.py differs from the message classes: run `make generate`"):
        generate.main(clone, check=True)


# --- `make instructions` compares counts: some differences fail, some ask for an update, and some are only shown ------


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
