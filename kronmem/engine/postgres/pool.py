"""Connections to one PostgreSQL database and safe transactions on them, for threads and forks.

The only module that knows psycopg. Nothing is opened before the first transaction. A failure is a typed error that
names the database, never the password: `DeadlineError` when time was up, `TransportError` when the server is not there
or gave up, `StoreError` when it refused.

psycopg's own pool connects in threads of its own: with the server down, its callers wait for their whole time instead
of hearing so at once, and a fork leaves it without those threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import conninfo, errors, pq
from psycopg.types.numeric import Int8Dumper
from pydantic import SecretStr

from kronmem.errors import ConfigError, DeadlineError, KronmemError, StoreError, TransportError

Value = str | bytes | int | float | None | list[str] | list[int] | list[float]

_LIFETIME = 1800.0
"""Seconds after which a connection is replaced: a new server behind the same name gets its share."""
_SHORTEST_CONNECT = 2
"""libpq takes no shorter timeout."""
# A machine that vanished says nothing: without these, a read waits for it for hours.
_DEFAULTS = {
    "application_name": "kronmem",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
# Every statement is served by an index. A plan made when a table was new must not read it from end to end when it is
# large, and one for sixteen partitions takes longer to make than to run: so make it once.
_SETTINGS = """
    SET enable_seqscan = off; SET jit = off; SET max_parallel_workers_per_gather = 0;
    SET plan_cache_mode = force_generic_plan; SET client_min_messages = error
"""

_orphans: list[psycopg.Connection[Any]] = []
"""Connections of a parent process. Closing them here would say goodbye to the server in the parent's name."""


