"""Middleware before every request: which Host may be meant, who may write, an id for the log, headers for browsers."""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kronmem import tracing
from kronmem.api import version
from kronmem.server.access_log import ServedRequest
from kronmem.settings import is_loopback

# A name or an address and a port: Starlette makes urls of this header, and / ? # @ would shift their path.
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_KNOWN = 64
_METHODS = _SAFE | {"POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE"}


class Hosts:
    """The names under which this server may be addressed: a foreign one is a rebound name in somebody's browser."""

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
        """The method; one that HTTP does not have goes by the conventions' word, or anybody could make up labels."""
        method: str = self._scope["method"]
        return method if method in _METHODS else "_OTHER"

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._id
            headers[version.HEADER] = version.API
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
