"""For mkdocs: docstrings have the roles of reStructuredText, for readers of the source; a page shows names."""

from __future__ import annotations

import re
from typing import Any

#: ``:class:`~claude_wire.Decoder``` as Markdown leaves it.
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc|obj):<code>(~?)(?:!?)([\w.]+)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Show the name alone where a role stands, and one colon where two open an indented block."""
    html = ROLE.sub(lambda found: f"<code>{found[2].rpartition('.')[2] if found[1] else found[2]}</code>", html)
    return re.sub(r"(?<=[\w>)])::(</p>)", r":\1", html).replace("<p>::</p>", "")
