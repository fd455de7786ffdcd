"""One SQLite file and safe transactions on it, for threads, processes and forks.

A file that cannot be used is a `StoreError` that names it; it is never replaced by a new one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kronmem.errors import DeadlineError, KronmemError, StoreError

MEMORY = ":memory:"
_POOL = 8

_orphans: list[sqlite3.Connection] = []
"""Connections of a parent process. Closing them here could end the parent's locks, so they are kept and never used."""


@dataclass(frozen=True)
class Schema:
    """The tables of a file, the mark that tells whose file it is, and the way from older versions."""

    application_id: int
    version: int
    create: tuple[str, ...]
    migrations: dict[int, tuple[str, ...]] = field(default_factory=lambda: dict[int, tuple[str, ...]]())
    """From each older version, the statements that lead to the next."""


class _Connection(sqlite3.Connection):
    """A connection that knows how it is set: to set it again costs as much as a small query."""

    _busy = -1
    _synchronous = ""

    def wait_at_most(self, seconds: float) -> None:
        """Wait so long, and not more than 10 ms longer, for another writer."""
        wait = max(int(1000 * seconds), 0)
        if not wait <= self._busy <= wait + 10:
            self.execute(f"PRAGMA busy_timeout = {wait}")
            self._busy = wait

    def commit_with(self, synchronous: str) -> None:
        """In WAL mode NORMAL keeps the file sound without an fsync; the next FULL commit takes its changes along."""
        if synchronous != self._synchronous:
            self.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous


class SqliteFile:
    """Hands out transactions on one database file. Opens it at the first one."""

    def __init__(
        self, path: str, schema: Schema, on_connect: Callable[[sqlite3.Connection], object] = lambda connection: None
    ) -> None:
        self._path = path
        self._schema = schema
        self._on_connect = on_connect
        self._size = 1 if path == MEMORY else _POOL
        self._pid = os.getpid()
        self._idle: list[_Connection] = []
        self._free = threading.BoundedSemaphore(self._size)
        self._ready = False
        self._closed = False

    def close(self) -> None:
        """Close the connections of this process. Later transactions are a `StoreError`."""
        self._after_fork()
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def transaction(self, begin: str, timeout: float, *, synchronous: str = "FULL") -> Generator[sqlite3.Connection]:
        """Begin, yield the connection, commit; undone if the block raises."""
        ends = time.monotonic() + timeout
        with self._borrowed(timeout) as connection, self._translated():
            connection.wait_at_most(ends - time.monotonic())
            if begin != "BEGIN":  # who only reads need not say how to write
                connection.commit_with(synchronous)
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:  # not after an error upon which SQLite has rolled back by itself
                    connection.execute("ROLLBACK")

    def scrub(self, timeout: float, *, rewrite: bool = False) -> bool:
        """Move everything from the write-ahead log into the file and empty the log; False while a reader holds it.

        `rewrite` also gets rid of what was deleted before deleted bytes were overwritten.
        """
        with self._borrowed(timeout) as connection, self._translated():
            connection.wait_at_most(timeout)
            if rewrite:
                connection.execute("VACUUM")
            busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not busy

    @contextmanager
    def _borrowed(self, timeout: float) -> Generator[_Connection]:
        self._after_fork()
        free = self._free  # a fork in the meantime puts another one in its place
        if not free.acquire(timeout=max(timeout, 0.0)):
            raise DeadlineError(f"no connection to {self._path} became free in {timeout:g} s", sent=False)
        try:
            connection = self._take(timeout)
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            free.release()

    def _take(self, timeout: float) -> _Connection:
        if self._closed:
            raise StoreError(f"{self._path}: the store is closed")
        with contextlib.suppress(IndexError):  # pop() is atomic; a check before it would not be
            return self._idle.pop()
        with self._translated():
            return self._connect(timeout)

    def _give_back(self, connection: _Connection) -> None:
        if self._pid != os.getpid():
            _orphans.append(connection)
        elif self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _connect(self, timeout: float) -> _Connection:
        if self._path != MEMORY and not self._ready:
            _make_private(self._path)
        connection = sqlite3.connect(
            self._path,
            timeout=timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=_Connection,
        )
        try:
            self._on_connect(connection)
            connection.execute("PRAGMA secure_delete = ON")  # forgotten means overwritten, on every build of SQLite
            connection.execute("PRAGMA cache_size = -8000")  # kB; the default of 2000 is small beside an index
            if not self._ready:
                _prepare(connection, self._path, self._schema, timeout)
                self._ready = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _after_fork(self) -> None:
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._free = threading.BoundedSemaphore(self._size)
        if self._path != MEMORY:  # a copy of memory is the child's own
            _orphans.extend(self._idle)
            self._idle = []

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if (plain := _translate(error, self._path)) is None:
                raise
            raise plain from error
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror or error}") from error


