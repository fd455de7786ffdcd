"""Transactions on one database file, over a few connections that threads share and forks do not."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kronmem import fork_safety
from kronmem.errors import DeadlineError, StoreError
from kronmem.sqlite_file.failures import FileMovedError, is_busy, translated
from kronmem.sqlite_file.opening import FileSchema, SetConnection, connect, identity, prepare, secure

MEMORY = ":memory:"
_POOL = 8
"""Connections of one process to a file: readers run beside each other, and each has a cache of 8 MB."""
SLICE = 0.1
"""So long a locked file is waited for inside SQLite at a stretch: a fork waits for whoever is inside."""
REST_AT_FORK = 5.0
"""So long a fork waits for transactions to end; their own work takes milliseconds, a slow disk more."""

_orphans: list[sqlite3.Connection] = []
"""Connections of a parent process. Closing them here could end the parent's locks, so they are kept and never used."""


@dataclass(eq=False)
class Visit:
    """One transaction and the connection it uses."""

    connection: SetConnection | None = None
    thread: int = field(default_factory=threading.get_ident)


class Door:
    """At most so many transactions at a time; a fork keeps others out and waits for those inside."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.inside: dict[Visit, None] = {}
        # Taken by `with` on the lock itself, which no interrupt can part from its release.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._closed = False

    def enter(self, visit: Visit, ends: float) -> bool:
        """Go in when there is room, at the latest at `ends`; False when there was none."""
        with self._lock:
            if not self._changed.wait_for(self._has_room, max(ends - time.monotonic(), 0.0)):
                return False
            self.inside[visit] = None
            return True

    def _has_room(self) -> bool:
        return not self._closed and len(self.inside) < self._size

    def left(self) -> None:
        """Wake one that waits, since a place is free."""
        with self._lock:
            self._changed.notify()

    def others(self) -> bool:
        """Is a thread inside besides the calling one?"""
        return any(visit.thread != threading.get_ident() for visit in list(self.inside))

    def close(self, *, closed: bool = True) -> None:
        """Let nobody in, or let them in again."""
        with self._lock:
            self._closed = closed
            self._changed.notify_all()


class SqliteFile:
    """Hands out transactions on one database file. Opens it at the first one.

    No connection to a file is open across a fork: SQLite's own record of locks would be copied with it, and the child
    would wait for ever for locks that no thread of its own holds.
    """

    def __init__(
        self,
        path: str,
        schema: FileSchema,
        on_connect: Callable[[sqlite3.Connection], object] = lambda connection: None,
    ) -> None:
        self._path, self._schema, self._on_connect = path, schema, on_connect
        self._idle: list[SetConnection] = []
        self._open: weakref.WeakSet[SetConnection] = weakref.WeakSet()
        self._memory: SetConnection | None = None
        """A database in memory lives as long as this connection."""
        self._door = self._new_door()
        self._ready = False
        self._read_only = False
        self._closed = False
        self._identity: tuple[int, int] | None = None
        fork_safety.watch(self)

    def _new_door(self) -> Door:
        return Door(1 if self._path == MEMORY else _POOL)

    def close(self) -> None:
        """Close the connections of this process. Later transactions are a `StoreError`."""
        self._closed = True
        self._close_idle()
        # A connection that is closed under a thread at work in it ends the process: whoever is inside closes it at the
        # end. Nobody comes in any more.
        self._close_memory()

    def _close_memory(self) -> None:
        # By one thread alone: two that close it at once free it twice, which ends the process.
        visit = Visit()
        if self._path == MEMORY and self._door.enter(visit, 0.0):
            connection, self._memory = self._memory, None
            if connection is not None:
                connection.close()
            self._door.inside.pop(visit, None)

    def close_at_rest(self, timeout: float) -> bool:
        """Close once no other thread is inside; False, and open as before, if one stays for longer.

        Only then may another one be opened at its path: beside an old index of the write-ahead log it would truncate
        that index under a thread that has it mapped, which ends the process.
        """
        self._closed = True
        if self._at_rest(timeout):
            self.close()
            return True
        self._closed = False
        return False

    def has_moved(self) -> bool:
        """Is another file at the path, or none, than the one that was opened?"""
        return self._identity is not None and identity(self._path) != self._identity

    def _close_idle(self) -> None:
        with contextlib.suppress(IndexError):  # pop() is atomic; a check before it would not be
            while True:
                self._idle.pop().close()

    @contextmanager
    def transaction(self, begin: str, timeout: float, *, synchronous: str = "FULL") -> Generator[SetConnection]:
        """Begin, yield the connection, commit; undone if the block raises."""
        ends, visit = time.monotonic() + timeout, Visit()
        with translated(self._path):
            try:
                connection = self._begun(visit, begin, ends, synchronous)
                yield connection
                connection.execute("COMMIT")
            finally:
                try:
                    self._put_back(visit)
                finally:  # at one stroke: an interrupt that keeps the place would hold up every later call
                    self._door.inside.pop(visit, None)
                    self._left()

    def scrub(self, timeout: float) -> bool:
        """Move everything from the write-ahead log into the file and empty the log; False while a reader holds it."""
        ends, visit = time.monotonic() + timeout, Visit()
        with translated(self._path):
            try:
                self._enter(visit, ends)
                visit.connection = connection = self._take(ends)
                return not connection.value("PRAGMA wal_checkpoint(TRUNCATE)", ends)
            finally:
                self._end(visit)

    def _begun(self, visit: Visit, begin: str, ends: float, synchronous: str) -> SetConnection:
        while True:
            self._enter(visit, ends)
            stretch = min(ends, time.monotonic() + SLICE)
            try:
                visit.connection = connection = self._take(stretch)
                connection.wait_until(stretch)
                if begin != "BEGIN":  # a reader need not say how to write
                    connection.commit_with(synchronous)
                connection.execute(begin)
                connection.wait_until(ends)
                return connection
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() >= ends:
                    raise
            self._end(visit)  # a fork may come in between
            time.sleep(0.001)

    def _enter(self, visit: Visit, ends: float) -> None:
        if not self._door.enter(visit, ends):
            raise DeadlineError(f"no connection to {self._path} became free in time", sent=False)

    def _end(self, visit: Visit) -> None:
        self._put_back(visit)
        self._door.inside.pop(visit, None)
        self._left()

    def _left(self) -> None:
        self._door.left()
        if self._closed:
            self._close_memory()

    def _put_back(self, visit: Visit) -> None:
        connection = visit.connection
        if connection is None or connection not in self._open:  # a parent process's
            return
        try:
            if connection.in_transaction:  # not after an error upon which SQLite has rolled back by itself
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop(connection)
        visit.connection = None
        if self._closed and connection is not self._memory:
            self._drop(connection)
        elif connection in self._open and connection is not self._memory:
            self._idle.append(connection)

    def _drop(self, connection: SetConnection) -> None:
        self._open.discard(connection)
        connection.close()

    def _take(self, ends: float) -> SetConnection:
        if self._closed:
            raise StoreError(f"{self._path}: the store is closed")
        if self._memory is not None:
            if self._memory.in_transaction:  # an interrupt came before it was rolled back
                self._memory.execute("ROLLBACK")
            return self._memory
        if self.has_moved():
            raise FileMovedError(self._path)
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return self._connect(ends)

    def _connect(self, ends: float) -> SetConnection:
        if self._path != MEMORY and not self._ready:
            self._read_only = not secure(self._path)
            self._identity = identity(self._path)
        connection = connect(self._path, read_only=self._read_only)
        try:
            self._on_connect(connection)
            connection.execute("PRAGMA secure_delete = ON")  # forgotten means overwritten, on every build of SQLite
            connection.execute("PRAGMA cache_size = -8000")  # kB; the default of 2000 is small beside an index
            if not self._ready or self._path == MEMORY:  # one that an interrupt left behind took its tables along
                prepare(connection, self._path, self._schema, ends, read_only=self._read_only)
                self._ready = True
            connection.execute("PRAGMA schema_version")  # the write-ahead log is opened when something is read
            if self.has_moved():
                raise FileMovedError(self._path)
        except BaseException:
            connection.close()
            raise
        self._open.add(connection)
        if self._path == MEMORY:
            self._memory = connection
        return connection

    # ── around a fork ────────────────────────────────────────────────────────────────────────────────────────────

    def before_fork(self) -> None:
        """Hold back other threads, let those inside finish, close the file."""
        self._door.close()  # a thread that saw it open is inside now
        if self._at_rest(REST_AT_FORK) and self._path != MEMORY:
            self._close_idle()

    def _at_rest(self, timeout: float) -> bool:
        ends = time.monotonic() + timeout
        while self._door.others():
            if time.monotonic() >= ends:
                return False
            time.sleep(0.001)
        return True

    def after_fork(self, *, child: bool) -> None:
        """Let threads in again; the child begins without the parent's connections."""
        if child:
            self._start_over()
        else:
            self._door.close(closed=False)

    def _start_over(self) -> None:
        self._door = self._new_door()
        if self._path != MEMORY:  # a copy of memory is the child's own
            _orphans.extend(self._open)
            self._idle, self._open = [], weakref.WeakSet()
