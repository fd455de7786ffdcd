"""The connections of one client, blocking.

Idle connections are used last in first out. Redirects are never followed. A call's deadline covers waiting for a
connection, connecting, every header byte and every body byte.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError
from kronmem.transport.connection import Connection
from kronmem.transport.drive import CLOSED
from kronmem.transport.failures import crowded
from kronmem.transport.target import Target

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
        self._pid = os.getpid()  # last: whoever reads it in a forked child finds nothing of the parent's

    def send(self, request: Request) -> Reply:
        """Send once, within `request.timeout`."""
        if self._closed:
            raise ConfigError(CLOSED)
        if self._pid != os.getpid():
            parents = self._stock
            self._begin()
            parents.close()  # copies: the parent's own stay open, and nothing is said on them
        stock, deadline = self._stock, time.monotonic() + request.timeout
        connection = self._take(stock, request, deadline)
        try:
            return connection.send(request, deadline)
        finally:
            stock.give_back(connection)

    def _take(self, stock: Stock[Connection], request: Request, deadline: float) -> Connection:
        handed: SimpleQueue[Connection] = SimpleQueue()
        if (found := stock.take(handed.put)) is not None:
            return found
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
