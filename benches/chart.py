"""Draw a table of results as an SVG chart: for each job, the time of other packages divided by claude_wire's time.

The axis is logarithmic. Each job is a row. Each package has one mark, for its fastest variant, and a line from its best
round to its worst. The line at 1 is claude_wire. Packages differ in the shape and colour of their mark. The colours are
the palette of Okabe and Ito, which people with colour blindness can distinguish. There is a light and a dark version.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from table import Measure, Row, Table, quantity

__all__ = ["DARK", "LIGHT", "TITLE", "Theme", "svg"]

TITLE = "Time that others take for the same job, as a multiple of claude_wire's"


@dataclass(frozen=True)
class Theme:
    """The light or the dark version's colours."""

    background: str
    ink: str
    faint: str
    grid: str
    marks: dict[str, str]


_LIGHT_MARKS = {
    "claude-agent-sdk": "#D55E00",
    "pydantic": "#CC79A7",
    "json": "#0072B2",
    "orjson": "#E69F00",
    "msgspec": "#009E73",
    "fastsimdjson": "#000000",
    "pysimdjson": "#6E6E6E",
    "jiter": "#56B4E9",
}
LIGHT = Theme("#ffffff", "#1f2328", "#59636e", "#d8dee4", _LIGHT_MARKS)
DARK = Theme(
    "#0d1117",
    "#e6edf3",
    "#9198a1",
    "#30363d",
    _LIGHT_MARKS
    | {"json": "#4FA3E3", "fastsimdjson": "#FFFFFF", "pysimdjson": "#A0A0A0", "claude-agent-sdk": "#F0762B"},
)
#: Package -> the SVG path of its mark, in a square of 10 around (0, 0).
_SHAPES = {
    "claude-agent-sdk": "M-5,0 L0,-5 L5,0 L0,5 Z",
    "pydantic": "M0,-5 L5,4 L-5,4 Z",
    "json": "M-4,-4 H4 V4 H-4 Z",
    "orjson": "M-4.5,0 A4.5,4.5 0 1 0 4.5,0 A4.5,4.5 0 1 0 -4.5,0 Z",
    "msgspec": "M0,5 L5,-4 L-5,-4 Z",
    "fastsimdjson": "M-5,-2 H-2 V-5 H2 V-2 H5 V2 H2 V5 H-2 V2 H-5 Z",
    "pysimdjson": "M-5,-3 L-3,-5 L0,-2 L3,-5 L5,-3 L2,0 L5,3 L3,5 L0,2 L-3,5 L-5,3 L-2,0 Z",
    "jiter": "M0,-5 L1.5,-1.8 L5,-1.5 L2.4,0.9 L3.1,4.5 L0,2.6 L-3.1,4.5 L-2.4,0.9 L-5,-1.5 L-1.5,-1.8 Z",
}
#: The plot's width, and the width of the right margin.
_PLOT = 620
_RIGHT = 40
#: The approximate width of a character in a job's name.
_CHARACTER = 7.0
_TOP = 96
_ROW = 40
_FONT = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""


def _ticks(low: float, high: float) -> list[float]:
    """Return the axis ticks: 1, 2 and 5 times powers of ten, from just below ``low`` to just above ``high``."""
    steps = [step * 10.0**power for power in range(-3, 6) for step in (1, 2, 5)]
    first = max(index for index, step in enumerate(steps) if step <= low)
    last = min(index for index, step in enumerate(steps) if step >= high)
    return steps[first : last + 1]


