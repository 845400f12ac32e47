"""The README is short, and its commands exist. ``test_pages.py`` runs its programs."""

from __future__ import annotations

import re

from folders import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_has_at_most_700_words() -> None:
    assert len(README.split()) <= 700


def test_the_commands_that_it_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"\bmake (\w+)", re.sub(r"and make\.", "", README))
    assert {"demo", "test", "docs"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_no_place_is_left_open() -> None:
    comments = re.findall(r"<!-- (.*?) -->", README)
    assert all(re.match(r"(example: \w+|output$|/?numbers$)", comment) for comment in comments), comments
