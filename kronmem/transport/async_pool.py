"""Requests over sockets, awaited, on asyncio or trio; the twin of `pool`."""

from __future__ import annotations

import asyncio
import os

import anyio

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError
from kronmem.transport.connection import AsyncLine
from kronmem.transport.httpx import AsyncDetour
from kronmem.transport.target import FAILURES, IN_FLIGHT, Target, failure


class _Slots:
    """The connections of one event loop."""

    def __init__(self, loop: object) -> None:
        self.loop = loop
        self.pid = os.getpid()
        self.idle: list[AsyncLine | AsyncDetour] = []
        self.room = anyio.Semaphore(IN_FLIGHT, fast_acquire=True)


class AsyncHttpTransport:
    """Awaited requests to one service, on asyncio or trio, from one event loop after another."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._slots: _Slots | None = None
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

    async def _exchange(self, request: Request, slots: _Slots) -> Reply:
        line = await self._take(slots)
        reusable = False
        try:
            reply = await line.send(request)
            reusable = reply.status < 500
            return reply
        finally:
            if reusable and not self._closed:
                slots.idle.append(line)
            else:
                with anyio.CancelScope(shield=True):
                    await line.aclose()

    async def _take(self, slots: _Slots) -> AsyncLine | AsyncDetour:
        kind = AsyncDetour if AsyncDetour.needed(self._target) else AsyncLine
        while slots.idle:
            line = slots.idle.pop()
            if type(line) is kind and line.usable():
                return line
            await line.aclose()
        return kind(self._target)

    def _here(self) -> _Slots:
        """The connections of the running loop: those of another one, or of a parent process, cannot be used."""
        loop = _running_loop()
        slots = self._slots
        if slots is None or slots.loop is not loop or slots.pid != os.getpid():
            slots = self._slots = _Slots(loop)
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
