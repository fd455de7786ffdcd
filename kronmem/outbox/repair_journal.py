"""The memories that a repair at Kronvex has deleted for a moment, in the outbox file: a kill half-way costs nothing.

The table is made when it is first needed and stands beside the others, so that any version can use the file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kronmem.core.steps import Aside
from kronmem.outbox.lease import AHEAD
from kronmem.outbox.process_liveness import is_gone, me

if TYPE_CHECKING:
    from sqlite3 import Connection

    from kronmem.outbox.queue import OutboxFile
    from kronmem.outbox.queue_file import Lane

T = TypeVar("T")

WORKED_ON = 120.0
"""Seconds after which an entry is unfinished although its process lives: a repair ends by the deadline of its call."""
_TABLE = """CREATE TABLE IF NOT EXISTS set_aside(
    service TEXT NOT NULL, mark TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL, holder TEXT NOT NULL,
    number INTEGER NOT NULL, at REAL NOT NULL, forgotten INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(service, mark, agent, memory, holder, number)) WITHOUT ROWID"""
_FOUND = "SELECT 1 FROM sqlite_master WHERE name = 'set_aside'"
_KEY = "service = ? AND mark = ? AND agent = ? AND memory = ? AND holder = ? AND number = ?"


class _JournalRow(NamedTuple):
    agent: str
    memory: str
    number: int
    holder: str
    at: float
    forgotten: int


class OutboxJournal:
    """One client's entries; `opened` gives the file and the lane, and is first called when something is noted."""

    def __init__(
        self,
        opened: Callable[[], tuple[OutboxFile, Lane]],
        now: Callable[[], float] = time.time,
        exists: Callable[[], bool] = lambda: True,
    ) -> None:
        self._opened, self._now, self._exists = opened, now, exists

    def put(self, entry: Aside) -> None:
        """Note an entry; it is on disk when this returns."""

        def work(db: Connection, lane: Lane) -> None:
            values = (*_key(lane, entry), self._now())
            db.execute("INSERT OR REPLACE INTO set_aside VALUES(?, ?, ?, ?, ?, ?, ?, 0)", values)

        self._write(work)

    def clear(self, entry: Aside) -> bool:
        """Drop an entry when its memory is back or replaced; that of another repair with the same memory stays.

        True: the memory was forgotten meanwhile.
        """

        def work(db: Connection, lane: Lane) -> bool:
            marked = db.execute(f"DELETE FROM set_aside WHERE {_KEY} AND forgotten = 1", _key(lane, entry)).rowcount > 0
            db.execute(f"DELETE FROM set_aside WHERE {_KEY}", _key(lane, entry))
            return marked

        return self._write(work)

    def take_over(self, left: Aside, entry: Aside) -> bool:
        """Note an unfinished entry as this one of our own; False: somebody else has, or it is done."""

        def work(db: Connection, lane: Lane) -> bool:
            sql = f"UPDATE set_aside SET holder = ?, number = ?, at = ? WHERE {_KEY}"
            return db.execute(sql, (me(), entry.number, self._now(), *_key(lane, left))).rowcount > 0

        return self._write(work)

    def give_back(self, entry: Aside) -> None:
        """Let an entry be unfinished again."""

        def work(db: Connection, lane: Lane) -> None:
            db.execute(f"UPDATE set_aside SET at = 0 WHERE {_KEY}", _key(lane, entry))

        self._write(work)

    def noted(self, agent_id: str) -> list[Aside]:
        """The entries of an agent, whoever works on them."""
        return [_aside(row) for row in self._read("agent = ?", agent_id)] if self._exists() else []

    def forget(self, entry: Aside) -> bool:
        """Mark the entries of its memory, which must not come back; False: there was nothing to mark."""

        def work(db: Connection, lane: Lane) -> bool:
            # By the memory: the entry itself may have been taken over since it was read.
            where = "service = ? AND mark = ? AND agent = ? AND memory = ? AND forgotten = 0"
            sql = f"UPDATE set_aside SET forgotten = 1 WHERE {where}"
            return db.execute(sql, _key(lane, entry)[:4]).rowcount > 0

        return self._write(work)

    def is_forgotten(self, entry: Aside) -> bool:
        """Is it marked?"""
        return any(one.forgotten and _aside(one) == entry for one in self._read("agent = ?", entry.agent_id))

    def unfinished(self) -> list[Aside]:
        """The entries of memories that nobody is working on any more, oldest first."""
        found = self._read("1")
        now = self._now()  # after it: an older time would take an entry of this moment for a clock's jump
        left = [one for one in found if is_gone(one.holder) or not now - WORKED_ON < one.at <= now + AHEAD]
        under_way = {(one.agent, one.memory) for one in found if one not in left}
        return [_aside(one) for one in left if (one.agent, one.memory) not in under_way]

    def _read(self, condition: str, *values: str) -> list[_JournalRow]:
        file, lane = self._opened()

        def work(db: Connection) -> list[_JournalRow]:
            if db.execute(_FOUND).fetchone() is None:
                return []
            sql = "SELECT agent, memory, number, holder, at, forgotten FROM set_aside WHERE service = ? AND mark = ?"
            found = db.execute(f"{sql} AND {condition} ORDER BY at", (lane.service, lane.mark, *values)).fetchall()
            return [_JournalRow._make(one) for one in found]

        return file.read(work)

    def _write(self, work: Callable[[Connection, Lane], T]) -> T:
        file, lane = self._opened()

        def with_table(db: Connection) -> T:
            db.execute(_TABLE)
            return work(db, lane)

        return file.write(with_table)


def _key(lane: Lane, entry: Aside) -> tuple[str, str, str, str, str, int]:
    return (lane.service, lane.mark, entry.agent_id, entry.memory_id, entry.holder or me(), entry.number)


def _aside(row: _JournalRow) -> Aside:
    return Aside(row.agent, row.memory, row.number, "" if row.holder == me() else row.holder)
