"""The web app: the service's own table of routes behind HTTP and an API key. It adds no endpoint and no policy."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as WebRequest
from starlette.responses import Response
from starlette.routing import Route

from kronmem.core.wire import Request
from kronmem.engine.service import ROUTES, Service
from kronmem.errors import KronmemError

MAX_BODY = 16 * 1024 * 1024
TIMEOUT = 10.0
"""Seconds a request may wait for the store."""
_AT_ONCE = 16
_log = logging.getLogger("kronmem.server")

Endpoint = Callable[[WebRequest], Awaitable[Response]]


def create_app(service: Service, keys: Mapping[str, str] | None = None) -> Starlette:
    """The service as an ASGI app. `keys` maps each API key to its owner; without keys everybody is the owner ''."""
    endpoint = _endpoint(service, None if keys is None else {key.encode(): owner for key, owner in keys.items()})
    routes = [Route(route.path, endpoint, methods=[route.method]) for route in ROUTES]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refusal})
    app.router.redirect_slashes = False  # a redirect would repeat a DELETE at an address nobody asked for
    return app


def _endpoint(service: Service, keys: Mapping[bytes, str] | None) -> Endpoint:
    limiter: list[anyio.CapacityLimiter] = []  # made inside the event loop it belongs to

    async def answer(web: WebRequest) -> Response:
        owner = "" if web.url.path == "/health" else _owner(web, keys)
        request = await _read(web)
        limiter.extend([anyio.CapacityLimiter(_AT_ONCE)] if not limiter else [])
        try:
            reply = await to_thread.run_sync(service.handle, request, owner, limiter=limiter[0])
        except KronmemError as error:
            _log.error("%s %s: %s", web.method, type(error).__name__, error)
            return _problem(503, "The memory store cannot be used at the moment")
        return Response(reply.body, reply.status, headers=dict(reply.headers))

    return answer


def _owner(web: WebRequest, keys: Mapping[bytes, str] | None) -> str:
    if keys is None:
        return ""
    given = web.headers.get("x-api-key")
    if given is None:
        raise HTTPException(401, "Missing API key. Add header: X-API-Key: kv-...")
    # Every key is compared, and each in constant time: the answer's timing tells nothing about them.
    owners = [owner for key, owner in keys.items() if hmac.compare_digest(key, given.encode())]
    if not owners:
        raise HTTPException(401, "Invalid or revoked API key.")
    return owners[0]


async def _read(web: WebRequest) -> Request:
    body = bytearray()
    async for chunk in web.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(413, "The body is too large")
    raw: bytes = web.scope["raw_path"]  # as sent: what is quoted in an id stays quoted until the service reads it
    headers = tuple((name, value) for name, value in web.headers.items())
    query = tuple(web.query_params.multi_items())
    return Request(web.method, raw.decode("ascii"), query, bytes(body), headers, TIMEOUT)


async def _refusal(_web: WebRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # registered for nothing else
    return _problem(error.status_code, error.detail)


def _problem(status: int, detail: str) -> Response:
    return Response(json.dumps({"detail": detail}), status, media_type="application/json")
