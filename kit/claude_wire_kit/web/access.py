"""Decide which requests the service accepts. A program sends the token; a browser sends a cookie from ``/login``."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.websockets import WebSocket, WebSocketDisconnect

from claude_wire_kit.supervisor.disk.files import open_private
from claude_wire_kit.web.refusals import refusal, too_many

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: A cookie is valid for this many seconds.
COOKIE_SECONDS = 30 * 24 * 3600
#: The rate limit for all clients together: this many actions in one burst, and this many per second.
BURST = 60
RATE = 20.0

#: The Content-Security-Policy. The page cannot load anything from other origins, and other pages cannot frame it.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


def load_token(path: str) -> str:
    """Read the service's token from a file that only its owner can read. If the file is missing, write a new token.

    Raises:
        OSError: the file cannot be read or written, or other users can read it.
        ValueError: the file does not contain a token.
    """
    token = secrets.token_urlsafe(32)
    try:
        with open(path, "xb", opener=open_private) as file:
            file.write(token.encode() + b"\n")
    except FileExistsError:
        with open(path, "rb", opener=open_private) as file:
            token = file.read(1024).decode("ascii", "replace").strip()
        if len(token) < 32 or not token.isascii():
            raise ValueError(f"{path} has no token; remove it to get a new one") from None
    return token


class Access:
    """Checks each request's token, cookie and origin.

    Args:
        token: the service's secret.
        port: the service's port. The cookie's name contains it, because browsers share cookies between ports.
        origins: additional origins that the page may have, such as a proxy's.
        clock: returns seconds since 1970.
    """

    def __init__(
        self, token: str, port: int, origins: Sequence[str] = (), clock: Callable[[], float] = time.time
    ) -> None:
        self._token = token.encode()
        self._origins = frozenset(origins)
        self._clock = clock
        self.cookie_name: str = f"claude_wire_{port}"

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def cookie(self) -> str:
        """Return a new cookie value: the time at which it expires, signed with the token."""
        until = str(int(self._clock()) + COOKIE_SECONDS)
        return f"{until}.{self._sign(until)}"

    def _sign(self, until: str) -> str:
        return hmac.new(self._token, b"cookie " + until.encode(), hashlib.sha256).hexdigest()

    def is_cookie(self, given: str) -> bool:
        until, _, signed = given.partition(".")
        if not (until.isascii() and until.isdigit() and len(until) < 20):
            return False
        return hmac.compare_digest(signed.encode("utf-8", "replace"), self._sign(until).encode()) and (
            int(until) > self._clock()
        )

    def refuses(self, connection: HTTPConnection, *, acts: bool) -> tuple[int, str] | None:
        """Return the HTTP status and the message that refuse a request; None if the request is allowed.

        Args:
            acts: True for a request that changes something, or opens a WebSocket.
        """
        headers = connection.headers
        given = headers.get("authorization")
        if given is not None:
            scheme, _, token = given.partition(" ")
            if scheme.lower() == "bearer" and self.is_token(token.strip()):
                return None
            return 401, "the token is wrong"
        if not self.is_cookie(connection.cookies.get(self.cookie_name, "")):
            return 401, "a token is needed: Authorization: Bearer TOKEN"
        is_foreign = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if is_foreign or (acts and not self.is_own_origin(headers)):
            return 403, "the request is not from the page of this service"
        return None

    def is_own_origin(self, headers: Headers) -> bool:
        """Return True if a request's ``Origin`` is this service's page. Check the ``Host`` first."""
        origin = headers.get("origin", "")
        return origin in self._origins or origin == f"http://{headers.get('host', '')}"


class Rate:
    """A rate limit as a token bucket: ``rate`` actions per second, and ``burst`` actions in one burst.

    Args:
        clock: returns the time in seconds.
        rate: actions per second; default :data:`RATE`.
        burst: actions in one burst; default :data:`BURST`.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, rate: float | None = None, burst: int | None = None
    ) -> None:
        self._clock = clock
        self._rate = RATE if rate is None else rate
        self._burst = float(BURST if burst is None else burst)
        self._left = self._burst
        self._at = clock()

    def passes(self) -> bool:
        """Count one action and return True; if the limit is reached, return False."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Guard:
    """Middleware that refuses requests without a token or cookie, and actions above the rate limit.

    Args:
        open_paths: paths that do not need a token: the page's files, which contain no data, and ``/login``.
    """

    def __init__(self, app: ASGIApp, access: Access, rate: Rate, open_paths: frozenset[str]) -> None:
        self._app = app
        self._access = access
        self._rate = rate
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        is_websocket = scope["type"] == "websocket"
        acts = is_websocket or scope["method"] not in ("GET", "HEAD")
        refused = self._access.refuses(HTTPConnection(scope), acts=acts)
        response: Response
        if refused is not None:
            status, message = refused
            extra = {"www-authenticate": "Bearer"} if status == 401 else None
            response = refusal(status, {401: "token", 403: "origin"}[status], message, extra)
        elif acts and not self._rate.passes():
            response = too_many()
        else:
            await self._app(scope, receive, send)
            return
        if is_websocket:
            await WebSocket(scope, receive, send).send_denial_response(response)
        else:
            await response(scope, receive, send)


class SecureHeaders:
    """Middleware that adds security headers for browsers to each reply.

    It also suppresses the exception for a client that disconnects during a request, so the log has no line about it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        def send_with_headers(message: Message) -> Awaitable[None]:
            if message["type"] in ("http.response.start", "websocket.http.response.start", "websocket.accept"):
                message.setdefault("headers", [])
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            return send(message)  # not awaited here: that would cost another coroutine for every event

        with suppress(ClientDisconnect, WebSocketDisconnect):
            await self._app(scope, receive, send_with_headers)
