"""The file under the queue: drained when the disk is full, not waited for when it is busy, left alone when damaged."""

from __future__ import annotations

import logging
import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from sqlite3 import Connection
from typing import TypeVar

from kronmem.errors import DeadlineError, StoreError
from kronmem.outbox.schema import SCHEMA
from kronmem.sqlite_file import DiskFullError, FileMovedError, SqliteFile

T = TypeVar("T")

RESERVE = 1024 * 1024
"""Kept free for draining: delivering on a full disk needs room for twice the WAL, which is held below half of this."""
PAGE = 4096
"""Bytes of a page: SQLite's default."""
BUSY = 5.0
"""A file that was found busy is not waited for again during this time, only tried."""
TRY = 0.05
"""Long enough for another thread's own short transaction."""

log = logging.getLogger("kronmem")


class DurableFile:
    """Runs transactions on the outbox file, be it damaged, full or busy."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.salt: bytes | None = None
        """The one that this process's lanes were made with; a file begun anew gets it too."""
        self._number = 1
        self._reserved = False
        self._busy_until = 0.0
        self._lock = threading.Lock()
        self._file = self._new_file()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def run(
        self, begin: str, synchronous: str, timeout: float, work: Callable[[Connection], T], *, drains: bool = True
    ) -> T:
        """Do `work` as one transaction."""
        file, ends = self._file, time.monotonic() + timeout
        try:
            return self._once(file, begin, synchronous, timeout, work)
        except DiskFullError:
            if not drains:
                raise
            self._make_room(file, ends)
        except StoreError as error:
            if isinstance(error, FileMovedError):
                self._reopen(file, error, ends)
            elif error.damaged:
                raise self._damaged(error) from error
            elif self._current() is file:  # else another thread has begun anew and closed the old one under us
                raise
        return self._once(self._file, begin, synchronous, ends - time.monotonic(), work)

    def _once(
        self, file: SqliteFile, begin: str, synchronous: str, timeout: float, work: Callable[[Connection], T]
    ) -> T:
        if time.monotonic() < self._busy_until:
            timeout = min(timeout, TRY)
        try:
            with file.transaction(begin, timeout, synchronous=synchronous) as db:
                answer = work(db)
        except DeadlineError:
            self._busy_until = time.monotonic() + BUSY
            raise
        if begin != "BEGIN":
            self._busy_until = 0.0
        return answer

    def number(self, timeout: float) -> int:
        """How many files this process has used at this path, the one that is there now included."""
        file = self._file
        if file.has_moved():
            self._reopen(file, FileMovedError(self.path), time.monotonic() + timeout)
        return self._number

    def scrub(self, timeout: float) -> bool:
        """See that no deleted text is left in the file and its log."""
        return self._file.scrub(timeout)

    # ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────

    def make_reserve(self) -> None:
        """Hold room for draining; without it nothing new is accepted."""
        if self._reserved:
            return
        path = f"{self.path}-reserve"
        try:
            os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            try:
                if os.fstat(descriptor).st_size == 0:
                    _fill(descriptor, self._room())
            finally:
                os.close(descriptor)
        except OSError as error:
            with suppress(OSError):
                os.unlink(path)
            raise DiskFullError(f"{self.path} cannot grow: {error.strerror or error}") from error
        self._reserved = True

    def _make_room(self, file: SqliteFile, ends: float) -> None:
        self._reserved = False
        with suppress(OSError):
            os.unlink(f"{self.path}-reserve")
        file.scrub(ends - time.monotonic())

    def _room(self) -> int:
        try:
            disk = os.statvfs(os.path.dirname(os.path.abspath(self.path)))
        except (OSError, AttributeError):  # no such directory yet; Windows has no statvfs
            return RESERVE
        return min(RESERVE, disk.f_bavail * disk.f_frsize // 4 // PAGE * PAGE)

    def _keep_wal_small(self, db: Connection) -> None:
        # What the WAL holds needs its room in the database too before the WAL can begin again.
        with suppress(OSError):
            size = os.path.getsize(f"{self.path}-reserve")
            db.execute(f"PRAGMA wal_autocheckpoint = {max(4, size // PAGE // 2)}")
            return
        db.execute(f"PRAGMA wal_autocheckpoint = {max(4, self._room() // PAGE // 2)}")

    # ── a file that was moved away, or is damaged ────────────────────────────────────────────────────────────────

    def _reopen(self, file: SqliteFile, error: StoreError, ends: float) -> None:
        with self._lock:
            if self._file is not file:  # another thread has done it
                return
            if not file.close_at_rest(ends - time.monotonic()):
                raise error
            self._file, self._number = self._new_file(), self._number + 1
        log.error("%s; a new outbox was begun", error)

    def _damaged(self, error: StoreError) -> StoreError:
        command = f"sqlite3 {shlex.quote(self.path)} .recover"
        return StoreError(f"{error}: see what can be saved with  {command}  and move it away", damaged=True)

    def _current(self) -> SqliteFile:
        with self._lock:  # between closing the old file and opening the new one, neither can be used
            return self._file

    def _new_file(self) -> SqliteFile:
        schema = SCHEMA
        if self.salt is not None:
            schema = replace(schema, create=(*schema.create, f"INSERT INTO salt VALUES(x'{self.salt.hex()}')"))
        return SqliteFile(self.path, schema, self._keep_wal_small)


def _fill(descriptor: int, size: int) -> None:
    """Write bytes that no file system stores as a hole or compresses away."""
    data = memoryview(secrets.token_bytes(size))
    while data:
        data = data[os.write(descriptor, data) :]
