"""For mkdocs: entries of the reference for all message classes of a module, and names where docstrings have roles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: Has the public names of each module of messages.
REGISTRY = ROOT / "python" / "claude_wire" / "messages" / "registry.py"

#: ``:class:`~claude_wire.Decoder``` as Markdown leaves it.
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc|obj):<code>(~?)(?:!?)([\w.]+)</code>")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put entries in the place of ``::: module.*``: one for each public name that the page has no entry for."""

    def entries(found: re.Match[str]) -> str:
        paths = [f"::: {found[1]}.{name}" for name in public_names(found[1])]
        return "\n\n".join(path for path in paths if f"{path}\n" not in markdown)

    return re.sub(r"^::: (\S+)\.\*$", entries, markdown, flags=re.M)


def public_names(module: str) -> list[str]:
    """Return the public names of a module of messages, as the registry has them, or else its ``__all__``."""
    names = re.search(rf"^from {re.escape(module)} import \(([^)]*)\)", REGISTRY.read_text(encoding="utf-8"), re.M)
    if names is None:
        path = ROOT / ("kit" if module.startswith("claude_wire_kit") else "python") / f"{module.replace('.', '/')}.py"
        names = re.search(r"^__all__ = \[([^]]*)\]", path.read_text(encoding="utf-8"), re.M)
    return re.findall(r"\w+", names[1] if names else "")


def on_page_content(html: str, **_: Any) -> str:
    """Show the name alone where a role stands, and one colon where two open an indented block."""
    html = ROLE.sub(lambda found: f"<code>{found[2].rpartition('.')[2] if found[1] else found[2]}</code>", html)
    return re.sub(r"(?<=[\w>)])::(</p>)", r":\1", html).replace("<p>::</p>", "")
