"""The demo's project: a shop whose total is one cent too high, and a test that shows it."""

from __future__ import annotations

import base64
from pathlib import Path

#: The line with the bug, and the correct line. The agent replaces one with the other.
BROKEN = "    amount = sum(round(item.price * item.count * (1 - discount), 2) for item in items)"
FIXED = "    amount = sum(item.price * item.count for item in items) * (1 - discount)"

#: The path of the file with the bug, relative to the project.
SOURCE = "shop/cart.py"

FILES = {
    "README.md": """\
# Shop

What a customer pays for a cart. Run the tests with `python -m unittest -v`.
""",
    "shop/__init__.py": "",
    SOURCE: f'''\
"""The price of a cart."""

from typing import NamedTuple


class Item(NamedTuple):
    name: str
    price: float
    count: int = 1


def total(items, discount=0.0):
    """Return the price of all items after the discount, in dollars."""
{BROKEN}
    return round(amount, 2)
''',
    "tests/__init__.py": "",
    "tests/test_cart.py": """\
import unittest

from shop.cart import Item, total


class Total(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_items_are_counted(self):
        self.assertEqual(total([Item("pen", 1.5, count=2), Item("book", 12)]), 15)

    def test_a_discount_is_rounded_once(self):
        pens = [Item("red pen", 1.04), Item("green pen", 1.04), Item("blue pen", 1.04)]
        self.assertEqual(total(pens, discount=0.1), 2.81)
""",
}


#: A picture of 64 by 64 pixels, as PNG.
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQMAAACQp+OdAAAABlBMVEX6+fVQRsi60tu4AAAAX0lEQVR42mNgoBLg/99APIOBnSTG"
    "fxB4AGMcYGBgJsRowMtgBDMYCDP+YWUwoDD+EGB8gIUQSOQHiGGPm4EFNDAwQULhA4P8AXAo/mCwf4CdIf+Hof4DATVwc+AmUwIA"
    "gtefmYWsBq0AAAAASUVORK5CYII="
)


def write_project(folder: Path) -> None:
    """Write the project into an empty folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "logo.png").write_bytes(PICTURE)
