"""The scripts of the fake model for the page tests, and the project folders of their sessions.

The CLAUDE.md of a folder names its script, and the CLI sends it to the model, so the prompts need no script name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from offline.fake_api import Reply, Step, text, tool

__all__ = ["FOUND", "HOSTILE", "LONG", "LOOK", "MENDED", "SCRIPTS", "hostile_text", "make_folder"]

CART = """\
def total(items):
    return sum(round(price * count, 2) for price, count in items)
"""
MENDED = """\
def total(items):
    return round(sum(price * count for price, count in items), 2)
"""
TEST = """\
import unittest
from cart import total

class Total(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([(0.335, 1), (0.335, 1)]), 0.67)
"""
PLAN = """\
The total of the cart is **one cent too high** for some customers. `total()` rounds each item, and then adds up:

```python
def total(items):
    return sum(round(price * count, 2) for price, count in items)
```

I will:

1. round the sum and not the items
2. run the tests
3. remove what the last build has left\
"""
LOOK = "I will look for the place where the cart is added up. "
FOUND = "It is in `cart.py`, and there is one test for it."


#: Five million characters.
LONG = "word " * 1_000_000


def bash(command: str, description: str) -> Reply:
    """Return a reply that calls the Bash tool with this command."""
    return Reply(tool("Bash", command=command, description=description))


def read(name: str) -> Reply:
    """Return a reply that calls the Read tool, which needs no permission inside the session's folder."""
    return Reply(tool("Read", file_path=name))


#: Kind of injection -> a text that a careless page would treat as markup or code.
HOSTILE: Mapping[str, str] = {
    "script": "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'><svg onload='window.hit = 1'>",
    "frame": "<iframe srcdoc='<p>hit'></iframe><style>*{display:none}</style><base href='//evil.example/'>",
    "link": "[press](javascript:window.hit=1) <a href='javascript:window.hit=1'>press</a> &lt;b&gt; {{7*7}} ${7*7}",
    "bidi": "\u202egnp.exe\u2066\u2067\u202a abc \u05d0\u05d1\u05d2",
}


def hostile_text() -> str:
    """All HOSTILE texts, one per line."""
    return "\n".join(HOSTILE.values())


SCRIPTS: Mapping[str, Sequence[Step]] = {
    # A text that stops in the middle; tool calls, one of which reports progress; a second text that stops.
    "streams": [
        Reply(text(LOOK, FOUND, gate="streams-0"), tool("Read", file_path="cart.py")),
        bash("echo '[2/5] Reading the tests'", "Count the files that are read"),
        Reply(text("The sum is right, ", "but each item is rounded ", "on its own.", gate="streams-1")),
        Reply(text("You are ", "welcome.")),
    ],
    # Three permission questions: an edit, a command that runs twice, and a command that the user denies.
    "cart": [
        Reply(text(LOOK), tool("Read", file_path="cart.py")),
        Reply(text(PLAN), tool("Edit", file_path="cart.py", old_string=CART, new_string=MENDED)),
        bash("python3 -m unittest -q", "Run the tests of the cart"),
        bash("python3 -m unittest -q", "Run them once more"),
        bash("rm -r build", "Remove what the last build has left"),
        Reply(text("The total is right, and its test passes. The folder `build` is still there, as you wanted.")),
    ],
    "reloaded": [
        read("cart.py"),
        Reply(text("I have read it. ", "Now I ask."), tool("Write", file_path="first.txt", content="first\n")),
        Reply(text("The first half, ", "and the second.", gate="reloaded")),
    ],
    "tabs": [
        bash("touch first", "Make the first file"),
        bash("touch second", "Make the second file"),
        bash("touch third", "Make the third file"),
        Reply(text("One for each.")),
        Reply(text("Again ", "for all.")),
    ],
    "narrow": [
        Reply(
            text("The notes are long, so I write them into a file of their own."),
            tool("Write", file_path="a/folder/with/a/rather/long/name/release-notes-of-this-version.md", content=PLAN),
        ),
        Reply(text("They are there.")),
    ],
    "restarted": [
        Reply(text(LOOK, FOUND, gate="restarted-0"), tool("Read", file_path="cart.py")),
        bash("python3 -m unittest -q 2> result.txt", "Run the tests of the cart"),
        Reply(text("The test fails: each item is rounded on its own. ", "I will round the sum.", gate="restarted-1")),
        Reply(text("The connection ", "holds.")),
    ],
    "resumed": [
        Reply(text("I have seen ", "the cart.")),
        Reply(text("The cart again: ", "here it comes."), tool("Read", file_path="cart.py")),
        Reply(text("This never ", "comes to an end.", gate="resumed")),
        Reply(text("I still know ", "the cart.")),
    ],
    "long": [Reply(text(*[LONG[: len(LONG) // 100]] * 100))],
    "hostile": [
        Reply(text(*hostile_text().splitlines(keepends=True)), tool("Read", file_path="hostile.txt")),
        bash("cat hostile.txt", HOSTILE["script"]),
        bash(f"exit 3 # {HOSTILE['link']} {HOSTILE['bidi']}", f"Fail {HOSTILE['bidi']}"),
        Reply(tool("Write", file_path=f"{HOSTILE['bidi']} <b>.txt", content=hostile_text())),
        Reply(text("```html\n", HOSTILE["frame"], "\n```\n", f"# {HOSTILE['link']}\n", f"**{HOSTILE['bidi']}**")),
    ],
}


def make_folder(folder: Path, script: str) -> Path:
    """Create a small project folder for one session. The fake model follows the given script."""
    folder.mkdir()
    (folder / "CLAUDE.md").write_text(f"This is a shop. [[{script}]]\n")
    (folder / "cart.py").write_text(CART)
    (folder / "test_cart.py").write_text(TEST)
    (folder / "build").mkdir()
    # The page searches the output of commands for progress. It takes this line for progress.
    (folder / "hostile.txt").write_text(f"{hostile_text()}\n[5/20] {HOSTILE['script'][:60]}\n")
    return folder
