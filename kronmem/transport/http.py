"""Requests over a socket, blocking; the only module that knows httpx.

One connection a slot, slots used last in first out: httpcore's own pool looks at every connection for every request.
Redirects are never followed. A call's deadline covers connecting, every header byte and every body byte.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Iterable
from functools import cached_property
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpcore
import httpx
from pydantic import SecretStr

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError, DeadlineError, TransportError
from kronmem.settings import is_loopback
from kronmem.transport.body import Body
from kronmem.transport.sockets import Clock, DeadlineBackend

HttpxTransport = httpx.BaseTransport | httpx.AsyncBaseTransport

IN_FLIGHT = 100
KEEP_ALIVE = 30.0

_TIMEOUTS = (httpcore.TimeoutException, httpx.TimeoutException, TimeoutError)
_NOT_SENT = (
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpcore.ProxyError,
)
FAILURES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable,
    httpx.TransportError,
    OSError,
    *_TIMEOUTS,
)


class Target:
    """Where requests go and what every one of them carries."""

    def __init__(self, url: str, key: SecretStr | None) -> None:
        parts = urlsplit(url)
        self.scheme = parts.scheme
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.prefix = parts.path.rstrip("/")
        self.netloc = parts.netloc
        self._key = key

    def headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Every header of a request; the key is read out of its wrapper only here."""
        found = [
            (b"host", self.netloc.encode("idna" if not self.netloc.isascii() else "ascii")),
            (b"accept", b"application/json"),
            (b"accept-encoding", b"gzip, deflate"),
            (b"user-agent", b"kronmem"),
        ]
        if self._key is not None:
            found.append((b"x-api-key", self._key.get_secret_value().encode("ascii")))
        found += [(name.encode("ascii"), value.encode("ascii")) for name, value in request.headers]
        if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
            found.append((b"content-length", str(len(request.body or b"")).encode("ascii")))
        return found

    def path(self, request: Request) -> str:
        """The request's target with its query."""
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query)
        return f"{self.prefix}{request.path}{'?' + query if query else ''}"

    def url(self, request: Request) -> str:
        """The whole address, for a transport that was passed in."""
        return f"{self.scheme}://{self.netloc}{self.path(request)}"

    def message(self, request: Request, timeout: float) -> httpcore.Request:
        """The request as httpcore sends it."""
        limits = {"connect": timeout, "read": timeout, "write": timeout, "pool": timeout}
        return httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=self.scheme.encode("ascii"),
                host=self.host.encode("idna" if not self.host.isascii() else "ascii"),
                port=self.port,
                target=self.path(request).encode("ascii"),
            ),
            headers=self.headers(request),
            content=request.body or b"",
            extensions={"timeout": limits},
        )

    @property
    def origin(self) -> httpcore.Origin:
        """Scheme, host and port, as httpcore wants them."""
        return httpcore.Origin(self.scheme.encode("ascii"), self.host.encode("ascii"), self.port)

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """Built once, and only where it is needed: it costs more than a hundred requests."""
        return httpx.create_ssl_context() if self.scheme == "https" else None

    @cached_property
    def proxy(self) -> str | None:
        """The proxy that the environment names for this host; read once. This machine is never proxied."""
        if is_loopback(self.host) or proxy_bypass(self.host):
            return None
        return getproxies().get(self.scheme) or getproxies().get("all")


def failure(error: BaseException) -> TransportError:
    """Our error for theirs; only the kind is told, for their text may hold the address with its query."""
    if isinstance(error, _TIMEOUTS):
        return DeadlineError(
            "the call's time was up before the service had answered", sent=not isinstance(error, _NOT_SENT)
        )
    if isinstance(error, _NOT_SENT):
        return TransportError(f"the service cannot be reached ({type(error).__name__})", sent=False)
    return TransportError(f"the connection to the service broke ({type(error).__name__})")


