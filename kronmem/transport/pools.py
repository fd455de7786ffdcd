"""The connections of one client: a blocking pool, and an awaited one for asyncio and trio.

Idle connections are used last in first out. Redirects are never followed. A call's deadline covers waiting for a
connection, connecting, every header byte and every body byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

import anyio

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError
from kronmem.transport.connection import AsyncConnection, Connection
from kronmem.transport.drive import CLOSED
from kronmem.transport.failures import crowded
from kronmem.transport.http1 import Target

IN_FLIGHT = 100
"""Connections of one client at most: httpx's default, and what the usual servers take from one peer."""
KEEP_ALIVE = 30.0
"""Seconds that an idle connection may be used again: the usual balancers close after 60, uvicorn after 5."""


class Reusable(Protocol):
    """A connection that knows how it stands."""

    closed: bool

    @property
    def rested(self) -> bool: ...
    @property
    def reusable(self) -> bool: ...
    def close(self) -> None: ...


R = TypeVar("R", bound=Reusable)


class Stock(Generic[R]):
    """The connections of one pool: the idle ones, how many exist, and the calls that wait for one."""

    def __init__(self, make: Callable[[], R]) -> None:
        self._make = make
        self._lock = threading.RLock()  # a signal handler may make a call of its own
        self._idle: list[tuple[float, R]] = []
        self._waiting: deque[Callable[[R], object]] = deque()
        self._open = 0
        self._closed = False

    def take(self, hand: Callable[[R], object]) -> R | None:
        """A connection, or None: then `hand` gets one later, first come, first served."""
        while True:
            with self._lock:
                if not self._idle:
                    if self._open < IN_FLIGHT and not self._waiting:
                        return self._made()
                    self._waiting.append(hand)
                    return None
                since, connection = self._idle.pop()
            if time.monotonic() < since + KEEP_ALIVE and connection.reusable:
                return connection
            connection.close()
            self.give_back(connection)

    def _made(self) -> R:
        made = self._make()
        self._open += 1
        return made

    def give_back(self, connection: R) -> None:
        """Hand it to the call that waits longest, or keep it for the next one."""
        if self._closed or not connection.rested or (self._waiting and not connection.reusable):
            connection.close()
        with self._lock:
            if connection.closed:
                self._open -= 1
            if self._waiting:
                self._waiting.popleft()(self._made() if connection.closed else connection)
            elif not connection.closed:
                self._idle.append((time.monotonic(), connection))
        if self._closed:  # by another thread, which found it not yet idle
            self.close()

    def give_up(self, hand: Callable[[R], object]) -> None:
        """Wait no longer."""
        with self._lock, contextlib.suppress(ValueError):
            self._waiting.remove(hand)

    def close(self) -> None:
        """Close the idle ones; each of the others is closed when it is given back."""
        self._closed = True
        with contextlib.suppress(IndexError):
            while True:  # without the lock, which another thread of a parent process may have held
                self._idle.pop()[1].close()


class HttpTransport:
    """Blocking requests to one service. Safe to share between threads; at most `IN_FLIGHT` requests at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._stock = Stock(lambda: Connection(self._target))
        self._pid = os.getpid()  # last: a reader in a forked child finds nothing of the parent's

    def send(self, request: Request) -> Reply:
        """Send once, within `request.timeout`."""
        if self._closed:
            raise ConfigError(CLOSED)
        if self._pid != os.getpid():
            parents = self._stock
            self._begin()
            parents.close()  # copies: the parent's own stay open, and nothing is sent on them
        stock, deadline = self._stock, time.monotonic() + request.timeout
        connection = self._take(stock, request, deadline)
        try:
            return connection.send(request, deadline)
        finally:
            stock.give_back(connection)

    def _take(self, stock: Stock[Connection], request: Request, deadline: float) -> Connection:
        handed: SimpleQueue[Connection] = SimpleQueue()
        if (idle := stock.take(handed.put)) is not None:
            return idle
        try:
            with contextlib.suppress(Empty):
                return handed.get(timeout=max(deadline - time.monotonic(), 0.0))
        finally:
            stock.give_up(handed.put)
            while not handed.empty():
                stock.give_back(handed.get_nowait())
        raise crowded(self._target, request, IN_FLIGHT)

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        self._stock.close()


# The awaited twin.


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
        if (idle := self._stock.take(waiter.hand)) is not None:
            return idle
        try:
            with anyio.move_on_after(deadline - time.monotonic()):
                await waiter.wait()
            idle, waiter.handed = waiter.handed, None
            if idle is not None:
                return idle
        finally:
            self._stock.give_up(waiter.hand)
            if waiter.handed is not None:
                self._stock.give_back(waiter.handed)
        raise crowded(self._target, request, IN_FLIGHT)

    async def watch(self, ended: Callable[[], object]) -> None:
        """See that idle connections are closed when their event loop ends.

        A loop closes the async generators that were begun on it: the one moment at which it calls back.
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