def lock_key(*words: str) -> int:
    """The number of an advisory lock."""
    digest = hashlib.blake2b("\0".join(("kronmem", *words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def space_key(owner: str, name: str) -> int:
    """The key of a space. Neither an owner nor a name contains a NUL, so no two pairs are the same text."""
    digest = hashlib.blake2b(f"{owner}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def shown(url: str) -> str:
    """The url without its password and its parameters."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username else ""
    return f"postgresql://{user}{host}{parts.path}"


class Transaction:
    """A transaction under way: every statement gets the rest of its time."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], ends: float, granted: float) -> None:
        self._connection = connection
        self._ends = ends
        self._granted = granted

    def ask(self, sql: str, values: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and read its rows. The database, not the type checker, knows their types."""
        self._watch_time()
        return self._connection.execute(sql.encode(), values or None).fetchall()

    def run(self, sql: str, values: Sequence[Value] = ()) -> int:
        """Run one statement; how many rows it changed."""
        self._watch_time()
        return self._connection.execute(sql.encode(), values or None).rowcount

    def run_many(self, sql: str, values: Iterable[Sequence[Value]]) -> None:
        """Run one statement for each of `values`, without waiting in between."""
        self._watch_time()
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.encode(), values)

    def attempt(self, sql: str) -> bool:
        """Run a statement that may fail without ending the transaction."""
        try:
            with self._connection.transaction():
                self._connection.execute(sql.encode())
        except psycopg.Error:
            return False
        return True

    def pipeline(self) -> contextlib.AbstractContextManager[object]:
        """Send the statements of a block at once and wait at its end."""
        return self._connection.pipeline()

    def without_timeout(self) -> None:
        """From here on the transaction may take as long as it takes."""
        self._connection.execute("SET LOCAL statement_timeout = 0")
        self._ends = self._granted = float("inf")

    def _watch_time(self) -> None:
        left = self._ends - time.monotonic()
        if left >= 0.75 * self._granted:
            return
        if left <= 0:
            raise DeadlineError("the time was up before the database had finished", sent=False)
        self._connection.execute(_timeout(left).encode(), prepare=False)
        self._granted = left


class PostgresPool:
    """Hands out transactions on a bounded number of connections. Connects when it has to."""

    def __init__(self, url: str, size: int) -> None:
        self.place = shown(url)
        self._url = SecretStr(url)
        self._size = size
        self._pid = os.getpid()
        self._idle: list[tuple[psycopg.Connection[Any], float]] = []
        self._free = threading.BoundedSemaphore(size)
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
        with self._slot(timeout if wait else 0.0), self.translated():
            connection, born = self._begun(begin, ends)
            try:
                yield Transaction(connection, ends, max(ends - time.monotonic(), 0.001))
                connection.execute("COMMIT", prepare=False)
            finally:
                self._give_back(connection, born)

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

    def _begun(self, begin: str, ends: float) -> tuple[psycopg.Connection[Any], float]:
        """A connection with a transaction begun. One that broke while it was idle is replaced: nothing was lost."""
        start = f"{begin}; {_timeout(ends - time.monotonic())}".encode()
        with contextlib.suppress(IndexError):  # pop() is atomic; a check before it would not be
            connection, born = self._idle.pop()
            try:
                connection.execute(start, prepare=False)
                return connection, born
            except psycopg.OperationalError:
                connection.close()
                self._drop_idle()  # they broke together, most likely
        connection = self._connect(ends)
        try:
            connection.execute(start, prepare=False)
        except BaseException:
            connection.close()
            raise
        return connection, time.monotonic()

    def _connect(self, ends: float) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._conninfo(ends), autocommit=True)
        try:
            # One type for all integers: else every size of number would be a statement of its own to prepare.
            connection.adapters.register_dumper(int, Int8Dumper)
            connection.execute(_SETTINGS.encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _conninfo(self, ends: float) -> str:
        left = max(int(ends - time.monotonic()), _SHORTEST_CONNECT)
        try:
            given = conninfo.conninfo_to_dict(self._url.get_secret_value())
        except psycopg.ProgrammingError:  # its message may quote the password
            raise ConfigError("the PostgreSQL url cannot be read") from None
        return conninfo.make_conninfo("", **{**_DEFAULTS, "connect_timeout": left, **given})

    def _give_back(self, connection: psycopg.Connection[Any], born: float) -> None:
        if self._pid != os.getpid():
            _orphans.append(connection)
            return
        with contextlib.suppress(psycopg.Error):
            if connection.pgconn.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
                connection.execute("ROLLBACK", prepare=False)
        fit = connection.pgconn.transaction_status == pq.TransactionStatus.IDLE
        if fit and not self._closed and time.monotonic() < born + _LIFETIME:
            self._idle.append((connection, born))
        else:
            connection.close()

    def _drop_idle(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop()[0].close()

    def _after_fork(self) -> None:
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._free = threading.BoundedSemaphore(self._size)
        _orphans.extend(connection for connection, _ in self._idle)
        self._idle = []

    @contextmanager
    def translated(self) -> Generator[None]:
        """psycopg's errors become ours."""
        try:
            yield
        except psycopg.Error as error:
            if (plain := _translate(error, self.place)) is None:
                raise
            raise plain from error


def _timeout(seconds: float) -> str:
    return f"SET LOCAL statement_timeout = {max(int(1000 * seconds), 1)}"  # 0 would mean: none


_REFUSALS = {
    "42501": "may not be read or written by this role",
    "25006": "may not be written",
    "53100": "cannot grow: the disk is full",
    "42P01": "has lost a table of kronmem",
    "XX001": "is damaged",
    "XX002": "is damaged",
}


def _translate(error: psycopg.Error, place: str) -> KronmemError | None:
    code = error.sqlstate
    if isinstance(error, (errors.QueryCanceled, errors.LockNotAvailable)):
        return DeadlineError(f"{place} is busy: it did not finish in time", sent=False)
    if code in _REFUSALS:
        return StoreError(f"{place} {_REFUSALS[code]}", damaged=code.startswith("XX"))
    if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
        return TransportError(f"{place} undid the call because of another one", sent=False)
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        first = str(error).strip().partition("\n")[0]
        return TransportError(f"{place} cannot be reached, or was lost: {first}")
    return None
