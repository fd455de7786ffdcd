"""A database file: private, of our kind and of this version, or readable at least; and transactions on it.

They run over a few connections that threads share and forks do not; SQLite's errors come in typed form.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

from kronmem import fork_safety
from kronmem.errors import DeadlineError, KronmemError, StoreError

# A database file on its way to being used: private, of our kind, of this version; or readable at least.

ENDINGS = ("", "-wal", "-shm")


@dataclass(frozen=True)
class FileSchema:
    """The tables of a file, the mark of the program that it belongs to, and the way from older versions."""

    application_id: int
    version: int
    create: tuple[str, ...]
    migrations: dict[int, tuple[str, ...]] = field(default_factory=lambda: dict[int, tuple[str, ...]]())
    """From each older version, the statements that lead to the next."""
    too_old: str = ""
    """What to do with a file of a version that no step leads on from: the rest of a sentence about it."""
    sign: str | None = None
    """A table without which a file is too old, although its version is known."""


class SetConnection(sqlite3.Connection):
    """A connection that knows how it is set: to set it again costs as much as a small query."""

    _busy = -1
    _synchronous = ""
    _checkpoint = 1000

    def wait_until(self, ends: float) -> None:
        """Wait for another writer until then, and not more than 10 ms longer."""
        wait = max(int(1000 * (ends - time.monotonic())), 0)
        if not wait <= self._busy <= wait + 10:
            self.execute(f"PRAGMA busy_timeout = {wait}")
            self._busy = wait

    def commit_with(self, synchronous: str) -> None:
        """In WAL mode NORMAL keeps the file sound without an fsync; the next FULL commit takes its changes along."""
        if synchronous != self._synchronous:
            self.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous

    def checkpoint_at(self, pages: int) -> None:
        """Let the commit that finds so many pages in the write-ahead log move them into the file and flush both."""
        if pages != self._checkpoint:
            self.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            self._checkpoint = pages

    def value(self, sql: str, ends: float) -> int | str:
        """The one value that a statement answers."""
        self.wait_until(ends)
        value: int | str = self.execute(sql).fetchone()[0]
        return value


def connect(path: str, *, read_only: bool) -> SetConnection:
    """Open the file, read-only if need be."""
    return sqlite3.connect(
        _read_only_uri(path) if read_only else path,
        uri=read_only,
        timeout=0.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=SetConnection,
    )


def _read_only_uri(path: str) -> str:
    # Without its -shm a WAL database can be read only as one that no process changes; its -wal would be missed.
    shared = os.path.exists(path + "-shm")
    if not shared and os.path.exists(path + "-wal") and os.path.getsize(path + "-wal"):
        raise StoreError(f"{path} has changes in {path}-wal that cannot be read here: copy both to a writable place")
    return f"file:{quote(os.path.abspath(path))}?mode=ro" + ("" if shared else "&immutable=1")


def secure(path: str) -> bool:
    """See that the file is there, a plain file and readable by its owner alone; False: it can only be read."""
    directory = os.path.dirname(os.path.abspath(path))
    os.makedirs(directory, mode=0o700, exist_ok=True)
    try:
        # Only a new file is opened: closing a descriptor of an existing one would drop this process's locks on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a file"
            raise StoreError(f"{path} is {kind}: the database must be a plain file") from None
    _close_to_others(path, directory)
    return os.access(path, os.W_OK) and os.access(directory, os.W_OK)


def identity(path: str) -> tuple[int, int] | None:
    """Which file is at the path now; None: none is."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno is None:  # raised by a signal handler
            raise
        return None
    return status.st_dev, status.st_ino


def _close_to_others(path: str, directory: str) -> None:
    if os.name != "posix":
        return
    for ending in ENDINGS:
        _tighten(path + ending, 0o600)
    if _alone(path, directory):
        _tighten(directory, 0o700)  # ours alone; a directory with other things in it is the user's to decide about
    elif (mode := os.stat(directory).st_mode) & 0o002 and not mode & stat.S_ISVTX:
        raise StoreError(f"other users may replace files in {directory}: run  chmod o-w {shlex.quote(directory)}")


def _alone(path: str, directory: str) -> bool:
    try:
        return set(os.listdir(directory)) <= {os.path.basename(path) + ending for ending in (*ENDINGS, "-reserve")}
    except PermissionError:
        return False


def _tighten(path: str, mode: int) -> None:
    try:
        if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
            os.chmod(path, mode)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.EROFS:  # nothing can be changed there, and nothing of ours will be written
            command = f"chmod {mode:o} {shlex.quote(path)}"
            raise StoreError(f"cannot close {path} to other users: run  {command}") from error