def svg(table: Table, theme: Theme) -> str:
    """Draw the rows that are ``charted``. All other rows are only in the table."""
    rows = [row for row in table.rows if row.charted and row.measure is Measure.FASTER and row.package in _SHAPES]
    jobs = list(dict.fromkeys(row.job for row in rows))
    ticks = _ticks(min([0.99, *(min(row.values) for row in rows)]), max([2.0, *(max(row.values) for row in rows)]))
    low, high = math.log10(ticks[0]), math.log10(ticks[-1])
    left = 38 + _CHARACTER * max([20, *map(len, jobs)])
    right = left + _PLOT
    width = round(right + _RIGHT)
    bottom = _TOP + _ROW * len(jobs)
    height = bottom + 58

    def x(ratio: float) -> float:
        return left + (math.log10(ratio) - low) / (high - low) * _PLOT

    def text(at: float, y: float, what: str, *, anchor: str = "start", size: int = 13, fill: str = theme.ink) -> str:
        place = f'x="{at:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        return f'<text {place} font-size="{size}" fill="{fill}">{escape(what)}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(TITLE)}" {_FONT}>',
        f"<title>{escape(TITLE)}</title>",
        f'<rect width="{width}" height="{height}" fill="{theme.background}"/>',
        text(24, 30, TITLE, size=17),
    ]
    parts += _legend(list(dict.fromkeys(row.package for row in rows)), theme, text)
    shown = ticks if len(ticks) <= 13 else [tick for tick in ticks if math.log10(tick).is_integer()]
    for tick in shown:
        one = tick == 1
        style = f'stroke="{theme.ink if one else theme.grid}" stroke-width="{1.5 if one else 1}"'
        parts.append(f'<line x1="{x(tick):.1f}" y1="{_TOP}" x2="{x(tick):.1f}" y2="{bottom}" {style}/>')
        parts.append(text(x(tick), bottom + 18, f"{tick:g}", anchor="middle", size=12, fill=theme.faint))
    parts.append(text(x(1), _TOP - 6, "claude_wire = 1", anchor="middle", size=11, fill=theme.faint))
    caption = (
        "times claude_wire's time, logarithmic; right of 1: the other takes longer; thin lines: lowest to highest round"
    )
    parts.append(text((left + right) / 2, bottom + 42, caption, anchor="middle", size=12, fill=theme.faint))
    for number, job in enumerate(jobs):
        y = _TOP + _ROW * (number + 0.5)
        of_job = [row for row in rows if row.job == job]
        parts.append(text(left - 14, y + 1, job, anchor="end"))
        parts.append(
            text(left - 14, y + 15, f"{quantity(of_job[0].ours, 's')} a line", anchor="end", size=11, fill=theme.faint)
        )
        parts.append(f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="{theme.grid}"/>')
        parts += _marks(_best(of_job), y, x, theme)
    return "\n".join([*parts, "</svg>", ""])


def _legend(packages: list[str], theme: Theme, text: Callable[..., str]) -> list[str]:
    parts = []
    at = 30.0
    for package in packages:
        mark = f'<path d="{_SHAPES[package]}" fill="{theme.marks[package]}"/>'
        parts.append(f'<g transform="translate({at:.1f},56)">{mark}</g>')
        parts.append(text(at + 10, 60.5, package, size=12))
        at += 34 + 7.4 * len(package)
    return parts


def _best(rows: list[Row]) -> list[Row]:
    """Return each package's fastest row."""
    return [
        min((row for row in rows if row.package == package), key=lambda row: row.median)
        for package in dict.fromkeys(row.package for row in rows)
    ]


def _marks(rows: list[Row], y: float, x: Callable[[float], float], theme: Theme) -> list[str]:
    """Draw one job's marks. Marks that would overlap move up or down."""
    parts = []
    before = -math.inf
    side = 1
    for row in sorted(rows, key=lambda row: row.median):
        at = x(row.median)
        offset = 0.0
        if at - before < 11:
            offset = 9.0 * side
            side = -side
        else:
            side = 1
            before = at
        colour = theme.marks[row.package]
        ends = f'x1="{x(min(row.values)):.1f}" x2="{x(max(row.values)):.1f}"'
        parts.append(
            f'<g transform="translate(0,{y + offset:.1f})"><title>{escape(row.peer)}: {row.median:.2f}</title>'
            f'<line {ends} y1="0" y2="0" stroke="{colour}" stroke-width="1.5" opacity="0.7"/>'
            f'<path transform="translate({at:.1f},0)" d="{_SHAPES[row.package]}" fill="{colour}" '
            f'stroke="{theme.background}" stroke-width="1"/></g>'
        )
    return parts
