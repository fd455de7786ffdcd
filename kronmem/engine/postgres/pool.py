"""Connections to one PostgreSQL database and safe transactions on them, for threads and forks.

Nothing is opened before the first transaction, and nothing is left in a connection after one: a pooler may stand
between, and give it to another program next. Failures are typed errors that name the database, never the password:
`DeadlineError` on a timeout, `TransportError` when the server is not there, `StoreError` when it refused.

psycopg's own pool connects in threads of its own: with the server down, its callers wait for their whole time instead
of hearing so at once, and a fork leaves it without those threads.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import conninfo, errors, pq
from psycopg.types.numeric import Int8Dumper
from pydantic import SecretStr

from kronmem.engine.postgres.transaction import (
    UNPREPARED,
    PostgresConnection,
    Transaction,
    shown,
    timeout_of,
    translate,
)
from kronmem.errors import ConfigError, DeadlineError, StoreError

_LIFETIME = 1800.0
"""Seconds after which a connection is replaced: in half an hour a new server behind the same name gets its share."""
_SHORTEST_CONNECT = 2
"""libpq takes no shorter timeout."""
_PREPARE_AFTER = 5
"""Uses after which psycopg prepares a statement, as it does by itself."""
_TAKEOVER = 0.2
"""Seconds between two rounds over several hosts while none of them is the primary: a failover takes some seconds."""
_ROLLBACK = 1.0
"""Seconds for a rollback, many times a round trip; a connection that takes longer is closed instead."""
# A machine that vanished says nothing: without these, a read waits for it for hours.
_DEFAULTS = {
    "application_name": "kronmem",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
# Every statement is served by an index: a plan made when a table was new must not read it from end to end when it is
# large.
_SETTINGS = "SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0"
# A plan over sixteen partitions takes longer to make than to run: make it once. A distributed planner cannot, and
# without prepared statements there is nothing to keep it in.
_PLANNED = "SET LOCAL plan_cache_mode = force_generic_plan"
# A pooler makes up the process id that it tells its clients: PgBouncer, and all that must route a cancel request.
_WHO = b"""SELECT pg_backend_pid(), EXISTS (SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'citus')"""

_orphans: list[PostgresConnection] = []
"""Connections of a parent process. Closing them here would say goodbye to the server in the parent's name."""


