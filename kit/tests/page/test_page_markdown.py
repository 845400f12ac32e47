"""The page renders Markdown to the same elements as ``view --html``, even in pieces, each at constant cost."""

from __future__ import annotations

import random
from typing import Any

import pytest

from browsing import open_page
from claude_wire_kit.html.markdown import markdown
from markdown_samples import ATTACKS, SAMPLES
from page_server import PageServer

#: Return a tree of elements without the parts in which the two renderers differ: copy button and code colours.
TREE = """
const tree = (node) => {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (node.localName === "code" && node.closest("pre")) return ["code", node.className, node.textContent.trimEnd()];
  if (node.matches("div.code")) return tree(node.querySelector("pre"));
  const names = node.localName === "pre" ? [] : node.getAttributeNames().sort();
  const children = [...node.childNodes].map(tree).filter((one) => typeof one !== "string" || one.trim());
  return [node.localName, Object.fromEntries(names.map((name) => [name, node.getAttribute(name)])), children];
};
const treeOf = (element) => [...element.childNodes].map(tree).filter((one) => typeof one !== "string" || one.trim());
"""
BOTH = f"""async ([text, html]) => {{
  {TREE}
  const {{ markdown }} = await import("/markdown.js");
  const [ours, other] = [document.createElement("div"), new DOMParser().parseFromString(html, "text/html").body];
  ours.append(markdown(text));
  return [treeOf(ours), treeOf(other)];
}}"""
PIECES = f"""async ([text, cuts]) => {{
  {TREE}
  const {{ Writer, markdown }} = await import("/markdown.js");
  const [whole, written] = [document.createElement("div"), document.createElement("div")];
  whole.append(markdown(text));
  const writer = new Writer(written);
  let from = 0;
  for (const cut of [...cuts, text.length]) {{
    writer.add(text.slice(from, cut));
    writer.show();
    from = cut;
  }}
  const open = written.textContent.trim();
  writer.finish();
  return [treeOf(whole), treeOf(written), open];
}}"""


@pytest.fixture(scope="module")
def tab(browser: Any) -> Any:
    from page_server import serve_page

    with serve_page() as server:
        server.add("one")
        with open_page(browser, server.entry) as tab:
            tab.wait_level()
            yield tab


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_and_the_program_make_the_same_of_a_text(tab: Any, name: str) -> None:
    ours, other = tab.page.evaluate(BOTH, [SAMPLES[name], markdown(SAMPLES[name])])
    assert ours == other
    assert bool(ours) == bool(SAMPLES[name].strip())


