"""One connection to the service, blocking and awaited: two twins that differ by an `await`.

httpcore's connection above the same sockets costs as much again as the rest of a request, and reads what a service
sends beyond its reply as the answer to the next question.
"""

from __future__ import annotations

import httpcore

from kronmem.core.wire import Reply, Request
from kronmem.transport.http1 import Http1
from kronmem.transport.sockets import Clock, DeadlineBackend, awaited_backend
from kronmem.transport.target import Target

_AT_ONCE = 64 * 1024


class Line:
    """A connection that is made for its first request and may carry others after it."""

    def __init__(self, target: Target) -> None:
        self._target, self._http, self._clock = target, Http1(), Clock()
        self._stream: httpcore.NetworkStream | None = None

    def send(self, request: Request, deadline: float) -> Reply:
        """Send one request and read its reply."""
        self._clock.at = deadline
        stream = self._stream or self._connected()
        stream.write(self._http.asks(request, self._target))
        while (reply := self._http.hears(stream.read(_AT_ONCE))) is None:
            pass
        return reply

    def usable(self) -> bool:
        """May another request be sent? What the service says or closes unasked makes an end of it."""
        return self._http.rests and self._stream is not None and not self._stream.get_extra_info("is_readable")

    def close(self) -> None:
        """Close at once, whatever is under way."""
        if self._stream is not None:
            self._stream.close()

    def _connected(self) -> httpcore.NetworkStream:
        target, tls = self._target, self._target.tls
        self._stream = DeadlineBackend(self._clock).connect_tcp(target.host, target.port)
        if tls is not None:
            self._stream = self._stream.start_tls(tls, target.host)
        return self._stream


class AsyncLine:
    """The same, awaited. Its caller keeps the deadline."""

    def __init__(self, target: Target) -> None:
        self._target, self._http = target, Http1()
        self._stream: httpcore.AsyncNetworkStream | None = None

    async def send(self, request: Request) -> Reply:
        """Send one request and read its reply."""
        stream = self._stream or await self._connected()
        await stream.write(self._http.asks(request, self._target))
        while (reply := self._http.hears(await stream.read(_AT_ONCE))) is None:
            pass
        return reply

    def usable(self) -> bool:
        """May another request be sent? What the service says or closes unasked makes an end of it."""
        return self._http.rests and self._stream is not None and not self._stream.get_extra_info("is_readable")

    async def aclose(self) -> None:
        """Close at once, whatever is under way."""
        if self._stream is not None:
            await self._stream.aclose()

    async def _connected(self) -> httpcore.AsyncNetworkStream:
        target, tls = self._target, self._target.tls
        self._stream = await awaited_backend().connect_tcp(target.host, target.port)
        if tls is not None:
            self._stream = await self._stream.start_tls(tls, target.host)
        return self._stream
