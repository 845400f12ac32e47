"""The service's ASGI application: its routes, and the JSON of requests and replies. :mod:`.service` does the work."""

from __future__ import annotations

from base64 import b64encode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute

from claude_wire.errors import AnswerError, CLINotFoundError
from claude_wire.messages import Base64ImageSource, ImageBlock
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.web.access import COOKIE_SECONDS, Access, Guard, Rate, SecureHeaders
from claude_wire_kit.web.assets import page_routes
from claude_wire_kit.web.config import ChoiceError, FolderError
from claude_wire_kit.web.past import PastId
from claude_wire_kit.web.refusals import refusal, supervisor_refusal, too_many
from claude_wire_kit.web.service import Service
from claude_wire_kit.web.streams import DEFAULT_COUNT, count_of, events, json_of_id, page_of_events, websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from claude_wire_kit.supervisor.attach import Supervisor
    from claude_wire_kit.supervisor.frames import SessionInfo
    from claude_wire_kit.web.config import Config, Profile

#: Maximum size in bytes of a request's body.
MAX_BODY_BYTES = 1024 * 1024
#: Maximum number of characters in a search text.
MAX_SOUGHT_CHARS = 200
#: Limits for a prompt: the number of images, and the size in bytes of each image and of the request's body.
MAX_IMAGES = 8
MAX_IMAGE_BYTES = 3_750_000
MAX_PROMPT_BYTES = 12 * 1024 * 1024
#: A request's body must arrive within this many seconds.
BODY_SECONDS = 20.0
#: Names and addresses of the loopback interface.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")

B = TypeVar("B")
#: A function that carries out a request. Its arguments are the request, the service, and the session's ``id`` if the
#: path has one. It returns the reply; None for an empty reply (204).
_Act: TypeAlias = "Callable[..., Awaitable[Response | None]]"
_Uuid = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class _Login(msgspec.Struct, forbid_unknown_fields=True):
    token: Annotated[str, msgspec.Meta(max_length=1024)]


class _Create(msgspec.Struct, forbid_unknown_fields=True):
    profile: str
    folder: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    name: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    options: dict[str, str | int | float | bool] = {}


class _Image(msgspec.Struct, forbid_unknown_fields=True):
    mediaType: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    #: The image. In JSON it is Base64, which msgspec decodes.
    data: Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_IMAGE_BYTES)]


class _Prompt(msgspec.Struct, forbid_unknown_fields=True):
    text: Annotated[str, msgspec.Meta(max_length=1024 * 1024)] = ""
    uuid: _Uuid | None = None
    images: Annotated[list[_Image], msgspec.Meta(max_length=MAX_IMAGES)] = []


class _Withdraw(msgspec.Struct, forbid_unknown_fields=True):
    uuid: _Uuid


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    # The same as MODES in config.py. A client may not switch to a mode without permission questions.
    permissionMode: Literal["default", "acceptEdits", "plan"] | None = None


