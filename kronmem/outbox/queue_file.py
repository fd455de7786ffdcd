"""The file under an outbox: its transactions, and the lanes in it."""

from __future__ import annotations

import copy
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TypeVar

from typing_extensions import Self

from kronmem.outbox.disk_faults import DurableFile

T = TypeVar("T")

_SET_ASIDE = "SELECT 1 FROM sqlite_master WHERE name = 'set_aside'"
"""A table that 0.2 made: the memories that its repairs at Kronvex had deleted for a moment."""


@dataclass(frozen=True)
class Lane:
    """The rows of one service and one key."""

    service: str
    mark: str


class QueueFile:
    """One file that several processes may share. Every method is one transaction."""

    def __init__(self, path: str, *, now: Callable[[], float] = time.time, timeout: float = 5.0) -> None:
        self.path = path
        self._now, self._timeout = now, timeout
        self._disk = DurableFile(path)

    def within(self, timeout: float) -> Self:
        """The same file for a caller with so many seconds left."""
        other = copy.copy(self)
        other._timeout = max(timeout, 0.0)
        return other

    def close(self) -> None:
        """Release the file."""
        self._disk.close()

    def lane(self, service: str, key: str) -> Lane:
        """The lane of a service and a key: the key itself is not written anywhere."""
        salt = self.read(self._salt) or self.write(self._new_salt)
        return Lane(service, hmac.new(salt, key.encode(), hashlib.sha256).hexdigest()[:32])

    def number(self) -> int:
        """Changes when another file is at the path: that one may have a salt of its own."""
        return self._disk.number(self._timeout)

    def _salt(self, db: Connection) -> bytes | None:
        row = db.execute("SELECT value FROM salt").fetchone()
        if row is None:
            return None
        self._disk.salt = bytes(row[0])  # inside the transaction: no other thread sets the file aside in between
        return self._disk.salt

    def _new_salt(self, db: Connection) -> bytes:
        if (salt := self._salt(db)) is None:
            self._disk.salt = salt = self._disk.salt or secrets.token_bytes(16)
            db.execute("INSERT INTO salt VALUES(?)", (salt,))
        return salt

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do `work` as one reading transaction."""
        return self._disk.run("BEGIN", "FULL", self._timeout, work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do `work` as one transaction that is on disk when this returns."""
        return self._disk.run("BEGIN IMMEDIATE", "FULL", self._timeout, work)

    def set_aside(self, lane: Lane) -> list[tuple[str, str]]:
        """Agent and id of each memory that a repair of 0.2 has left deleted, and that was not forgotten since."""

        def work(db: Connection) -> list[tuple[str, str]]:
            if db.execute(_SET_ASIDE).fetchone() is None:
                return []
            sql = "SELECT agent, memory FROM set_aside WHERE service = ? AND mark = ? AND forgotten = 0 ORDER BY at"
            return db.execute(sql, (lane.service, lane.mark)).fetchall()

        return self.read(work)

    def drop_set_aside(self, lane: Lane) -> None:
        """Drop the notes of these memories, and with the last one of all lanes their table."""

        def work(db: Connection) -> None:
            if db.execute(_SET_ASIDE).fetchone() is None:  # another process was faster
                return
            db.execute("DELETE FROM set_aside WHERE service = ? AND mark = ?", (lane.service, lane.mark))
            if db.execute("SELECT 1 FROM set_aside LIMIT 1").fetchone() is None:
                db.execute("DROP TABLE set_aside")

        if self.read(lambda db: db.execute(_SET_ASIDE).fetchone()) is not None:
            self.write(work)

    def _note(self, work: Callable[[Connection], T]) -> T:
        # Without an fsync: a power cut may undo it, and then the row is sent once more under the same id.
        return self._disk.run("BEGIN IMMEDIATE", "NORMAL", self._timeout, work)

    def _change(self, sql: str, values: Sequence[tuple[float, ...]]) -> None:
        # The count, not the cursor: one that outlives its transaction would keep the file open across a fork.
        self._note(lambda db: db.executemany(sql, values).rowcount)