def names(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


# ── blocking ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Slot:
    """One connection and the deadline of what it is doing."""

    def __init__(self, target: Target) -> None:
        self.clock = Clock()
        backend = DeadlineBackend(self.clock)
        if target.proxy is None:
            self.line: httpcore.HTTPConnection | httpcore.HTTPProxy = httpcore.HTTPConnection(
                target.origin, target.tls, keepalive_expiry=KEEP_ALIVE, network_backend=backend
            )
        else:
            self.line = httpcore.HTTPProxy(
                target.proxy, ssl_context=target.tls, max_connections=1, network_backend=backend
            )

    def usable(self) -> bool:
        line = self.line
        return not isinstance(line, httpcore.HTTPConnection) or (line.is_idle() and not line.has_expired())

    def send(self, message: httpcore.Request, deadline: float) -> Reply:
        self.clock.at = deadline
        response = self.line.handle_request(message)
        try:
            headers = names(response.headers)
            body = Body(headers)
            for chunk in response.iter_stream():
                body.add(chunk)
            return Reply(response.status, body.bytes(), headers, time.time())
        finally:
            response.close()


class HttpTransport:
    """Blocking requests to one service. Safe to share between threads; at most `IN_FLIGHT` requests at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._idle: list[_Slot] = []
        self._room = threading.BoundedSemaphore(IN_FLIGHT)
        self._pid = os.getpid()
        self._closed = False

    def send(self, request: Request) -> Reply:
        """Send once, within `request.timeout`."""
        if self._closed:
            raise ConfigError("this client is closed")
        if self._pid != os.getpid():
            self._after_fork()
        deadline = time.monotonic() + request.timeout
        if not self._room.acquire(timeout=request.timeout):
            raise DeadlineError("too many requests under way: none ended in time", sent=False)
        try:
            return self._exchange(request, deadline)
        finally:
            self._room.release()

    def _exchange(self, request: Request, deadline: float) -> Reply:
        slot = self._take()
        reusable = False
        try:
            reply = slot.send(self._target.message(request, request.timeout), deadline)
            # After a 500 the server drops the connection, but only when it is used again.
            reusable = reply.status < 500
            return reply
        except FAILURES as error:
            raise failure(error) from None
        finally:
            if reusable and not self._closed:
                self._idle.append(slot)
            else:
                slot.line.close()

    def _take(self) -> _Slot:
        while self._idle:
            try:
                slot = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if slot.usable():
                return slot
            slot.line.close()
        return _Slot(self._target)

    def _after_fork(self) -> None:
        # The parent still speaks on these sockets: drop them without a word.
        self._pid, self._idle, self._room = os.getpid(), [], threading.BoundedSemaphore(IN_FLIGHT)

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        while self._idle:
            self._idle.pop().line.close()


# ── passed in ────────────────────────────────────────────────────────────────────────────────────────────────────


class Injected:
    """Requests through an httpx transport that the user passed in, for tests and special networks."""

    def __init__(self, target: Target, transport: httpx.BaseTransport | httpx.AsyncBaseTransport) -> None:
        self._target, self._transport = target, transport

    def _request(self, request: Request) -> httpx.Request:
        limits = dict.fromkeys(("connect", "read", "write", "pool"), request.timeout)
        headers = self._target.headers(request)
        url = self._target.url(request)
        return httpx.Request(request.method, url, headers=headers, content=request.body, extensions={"timeout": limits})

    def send(self, request: Request) -> Reply:
        """Send once."""
        if not isinstance(self._transport, httpx.BaseTransport):
            raise ConfigError("this transport can only be awaited; use it with AsyncClient")
        try:
            response = self._transport.handle_request(self._request(request))
            try:
                body = _collect(response.iter_bytes())
            finally:
                response.close()
        except FAILURES as error:
            raise failure(error) from None
        return Reply(response.status_code, body, names(response.headers.raw), time.time())

    async def asend(self, request: Request) -> Reply:
        """Send once, awaiting."""
        if not isinstance(self._transport, httpx.AsyncBaseTransport):
            raise ConfigError("this transport cannot be awaited; use it with Client")
        try:
            with anyio.fail_after(request.timeout):
                response = await self._transport.handle_async_request(self._request(request))
                try:
                    body = _collect([chunk async for chunk in response.aiter_bytes()])
                finally:
                    await response.aclose()
        except FAILURES as error:
            raise failure(error) from None
        return Reply(response.status_code, body, names(response.headers.raw), time.time())

    def close(self) -> None:
        """Nothing: whoever passed the transport in closes it."""

    async def aclose(self) -> None:
        """Nothing: whoever passed the transport in closes it."""


def _collect(chunks: Iterable[bytes]) -> bytes:
    body = Body({})
    for chunk in chunks:
        body.add(chunk)
    return body.bytes()
