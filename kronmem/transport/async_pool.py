"""The connections of one client, awaited, on asyncio or trio; the twin of `pool`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable

import anyio

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError
from kronmem.transport.connection import AsyncConnection
from kronmem.transport.drive import CLOSED
from kronmem.transport.failures import crowded
from kronmem.transport.pool import IN_FLIGHT, Stock
from kronmem.transport.target import Target


class _Waiter:
    """A call that waits for a connection, and the connection when there is one."""

    def __init__(self) -> None:
        self.handed: AsyncConnection | None = None
        self._event: anyio.Event | None = None

    def hand(self, connection: AsyncConnection) -> None:
        """Go on with this one."""
        self.handed = connection
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Until there is one."""
        self._event = anyio.Event()  # most calls need none
        await self._event.wait()


class AsyncHttpTransport:
    """Awaited requests to one service, on asyncio or trio, from any number of event loops."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pools: dict[object, _Pool] = {}
        self._pid = os.getpid()
        self._closed = False

    async def asend(self, request: Request) -> Reply:
        """Send once, within `request.timeout`."""
        if self._closed:
            raise ConfigError(CLOSED)
        pool = self._pools.get(_running_loop())
        if pool is None or self._pid != os.getpid():
            pool = await self._begin()
        return await pool.send(request)

    async def _begin(self) -> _Pool:
        """Connections for the running loop; those of another one, or of a parent process, cannot be used."""
        if self._pid != os.getpid():
            self._pid, self._pools = os.getpid(), {}
        for other in list(self._pools):
            if isinstance(other, asyncio.AbstractEventLoop) and other.is_closed():
                self._pools.pop(other, None)
        loop = _running_loop()
        pool = self._pools[loop] = _Pool(self._target)
        await pool.watch(lambda: self._pools.pop(loop, None))
        return pool

    async def aclose(self) -> None:
        """Close every connection of this loop."""
        self._closed = True
        if (pool := self._pools.pop(_running_loop(), None)) is not None:
            await pool.aclose()


class _Pool:
    """The connections of one event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._stock = Stock(lambda: AsyncConnection(target))

    async def send(self, request: Request) -> Reply:
        """Send once, within `request.timeout`."""
        deadline = time.monotonic() + request.timeout
        connection = await self._take(request, deadline)
        try:
            return await connection.send(request, deadline)
        finally:
            self._stock.give_back(connection)

    async def _take(self, request: Request, deadline: float) -> AsyncConnection:
        waiter = _Waiter()
        if (found := self._stock.take(waiter.hand)) is not None:
            return found
        try:
            with anyio.move_on_after(deadline - time.monotonic()):
                await waiter.wait()
            found, waiter.handed = waiter.handed, None
            if found is not None:
                return found
        finally:
            self._stock.give_up(waiter.hand)
            if waiter.handed is not None:
                self._stock.give_back(waiter.handed)
        raise crowded(self._target, request, IN_FLIGHT)

    async def watch(self, ended: Callable[[], object]) -> None:
        """See that idle connections are closed when their event loop ends.

        A loop closes the async generators that were begun on it: the one moment at which it tells anybody.
        """
        self._end = self._until_the_end(ended)
        await self._end.__anext__()

    async def _until_the_end(self, ended: Callable[[], object]) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            ended()
            self._stock.close()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._end.aclose()


def _running_loop() -> object:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        import trio

        return trio.lowlevel.current_trio_token()
