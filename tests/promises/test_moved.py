"""Importing a name that has moved since version 0.2 fails with an error that says where the name is now."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import claude_wire
from claude_wire.moved import MOVED, RECIPE
from folders import ROOT

MODULES = list(MOVED)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_has_moved_says_where_it_is(name: str) -> None:
    of = ", of the distribution claude-wire-kit (in a clone: pip install ./kit)"
    end = of if MOVED[name].startswith("claude_wire_kit") else ""
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module(f"claude_wire.{name}")
    assert str(raised.value).endswith(f"; it is {MOVED[name]} now{end}")


@pytest.mark.parametrize("name", MODULES)
def test_so_does_a_name_that_is_imported_from_the_package(name: str) -> None:
    package, _, last = f"claude_wire.{name}".rpartition(".")
    with pytest.raises(ModuleNotFoundError, match=f"it is {MOVED[name]} now"):
        exec(f"from {package} import {last}")


@pytest.mark.parametrize("name", [name for name in MODULES if "." not in name])
def test_so_does_an_attribute(name: str) -> None:
    assert not hasattr(claude_wire, name)
    with pytest.raises(AttributeError, match=f"it is {MOVED[name]} now"):
        getattr(claude_wire, name)


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), ([], 1), (["usage"], 1)])
def test_the_library_has_no_command_and_says_where_it_is(arguments: list[str], code: int) -> None:
    command = [sys.executable, "-m", "claude_wire", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    version = f"claude-wire {claude_wire.__version__} (protocol of CLI {claude_wire.PROTOCOL_VERSION})\n"
    assert (done.returncode, done.stdout) == (code, version)
    assert "in the package claude-wire-kit. In a clone of claude_wire: pip install . ./kit\n" in done.stderr


@pytest.mark.parametrize("name", [now for now in MOVED.values() if not now.startswith(RECIPE)])
def test_what_is_named_is_there(name: str) -> None:
    if name.endswith(".table_files"):
        pytest.importorskip("pyarrow")
    importlib.import_module(name)


def test_the_page_of_recipes_is_there() -> None:
    assert (ROOT / RECIPE.rpartition(" ")[2]).is_file()


@pytest.mark.parametrize("name", ["no_such_module", "bridge2"])
def test_an_error_for_any_other_name_is_pythons_own(name: str) -> None:
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module(f"claude_wire.{name}")
    assert str(raised.value) == f"No module named 'claude_wire.{name}'"
