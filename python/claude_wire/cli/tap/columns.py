"""Tables in a text that have a column of secrets, by its head: with bars, with commas, or with tabs."""

from __future__ import annotations

import re

from claude_wire.cli.tap.names import is_plain_value, is_secret_name

__all__ = ["masked_columns"]

_CELL = re.compile(r"[\s\"'*`]{0,8}[\w .#()-]{0,60}[\s\"'*`]{0,8}")
#: A row of a table has at most so many cells.
MOST_CELLS = 100


def masked_columns(text: str, mask: str, secrets: list[str]) -> str:
    """The text without the cells below the names of secrets. What was in them is added to ``secrets``."""
    if "\n" not in text:
        return text
    lines = text.split("\n")
    for separator in "|", ",", "\t", ";":
        secret: list[int] = []
        count = 0
        for number, line in enumerate(lines):
            if secret and not line.strip("-+=:| \t\r"):  # what stands below the head
                continue
            cells = line.split(separator) if separator in line else []
            if not 1 < len(cells) <= MOST_CELLS:
                secret = []
            elif not secret or len(cells) != count:
                secret, count = _secret_cells(cells, bare=separator != "|"), len(cells)
            else:
                for index in secret:
                    cell = cells[index].strip()
                    if cell.strip("-:+ ") and not is_plain_value(cell) and cell != mask:
                        secrets.append(cell)
                        cells[index] = cells[index].replace(cell, mask)
                lines[number] = separator.join(cells)
    return "\n".join(lines)


def _secret_cells(cells: list[str], *, bare: bool) -> list[int]:
    """The places of the cells that are names of secrets, in a line that may be the head of a table."""
    if not all(_CELL.fullmatch(cell) for cell in cells) or (bare and (cells[0][:1].isspace() or not cells[-1].strip())):
        return []  # a line of a program
    names = [cell.strip(" \t\r\"'*`") for cell in cells]
    return [index for index, name in enumerate(names) if is_secret_name(name)]
