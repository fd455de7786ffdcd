"""The store for more than one machine: one PostgreSQL database, shared by threads, processes and servers.

The same tables, decisions and answers as the SQLite store. Connecting, waiting and failing are in `pool.py`.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from kronmem.engine.postgres.pool import PostgresPool
from kronmem.engine.postgres.reading import PostgresReader
from kronmem.engine.postgres.schema import SCHEMA, PostgresSchema, SpaceKey, is_ready, prepare, space_key
from kronmem.engine.postgres.transaction import Transaction
from kronmem.engine.postgres.writing import PostgresWriter, Sweep
from kronmem.errors import DeadlineError, KronmemError, StoreError

_POOL = 8
"""Connections of one process at most: PostgreSQL allows 100 in all, by default."""
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
        """True: the rows are gone. When their pages are rewritten is a matter of VACUUM, and of the operator."""
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


# Deletes memories that have expired, and old receipts and traces of erasures, of agents without a writer.
#
# Finding them is a question to every node of a distributed database: it is asked once a minute and after a call has
# been committed, so that no call depends on it. Each space is then swept in a transaction of its own.

EVERY = 60.0
"""Seconds between two passes of a process: no read shows what has expired, so only its place waits a minute."""
_SPACES = 64
"""Spaces a pass and kind: the write that sweeps waits for a bounded number; when there are more, the next goes on."""
_ROWS = 4096
"""Old rows among which these spaces are looked for: millions are not all read. One agent may fill such a look; the next
one is for the others."""
_BOUND = 256
"""Memories a space at most: a millisecond each, for which its writers wait."""
_TIME = 1.0
"""Seconds that a pass may take of the write that pays for it."""
_LOOK = "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY"
_DUE = tuple(
    f"""SELECT space, count(*) FROM (SELECT space FROM kronmem.{old} AND space <> ALL(%s::bigint[]) LIMIT %s) AS due
        GROUP BY space LIMIT {_SPACES}"""
    for old in ("memories WHERE expires <= %s", "receipts WHERE at < %s", "erased WHERE at < %s")
)
_NOBODY = tuple(list[int]() for _ in _DUE)
_log = logging.getLogger("kronmem.engine")


@dataclass
class Sweeper:
    """Sweeps one database now and then."""

    pool: PostgresPool
    key_of: SpaceKey
    swept_at: float = -math.inf
    """By the engine's clock, which may be set back."""
    swept: int = 0
    """Memories that were swept and not yet reported."""
    rows: int = _ROWS
    bound: int = _BOUND
    """Memories a space, now: half as many after a sweep whose time was up, since it was rolled back."""
    seen: Sequence[list[int]] = _NOBODY
    """Of each kind, the spaces that filled the last looks: the next one is for those behind them."""

    def run(self, sweep: Sweep, left: float) -> None:
        """Sweep if it is time to, within the seconds that are left to the write that pays for it.

        Failures are for the next pass: the write itself is done.
        """
        if left <= 0 or self.swept_at <= sweep.now < self.swept_at + EVERY:
            return
        self.swept_at = sweep.now
        began = time.monotonic()
        try:
            due = self._due(sweep, min(_TIME, left))
        except KronmemError as error:
            self.seen = _NOBODY
            _log.debug("nothing is swept for now (%s)", error)
            return
        for space in _fewest_first(due):
            if (passed := time.monotonic() - began) < min(_TIME, left):
                with suppress(KronmemError):
                    self._sweep(space, sweep, min(_TIME, left - passed))
        if any(self.seen) or any(len(spaces) >= _SPACES for spaces in due):
            self.swept_at = -math.inf

    def _due(self, sweep: Sweep, timeout: float) -> list[dict[int, int]]:
        """The spaces in which there is something of each kind to delete, and how many rows of it were seen."""
        times = (sweep.now, sweep.receipts_before, sweep.receipts_before)
        asked = list(zip(_DUE, times, self.seen, strict=True))
        with self.pool.transaction(_LOOK, timeout, wait=False) as session:
            due = [dict(session.ask(sql, (at, seen, self.rows))) for sql, at, seen in asked]
        looks = zip(self.seen, due, strict=True)
        self.seen = [[*seen, *spaces] if sum(spaces.values()) >= self.rows else [] for seen, spaces in looks]
        return due

    def _sweep(self, space: int, sweep: Sweep, timeout: float) -> None:
        bound = self.bound
        try:
            with self.pool.transaction(_WRITE, timeout, wait=False) as session:
                rows = PostgresWriter(session, self.key_of)
                rows.sweep_space(space, sweep, bound)
                rows.finish()
        except DeadlineError:
            self.bound = max(bound // 2, 1)
            raise
        if rows.swept >= bound:
            self.bound = min(bound + bound // 8 + 1, _BOUND)
        self.swept += rows.swept


def _fewest_first(due: Sequence[dict[int, int]]) -> list[int]:
    """A space that takes all the time, in vain, does not keep the others waiting."""
    rows = Counter[int]()
    for spaces in due:
        rows.update(spaces)
    return sorted(rows, key=lambda space: (rows[space], space))
