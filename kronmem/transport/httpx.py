"""Requests by httpx or httpcore instead of our own connections: transports that a user passes in, and mocked ones.

A test library (respx) that answers in httpcore's stead is noticed when a connection is made, so a client that has
none yet, or one that is made inside the mock, is answered by it. Such a connection carries one request.
"""

from __future__ import annotations

import time

import anyio
import httpcore
import httpx

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError, KronmemError, ReplyError
from kronmem.transport import headers
from kronmem.transport.body import Body
from kronmem.transport.connection import AsyncConnection, Connection
from kronmem.transport.failures import failure, timed_out
from kronmem.transport.http1 import names
from kronmem.transport.target import Target

HttpxTransport = httpx.BaseTransport | httpx.AsyncBaseTransport

_TIMEOUTS = (httpx.TimeoutException, httpcore.TimeoutException, TimeoutError)
_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
)
_FAILURES = (httpx.RequestError, httpcore.NetworkError, httpcore.ProtocolError, OSError, *_TIMEOUTS)


# ── mocked httpcore ──────────────────────────────────────────────────────────────────────────────────────────────


def connection(target: Target) -> Connection | MockedConnection:
    """A connection of our own, or through httpcore while somebody answers in its stead."""
    return MockedConnection(target) if _patched(httpcore.HTTPConnection.handle_request) else Connection(target)


def async_connection(target: Target) -> AsyncConnection | AsyncMockedConnection:
    """The same, awaited."""
    patched = _patched(httpcore.AsyncHTTPConnection.handle_async_request)
    return AsyncMockedConnection(target) if patched else AsyncConnection(target)


def _patched(method: object) -> bool:
    return not getattr(method, "__globals__", {}).get("__name__", "").startswith("httpcore.")


class _Mocked:
    """A connection that carries one request."""

    rested = reusable = closed = False

    def __init__(self, target: Target) -> None:
        self._target = target
        self._origin = httpcore.Origin(target.scheme.encode(), target.host.encode(), target.port)

    def _message(self, request: Request) -> httpcore.Request:
        where = self._target.path(request).encode("ascii")
        url = httpcore.URL(scheme=self._target.scheme, host=self._target.host, port=self._target.port, target=where)
        said = headers.headers(self._target, request)
        return httpcore.Request(
            request.method, url, headers=said, content=request.body or b"", extensions=_limits(request)
        )

    def close(self) -> None:
        """Count no longer; there is nothing to close."""
        self.closed = True


class MockedConnection(_Mocked):
    """Through httpcore, blocking."""

    def send(self, request: Request, deadline: float) -> Reply:
        """Send one request and read its reply."""
        try:
            with httpcore.HTTPConnection(self._origin) as mocked:
                response = mocked.handle_request(self._message(request))
                headers = names(response.headers)
                body = Body(headers)
                for chunk in response.iter_stream():
                    _check_time(deadline)
                    body.add(chunk)
                return self._target.reply(response.status, body.bytes(), headers)
        except _FAILURES as error:
            raise _failure(error, request, self._target) from None


class AsyncMockedConnection(_Mocked):
    """Through httpcore, awaited."""

    async def send(self, request: Request, deadline: float) -> Reply:
        """Send one request and read its reply."""
        try:
            with anyio.fail_after(deadline - time.monotonic()):
                async with httpcore.AsyncHTTPConnection(self._origin) as mocked:
                    response = await mocked.handle_async_request(self._message(request))
                    headers = names(response.headers)
                    body = Body(headers)
                    async for chunk in response.aiter_stream():
                        body.add(chunk)
                    return self._target.reply(response.status, body.bytes(), headers)
        except _FAILURES as error:
            raise _failure(error, request, self._target) from None


# ── transports passed in ─────────────────────────────────────────────────────────────────────────────────────────


_ONLY_AWAITED = (
    "this transport can only be awaited: use it with AsyncClient, whose outbox it cannot empty in the background"
    " (the next remember of an agent does), or pass one that can do both"
)


class Injected:
    """Requests through an httpx transport that the user passed in, for tests and special networks."""

    def __init__(self, target: Target, transport: HttpxTransport) -> None:
        self._target, self._transport = target, transport

    def _request(self, request: Request) -> httpx.Request:
        said, url = headers.headers(self._target, request), self._target.url(request)
        return httpx.Request(request.method, url, headers=said, content=request.body, extensions=_limits(request))

    def send(self, request: Request) -> Reply:
        """Send once."""
        if not isinstance(self._transport, httpx.BaseTransport):
            raise ConfigError(_ONLY_AWAITED)
        deadline, body = time.monotonic() + request.timeout, Body({})
        try:
            response = self._transport.handle_request(self._request(request))
            try:
                for chunk in response.iter_bytes():
                    _check_time(deadline)
                    body.add(chunk)
            finally:
                response.close()
        except _FAILURES as error:
            raise _failure(error, request, self._target) from None
        return self._target.reply(response.status_code, body.bytes(), names(response.headers.raw))

    async def asend(self, request: Request) -> Reply:
        """Send once, awaiting."""
        if not isinstance(self._transport, httpx.AsyncBaseTransport):
            raise ConfigError("this transport cannot be awaited; use it with Client")
        body = Body({})
        try:
            with anyio.fail_after(request.timeout):
                response = await self._transport.handle_async_request(self._request(request))
                try:
                    async for chunk in response.aiter_bytes():
                        body.add(chunk)
                finally:
                    await response.aclose()
        except _FAILURES as error:
            raise _failure(error, request, self._target) from None
        return self._target.reply(response.status_code, body.bytes(), names(response.headers.raw))

    def close(self) -> None:
        """Nothing: the owner of the transport closes it."""

    async def aclose(self) -> None:
        """Nothing: the owner of the transport closes it."""


def _limits(request: Request) -> dict[str, dict[str, float]]:
    return {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), request.timeout)}


def _check_time(deadline: float) -> None:
    """A body that drips in renews the timeout of each read: the call as a whole has one too."""
    if time.monotonic() >= deadline:
        raise TimeoutError


def _failure(error: Exception, request: Request, target: Target) -> KronmemError:
    if isinstance(error, httpx.DecodingError):
        return ReplyError("the service's answer could not be decompressed")
    sent = not isinstance(error, _NOT_SENT)
    if isinstance(error, _TIMEOUTS):
        return timed_out(target, request, sent=sent)
    cause = error.__cause__ or error.__context__ or error  # httpx and httpcore wrap the system's error
    return failure(target, cause if isinstance(cause, OSError) else error, request, sent=sent)
