"""The files of the web page. A browser gets them before it has shown a token, so they have no data of a session."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Page:
    """Middleware that serves the page at ``/`` and its files beside it (``/page.js``, …). Passes on
    all other requests.
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
