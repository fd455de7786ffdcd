"""The default store: one SQLite file (or memory), shared by threads and processes.

Every acknowledged write is on disk (WAL, synchronous FULL). Opening, waiting and failing are in `sqlite_file`.
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from kronmem.engine.sqlite.reading import SqliteReader
from kronmem.engine.sqlite.schema import SCHEMA
from kronmem.engine.sqlite.writing import SqliteWriter
from kronmem.sqlite_file import FileSchema, SqliteFile

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds in line before a thread writes all the same: the lock of the file decides, the turn only saves time."""
CHECKPOINT, LATE_CHECKPOINT = 1000, 4000
"""Pages in the write-ahead log at which a durable write, which waits for the disk anyway, moves them into the file; and
at which a note does, so that no recall pays for it during a write."""


class SqliteStore:
    """The `Store` on one database file, or in memory for ":memory:". Opens it at the first transaction."""

    def __init__(self, path: str, schema: FileSchema = SCHEMA) -> None:
        self._file = SqliteFile(path, schema, _register_functions)
        self._turn = threading.Lock()

    @contextmanager
    def read(self, timeout: float) -> Generator[SqliteReader]:
        """A consistent view; writers do not disturb it."""
        with self._file.transaction("BEGIN", timeout) as connection:
            yield SqliteReader(connection)

    @contextmanager
    def write(self, timeout: float) -> Generator[SqliteWriter]:
        """A durable change: on disk when the block has ended, undone if it raises."""
        with self._file.transaction("BEGIN IMMEDIATE", timeout) as connection:
            connection.checkpoint_at(CHECKPOINT)
            yield SqliteWriter(connection)

    def commit(self, work: Callable[[SqliteWriter], T], timeout: float) -> T:
        """Do `work` in a write; threads take turns, since SQLite's own way to wait is polling."""
        ends, turn = time.monotonic() + timeout, self._turn
        mine = turn.acquire(timeout=min(PATIENCE, timeout / 2))
        if not mine and self._turn is turn:  # an interrupt or a fork left it locked, or the file is busy
            self._turn = threading.Lock()
        try:
            with self.write(max(ends - time.monotonic(), 0.0)) as rows:
                return work(rows)
        finally:
            if mine:
                turn.release()

    @contextmanager
    def note(self, timeout: float = 0.0, *, most: float = math.inf) -> Generator[SqliteWriter]:
        """A change worth no fsync and by default no waiting: `DeadlineError` while another writer is at it."""
        with self._file.transaction("BEGIN IMMEDIATE", timeout, synchronous="NORMAL") as connection:
            connection.checkpoint_at(LATE_CHECKPOINT)
            yield SqliteWriter(connection)

    def scrub(self, timeout: float) -> bool:
        """See that no deleted text is left in the files; False when a reader kept it from being finished in time."""
        return self._file.scrub(timeout)

    def close(self) -> None:
        """Close the connections of this process. Later transactions are a `StoreError`."""
        self._file.close()


def _register_functions(connection: sqlite3.Connection) -> None:
    connection.create_function("contains", 2, _contains, deterministic=True)


def _contains(content: bytes, wanted: str) -> bool:
    try:
        return wanted in content.decode().casefold()
    except UnicodeDecodeError:  # a damaged row, which is left out
        return False
