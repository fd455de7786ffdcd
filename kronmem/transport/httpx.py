"""Requests through an httpx transport that a user passes in, instead of our own connections."""

from __future__ import annotations

import time

import anyio
import httpx

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError, KronmemError, ReplyError
from kronmem.transport import http1
from kronmem.transport.failures import failure, timed_out
from kronmem.transport.http1 import Target, names
from kronmem.transport.reply_parser import Body

HttpxTransport = httpx.BaseTransport | httpx.AsyncBaseTransport

_TIMEOUTS = (httpx.TimeoutException, TimeoutError)
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_FAILURES = (httpx.RequestError, OSError, *_TIMEOUTS)

_ONLY_AWAITED = (
    "this transport can only be awaited: use it with AsyncClient, whose outbox it cannot empty in the background"
    " (the next remember of an agent does), or pass one that can do both"
)


class Injected:
    """Sends by that transport, for tests and special networks; its deadline and bounds are those of our own."""

    def __init__(self, target: Target, transport: HttpxTransport) -> None:
        self._target, self._transport = target, transport

    def _request(self, request: Request) -> httpx.Request:
        headers, url = http1.headers(self._target, request), self._target.url(request)
        return httpx.Request(request.method, url, headers=headers, content=request.body, extensions=_limits(request))

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
    cause = error.__cause__ or error.__context__ or error  # httpx wraps the system's error
    return failure(target, cause if isinstance(cause, OSError) else error, request, sent=sent)
