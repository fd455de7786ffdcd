"""Connections by httpcore, blocking and awaited: through a proxy, or while a test answers in httpcore's stead."""

from __future__ import annotations

import time

import httpcore

from kronmem.core.wire import Reply, Request
from kronmem.transport.body import Body
from kronmem.transport.sockets import Clock, DeadlineBackend
from kronmem.transport.target import KEEP_ALIVE, Target, names


class Detour:
    """One connection and the deadline of what it is doing."""

    def __init__(self, target: Target) -> None:
        self._target, self._clock = target, Clock()
        backend = DeadlineBackend(self._clock)
        self._line: httpcore.HTTPConnection | httpcore.HTTPProxy
        if target.proxy is None:
            self._line = httpcore.HTTPConnection(
                target.origin, target.tls, keepalive_expiry=KEEP_ALIVE, network_backend=backend
            )
        else:
            url, auth = target.proxy
            self._line = httpcore.HTTPProxy(
                url, auth, ssl_context=target.tls, max_connections=1, network_backend=backend
            )

    @staticmethod
    def needed(target: Target) -> bool:
        """Is there a proxy, or does somebody (respx does) answer in httpcore's stead?"""
        return target.proxy is not None or _replaced(httpcore.HTTPConnection.handle_request)

    def send(self, request: Request, deadline: float) -> Reply:
        """Send one request and read its reply."""
        self._clock.at = deadline
        response = self._line.handle_request(_message(request, self._target))
        try:
            headers = names(response.headers)
            body = Body(headers)
            for chunk in response.iter_stream():
                body.add(chunk)
            return Reply(response.status, body.bytes(), headers, time.time())
        finally:
            response.close()

    def usable(self) -> bool:
        """May another request be sent?"""
        line = self._line
        return not isinstance(line, httpcore.HTTPConnection) or (line.is_idle() and not line.has_expired())

    def close(self) -> None:
        """Close the connection."""
        self._line.close()


class AsyncDetour:
    """The same, awaited. Its caller keeps the deadline."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._line: httpcore.AsyncHTTPConnection | httpcore.AsyncHTTPProxy
        if target.proxy is None:
            self._line = httpcore.AsyncHTTPConnection(target.origin, target.tls, keepalive_expiry=KEEP_ALIVE)
        else:
            url, auth = target.proxy
            self._line = httpcore.AsyncHTTPProxy(url, auth, ssl_context=target.tls, max_connections=1)

    @staticmethod
    def needed(target: Target) -> bool:
        """Is there a proxy, or does somebody (respx does) answer in httpcore's stead?"""
        return target.proxy is not None or _replaced(httpcore.AsyncHTTPConnection.handle_async_request)

    async def send(self, request: Request) -> Reply:
        """Send one request and read its reply."""
        response = await self._line.handle_async_request(_message(request, self._target))
        headers = names(response.headers)
        body = Body(headers)
        async for chunk in response.aiter_stream():
            body.add(chunk)
        await response.aclose()
        return Reply(response.status, body.bytes(), headers, time.time())

    def usable(self) -> bool:
        """May another request be sent?"""
        line = self._line
        return not isinstance(line, httpcore.AsyncHTTPConnection) or (line.is_idle() and not line.has_expired())

    async def aclose(self) -> None:
        """Close the connection."""
        await self._line.aclose()


def _replaced(method: object) -> bool:
    return not getattr(method, "__globals__", {}).get("__name__", "").startswith("httpcore.")


def _message(request: Request, target: Target) -> httpcore.Request:
    url = httpcore.URL(
        scheme=target.scheme, host=target.host, port=target.port, target=target.path(request).encode("ascii")
    )
    limits = dict.fromkeys(("connect", "read", "write", "pool"), request.timeout)
    headers = target.headers(request)
    return httpcore.Request(
        request.method, url, headers=headers, content=request.body or b"", extensions={"timeout": limits}
    )