class _Name(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None


class _Resume(msgspec.Struct, forbid_unknown_fields=True):
    profile: str | None = None


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    requestId: str | int | float
    allow: bool
    option: Annotated[int, msgspec.Meta(ge=0)] = 0
    message: Annotated[str, msgspec.Meta(max_length=100_000)] | None = None
    answers: dict[str, str] | None = None


def create_app(supervisor: Supervisor, config: Config, token: str, *, port: int) -> Starlette:
    """Return the service as an application for any ASGI server. ``claude-wire serve`` runs it with uvicorn.

    Args:
        supervisor: the supervisor, from :func:`claude_wire_kit.supervisor.attach.connect`.
        config: which sessions clients can start.
        token: the secret that clients must send, such as ``secrets.token_urlsafe(32)``.
        port: the port of the service, as clients see it. The cookie's name contains it.
    """
    service = Service(supervisor, config)
    access = Access(token, port, config.origins)
    # Wrong tokens have a separate rate limit, so a client that guesses tokens cannot use up the limit of the others.
    wrong_tokens = Rate()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[dict[str, Any]]:
        async with service.run():
            yield {"service": service}

    async def login(request: Request, _service: Service) -> Response:
        body = await _body(request, _Login)
        if not access.is_own_origin(request.headers):
            return refusal(403, "origin", "the request is not from the page of this service")
        if not access.is_token(body.token):
            if not wrong_tokens.passes():
                return too_many()
            return refusal(401, "token", "the token is wrong")
        response = Response(status_code=204)
        response.set_cookie(
            access.cookie_name,
            access.cookie(),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            # With an https origin, a proxy in front of the service requires TLS. Then send the cookie only over TLS.
            secure=request.headers.get("origin", "").startswith("https://"),
        )
        return response

    page = page_routes()
    app = _Application(
        routes=[
            *page,
            _post("/login", login),
            _get("/sessions", _sessions),
            _post("/sessions", _create),
            _get("/search", _search),
            _get("/past", _past),
            _get("/past/{id}/events", _past_events),
            _post("/past/{id}/resume", _go_on),
            _get("/sessions/{id}/abilities", _abilities),
            _post("/sessions/{id}/prompts", _prompt, MAX_PROMPT_BYTES),
            _post("/sessions/{id}/withdraw", _withdraw),
            _post("/sessions/{id}/settings", _settings),
            _post("/sessions/{id}/rename", _rename),
            _get("/sessions/{id}/files", _files),
            _post("/sessions/{id}/stop", _stop),
            _post("/sessions/{id}/remove", _remove),
            _post("/sessions/{id}/answers", _answer),
            _post("/sessions/{id}/interrupt", _interrupt),
            _post("/sessions/{id}/resume", _resume),
            Route("/sessions/{id}/events", events),
            WebSocketRoute("/sessions/{id}/events", websocket),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, *config.hosts], www_redirect=False),
            Middleware(
                Guard, access=access, rate=Rate(), open_paths=frozenset({"/login", *(route.path for route in page)})
            ),
        ],
        exception_handlers=dict.fromkeys(
            (HTTPException, SupervisorError, AnswerError, ChoiceError, FolderError, CLINotFoundError), _refuse
        ),
        lifespan=lifespan,
    )
    app.state.service = service
    return app


def _get(path: str, act: _Act) -> Route:
    return Route(path, _endpoint(act))


def _post(path: str, act: _Act, most: int = MAX_BODY_BYTES) -> Route:
    """Return a POST route that accepts a body of at most ``most`` bytes. Other routes do not read a body."""
    limit = Middleware(RequestBodyLimitMiddleware, max_body_size=most)
    return Route(path, _endpoint(act), methods=["POST"], middleware=[limit])


def _endpoint(act: _Act) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await act(request, request.state.service, **request.path_params) or Response(status_code=204)

    return endpoint


class _Application(Starlette):
    """Starlette that also adds the security headers to its own error replies."""

    def build_middleware_stack(self) -> ASGIApp:
        return SecureHeaders(super().build_middleware_stack())


# --- requests


async def _sessions(request: Request, service: Service) -> Response:
    sessions = [_info(one) for one in await service.sessions()]
    profiles = [_profile(name, profile) for name, profile in service.profiles.items()]
    return JSONResponse({"sessions": sessions, "profiles": profiles})


def _profile(name: str, profile: Profile) -> dict[str, Any]:
    """Return the profile fields that clients may see. Other options may contain secrets."""
    choices = profile.offered
    options = {field: value for field, value in profile.options.items() if field in choices}
    return {"name": name, "roots": profile.roots, "choices": choices, "options": options}


async def _create(request: Request, service: Service) -> Response:
    body = await _body(request, _Create)
    return JSONResponse(_info(await service.create(body.profile, body.folder, body.name, body.options)), 201)


async def _prompt(request: Request, service: Service, id: str) -> Response:
    body = await _body(request, _Prompt)
    if not body.text and not body.images:
        raise HTTPException(400, "the prompt is empty")
    images = [ImageBlock(Base64ImageSource(one.mediaType, b64encode(one.data).decode())) for one in body.images]
    return JSONResponse({"uuid": await service.prompt(id, body.text, body.uuid, images)}, 202)


async def _withdraw(request: Request, service: Service, id: str) -> None:
    await service.withdraw(id, (await _body(request, _Withdraw)).uuid)


async def _settings(request: Request, service: Service, id: str) -> None:
    body = await _body(request, _Settings)
    await service.set(id, body.model, body.permissionMode)


