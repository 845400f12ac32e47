"""Mask table cells in columns with a secret name.

A table has cells between bars, commas, semicolons or tabs, or is an ``INSERT`` or ``COPY`` statement of SQL.
"""

from __future__ import annotations

import re

from claude_wire_kit.tap.names import is_plain_value, is_secret_name

_CELL = re.compile(r"[\s\"'*`]{0,8}[\w .#()-]{0,60}[\s\"'*`]{0,8}")
#: Maximum number of cells in a row. A line with more cells is not a table.
MAX_CELLS = 100

_COPY = re.compile(r"COPY\s[^()]{1,200}\(([^()]{1,2000})\)\s+FROM\s+stdin;", re.I)
_INSERT = re.compile(r"\(([^()]{1,2000})\)\s{0,20}VALUES(?=\s{0,20}\()", re.I)
_ROW = re.compile(r"\s{0,20},?\s{0,20}\(((?:'(?:[^'\\]|\\.)*'|\([^()]*\)|[^()'])*)\)")
_VALUE = re.compile(r"(?:'(?:[^'\\]|\\.)*'|\([^()]*\)|[^,'()])+")


def masked_columns(text: str, mask: str, secrets: list[str]) -> str:
    """Mask the cells in columns with secret names, and append the cells' contents to ``secrets``."""
    if "VALUES" in text or "values" in text:
        text = _masked_inserts(text, mask, secrets)
    if "\n" not in text:
        return text
    lines = text.split("\n")
    for separator in "|", ",", "\t", ";":
        secret: list[int] = []
        count = 0
        for number, line in enumerate(lines):
            if secret and not line.strip("-+=:| \t\r"):  # the line of dashes below the header
                continue
            if separator == "\t" and (copy := _COPY.match(line)):
                names = copy[1].split(",")
                secret, count = _secret_names(names), len(names)
                continue
            cells = line.split(separator) if separator in line else []
            if not 1 < len(cells) <= MAX_CELLS:
                secret = []
            elif not secret or len(cells) != count:
                secret, count = (_secret_names(cells) if _is_head(cells, separator) else []), len(cells)
            else:
                for index in secret:
                    cell = cells[index].strip()
                    if cell.strip("-:+ ") and not is_plain_value(cell) and cell != mask:
                        secrets.append(cell)
                        cells[index] = cells[index].replace(cell, mask)
                lines[number] = separator.join(cells)
    return "\n".join(lines)


def _masked_inserts(text: str, mask: str, secrets: list[str]) -> str:
    parts: list[str] = []
    kept = 0
    for head in _INSERT.finditer(text):
        names = head[1].split(",")
        secret = _secret_names(names)
        row = _ROW.match(text, head.end()) if secret else None
        while row is not None:
            values = list(_VALUE.finditer(text, *row.span(1)))
            for index in secret if len(values) == len(names) else ():
                value = values[index][0].strip()
                begin = text.index(value, values[index].start())
                if begin >= kept and not is_plain_value(value) and value.strip("'") != mask:
                    secrets.append(value.strip("'"))
                    parts += text[kept:begin], f"'{mask}'"
                    kept = begin + len(value)
            row = _ROW.match(text, row.end())
    return "".join(parts) + text[kept:]


def _is_head(cells: list[str], separator: str) -> bool:
    """Return True if a line may be a table's header and is not a line of code."""
    if separator != "|" and (cells[0][:1].isspace() or not cells[-1].strip()):
        return False
    return all(map(_CELL.fullmatch, cells))


def _secret_names(cells: list[str]) -> list[int]:
    return [index for index, cell in enumerate(cells) if is_secret_name(cell.strip(" \t\r\"'*`"))]
