"""Requests over a socket, awaited, on asyncio or trio; the twin of `http`."""

from __future__ import annotations

import asyncio
import os
import time

import anyio
import httpcore

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError
from kronmem.transport.body import Body
from kronmem.transport.http import FAILURES, IN_FLIGHT, KEEP_ALIVE, Target, failure, names
from kronmem.transport.sockets import AsyncioBackend


class _AsyncSlots:
    """The connections of one event loop."""

    def __init__(self, loop: object) -> None:
        self.loop = loop
        self.pid = os.getpid()
        self.idle: list[httpcore.AsyncHTTPConnection | httpcore.AsyncHTTPProxy] = []
        self.room = anyio.Semaphore(IN_FLIGHT, fast_acquire=True)


class AsyncHttpTransport:
    """Awaited requests to one service, on asyncio or trio, from one event loop after another."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._slots: _AsyncSlots | None = None
        self._closed = False

    async def asend(self, request: Request) -> Reply:
        """Send once, within `request.timeout`."""
        if self._closed:
            raise ConfigError("this client is closed")
        slots = self._here()
        try:
            with anyio.move_on_after(request.timeout):
                async with slots.room:
                    return await self._exchange(request, slots)
        except FAILURES as error:
            raise failure(error) from None
        raise failure(TimeoutError())

    async def _exchange(self, request: Request, slots: _AsyncSlots) -> Reply:
        line = await self._take(slots)
        reusable = False
        try:
            reply = await self._send(line, self._target.message(request, request.timeout))
            reusable = reply.status < 500
            return reply
        finally:
            if reusable and not self._closed:
                slots.idle.append(line)
            else:
                with anyio.CancelScope(shield=True):
                    await line.aclose()

    async def _send(
        self, line: httpcore.AsyncHTTPConnection | httpcore.AsyncHTTPProxy, message: httpcore.Request
    ) -> Reply:
        response = await line.handle_async_request(message)
        headers = names(response.headers)
        body = Body(headers)
        async for chunk in response.aiter_stream():
            body.add(chunk)
        await response.aclose()
        return Reply(response.status, body.bytes(), headers, time.time())

    async def _take(self, slots: _AsyncSlots) -> httpcore.AsyncHTTPConnection | httpcore.AsyncHTTPProxy:
        while slots.idle:
            line = slots.idle.pop()
            if not isinstance(line, httpcore.AsyncHTTPConnection) or (line.is_idle() and not line.has_expired()):
                return line
            await line.aclose()
        target = self._target
        if target.proxy is None:
            plain = target.scheme == "http" and isinstance(slots.loop, asyncio.AbstractEventLoop)
            return httpcore.AsyncHTTPConnection(
                target.origin,
                target.tls,
                keepalive_expiry=KEEP_ALIVE,
                network_backend=AsyncioBackend() if plain else None,
            )
        return httpcore.AsyncHTTPProxy(target.proxy, ssl_context=target.tls, max_connections=1)

    def _here(self) -> _AsyncSlots:
        """The connections of the running loop: those of another one, or of a parent process, cannot be used."""
        loop = _running_loop()
        slots = self._slots
        if slots is None or slots.loop is not loop or slots.pid != os.getpid():
            slots = self._slots = _AsyncSlots(loop)
        return slots

    async def aclose(self) -> None:
        """Close every connection of this loop."""
        self._closed = True
        slots = self._here()
        while slots.idle:
            await slots.idle.pop().aclose()


def _running_loop() -> object:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        import trio

        return trio.lowlevel.current_trio_token()
