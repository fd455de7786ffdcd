"""Middleware before every request: allowed hosts, writers, an id for the log, headers for browsers, a bounded body."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import socket
import time
import uuid
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as WebRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kronmem import tracing
from kronmem.api import rules
from kronmem.core.wire import Request
from kronmem.settings import is_loopback

# A name or an address and a port: Starlette makes urls of this header, and / ? # @ would shift their path.
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_KNOWN = 64
_METHODS = _SAFE | {"POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE"}


class Hosts:
    """The names under which this server may be addressed: a foreign one is a rebound name in a browser."""

    def __init__(self, bound: str = "127.0.0.1", more: Iterable[str] = ()) -> None:
        self._anywhere = bound in ("", "0.0.0.0", "::")
        own = [socket.gethostname()] if self._anywhere else [bound]
        self._names = frozenset(name.lower() for name in (*own, *more))
        self._known: set[str] = set()
        """Headers that were allowed before, as many as a server has names and ports."""

    def allows(self, header: str | None) -> bool:
        """May a request for this Host be answered?"""
        if header is None or header in self._known:
            return header is not None
        name = host_name(header)
        # A number cannot be rebound to another machine, so on all interfaces every number is ours.
        allowed = bool(name) and (is_loopback(name) or name in self._names or (self._anywhere and _is_number(name)))
        if allowed and len(self._known) < _MOST_KNOWN:
            self._known.add(header)
        return allowed


def host_name(header: str) -> str:
    """The name in a Host header, without its port; "" when it is not of the form host[:port]."""
    if not _HOST.fullmatch(header):
        return ""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """The outermost layer of the app."""

    def __init__(
        self, app: ASGIApp, hosts: Hosts, route_of: Callable[[Scope], str], finished: Callable[[ServedRequest], None]
    ) -> None:
        self._app, self._hosts, self._route_of, self._finished = app, hosts, route_of, finished

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it before anything of it is read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        outgoing = _Outgoing(scope, send, _request_id(headers), self._route_of(scope))
        try:
            with tracing.serving(outgoing.method, outgoing.route, headers, lambda: outgoing.status):
                outgoing.trace_id = tracing.headers().get("traceparent", "")[3:35]
                await self._answer(scope, receive, outgoing, headers)
        finally:
            self._finished(outgoing.finished())

    async def _answer(self, scope: Scope, receive: Receive, outgoing: _Outgoing, headers: Headers) -> None:
        if refusal := self._refusal(scope["method"], headers):
            await _refuse(outgoing, *refusal)
        else:
            await self._app(scope, receive, outgoing)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        if not self._hosts.allows(headers.get("host")):
            return 421, "This Host is not served here; if it should be, start the server with --allow-host NAME"
        if method not in _SAFE and not _same_origin(headers):
            return 403, "Refused: the request comes from a page of another site"
        return None


def _same_origin(headers: Headers) -> bool:
    """Programs send neither header; browsers cannot leave them out."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:  # no browser sends what is no url
        return False


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


class _Outgoing:
    """`send`, with the headers that every answer has; remembers the facts of the request for log and metrics."""

    def __init__(self, scope: Scope, send: Send, request_id: str, route: str) -> None:
        self._scope, self._send, self._id = scope, send, request_id
        self.route, self.status, self.trace_id = route, 0, ""
        self._began = time.monotonic()

    @property
    def method(self) -> str:
        """The method; one that HTTP does not have goes by the conventions' word, or a client could make up labels."""
        method: str = self._scope["method"]
        return method if method in _METHODS else "_OTHER"

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._id
            headers[rules.VERSION_HEADER] = rules.API_VERSION
            headers.setdefault("cache-control", "no-store")
            headers.setdefault("x-content-type-options", "nosniff")
        await self._send(message)

    def finished(self) -> ServedRequest:
        """The request as it ended."""
        path = self._scope.get("raw_path", b"").decode("ascii", "replace")
        took = time.monotonic() - self._began
        return ServedRequest(self._id, self.method, path, self.route, self.status, took, self.trace_id)


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    # The body was not read, so the connection cannot be used again.
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# The access log: one line a request, as text or as JSON. Without query and contents, which are private.