class PostgresPool:
    """Hands out transactions on a bounded number of connections. Connects when it has to."""

    def __init__(self, url: str, size: int) -> None:
        self.place = shown(url)
        self._url = SecretStr(url)
        self._size = size
        self._pid = os.getpid()
        self._idle: list[PostgresConnection] = []
        self._free = threading.BoundedSemaphore(size)
        self._prepares = True
        self._closed = False

    def close(self) -> None:
        """Close the connections of this process. Later transactions are a `StoreError`."""
        self._after_fork()
        self._closed = True
        self._drop_idle()

    @contextmanager
    def transaction(self, begin: str, timeout: float, *, wait: bool = True) -> Generator[Transaction]:
        """Begin, yield the session, commit; undone if the block raises. Without `wait` only if one is free now."""
        ends = time.monotonic() + timeout
        with self._slot(timeout if wait else 0.0):
            with self._translated(None):
                connection = self._begun(begin, ends)
            try:
                with self._translated(connection):
                    yield Transaction(connection, ends)
                with self._translated(connection, committing=True):
                    connection.execute("COMMIT", prepare=False)
            finally:
                self._give_back(connection)

    @contextmanager
    def _slot(self, timeout: float) -> Generator[None]:
        self._after_fork()
        free = self._free  # a fork in the meantime puts another one in its place
        if not free.acquire(timeout=max(timeout, 0.0)):
            raise DeadlineError(f"no connection to {self.place} became free in {timeout:g} s", sent=False)
        try:
            if self._closed:
                raise StoreError(f"{self.place}: the store is closed")
            yield
        finally:
            free.release()

    def _begun(self, begin: str, ends: float) -> PostgresConnection:
        """A connection with a transaction begun. One that broke while it was idle is replaced: nothing was lost."""
        with contextlib.suppress(IndexError):  # pop() is atomic; a check before it would not be
            connection = self._idle.pop()
            try:
                return self._begin(connection, begin, ends)
            except psycopg.OperationalError:
                self._drop_idle()  # they broke together, most likely
                if time.monotonic() >= ends:
                    raise
        return self._begin(self._connect(ends), begin, ends)

    def _begin(self, connection: PostgresConnection, begin: str, ends: float) -> PostgresConnection:
        prepares = self._prepares and not connection.pooled
        connection.prepare_threshold = _PREPARE_AFTER if prepares else None
        connection.ends = ends
        parts = [begin, _SETTINGS, timeout_of(ends - time.monotonic())]
        if prepares and not connection.distributed:
            parts.append(_PLANNED)
        try:
            connection.execute("; ".join(parts).encode(), prepare=False)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, ends: float) -> PostgresConnection:
        """Connect; with several hosts named, for as long as there is time: one of them is going to take over."""
        given = self._given()
        several = "," in f"{given.get('host', '')}{given.get('hostaddr', '')}"
        while True:
            try:
                return self._open(given, ends)
            except psycopg.OperationalError:
                if not several or time.monotonic() + _TAKEOVER >= ends:
                    raise
                time.sleep(_TAKEOVER)

    def _open(self, given: dict[str, str | int | None], ends: float) -> PostgresConnection:
        left = max(int(ends - time.monotonic()), _SHORTEST_CONNECT)
        whole = conninfo.make_conninfo("", **{**_DEFAULTS, "connect_timeout": left, **given})
        connection = PostgresConnection.connect(whole, autocommit=True)
        try:
            connection.ends, connection.born = ends, time.monotonic()
            # One type for all integers: else every size of number would be a statement of its own to prepare.
            connection.adapters.register_dumper(int, Int8Dumper)
            [(pid, connection.distributed)] = connection.execute(_WHO, prepare=False).fetchall()
            connection.pooled = pid != connection.info.backend_pid
        except BaseException:
            connection.close()
            raise
        return connection

    def _given(self) -> dict[str, str | int | None]:
        try:
            return dict(conninfo.conninfo_to_dict(self._url.get_secret_value()))
        except psycopg.ProgrammingError:  # its message may quote the password
            raise ConfigError("the PostgreSQL url cannot be read") from None

    def _give_back(self, connection: PostgresConnection) -> None:
        if self._pid != os.getpid():
            _orphans.append(connection)
            return
        with contextlib.suppress(psycopg.Error):
            if connection.pgconn.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
                connection.ends = time.monotonic() + _ROLLBACK
                connection.execute("ROLLBACK", prepare=False)
        fit = connection.pgconn.transaction_status == pq.TransactionStatus.IDLE
        if fit and not self._closed and time.monotonic() < connection.born + _LIFETIME:
            self._idle.append(connection)
        else:
            connection.close()

    def _drop_idle(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _after_fork(self) -> None:
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._free = threading.BoundedSemaphore(self._size)
        _orphans.extend(self._idle)
        self._idle = []

    @contextmanager
    def _translated(self, connection: PostgresConnection | None, *, committing: bool = False) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            self._learn(error, connection)
            connected = connection is not None and not connection.closed
            raise translate(error, self.place, committing=committing, connected=connected) from error

    def _learn(self, error: psycopg.Error, connection: PostgresConnection | None) -> None:
        """Draw the consequences for later transactions."""
        if isinstance(error, UNPREPARED):
            self._prepares = False
        if isinstance(error, errors.ReadOnlySqlTransaction) and connection is not None:
            connection.born = -_LIFETIME  # once primary, no longer: connect again, to whichever host is primary now
            self._drop_idle()
