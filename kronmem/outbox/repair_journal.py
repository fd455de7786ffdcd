"""The memories that a repair at Kronvex has deleted for a moment, in the outbox file: a kill half-way costs nothing.

The table is made when it is first needed and stands beside the others, so that any version can use the file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kronmem.core.steps import Aside
from kronmem.outbox.lease import AHEAD, is_gone, me

if TYPE_CHECKING:
    from sqlite3 import Connection

    from kronmem.outbox.queue import OutboxFile
    from kronmem.outbox.queue_file import Lane

T = TypeVar("T")

WORKED_ON = 120.0
"""Seconds after which an entry is unfinished although its process lives: a repair ends by the deadline of its call."""
_TABLE = """CREATE TABLE IF NOT EXISTS aside(
    service TEXT NOT NULL, mark TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL, at REAL NOT NULL,
    holder TEXT NOT NULL, PRIMARY KEY(service, mark, agent, memory)) WITHOUT ROWID"""
_FOUND = "SELECT 1 FROM sqlite_master WHERE name = 'aside'"
_KEY = "service = ? AND mark = ? AND agent = ? AND memory = ?"


class OutboxJournal:
    """One client's entries; `opened` gives the file and the lane, and is first called when something is noted."""

    def __init__(self, opened: Callable[[], tuple[OutboxFile, Lane]], now: Callable[[], float] = time.time) -> None:
        self._opened, self._now = opened, now

    def put(self, entry: Aside) -> None:
        """Note an entry; it is on disk when this returns."""

        def work(db: Connection, lane: Lane) -> None:
            values = (lane.service, lane.mark, entry.agent_id, entry.memory_id, self._now(), me())
            db.execute("INSERT OR REPLACE INTO aside VALUES(?, ?, ?, ?, ?, ?)", values)

        self._write(work)

    def clear(self, entry: Aside) -> None:
        """Drop an entry when its memory is back or replaced."""

        def work(db: Connection, lane: Lane) -> None:
            values = (lane.service, lane.mark, entry.agent_id, entry.memory_id)
            db.execute(f"DELETE FROM aside WHERE {_KEY}", values)

        self._write(work)

    def unfinished(self) -> list[Aside]:
        """The entries that nobody is working on any more, oldest first."""
        file, lane = self._opened()

        def work(db: Connection) -> list[tuple[str, str, float, str]]:
            if db.execute(_FOUND).fetchone() is None:
                return []
            sql = "SELECT agent, memory, at, holder FROM aside WHERE service = ? AND mark = ? ORDER BY at"
            return db.execute(sql, (lane.service, lane.mark)).fetchall()

        found = file.read(work)
        now = self._now()  # after it: an older time would take an entry of this moment for a clock's jump
        return [
            Aside(agent, memory)
            for agent, memory, at, holder in found
            if is_gone(holder) or not now - WORKED_ON < at <= now + AHEAD
        ]

    def _write(self, work: Callable[[Connection, Lane], None]) -> None:
        file, lane = self._opened()

        def with_table(db: Connection) -> None:
            db.execute(_TABLE)
            work(db, lane)

        file.write(with_table)