_log = logging.getLogger("kronmem.access")


@dataclass(frozen=True)
class ServedRequest:
    """A request that was answered. `route` is "" when none matched, `status` 0 when its sender was gone before."""

    id: str
    method: str
    path: str
    route: str
    status: int
    seconds: float
    trace_id: str = ""


LogRequest: TypeAlias = Callable[[ServedRequest], None]


def log_as_text(request: ServedRequest) -> None:
    """A line for people."""
    took = request.seconds * 1000
    _log.info("%s %s %s %s %.1fms", request.id, request.method, request.path, request.status, took)


def log_as_json(request: ServedRequest) -> None:
    """A line for programs; `trace_id` finds the spans of the request."""
    if not _log.isEnabledFor(logging.INFO):
        return
    line: dict[str, str | int | float] = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "request_id": request.id,
        "method": request.method,
        "path": request.path,
        "route": request.route,
        "status": request.status,
        "duration_ms": round(request.seconds * 1000, 3),
    }
    _log.info("%s", json.dumps(line | ({"trace_id": request.trace_id} if request.trace_id else {})))


# Reads a request from the web as the service takes it: bounded in size and in time.

BODY_SECONDS = 30.0
"""How long a body may take to arrive: the largest at 5 Mbit/s. Slow headers are for a proxy to end."""
TIMEOUT = 10.0
"""Seconds a request may wait for the store: the default deadline of a client's call."""
SMALL = 256 * 1024
"""Bytes of a body that there is always room for: far more than a memory has."""
LARGE = 256 * 1024 * 1024
"""Bytes beyond those, in all bodies at a time: sixteen of the largest."""

_CLOSE = {"connection": "close"}


class BodyRoom:
    """Bounds the memory that large bodies take together. Small ones always fit."""

    def __init__(self, most: int = LARGE) -> None:
        self._left = most

    @contextmanager
    def share(self) -> Generator[Callable[[int], None], None, None]:
        """Room for one body until it is answered: a function to report the body's length to."""
        taken = 0

        def grow(length: int) -> None:
            nonlocal taken
            more = max(length - SMALL, 0) - taken
            if more > self._left:
                raise HTTPException(503, "Too many large bodies at once", {**_CLOSE, "retry-after": "1"})
            taken, self._left = taken + more, self._left - more

        try:
            yield grow
        finally:
            self._left += taken


def _anything(_length: int) -> None:
    """Room for a body of any length."""


async def read(
    web: WebRequest, most: int, grow: Callable[[int], None] = _anything, *, seconds: float = BODY_SECONDS
) -> Request:
    """The whole request; HTTPException when it has more than `most` bytes, is too slow, or its sender has gone.

    `grow` receives the length so far, and may refuse it.
    """
    # The body of a GET, which has no meaning, is not waited for: no client can hold up the open routes.
    body = b"" if web.method in ("GET", "HEAD") else await _body(web, most, grow, seconds)
    query = tuple(web.query_params.multi_items()) if web.scope.get("query_string") else ()
    method, path = target(web)
    return Request(method, path, query, body, tuple(web.headers.items()), TIMEOUT)


def target(web: WebRequest) -> tuple[str, str]:
    """The method, a HEAD as the GET that it stands for, and the path as sent: quoted ids stay quoted until checked."""
    raw: bytes = web.scope["raw_path"]
    return "GET" if web.method == "HEAD" else web.method, raw.decode("ascii", "surrogateescape")


async def _body(web: WebRequest, most: int, grow: Callable[[int], None], seconds: float) -> bytes:
    declared = web.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise HTTPException(413, "The body is too large", _CLOSE)
    body = bytearray()
    try:
        with anyio.fail_after(seconds):
            async for chunk in web.stream():
                body += chunk
                if len(body) > most:
                    raise HTTPException(413, "The body is too large", _CLOSE)
                grow(len(body))
    except TimeoutError:
        raise HTTPException(408, "The body did not arrive in time", _CLOSE) from None
    except ClientDisconnect:
        raise HTTPException(400, "The sender has gone", _CLOSE) from None
    return bytes(body)