def _make_private(path: str) -> None:
    """See that the file is there, is a plain file and, if it is new, readable by its owner alone."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
    try:
        # Only a new file is opened: closing a descriptor of an existing one would drop this process's locks on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a file"
            raise StoreError(f"{path} is {kind}: the database must be a plain file") from None


def _prepare(connection: sqlite3.Connection, path: str, schema: Schema, timeout: float) -> None:
    """Check whose file it is and bring it up to this version, together with whoever opens it at the same time."""
    _check(connection, path, schema)
    _use_wal(connection, time.monotonic() + timeout)
    if _pragma(connection, "user_version") == schema.version:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _steps(schema, _pragma(connection, "user_version")):
            connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _steps(schema: Schema, version: int) -> list[str]:
    marks = [f"PRAGMA application_id = {schema.application_id}", f"PRAGMA user_version = {schema.version}"]
    if version == 0:
        return [*schema.create, *marks]
    return [step for older in range(version, schema.version) for step in schema.migrations[older]] + marks


def _check(connection: sqlite3.Connection, path: str, schema: Schema) -> None:
    version = _pragma(connection, "user_version")
    if version > schema.version:
        raise StoreError(f"{path} was written by a newer kronmem (schema {version}, known {schema.version}): upgrade")
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and _pragma(connection, "application_id") != schema.application_id:
        raise StoreError(f"{path} is a database of something else: choose another file")


def _use_wal(connection: sqlite3.Connection, ends: float) -> None:
    # The one change of mode that does not wait for others by itself.
    while connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _code(error) != "SQLITE_BUSY" or time.monotonic() > ends:
                raise
            time.sleep(0.01)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


_PLAIN_WORDS = {
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_NOTADB": "is not a database, or is damaged",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_READONLY": "may not be written",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_IOERR": "cannot be read or written (input/output error)",
    "SQLITE_PERM": "may not be opened",
}
# Python 3.10 gives no codes, only SQLite's own fixed messages.
_BY_MESSAGE = {
    "database is locked": "SQLITE_BUSY",
    "database table is locked": "SQLITE_LOCKED",
    "database disk image is malformed": "SQLITE_CORRUPT",
    "file is not a database": "SQLITE_NOTADB",
    "database or disk is full": "SQLITE_FULL",
    "attempt to write a readonly database": "SQLITE_READONLY",
    "unable to open database file": "SQLITE_CANTOPEN",
    "disk I/O error": "SQLITE_IOERR",
}


def _code(error: sqlite3.Error) -> str:
    name = str(getattr(error, "sqlite_errorname", _BY_MESSAGE.get(str(error), "")))
    return "_".join(name.split("_")[:2])  # extended codes say more than we need


def _translate(error: sqlite3.Error, path: str) -> KronmemError | None:
    code = _code(error)
    if code in ("SQLITE_BUSY", "SQLITE_LOCKED"):
        return DeadlineError(f"{path} is busy: another writer did not finish in time", sent=False)
    if code in _PLAIN_WORDS:
        return StoreError(f"{path} {_PLAIN_WORDS[code]}", damaged=code in ("SQLITE_CORRUPT", "SQLITE_NOTADB"))
    return None