def prepare(connection: SetConnection, path: str, schema: FileSchema, ends: float, *, read_only: bool) -> None:
    """Check the file's mark and bring it up to this version, together with every other process that opens it now."""
    version = _check(connection, path, schema, ends)
    if read_only:
        if version != schema.version:
            raise StoreError(f"{path} is of schema {version} and may not be written: it cannot be migrated")
        return
    _use_wal(connection, ends)
    if version == schema.version:
        return
    connection.wait_until(ends)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _steps(connection, schema, ends):
            connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _steps(connection: SetConnection, schema: FileSchema, ends: float) -> list[str]:
    version = int(connection.value("PRAGMA user_version", ends))
    steps = [f"PRAGMA application_id = {schema.application_id}", f"PRAGMA user_version = {schema.version}"]
    if version == 0:
        steps = [*schema.create, *steps]
    elif version != schema.version:
        steps = [step for older in range(version, schema.version) for step in schema.migrations[older]] + steps
    return steps


def _check(connection: SetConnection, path: str, schema: FileSchema, ends: float) -> int:
    version = int(connection.value("PRAGMA user_version", ends))
    if version > schema.version:
        raise StoreError(f"{path} was written by a newer kronmem (schema {version}, known {schema.version}): upgrade")
    tables = connection.value("SELECT count(*) FROM sqlite_master", ends)
    if tables and connection.value("PRAGMA application_id", ends) != schema.application_id:
        raise StoreError(f"{path} is a database of another program: choose another file")
    known = version == schema.version or version in schema.migrations
    sign = f"SELECT count(*) FROM sqlite_master WHERE name = '{schema.sign}'"
    if version and not (known and (schema.sign is None or connection.value(sign, ends))):
        raise StoreError(f"{path} {schema.too_old}")
    return version


def _use_wal(connection: SetConnection, ends: float) -> None:
    # The one change of mode that does not wait for others by itself.
    while connection.value("PRAGMA journal_mode", ends) not in ("wal", "memory"):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > ends:
                raise
            time.sleep(0.01)


MEMORY = ":memory:"
_POOL = 8
"""Connections of one process to a file: readers run beside each other, and each has a cache of 8 MB."""
SLICE = 0.1
"""So long a locked file is waited for inside SQLite at a stretch: a fork waits for the thread inside."""
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
        """Let no thread in, or let them in again."""
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
        # A connection that is closed under a thread at work in it ends the process: the thread inside closes it at the
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
            self._door.left()  # one that waits is to find the store closed now, not at its deadline

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


# SQLite's errors in typed form, chosen by result code.

LEAST_ROOM = 64 * 1024
"""A WAL index takes 32 kB, a small transaction about as much: with less an input/output error is a full disk."""


class DiskFullError(StoreError):
    """The database cannot grow."""

    def __init__(self, message: str) -> None:
        super().__init__(message, outage=True)


class FileMovedError(StoreError):
    """The file that was opened is no longer at its path: writes to it now would be lost."""

    def __init__(self, path: str) -> None:
        message = f"{path} was deleted, moved or replaced while it was open: put it back or open it anew"
        super().__init__(message, outage=True)


_PLAIN_WORDS = {
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_NOTADB": "is not a database, or is damaged",
    "SQLITE_READONLY": "may not be written",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_IOERR": "cannot be read or written (input/output error)",
    "SQLITE_PERM": "may not be opened",
}
_GONE = ("no such table", "no such column", "no such index", "malformed database schema")
"""SQLite has no code of its own for a schema that lost a part."""


@contextmanager
def translated(path: str) -> Generator[None]:
    """Raise typed errors that name the file in place of SQLite's and the system's."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, path) from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is damaged: a text in it is not UTF-8", damaged=True) from error
    except OSError as error:
        if error.errno is None:  # raised by a signal handler, such as the TimeoutError of an alarm
            raise
        away = error.errno in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
        fix = "; name a directory that you may write to: KRONMEM_HOME, or Client(Path(…))" if away else ""
        raise StoreError(f"{path}: {error.strerror or error}{fix}", outage=True) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Another connection has the lock."""
    return _code(error) in ("SQLITE_BUSY", "SQLITE_LOCKED")


def _code(error: sqlite3.Error) -> str:
    name = str(getattr(error, "sqlite_errorname", ""))
    return "_".join(name.split("_")[:2])  # extended codes say more than we need


def _translate(error: sqlite3.Error, path: str) -> KronmemError:
    code = _code(error)
    if is_busy(error):
        return DeadlineError(f"{path} is busy: another process or thread holds its lock", sent=False)
    if code == "SQLITE_FULL" or (code in ("SQLITE_IOERR", "SQLITE_CANTOPEN") and _no_room(path)):
        return DiskFullError(f"{path} cannot grow: the disk is full")
    if code in _PLAIN_WORDS:
        damaged = code in ("SQLITE_CORRUPT", "SQLITE_NOTADB")
        return StoreError(f"{path} {_PLAIN_WORDS[code]}", damaged=damaged, outage=not damaged)
    return StoreError(f"{path}: {error}", damaged=str(error).startswith(_GONE))


def _no_room(path: str) -> bool:
    try:
        disk = os.statvfs(os.path.dirname(os.path.abspath(path)))
    except (OSError, AttributeError):  # Windows has no statvfs
        return False
    return disk.f_bavail * disk.f_frsize < LEAST_ROOM
