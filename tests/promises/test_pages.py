"""Check the docs: every program runs and prints the output shown below it, and all names and links exist."""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from contextlib import closing
from pathlib import Path

import pytest

import claude_wire
from all_sessions import needed
from claude_wire import agent, errors, messages, session, testing
from claude_wire_kit import supervisor
from each import each
from folders import ROOT
from pages import PAGES, Block, Scene, blocks, matches

MODULES = claude_wire, agent, errors, messages, session, supervisor, testing, builtins
#: Optional packages that the program of a page may import: those of the extras, and of web front ends.
OPTIONAL = ["claude_agent_sdk", "mcp", "opentelemetry.sdk", "starlette"]
#: Packages that only `make test-tables` installs.
OF_TABLES = ["pyarrow", "polars", "duckdb", "distributed", "ray"]
#: Module whose names the pages mention -> the optional package that it needs.
OPTIONAL_MODULES = {
    "claude_wire.integrations.agent_sdk": "claude_agent_sdk",
    "claude_wire.integrations.mcp": "mcp",
    "claude_agent_sdk": "claude_agent_sdk",
}
WITH_PROGRAMS = [page for page in PAGES if any(block.language in ("python", "console") for block in blocks(page))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def skip_without_what_it_imports(page: Path) -> None:
    code = "\n".join(block.text for block in blocks(page) if "test" not in block.said)
    if "claude-wire " in code:  # the page runs the command claude-wire
        pytest.importorskip("click")
        pytest.importorskip("rich")
    if "claude-wire supervisor" in code and sys.platform != "linux":
        pytest.skip("a supervisor needs Linux")
    for package in OPTIONAL:
        if re.search(rf"^\s*(from|import) (claude_wire\.integrations\.)?{package}\b", code, re.M):
            pytest.importorskip(package)
    for package in OF_TABLES:
        if re.search(rf"^\s*(from|import) {package}\b", code, re.M) or "claude-wire export" in code:
            needed(package)
    if "claude_wire.integrations.agent_sdk" in code:
        pytest.importorskip("claude_agent_sdk")


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=name)
def test_the_programs_of_a_page_run_and_print_what_it_says(page: Path, tmp_path: Path) -> None:
    skip_without_what_it_imports(page)
    with closing(Scene(tmp_path)) as scene:
        run_all(scene, blocks(page))


def run_all(scene: Scene, ran: list[Block]) -> None:
    for at, block in enumerate(ran):
        if block.language == "console" and "fragment" not in block.said:
            scene.commands(block)
        if block.language != "python" or block.said.keys() & {"fragment", "test"}:
            continue
        printed = scene.run(block)
        after = ran[at + 1] if at + 1 < len(ran) else None
        if after is not None and "output" in after.said:
            assert matches(after.text, printed), f"line {block.line} prints: {printed}"
        elif said := re.findall(r"^ *print\(.*\)  # (.*)$", block.text, re.M):
            assert matches("\n".join(said), printed), f"line {block.line} prints: {printed}"


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=name)
def test_what_is_not_run_has_a_reason_and_what_is_kept_as_a_file_is_used(page: Path) -> None:
    ran = blocks(page)
    for at, block in enumerate(ran):
        if "fragment" in block.said:
            assert len(block.said["fragment"]) > 10, block.line
        elif "test" in block.said:
            assert page.name in (ROOT / block.said["test"]).read_text(encoding="utf-8"), block.line
        elif "output" in block.said:
            assert ran[at - 1].language == "python", block.line
            assert ran[at - 1].title is None, block.line
        elif block.language == "python" and block.title is not None:
            used = Path(block.title).stem
            assert any(used in later.text for later in ran[at + 1 :]), f"line {block.line}: {block.title} is never used"


def test_every_python_block_is_found() -> None:
    for page in PAGES:
        fences = re.findall(r"^\s*```+ ?python", page.read_text(encoding="utf-8"), re.M)
        assert len(fences) == sum(block.language == "python" for block in blocks(page)), page


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\n", "a\n", True),
        ("a ... c\n", "a b c", True),
        ("a\n...\nc\n", "a\nb\nb\nc\n", True),
        ("a\n", "a b\n", False),
        ("(.)\n", "(x)\n", False),
        ("", "a", False),
    ],
)
def test_what_is_printed_is_compared(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


@each("page", PAGES, str)
def test_the_names_in_a_page_exist_and_so_do_the_files_that_it_links(page: Path) -> None:
    text = re.sub(r"^(```+).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), link
    modules = [*MODULES]
    for module, package in OPTIONAL_MODULES.items():
        if f"`{module}`" in text or package in text or package.replace("_", "-") in text:
            pytest.importorskip(package)
            modules.append(importlib.import_module(module))
    for named in re.findall(r"`(\w+(?:Error|Request|Matcher|Output|Options|Session|McpServer))\b", text):
        assert any(hasattr(module, named) for module in modules), named


def test_the_pages_have_at_most_35_000_words() -> None:
    pages = [ROOT / "README.md", ROOT / "kit" / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 35_000


def test_a_page_of_the_site_links_nothing_outside_of_it() -> None:
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).resolve().is_relative_to(docs), f"{page}: {link}"
