"""No files import each other in a circle, and the layers also hold for module names in strings.

import-linter only checks import statements, and only between folders. A lazy ``__getattr__`` imports the modules that
a table of strings names. Each such string must name a module that the file may import: one in its own folder, or in a
lower layer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from xml.etree import ElementTree

import grimp
import pytest

from folders import ROOT

SOURCES = {"claude_wire": ROOT / "python" / "claude_wire", "claude_wire_kit": ROOT / "kit" / "claude_wire_kit"}


def layers() -> dict[str, dict[str, int]]:
    """Return, for each package, a dict from folder to layer. Layer 0 is the top."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, dict[str, int]] = {}
    for package in SOURCES:
        contract = (
            text.partition(f'\ncontainers = ["{package}"]\n')[2].partition("\nlayers = [\n")[2].partition("\n]")[0]
        )
        lines: list[str] = re.findall(r'"(.*)"', contract)
        found[package] = {folder: number for number, line in enumerate(lines) for folder in line.split(" | ")}
    return found


def strings_of(tree: ast.AST) -> Iterator[str]:
    """Yield the string literals of a module, without its docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def climbing(package: str, file: str, source: str, folders: dict[str, int]) -> list[str]:
    """Return the strings in a file that name a module of a higher layer than the file's own folder."""
    own = folders.get(file.split("/")[0])
    if own is None:  # a file directly in the package, which is above all folders
        return []
    found: list[str] = []
    for text in strings_of(ast.parse(source)):
        name = text.removeprefix(f"{package}.")
        # A dotted name such as "streams.message_stream" is a module; a single word such as "process" is just text.
        if not re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", name):
            continue
        is_module = (SOURCES[package] / Path(*name.split("."))).with_suffix(".py").is_file()
        if is_module and folders.get(name.split(".")[0], own) < own:
            found.append(text)
    return found


@pytest.mark.parametrize("package", SOURCES)
def test_no_string_names_a_module_of_a_layer_above(package: str) -> None:
    root, folders = SOURCES[package], layers()[package]
    found = {
        str(path.relative_to(root)): climbing(
            package, path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"), folders
        )
        for path in sorted(root.rglob("*.py"))
        if path.name != "moved.py"  # moved.py names the new modules of moved names in its errors
    }
    assert len(found) > 100
    assert {file: names for file, names in found.items() if names} == {}


def test_a_climbing_string_is_found() -> None:
    source = (
        '_LATER = {"Session": "session.session"}\nimport_module("claude_wire.sync.session")\nfine = "codec.decoder"'
    )
    found = climbing("claude_wire", "streams/__init__.py", source, layers()["claude_wire"])
    assert found == ["session.session", "claude_wire.sync.session"]


def imports_of(*packages: str) -> dict[str, set[str]]:
    """Return, for each module of the packages, the modules that it imports, including under TYPE_CHECKING."""
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=False, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def circle(imports: Mapping[str, Set[str]]) -> list[str]:
    """Return an import circle as a list that ends with its first file, or an empty list if there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    imports = imports_of(*SOURCES)
    assert len(imports) > 300
    assert circle(imports) == []


def test_a_circle_of_types_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "circled"
    package.mkdir()
    for name, source in {
        "__init__": "",
        "one": "from circled.two import B",
        "two": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from circled.three import C\n",
        "three": "def f():\n    from circled import one",
    }.items():
        (package / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert set(circle(imports_of("circled"))) == {"circled.one", "circled.two", "circled.three"}


# --- The pictures of docs/architecture.md show every folder in its layer, and each has a text description -------------


SVG = "{http://www.w3.org/2000/svg}"
#: The pictures of layers, in the order of the import-linter contracts in pyproject.toml.
LAYERS = ["layers", "kit-layers"]
PICTURES = [*LAYERS, "way-of-a-byte"]


def texts(picture: str) -> list[str]:
    tree = ElementTree.parse(ROOT / "docs" / f"{picture}.svg")
    return [element.text or "" for element in tree.iter(f"{SVG}text")]


@pytest.mark.parametrize("picture", LAYERS)
def test_each_layer_stands_in_the_picture_in_its_order(picture: str) -> None:
    contracts = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("\nlayers = [\n")[1:]
    contract = contracts[LAYERS.index(picture)].partition("]")[0]
    layers = [name for line in re.findall(r'"(.*)"', contract) for name in sorted(line.split(" | "))]
    assert len(layers) > 8
    assert [text for text in texts(picture) if text in layers] == layers


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_has_a_title_and_a_description_and_colours_for_dark_screens(picture: str) -> None:
    root = ElementTree.parse(ROOT / "docs" / f"{picture}.svg").getroot()
    said = {element.get("id"): element.text for name in ("title", "desc") for element in root.iter(SVG + name)}
    assert [said[name] for name in root.attrib["aria-labelledby"].split()] == list(said.values())
    assert len(said) == 2
    assert all(said.values())
    assert "prefers-color-scheme: dark" in "".join(style.text or "" for style in root.iter(f"{SVG}style"))


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_stands_on_the_page(picture: str) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f'data="{picture}.svg"' in page
    assert f'src="{picture}.svg"' in page