async def _abilities(request: Request, service: Service, id: str) -> Response:
    async with service.feed(id, details=True, is_tail=True) as feed:  # the page uses the same feed
        feed.check(None)
        abilities = {"commands": feed.abilities.commands, "models": feed.abilities.models}
        return JSONResponse(msgspec.to_builtins(abilities))


async def _files(request: Request, service: Service, id: str) -> Response:
    return JSONResponse({"files": await service.files(id, _sought(request))})


async def _search(request: Request, service: Service) -> Response:
    sought = _sought(request)
    if not sought.strip():
        raise HTTPException(400, "q is empty")
    search = await service.search(sought)
    return Response(msgspec.json.encode({"found": search.found, "cut": search.is_cut}), media_type="application/json")


async def _past(request: Request, service: Service) -> Response:
    return JSONResponse({"sessions": msgspec.to_builtins(await service.past())})


async def _past_events(request: Request, service: Service, id: str) -> Response:
    try:
        count = count_of(request.query_params) or DEFAULT_COUNT
        given = request.query_params.get("before")
        before = None if given is None else PastId.of(given)
    except ValueError as error:
        return refusal(400, "id", str(error))
    page = await service.past_events(id, before, count)
    return page_of_events(
        [f'{{"id":{json_of_id(one.id)},"event":{one.event.to_json()}}}' for one in page.events], page.before
    )


async def _go_on(request: Request, service: Service, id: str) -> Response:
    return JSONResponse(_info(await service.go_on(id)), 201)


def _sought(request: Request) -> str:
    sought = request.query_params.get("q", "")
    if len(sought) > MAX_SOUGHT_CHARS:
        raise HTTPException(400, f"q has more than {MAX_SOUGHT_CHARS} characters")
    return sought


async def _rename(request: Request, service: Service, id: str) -> None:
    await service.rename(id, (await _body(request, _Name)).name)


async def _stop(request: Request, service: Service, id: str) -> None:
    await service.stop(id)


async def _remove(request: Request, service: Service, id: str) -> None:
    await service.remove(id)


async def _interrupt(request: Request, service: Service, id: str) -> None:
    await service.interrupt(id)


async def _answer(request: Request, service: Service, id: str) -> Response | None:
    body = await _body(request, _Answer)
    try:
        await service.answer(id, body.requestId, body.allow, body.option, body.message, body.answers)
    except ValueError as error:
        return refusal(400, "option", str(error))
    return None


async def _resume(request: Request, service: Service, id: str) -> Response:
    body = await _body(request, _Resume, _Resume())
    return JSONResponse(_info(await service.resume(id, body.profile)))


async def _body(request: Request, kind: type[B], default: B | None = None) -> B:
    """Decode the JSON body of a request.

    Args:
        default: returned if the request has no body; None if a body is required.

    Raises:
        HTTPException: the body is invalid, or did not arrive in time.
    """
    data: bytes | None = None
    with anyio.move_on_after(BODY_SECONDS):
        data = await request.body()
    if data is None:
        raise HTTPException(408, f"the body did not arrive within {BODY_SECONDS:g} seconds", {"connection": "close"})
    if not data and default is not None:
        return default
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body must be JSON, with the Content-Type application/json")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, str(error)) from error


def _info(info: SessionInfo) -> dict[str, Any]:
    fields = msgspec.to_builtins(info)
    return {name: fields[name] for name in ("id", "name", "life", "cwd", "began", "line", "driver")}


# --- errors


async def _refuse(request: Request, error: Exception) -> Response:
    """Return the reply to a request that raised an exception."""
    match error:
        case HTTPException():
            return refusal(error.status_code, "request", error.detail, dict(error.headers or {}))
        case SupervisorError():
            return supervisor_refusal(error)
        case AnswerError():
            return refusal(409 if error.settled else 404, "settled" if error.settled else "unknown", str(error))
        case ChoiceError():
            return refusal(403, "choice", str(error))
        case FolderError():
            return refusal(403, "folder", str(error))
        case _:  # CLINotFoundError
            advice = str(error).replace("ClaudeOptions(cli_path=...)", "options.cli_path of a profile")
            return refusal(503, "cli", advice)
