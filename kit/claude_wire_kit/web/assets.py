"""The files of the page: what a browser gets before it has shown a token. No data of a session is in them.

Knows files and their types; not sessions, and not who may use the service.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Page:
    """Middleware that answers requests for the page itself, and hands on all others.

    The page stands at ``/``, and its files beside it: ``/page.js``, …
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._files: dict[str, tuple[bytes, str]] = {}
        for file in (resources.files("claude_wire_kit") / "web" / "page").iterdir():
            kind = _TYPES.get(file.name.rpartition(".")[2])
            if kind is not None:
                self._files[f"/{file.name}"] = file.read_bytes(), kind
        self._files["/"] = self._files.pop("/index.html")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = None
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            found = self._files.get(scope["path"])
        if found is None:
            await self._app(scope, receive, send)
        else:
            content, kind = found
            await Response(content, media_type=kind)(scope, receive, send)
