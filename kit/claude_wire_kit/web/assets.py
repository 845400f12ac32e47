"""Serve the web page's files. A browser gets them without a token, so no file contains data of sessions."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def page_routes() -> list[Route]:
    """Return the page's routes: ``/``, its own files such as ``/page.js``, and other files in ``/vendor``."""
    page = resources.files("claude_wire_kit") / "web" / "page"
    files = {file.name: file for file in page.iterdir()}
    files |= {f"vendor/{file.name}": file for file in (page / "vendor").iterdir()}
    return [_route(name, file.read_bytes()) for name, file in files.items() if name.rpartition(".")[2] in _TYPES]


def _route(name: str, content: bytes) -> Route:
    async def send(request: Request) -> Response:
        return Response(content, media_type=_TYPES[name.rpartition(".")[2]])

    return Route("/" if name == "index.html" else f"/{name}", send, methods=["GET"])
