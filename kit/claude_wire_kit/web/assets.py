"""The files of the web page. A browser gets them before it has shown a token, so they have no data of a session."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def page_routes() -> list[Route]:
    """The page at ``/``, and its files beside it: ``/page.js``, …"""
    files = (resources.files("claude_wire_kit") / "web" / "page").iterdir()
    return [_route(file.name, file.read_bytes()) for file in files if file.name.rpartition(".")[2] in _TYPES]


def _route(name: str, content: bytes) -> Route:
    async def send(request: Request) -> Response:
        return Response(content, media_type=_TYPES[name.rpartition(".")[2]])

    return Route("/" if name == "index.html" else f"/{name}", send, methods=["GET"])
