"""The connections of one client, blocking.

Idle connections are used last in first out. Redirects are never followed. A call's deadline covers waiting for a
connection, connecting, every header byte and every body byte.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar
from weakref import ref

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
GLANCE = 1.0
"""Seconds after which a waiting call looks for itself: whoever should have woken it may have been interrupted."""


class Counted(Protocol):
    """A connection that knows whether it was closed."""

    closed: bool


C = TypeVar("C", bound=Counted)


class Reusable(Protocol):
    """A connection that knows whether it may carry another request."""

    @property
    def reusable(self) -> bool: ...
    def close(self) -> None: ...


R = TypeVar("R", bound=Reusable)


class Census(Generic[C]):
    """The connections that exist, at most so many, counted without a lock or a semaphore.

    An exception out of a signal handler can hit between any two steps, and a place that was taken and not yet noted
    would be lost. Here nothing is given back: connections that were closed, or forgotten by everybody, do not count.
    """

    def __init__(self, make: Callable[[], C], most: int = IN_FLIGHT) -> None:
        self._make, self._most = make, most
        self._known: dict[int, ref[C]] = {}

    def add(self) -> C | None:
        """A new connection, if there is room for one."""
        if self._full():
            return None
        made = self._make()
        self._known[id(made)] = ref(made)
        if len(self._known) > self._most and self._full(by=1):  # other threads have added theirs meanwhile
            self._known.pop(id(made), None)
            return None
        return made

    def _full(self, by: int = 0) -> bool:
        if len(self._known) >= self._most + by:
            self._forget()
        return len(self._known) >= self._most + by

    def _forget(self) -> None:
        for number, known in list(self._known.items()):
            if (one := known()) is None or one.closed:
                self._known.pop(number, None)


class Idle(Generic[R]):
    """The connections between two requests, the one that was used last first. Any thread may put and take."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, R]] = []

    def put(self, connection: R) -> None:
        """Keep one for later."""
        self._kept.append((time.monotonic(), connection))

    def take(self) -> R | None:
        """One that may carry another request; those that may not are closed."""
        while self._kept:
            try:
                since, connection = self._kept.pop()
            except IndexError:  # another thread was faster
                break
            if time.monotonic() < since + KEEP_ALIVE and connection.reusable:
                return connection
            connection.close()
        return None

    def close(self) -> None:
        """Close them all."""
        while self._kept:
            with contextlib.suppress(IndexError):
                self._kept.pop()[1].close()


class HttpTransport:
    """Blocking requests to one service. Safe to share between threads; at most `IN_FLIGHT` requests at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._census = Census(lambda: Connection(self._target))
        self._idle = Idle[Connection]()
        self._waiting: deque[SimpleQueue[Connection]] = deque()
        self._pid = os.getpid()  # last: whoever reads it in a forked child finds nothing of the parent's

    def send(self, request: Request) -> Reply:
        """Send once, within `request.timeout`."""
        if self._closed:
            raise ConfigError(CLOSED)
        if self._pid != os.getpid():
            self._after_fork()
        deadline = time.monotonic() + request.timeout
        connection = self._take(request, deadline)
        try:
            return connection.send(request, deadline)
        finally:
            self._give_back(connection)

    def _take(self, request: Request, deadline: float) -> Connection:
        if self._waiting:  # first come, first served
            return self._wait(request, deadline)
        return self._idle.take() or self._census.add() or self._wait(request, deadline)

    def _wait(self, request: Request, deadline: float) -> Connection:
        handed: SimpleQueue[Connection] = SimpleQueue()
        self._waiting.append(handed)
        try:
            while (left := deadline - time.monotonic()) > 0:
                with contextlib.suppress(Empty):
                    return handed.get(timeout=min(left, GLANCE))
                if (found := self._idle.take() or self._census.add()) is not None:
                    return found
        finally:
            with contextlib.suppress(ValueError):
                self._waiting.remove(handed)
            while not handed.empty():
                self._give_back(handed.get_nowait())
        raise crowded(self._target, request, IN_FLIGHT)

    def _give_back(self, connection: Connection) -> None:
        if self._closed or not connection.rested:
            connection.close()
        try:
            handed = self._waiting.popleft()
        except IndexError:
            if not connection.closed:
                self._idle.put(connection)
            if self._closed:  # by another thread, which found it not yet idle
                self.close()
            return
        if not connection.closed and not connection.reusable:
            connection.close()
        if (heir := self._census.add() if connection.closed else connection) is not None:
            handed.put(heir)

    def _after_fork(self) -> None:
        mine = self._idle
        self._begin()
        mine.close()  # copies: the parent's own stay open, and nothing is said on them

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        self._idle.close()
