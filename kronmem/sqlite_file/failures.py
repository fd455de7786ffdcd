"""SQLite's errors in typed form, chosen by result code."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from kronmem.errors import DeadlineError, KronmemError, StoreError

LEAST_ROOM = 64 * 1024
"""A WAL index takes 32 kB, a small transaction about as much: with less an input/output error is a full disk."""


class DiskFullError(StoreError):
    """The database cannot grow."""

    def __init__(self, message: str) -> None:
        super().__init__(message, outage=True)


class FileMovedError(StoreError):
    """The file that was opened is no longer at its path: what is written to it now, nobody would find again."""

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
        raise StoreError(f"{path}: {error.strerror or error}", outage=True) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Another connection has the lock."""
    return _code(error) in ("SQLITE_BUSY", "SQLITE_LOCKED")


def _code(error: sqlite3.Error) -> str:
    name = str(getattr(error, "sqlite_errorname", None) or _BY_MESSAGE.get(str(error), ""))
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
