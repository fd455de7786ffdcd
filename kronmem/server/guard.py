"""Middleware before every request: which Host may be meant, who may write, an id for the log, headers for browsers."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import socket
import time
import uuid
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kronmem.settings import is_loopback

# A name or an address and a port: Starlette makes urls of this header, and / ? # @ would shift their path.
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_log = logging.getLogger("kronmem.access")


class Hosts:
    """The names under which this server may be addressed: a foreign one is a rebound name in somebody's browser."""

    def __init__(self, bound: str = "127.0.0.1", more: Iterable[str] = ()) -> None:
        self._anywhere = bound in ("", "0.0.0.0", "::")
        own = [socket.gethostname()] if self._anywhere else [bound]
        self._names = frozenset(name.lower() for name in (*own, *more))

    def allows(self, header: str | None) -> bool:
        """May a request for this Host be answered?"""
        name = host_name(header or "")
        # A number cannot be rebound to another machine, so on all interfaces every number is ours.
        return bool(name) and (is_loopback(name) or name in self._names or (self._anywhere and _is_number(name)))


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

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it before anything of it is read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        outgoing = _Outgoing(scope, send, _request_id(headers))
        if refusal := self._refusal(scope["method"], headers):
            await _refuse(outgoing, *refusal)
        else:
            await self._app(scope, receive, outgoing)
        outgoing.log()

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
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


class _Outgoing:
    """`send`, with the headers that every answer has; remembers the line for the log."""

    def __init__(self, scope: Scope, send: Send, request_id: str) -> None:
        self._scope, self._send, self._id = scope, send, request_id
        self._began, self._status = time.monotonic(), 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._id
            headers.setdefault("cache-control", "no-store")
            headers.setdefault("x-content-type-options", "nosniff")
        await self._send(message)

    def log(self) -> None:
        """One line, without query and contents: both may be private."""
        took = (time.monotonic() - self._began) * 1000
        path = self._scope.get("raw_path", b"").decode("ascii", "replace")
        _log.info("%s %s %s %s %.1fms", self._id, self._scope["method"], path, self._status, took)


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    # The body was not read, so the connection cannot be used again.
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
