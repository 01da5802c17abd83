"""Settings to an application: routes, and around each request who asks, what goes wrong, what the audit log says."""

import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lakeview.model.errors import LakeviewError
from lakeview.sharing.protocol.messages import ErrorBody, ErrorCode, ResponseFormat
from lakeview.sharing.server import changes, files, limits, reading
from lakeview.sharing.server.audit import AuditLog, Entry
from lakeview.sharing.server.catalogue import Place
from lakeview.sharing.server.context import Caller, Context, caller_of
from lakeview.sharing.server.hub import Hub
from lakeview.sharing.server.refusals import Refusal, refusal_of
from lakeview.sharing.server.settings import Recipient

_LOG = logging.getLogger("lakeview.sharing.server")
_ERROR_TYPE = "application/json; charset=utf-8"

Endpoint = Callable[[Context], Awaitable[Response]]
_NOBODY = Caller(Recipient(""), "")
"""The caller of a request before it is admitted."""

_TABLE = "/shares/{share}/schemas/{schema}/tables/{table}"
_ENDPOINTS: tuple[tuple[str, str, str, Endpoint], ...] = (
    ("/shares", "GET", "list", reading.shares),
    ("/shares/{share}", "GET", "list", reading.share),
    ("/shares/{share}/schemas", "GET", "list", reading.schemas),
    ("/shares/{share}/schemas/{schema}/tables", "GET", "list", reading.tables),
    ("/shares/{share}/all-tables", "GET", "list", reading.all_tables),
    (_TABLE, "HEAD", "version", reading.version),
    (f"{_TABLE}/version", "GET", "version", reading.version),
    (f"{_TABLE}/metadata", "GET", "metadata", reading.metadata),
    (f"{_TABLE}/query", "POST", "query", reading.query),
    (f"{_TABLE}/changes", "GET", "changes", changes.changes),
)
"""Path, method, word of the audit log, and what answers."""


def application(hub: Hub) -> Starlette:
    """The server. Its audit log is written every so often, and once more when it ends."""
    prefix = hub.settings.endpoint
    routes = [
        Route(prefix + path, _handler(hub, action, partial(_admit_token, endpoint=endpoint)), methods=[method])
        for path, method, action, endpoint in _ENDPOINTS
    ]
    routes.append(Route("/files/{table}/{path:path}", _handler(hub, "file", _admit_url), methods=["GET"]))
    handlers = {HTTPException: _http_error, 500: _bug}
    middleware = [Middleware(HeadLimits)]
    app = Starlette(routes=routes, lifespan=_lifespan(hub), exception_handlers=handlers, middleware=middleware)
    app.router.redirect_slashes = False  # its redirects go where the Host header says, over http behind a proxy
    return app


class HeadLimits:
    """Refuses requests by their head alone: 505 for another version of HTTP, 431 for more than `limits` allows.

    The parser limits only heads that come in several pieces; one that comes at once is of any length.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or have the application do it."""
        refusal = _head_refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)


def _head_refusal(scope: Scope) -> Response | None:
    if scope["http_version"] not in limits.HTTP_VERSIONS:
        return _error(505, ErrorCode.MALFORMED_REQUEST, "this server speaks HTTP/1.1", {"Connection": "close"})
    headers = scope["headers"]
    size = len(scope.get("raw_path") or b"") + len(scope["query_string"]) + sum(len(k) + len(v) for k, v in headers)
    if len(headers) > limits.HEADERS or size > limits.HEAD_BYTES:
        return _error(431, ErrorCode.MALFORMED_REQUEST, "the request's head is too large", {"Connection": "close"})
    return None


