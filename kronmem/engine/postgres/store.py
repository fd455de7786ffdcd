"""The store for more than one machine: one PostgreSQL database, shared by threads, processes and servers.

The same tables, decisions and answers as the SQLite store. Connecting, waiting and failing are `pool.py`'s.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from kronmem.engine.postgres.pool import PostgresPool
from kronmem.engine.postgres.reading import PostgresReader
from kronmem.engine.postgres.schema import SCHEMA, PostgresSchema, is_ready, prepare
from kronmem.engine.postgres.space_keys import SpaceKey, space_key
from kronmem.engine.postgres.sweeping import Sweeper
from kronmem.engine.postgres.transaction import Transaction
from kronmem.engine.postgres.writing import PostgresWriter
from kronmem.errors import StoreError

_POOL = 8
"""Connections of one process at most: PostgreSQL allows 100 in all, unless told otherwise."""
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_NOTE = f"{_WRITE}; SET LOCAL synchronous_commit = off"
_NOTE_TIME = 1.0
"""Seconds for counting accesses: a recall waits for it, and the count is worth no more."""
_MUTED = 60.0
"""Seconds for which a role that may not write is not asked to count accesses again: a new grant shows in a minute."""

T = TypeVar("T")


class PostgresStore:
    """The `Store` in one database. Connects, and makes its tables, at the first transaction."""

    def __init__(
        self, url: str, schema: PostgresSchema = SCHEMA, *, connections: int = _POOL, key_of: SpaceKey = space_key
    ) -> None:
        self._pool = PostgresPool(url, connections)
        self._key_of = key_of
        self._sweeper = Sweeper(self._pool, key_of)
        self._schema = schema
        self._ready = False
        self._muted_until = 0.0

    @contextmanager
    def read(self, timeout: float) -> Generator[PostgresReader]:
        """A consistent view; writers do not disturb it."""
        with self._transaction(_READ, timeout) as session:
            yield PostgresReader(session, self._key_of)

    @contextmanager
    def write(self, timeout: float) -> Generator[PostgresWriter]:
        """A durable change: committed when the block has ended, undone if it raises."""
        ends = time.monotonic() + timeout
        with self._transaction(_WRITE, timeout) as session:
            rows = PostgresWriter(session, self._key_of, self._sweeper.swept)
            yield rows
            rows.finish()
        if rows.due is not None:
            self._sweeper.swept = rows.swept  # those from before are reported
            self._sweeper.run(rows.due, ends - time.monotonic())

    def commit(self, work: Callable[[PostgresWriter], T], timeout: float) -> T:
        """Do `work` in a write. The server flushes the commits of several connections together."""
        with self.write(timeout) as rows:
            return work(rows)

    @contextmanager
    def note(self, timeout: float = 0.0, *, most: float = math.inf) -> Generator[PostgresWriter]:
        """A change worth no fsync and by default no waiting: `DeadlineError` while no connection is free."""
        if time.monotonic() < self._muted_until:
            raise StoreError(f"{self._pool.place} may not be written by this role")
        try:
            with self._pool.transaction(_NOTE, min(timeout or _NOTE_TIME, most), wait=timeout > 0.0) as session:
                rows = PostgresWriter(session, self._key_of)
                yield rows
                rows.finish()
        except StoreError:
            self._muted_until = time.monotonic() + _MUTED
            raise

    def scrub(self, timeout: float) -> bool:
        """True: the rows are gone. When their pages are written anew is a matter of VACUUM, and of the operator."""
        return True

    def close(self) -> None:
        """Close the connections of this process. Later transactions are a `StoreError`."""
        self._pool.close()

    @contextmanager
    def _transaction(self, begin: str, timeout: float) -> Generator[Transaction]:
        ends = time.monotonic() + timeout
        if not self._ready:
            self._prepare(timeout)
        with self._pool.transaction(begin, ends - time.monotonic()) as session:
            yield session

    def _prepare(self, timeout: float) -> None:
        """See that the tables are there. A role that may only read can do without those that it could not make."""
        with self._pool.transaction(_READ, timeout) as session:
            ready = is_ready(session, self._pool.place, self._schema)
        if not ready:
            with self._pool.transaction(_WRITE, timeout) as session:
                prepare(session, self._pool.place, self._schema)
        self._ready = True