@pytest.mark.parametrize("name", SAMPLES)
def test_a_text_that_came_in_pieces_is_as_one_that_came_whole(tab: Any, name: str) -> None:
    text = SAMPLES[name]
    some = random.Random(name)
    for size in (1, 3, 17):
        cuts = sorted({some.randrange(len(text) + 1) for _ in range(len(text) // size)})
        whole, written, open = tab.page.evaluate(PIECES, [text, cuts])
        assert written == whole
        assert bool(open) == (name not in ("nothing", "empty code"))


#: Generators of texts of 200 KB: one text of many blocks, and one text for each type of block.
LONG = {
    "blocks": lambda number: f"Paragraph {number} with **strong** words and `code`.\n\n- one\n- two\n\n",
    "paragraph": lambda number: f"word{number} **strong** `code`\n",
    "code": lambda number: f"{'' if number else '```python'}\ndef f{number}(): return {number}",
    "list": lambda number: f"- item {number} with `code`\n",
    "table": lambda number: f"{'' if number else '| a | b |' + chr(10) + '|---|---|' + chr(10)}| {number} | `x` |\n",
    "line": lambda number: f"{'' if number else '```' + chr(10)}{number},",
}
#: Write a text in pieces. Return the changed nodes for each tenth of the pieces, and the characters.
COUNTED = """async ([text, size]) => {
  const { Writer } = await import("/markdown.js");
  const body = document.createElement("div");
  const writer = new Writer(body);
  let touched = 0;
  const nodes = (node) => 1 + [...node.childNodes].reduce((sum, one) => sum + nodes(one), 0);
  const look = (records) => {
    for (const { type, addedNodes } of records) {
      touched += type === "characterData" ? 1 : [...addedNodes].reduce((sum, one) => sum + nodes(one), 0);
    }
  };
  const observer = new MutationObserver(look);
  observer.observe(body, { subtree: true, childList: true, characterData: true });
  const tenths = [];
  const count = Math.ceil(text.length / size);
  for (let piece = 0; piece < count; piece++) {
    writer.add(text.slice(piece * size, (piece + 1) * size));
    writer.show();
    look(observer.takeRecords());
    if (Math.floor(((piece + 1) * 10) / count) > tenths.length) {
      tenths.push(touched);
      touched = 0;
    }
  }
  writer.finish();
  return [tenths, body.textContent.length];
}"""


@pytest.mark.parametrize("kind", LONG)
def test_a_piece_costs_the_same_wherever_it_comes(tab: Any, kind: str) -> None:
    """The second half of a 200 KB answer changes about as many nodes per piece as the first half."""
    parts: list[str] = []
    while sum(map(len, parts)) < 200 * 1024:
        parts += (LONG[kind](number) for number in range(len(parts), len(parts) + 100))
    tenths, chars = tab.page.evaluate(COUNTED, ["".join(parts)[: 200 * 1024], 40])
    assert len(tenths) == 10
    assert chars > 100_000
    assert max(tenths[5:]) < 3 * max(tenths[:5])
    # If each piece rebuilt its whole block, the sum would be some hundred millions.
    assert sum(tenths) < 2_000_000


def test_an_answer_can_be_copied_and_so_can_its_code(browser: Any, server: PageServer) -> None:
    text = "Do **this**:\n\n```sh\nmake test\n```\n"
    server.add("one", {"type": "claude_response", "content": text})
    with open_page(browser, server.entry, permissions=["clipboard-read", "clipboard-write"]) as tab:
        for name, wanted in (("Copy the answer", text), ("Copy the code", "make test\n")):
            tab.page.get_by_role("button", name=name).click()
            tab.page.get_by_role("button", name="Copied").wait_for()
            assert tab.page.evaluate("navigator.clipboard.readText()") == wanted
            tab.page.get_by_role("button", name=name).wait_for()


def test_copying_without_the_right_to(browser: Any, server: PageServer) -> None:
    """A page from another machine without TLS has no ``navigator.clipboard``."""
    server.add("one", {"type": "claude_response", "content": "Some words"})
    with open_page(browser, server.entry) as tab:
        tab.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        tab.page.get_by_role("button", name="Copy the answer").click()
        tab.page.get_by_role("button", name="Copied").wait_for()
        tab.page.focus("#prompt")
        tab.page.keyboard.press("Control+v")
        assert tab.page.input_value("#prompt") == "Some words"


@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_markdown_that_attacks(browser: Any, server: PageServer, attack: str) -> None:
    """Hostile Markdown, whole or in pieces, runs and loads nothing. Its links open web pages in another tab."""
    pieces = [{"type": "claude_response", "id": "m", "content": one, "partial": True} for one in attack]
    server.add("one", {"type": "claude_response", "content": attack}, *pieces)
    loaded: list[str] = []
    with open_page(browser, "about:blank") as tab:
        tab.page.on("request", lambda request: loaded.append(request.url))
        tab.page.goto(server.entry)
        tab.wait_level()
        tab.page.wait_for_selector("[data-kind=response] >> nth=1")
        assert tab.page.locator(".markdown :is(script, img, svg, math, form, style, iframe, button[name])").count() == 0
        attributes = "(all) => all.flatMap((one) => one.getAttributeNames())"
        names = set(tab.page.locator(".markdown *").evaluate_all(attributes))
        assert not {name for name in names if name.startswith("on") or name in ("src", "style", "id", "name")}
        for url in tab.page.locator(".markdown a").evaluate_all("(all) => all.map((one) => one.href)"):
            assert url.startswith(("https:", "http:", "mailto:"))
        assert tab.page.evaluate("window.hit") is None
        assert {url for url in loaded if not url.startswith((server.url, "about:"))} == set()
