"""A connection and a transaction on it, both with a deadline of their own; psycopg's errors as ours."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psycopg
from psycopg import errors, waiting
from psycopg.abc import PQGen

from kronmem.engine.store import UndoneError
from kronmem.errors import DeadlineError, KronmemError, StoreError, TransportError

Value = str | bytes | int | float | None | list[str] | list[int] | list[float]
T = TypeVar("T")

_GRACE = 0.25
"""Seconds for the answer to a statement that the server itself stopped in time: the connection can be used again."""


class PostgresConnection(psycopg.Connection[tuple[Any, ...]]):
    """Waits no longer than until `ends`: a pooler without a free server connection holds BEGIN, and no setting that
    a transaction brings along ends that wait."""

    ends = float("inf")
    born = 0.0
    pooled = False
    distributed = False

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Consume a generator of psycopg's within the deadline."""
        left = max(self.ends - time.monotonic(), 0.001)
        return super().wait(_bounded(gen, self.ends), min(interval, left))


def _bounded(gen: PQGen[T], ends: float) -> PQGen[T]:
    try:
        ready = yield next(gen)
        while True:
            if ready == waiting.READY_NONE and time.monotonic() >= ends:
                raise TimeUp("timed out")
            ready = yield gen.send(ready)
    except StopIteration as done:
        result: T = done.value
        return result


class Transaction:
    """A transaction under way: every statement gets the rest of its time."""

    def __init__(self, connection: PostgresConnection, ends: float) -> None:
        self._connection = connection
        self._ends = ends
        self._granted = max(ends - time.monotonic(), 0.001)
        connection.ends = ends + _GRACE

    @property
    def pooled(self) -> bool:
        """Does a pooler stand between?"""
        return self._connection.pooled

    @property
    def distributed(self) -> bool:
        """Has the database the extension that spreads tables over nodes?"""
        return self._connection.distributed

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

    def pipeline(self) -> contextlib.AbstractContextManager[object]:
        """Send the statements of a block at once and wait at its end."""
        return self._connection.pipeline()

    def without_timeout(self) -> None:
        """From here on the transaction may take as long as it takes."""
        self._connection.execute("SET LOCAL statement_timeout = 0")
        self._ends = self._granted = self._connection.ends = float("inf")

    def _watch_time(self) -> None:
        left = self._ends - time.monotonic()
        if left >= 0.75 * self._granted:
            return
        if left <= 0:
            raise DeadlineError("timed out before the database had finished", sent=False)
        self._connection.execute(timeout_of(left).encode(), prepare=False)
        self._granted = left


def timeout_of(seconds: float) -> str:
    """The statement that bounds all that come after it in the transaction."""
    return f"SET LOCAL statement_timeout = {max(int(1000 * seconds), 1)}"  # 0 would mean: none


# psycopg's errors as ours. A message names the database, never the password.

UNPREPARED = (errors.DuplicatePreparedStatement, errors.InvalidSqlStatementName)
"""Another client's statement of the same name, or none: a pooler handed out another server connection."""
_REFUSALS = {
    "42501": "may not be read or written by this role",
    "25006": "may not be written: it is a replica, or default_transaction_read_only is on",
    "53100": "cannot grow: the disk is full",
    "42P01": "has lost a table of kronmem",
    "XX001": "is damaged",
    "XX002": "is damaged",
}
_AWAY = ("08", "57")
"""Connection failures and shutdowns."""


class TimeUp(psycopg.OperationalError):
    """The deadline passed on our side: nothing came from the server, or from a pooler that had none to give."""


def shown(url: str) -> str:
    """The url without its password and its parameters."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username else ""
    return f"postgresql://{user}{host}{parts.path}"


def translate(error: psycopg.Error, place: str, *, committing: bool, connected: bool) -> KronmemError:
    """The error to raise. `connected`: the server that reported it is still there."""
    code = error.sqlstate or ""
    if isinstance(error, TimeUp):
        return DeadlineError(f"{place} did not answer in time", sent=committing)
    if isinstance(error, (errors.QueryCanceled, errors.LockNotAvailable)):
        return DeadlineError(f"{place} is busy: it did not finish in time", sent=False)
    if code in _REFUSALS:
        damaged = code.startswith("XX")
        return StoreError(f"{place} {_REFUSALS[code]}", damaged=damaged, outage=not damaged)
    if isinstance(error, UNPREPARED):
        return UndoneError(f"{place} is behind a pooler: transaction rolled back, repeated without prepared statements")
    if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
        return UndoneError(f"{place}: serialization failure, transaction rolled back")
    first = str(error).strip().partition("\n")[0]
    if isinstance(error, errors.InternalError_):  # a coordinator's class for a node that it lost in mid-transaction
        return TransportError(f"{place} failed: {first}", sent=committing, partial=connected)
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        # A coordinator answered: one of its nodes is away, and so are the agents that live there.
        if connected and code[:2] in _AWAY:
            return TransportError(f"a node behind {place} cannot be reached: {first}", sent=committing, partial=True)
        return TransportError(f"{place} cannot be reached, or was lost: {first}", sent=committing)
    return StoreError(f"{place}: {first}")
