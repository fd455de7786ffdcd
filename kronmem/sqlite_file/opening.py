"""A database file on its way to being used: private, of our kind, of this version; or readable at least."""

from __future__ import annotations

import errno
import os
import shlex
import sqlite3
import stat
import time
from dataclasses import dataclass, field
from urllib.parse import quote

from kronmem.errors import StoreError
from kronmem.sqlite_file.failures import is_busy

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
        found: int | str = self.execute(sql).fetchone()[0]
        return found


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
    # Without its -shm a WAL database can be read only as one that nobody changes; what its -wal holds would be missed.
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
        found = os.stat(path)
    except OSError as error:
        if error.errno is None:  # raised by a signal handler
            raise
        return None
    return found.st_dev, found.st_ino


def _close_to_others(path: str, directory: str) -> None:
    if os.name != "posix":
        return
    for ending in ENDINGS:
        _tighten(path + ending, 0o600)
    if _alone(path, directory):
        _tighten(directory, 0o700)  # ours alone; a directory with other things in it is the user's to decide about
    elif (mode := os.stat(directory).st_mode) & 0o002 and not mode & stat.S_ISVTX:
        raise StoreError(f"anybody may replace files in {directory}: run  chmod o-w {shlex.quote(directory)}")


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
            raise StoreError(f"others have access to {path}, and it is not ours to change: run  {command}") from error


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
        raise StoreError(f"{path} is a database of something else: choose another file")
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
