"""A connection and a transaction on it, both with a deadline of their own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen

from kronmem.engine.postgres.failures import TimeUp
from kronmem.errors import DeadlineError

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
    """A transaction under way: every statement gets what is left of its time."""

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
        """Run one statement and read its rows. The database, not the type checker, knows what is in them."""
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