def _handler(hub: Hub, action: str, admit: Callable[[Context], Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    """Answers requests: `admit` refuses a caller before anything else is said; then the endpoint answers."""

    async def handle(request: Request) -> Response:
        hub.reload_if_changed()
        context = Context(hub, request, _NOBODY, _entry(hub, request, action))
        try:
            response = await admit(context)(context)
        except Refusal as refusal:
            return _refuse(context, refusal)
        except LakeviewError as error:
            _LOG.warning("request %s: %s", context.entry.request_id, error)
            return _refuse(context, refusal_of(error))
        except BaseException:  # a fault of ours, or a client that left: goes on up, but not without its row
            context.finish(500)
            raise
        response.headers["X-Request-Id"] = context.entry.request_id
        if not hasattr(response, "body_iterator"):  # streams finish when they are through
            context.entry.bytes = len(response.body)
            context.finish(response.status_code)
        return response

    return handle


def _admit_token(context: Context, endpoint: Endpoint) -> Endpoint:
    context.caller = caller = caller_of(context.hub, context.request.headers, context.entry.client or "")
    context.entry.recipient, context.entry.token_id = caller.recipient.name, caller.token_id
    return endpoint


def _admit_url(context: Context) -> Endpoint:
    recipient, place, path = files.authorize(context.hub, context.request)
    context.hub.file_rate.take(recipient.name)
    context.caller = Caller(recipient, "")
    context.entry.recipient, context.entry.file = recipient.name, path
    context.record(place)
    return partial(files.file, place=place, path=path)


def _entry(hub: Hub, request: Request, action: str) -> Entry:
    client = None if request.client is None else request.client.host
    agent = request.headers.get("user-agent", "")[:200] or None
    return Entry(hub.now(), secrets.token_hex(8), client=client, agent=agent, action=action)


def _refuse(context: Context, refusal: Refusal) -> Response:
    response = _error(refusal.status, refusal.code, refusal.message, refusal.headers)
    response.headers["X-Request-Id"] = context.entry.request_id
    context.entry.bytes = len(response.body)
    context.finish(refusal.status)
    return response


def _error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    body = msgspec.json.encode(ErrorBody(code, message))
    return Response(body, status, {"Content-Type": _ERROR_TYPE, "Cache-Control": "no-store", **(headers or {})})


async def _http_error(_: Request, error: Exception) -> Response:
    """What no route answers."""
    assert isinstance(error, HTTPException)
    code = ErrorCode.RESOURCE_DOES_NOT_EXIST if error.status_code == 404 else ErrorCode.MALFORMED_REQUEST
    return _error(error.status_code, code, "there is no such endpoint", dict(error.headers or {}))


async def _bug(_: Request, __: Exception) -> Response:
    """A fault of ours: 500, and not a word about it."""
    return _error(500, ErrorCode.INTERNAL_ERROR, "the server failed; its log says why")


def _lifespan(hub: Hub) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            if hub.audit is not None:
                group.start_soon(_write_audit, hub.audit, hub.settings.audit_seconds)
            group.start_soon(_load_ahead, hub)
            try:
                yield
            finally:
                group.cancel_scope.cancel()
        if hub.audit is not None:
            await anyio.to_thread.run_sync(hub.audit.flush)

    return running


async def _write_audit(audit: AuditLog, seconds: float) -> None:
    while True:
        await anyio.sleep(seconds)
        await anyio.to_thread.run_sync(audit.flush)


async def _load_ahead(hub: Hub) -> None:
    """Open and list so many tables as the settings say, one after the other, each in its turn as requests have theirs:
    so that no first byte waits for a listing.

    Views are left out: a copy is made on the first request. A table that cannot be loaded is refused on request.
    """
    for place in list(hub.catalogue.tables())[: hub.settings.load_ahead]:
        if place.table.view is None:
            handle = hub.sources.of(place.table)
            async with handle.turn, handle.loading:
                await hub.work(partial(_load, hub, place))


def _load(hub: Hub, place: Place) -> None:
    try:
        target = hub.sources.current(place)
        table_version = target.shared_version(target.latest)
        response_format = ResponseFormat.DELTA if table_version.reader_features else ResponseFormat.PARQUET
        table_version.rows(response_format, response_format.value)
    except (LakeviewError, Refusal) as error:
        _LOG.info("table %s is not loaded ahead: %s", place.table.name, error)
