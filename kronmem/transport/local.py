"""The embedded engine behind `send`: the same requests and replies as over the network, without one.

Nothing is opened before the first request. For async callers the engine runs in worker threads, a few at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, WouldBlock, move_on_after, to_thread

from kronmem import fork_safety
from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError, DeadlineError
from kronmem.transport.drive import CLOSED, Places, aside

if TYPE_CHECKING:  # the engine is loaded when it is needed, not when kronmem is imported
    from kronmem.engine.embedding import Embed
    from kronmem.engine.service import Service

_AT_ONCE = 16
"""Requests in worker threads at a time: more only wait for each other, since the engine is Python."""
_CROWDED = f"timed out behind {_AT_ONCE} other calls of this process at the embedded engine"
_places = Places("kronmem_engine", _AT_ONCE)
_NO_PSYCOPG = "PostgreSQL needs its extra: pip install 'kronmem[postgres]'"


class LocalTransport:
    """Sends requests to a service in this process."""

    def __init__(self, open_service: Callable[[], Service]) -> None:
        self._open_service = open_service
        self._service: Service | None = None
        self._closed = False

    def send(self, request: Request) -> Reply:
        """Answer one request. `StoreError` and `DeadlineError` come straight from the store."""
        return self._opened().handle(request)

    async def asend(self, request: Request) -> Reply:
        """Answer one request in a worker thread. A cancelled call leaves its thread to finish by itself."""
        ends = time.monotonic() + request.timeout
        limiter, borrower = _places.limiter, object()
        await _take_place(limiter, borrower, request.timeout)
        try:
            # The place is taken: the thread itself does not wait.
            return await to_thread.run_sync(
                self._send_until, request, ends, abandon_on_cancel=True, limiter=CapacityLimiter(1)
            )
        finally:
            limiter.release_on_behalf_of(borrower)

    def _send_until(self, request: Request, ends: float) -> Reply:
        if (left := ends - time.monotonic()) <= 0:
            raise DeadlineError(_CROWDED, sent=False)
        return self.send(replace(request, timeout=left))

    def close(self) -> None:
        """Close the database, if one was opened."""
        with fork_safety.first_use.lock:
            service, self._service, self._closed = self._service, None, True
        if service is not None:
            service.close()

    async def aclose(self) -> None:
        """Close the database, if one was opened."""
        await aside(self.close)  # which goes on by itself

    def _opened(self) -> Service:
        if (service := self._service) is not None:
            return service
        with fork_safety.first_use.lock:
            if self._closed:
                raise ConfigError(CLOSED)
            if self._service is None:
                self._service = self._open_service()
            return self._service


def open_sqlite(path: str, *, embed: Embed | None = None, now: Callable[[], float] = time.time) -> LocalTransport:
    """The transport to the engine on a SQLite file, or in memory for ":memory:". Opens it at the first request."""
    return LocalTransport(lambda: sqlite_service(path, embed=embed, now=now))


def sqlite_service(path: str, *, embed: Embed | None = None, now: Callable[[], float] = time.time) -> Service:
    """The service itself on a SQLite file, or in memory for ":memory:"."""
    from kronmem.engine.engine import Engine
    from kronmem.engine.service import Service
    from kronmem.engine.sqlite.store import SqliteStore

    return Service(Engine(SqliteStore(path), embed=embed, now=now))


def open_postgres(url: str, *, embed: Embed | None = None, now: Callable[[], float] = time.time) -> LocalTransport:
    """The transport to the engine on a PostgreSQL database. Connects at the first request."""
    if find_spec("psycopg") is None:
        raise ConfigError(_NO_PSYCOPG)
    return LocalTransport(lambda: postgres_service(url, embed=embed, now=now))


def postgres_service(
    url: str, *, embed: Embed | None = None, now: Callable[[], float] = time.time, connections: int = 8
) -> Service:
    """The service itself on a PostgreSQL database, over at most so many connections."""
    from kronmem.engine.engine import Engine
    from kronmem.engine.service import Service

    try:
        from kronmem.engine.postgres.store import PostgresStore
    except ImportError as error:  # psycopg, or the libpq that it cannot do without
        raise ConfigError(_NO_PSYCOPG) from error
    store = PostgresStore(url, connections=connections)
    return Service(Engine(store, embed=embed, now=now))


async def _take_place(limiter: CapacityLimiter, borrower: object, timeout: float) -> None:
    """Take one of the places of the running event loop, waiting at most so long."""
    if limiter.available_tokens > 0:
        with suppress(WouldBlock):  # before anyio 4.14.2 a free place may be meant for another that waits
            limiter.acquire_on_behalf_of_nowait(borrower)
            return
    with move_on_after(timeout) as waiting:
        await limiter.acquire_on_behalf_of(borrower)
    if waiting.cancelled_caught:
        raise DeadlineError(_CROWDED, sent=False)
