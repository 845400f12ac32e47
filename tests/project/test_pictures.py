"""The pictures of docs/architecture.md show every folder in its layer, and each has a text description."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from folders import ROOT

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
