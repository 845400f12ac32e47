"""Write the HTML document: head, style, facts, table of contents, and the turns.

The document loads nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from claude_wire_kit.html.markup import day, inline
from claude_wire_kit.html.story import Facts, Story

STYLE = Path(__file__).with_name("style.css")

#: The page has no scripts or fonts, and loads nothing. If text still managed to add an element that loads something,
#: this policy would make the browser refuse it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

#: The title is cut to this many characters.
TITLE_CHARS = 120


def document(story: Story) -> Iterator[str]:
    """Yield the HTML page in pieces. Close the story first."""
    facts = story.facts
    title = inline(facts.title.strip() or "A session", TITLE_CHARS)
    style = STYLE.read_text("utf-8")
    yield f"""<!DOCTYPE html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name=viewport content="width=device-width, initial-scale=1">
<meta name=color-scheme content="light dark">
<meta name=referrer content=no-referrer>
<title>{title.removeprefix("<bdi>").removesuffix("</bdi>")}</title>
<style>
{style}</style>
</head>
<body>
<a class=skip href=#turns>Skip to the conversation</a>
<header>
<h1>{title}</h1>
<dl>
"""
    for name, value in _facts(facts):
        yield f"<div><dt>{name}</dt><dd>{value}</dd></div>\n"
    yield "</dl>\n</header>\n"
    if facts.turns > 1 and story.contents:
        yield "<nav aria-label=Turns>\n<details><summary>Prompts</summary>\n<ol>\n"
        yield from story.contents.markup()
        yield "</ol>\n</details>\n</nav>\n"
    yield "<main id=turns>\n"
    yield from story.box.markup()
    if story.budget.left_out:
        yield f"<p class=cut>The page is full: {story.budget.left_out:,} further parts are left out.</p>\n"
    yield "</main>\n<footer>Times are in UTC. Made by claude-wire.</footer>\n</body>\n</html>\n"


def _facts(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.first is not None and facts.last is not None:
        yield "Began", day(facts.first)
        yield "Took", _span((facts.last - facts.first).total_seconds())
    if facts.models:
        yield "Model", _several(facts.models)
    if facts.cost is not None:
        yield "Cost", f"${facts.cost:,.4f}"
    yield "Turns", f"{facts.turns:,}"
    yield "Tool calls", f"{facts.calls:,}"
    if facts.errors:
        yield "Errors", f"{facts.errors:,}"
    if facts.folder:
        yield "Folder", inline(facts.folder)
    if facts.version:
        yield "CLI", inline(facts.version)
    if facts.sessions:
        yield "Session", _several(facts.sessions)


def _several(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - 3:,} more" if len(shown) > 3 else ""
    return ", ".join(map(inline, shown[:3])) + more


def _span(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"
