"""The way out of an outbox: rows are claimed under a lease, and settled when the service has answered or failed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from sqlite3 import Connection

from kronmem.outbox import rows
from kronmem.outbox.lease import AHEAD, LEASE
from kronmem.outbox.policy import Delay
from kronmem.outbox.process_liveness import is_gone, me
from kronmem.outbox.queue_file import Lane, QueueFile
from kronmem.outbox.rows import COLUMNS, QueuedRow, UnreadableRowError, Waiting

KEPT = 30 * 86_400.0
"""For how long the outbox knows under which id the service keeps a delivered memory: the
service knows its own receipts for as many seconds."""
CLAIMED = 16
"""So many rows of one agent are claimed at once: they are sent one after the other within the lease, and those behind
a row that fails are handed back."""

log = logging.getLogger("kronmem")


class Claims(QueueFile):
    """Claims and settles rows."""

    def claim(self, lane: Lane) -> list[Waiting]:
        """Take the oldest rows of one agent that are due."""
        return self._note(lambda db: self._claim(db, lane, partial(_due, db, lane)))

    def agent_after(self, lane: Lane, agent: bytes) -> bytes:
        """The next agent with waiting rows in the order of names, as the file writes it; empty after the last one."""
        sql = (
            "SELECT CAST(agent AS BLOB) FROM head WHERE service = ? AND mark = ? AND agent > CAST(? AS TEXT)"
            " ORDER BY agent LIMIT 1"
        )
        found = self.read(lambda db: db.execute(sql, (lane.service, lane.mark, agent)).fetchone())
        return b"" if found is None else bytes(found[0])

    def claim_agent(self, lane: Lane, agent: bytes) -> list[Waiting] | None:
        """Take the oldest rows of this agent, due or not; None: they are under a lease."""

        def work(db: Connection) -> list[Waiting] | None:
            claimed = self._claim(db, lane, partial(_free, db, lane, agent))
            return None if not claimed and _head(db, lane, agent) is not None else claimed

        return self._note(work)

    def _claim(self, db: Connection, lane: Lane, head: Callable[[float], int | None]) -> list[Waiting]:
        now = self._now()  # with the lock held: an older time would take another thread's fresh note for a clock's jump
        while (seq := head(now)) is not None:
            if taken := self._take(db, lane, seq, now):
                return taken
        return []

    def _take(self, db: Connection, lane: Lane, seq: int, now: float) -> list[Waiting]:
        """Claim this row and those of its agent behind it; an unreadable row becomes a dead letter alone."""
        found = db.execute(
            f"SELECT {COLUMNS} FROM waiting WHERE service = ? AND mark = ? AND dead = 0 AND seq >= ?"
            " AND agent = (SELECT agent FROM waiting WHERE seq = ?) ORDER BY seq LIMIT ?",
            (lane.service, lane.mark, seq, seq, CLAIMED),
        ).fetchall()
        taken: list[Waiting] = []
        left: list[tuple[int]] = []
        for row in map(QueuedRow._make, found):
            if _is_held(row.lease, row.noted, row.holder, now):  # one before it came in late: retried or adopted
                break
            try:
                taken.append(rows.waiting(row, now + LEASE))
                left += [(row.seq,)] if row.lease > 0 else []
            except UnreadableRowError as error:
                log.error("a row of %s cannot be read and is kept as a dead letter (%s)", self.path, error)
                db.execute("UPDATE waiting SET dead = 1, error = ? WHERE seq = ?", (f"unreadable: {error}", row.seq))
        db.executemany("INSERT OR IGNORE INTO sent VALUES(?)", left)  # by a process that ended while it had them
        holder = me()
        db.executemany(
            "UPDATE waiting SET lease = ?, noted = ?, holder = ? WHERE seq = ?",
            [(now + LEASE, now, holder, row.seq) for row in taken],
        )
        return taken

    def done(self, lane: Lane, row: Waiting, memory_id: str) -> bool:
        """The service has it: drop the row, keep the mapping. False: taken back meanwhile, forget it there."""

        def work(db: Connection) -> bool:
            found = db.execute("SELECT cancelled FROM waiting WHERE seq = ?", (row.seq,)).fetchone()
            if found is not None and found[0]:
                return False
            db.execute("DELETE FROM waiting WHERE seq = ?", (row.seq,))
            _go_on(db, lane)
            if memory_id and memory_id != row.draft.client_id:
                values = (row.draft.client_id, lane.service, row.draft.agent_id, memory_id, self._now())
                db.execute("INSERT OR REPLACE INTO delivered VALUES(?, ?, ?, ?, ?)", values)
            db.execute("DELETE FROM delivered WHERE at < ?", (self._now() - KEPT,))
            return True

        return self._note(work)

    def drop(self, row: Waiting) -> None:
        """Remove a row for good."""
        self._change("DELETE FROM waiting WHERE seq = ?", [(row.seq,)])

    def later(self, lane: Lane, row: Waiting, error: str, delay: Delay, *, refused: int, sent: bool) -> None:
        """Not now: come back after the delay, and remember how often a service that answers others failed on it."""
        now = self._now()

        def work(db: Connection) -> None:
            pause(db, lane, delay.lane, now)
            db.execute(
                "UPDATE waiting SET attempts = attempts + 1, refused = ?, error = ?, noted = ?, backoff = ?, asked = ?,"
                " lease = 0 WHERE seq = ?",
                (refused, error[:500], now, *until(delay, now), row.seq),
            )
            _settle(db, row, sent=sent)

        self._note(work)

    def tried(self, lane: Lane, row: Waiting, error: str, delay: Delay, *, sent: bool) -> None:
        """A try out of turn failed: nothing is counted, but a time that the service named holds."""
        now = self._now()
        asked = until(delay, now)[1]

        def work(db: Connection) -> None:
            pause(db, lane, delay.lane, now)
            sql = "UPDATE waiting SET error = ?, asked = max(asked, ?), noted = ?, lease = 0 WHERE seq = ?"
            db.execute(sql, (error[:500], asked, now, row.seq))
            _settle(db, row, sent=sent)

        self._note(work)

    def release(self, claimed: Sequence[Waiting]) -> None:
        """Give claimed rows back untouched, but for those that were interrupted while they were sent."""
        # Only the claim that is meant: released late, it must not end the next one's.
        values = [(row.seq, row.lease) for row in claimed]
        sent = [(row.seq,) for row in claimed if row.interrupted]

        def work(db: Connection) -> None:
            db.executemany("INSERT OR IGNORE INTO sent SELECT seq FROM waiting WHERE seq = ?", sent)
            db.executemany("UPDATE waiting SET lease = 0 WHERE seq = ? AND lease = ?", values)
            db.executemany(_DROP_GONE, [(row.seq,) for row in claimed])

        self._note(work)

    def renew(self, claimed: Sequence[Waiting]) -> list[Waiting]:
        """Hold on to claimed rows for another lease; those that were claimed by another since are not in the answer."""

        def work(db: Connection) -> list[Waiting]:
            now = self._now()
            sql = "UPDATE waiting SET lease = ?, noted = ? WHERE seq = ? AND lease = ?"
            kept = [row for row in claimed if db.execute(sql, (now + LEASE, now, row.seq, row.lease)).rowcount]
            return [replace(row, lease=now + LEASE) for row in kept]

        return self._note(work)

    def bury(self, row: Waiting, error: str, *, sent: bool) -> None:
        """Set a row aside as a dead letter, out of the way of the others."""

        def work(db: Connection) -> None:
            db.execute("UPDATE waiting SET dead = 1, lease = 0, error = ? WHERE seq = ?", (error[:500], row.seq))
            _settle(db, row, sent=sent)

        self.write(work)

    def go_on(self, lane: Lane) -> None:
        """The service answers again: no pause of this lane holds any longer."""
        self._note(lambda db: _go_on(db, lane))

    def next_due(self, lane: Lane) -> float | None:
        """In how many seconds something of this lane can be tried; None when nothing waits."""
        now = self._now()

        def work(db: Connection) -> float | None:
            sql = "SELECT due FROM head WHERE service = ? AND mark = ? ORDER BY due LIMIT 1"
            due = db.execute(sql, (lane.service, lane.mark)).fetchone()
            if due is None:
                return None
            if _unheld(db, lane, now) is not None:
                return 0.0
            return max(0.0, float(due[0]) - now, paused(db, lane, now))

        return self.read(work)

    def next_unleased(self, lane: Lane) -> float | None:
        """In how many seconds the next row that no process holds can be tried; None when all are held."""
        now = self._now()
        sql = "SELECT min(due) FROM head WHERE service = ? AND mark = ? AND lease <= ?"

        def work(db: Connection) -> float | None:
            due = db.execute(sql, (lane.service, lane.mark, now)).fetchone()[0]
            return None if due is None else max(0.0, float(due) - now, paused(db, lane, now))

        return self.read(work)


def _due(db: Connection, lane: Lane, now: float) -> int | None:
    """The head that has been due for longest, if any."""
    if paused(db, lane, now) > 0:
        return None
    sql = "SELECT seq FROM head WHERE service = ? AND mark = ? AND due <= ? ORDER BY due, seq LIMIT 1"
    row = db.execute(sql, (lane.service, lane.mark, now)).fetchone()
    return _unheld(db, lane, now) if row is None else int(row[0])


def _unheld(db: Connection, lane: Lane, now: float) -> int | None:
    """A head that only seems to be held: noted in the future, or leased by a process that has ended."""
    # A clock that went backwards would make every wait longer than it was meant: such a note no longer counts.
    for seq, noted, lease in db.execute(
        "SELECT seq, noted, lease FROM head WHERE service = ? AND mark = ? AND noted > ? AND (noted > ? OR lease > ?)",
        (lane.service, lane.mark, now - LEASE, now + AHEAD, now),
    ):
        if not _is_held(lease, noted, _holder(db, seq), now):
            return int(seq)
    return None


def _head(db: Connection, lane: Lane, agent: bytes) -> tuple[int, float, float] | None:
    sql = "SELECT seq, noted, lease FROM head WHERE service = ? AND mark = ? AND agent = CAST(? AS TEXT)"
    row: tuple[int, float, float] | None = db.execute(sql, (lane.service, lane.mark, agent)).fetchone()
    return row


def _free(db: Connection, lane: Lane, agent: bytes, now: float) -> int | None:
    """The head of this agent, unless a living process holds it."""
    row = _head(db, lane, agent)
    if row is None or _is_held(row[2], row[1], _holder(db, row[0]), now):
        return None
    return int(row[0])


def _is_held(lease: float, noted: float, holder: str, now: float) -> bool:
    """Does a living process have this row under a lease that is not over?"""
    return lease > now and noted <= now + AHEAD and not is_gone(holder)


def _holder(db: Connection, seq: int) -> str:
    return str(db.execute("SELECT holder FROM waiting WHERE seq = ?", (seq,)).fetchone()[0])


def until(delay: Delay, now: float) -> tuple[float, float]:
    return now + delay.backoff if delay.backoff else 0.0, now + delay.asked if delay.asked else 0.0


def pause(db: Connection, lane: Lane, seconds: float, now: float) -> None:
    """Pause the lane, for no less than it is: another thread may have heard of a longer limit."""
    if seconds > 0:
        ends = now + max(seconds, paused(db, lane, now))
        db.execute("INSERT OR REPLACE INTO pause VALUES(?, ?, ?, ?)", (lane.service, lane.mark, ends, now))


def paused(db: Connection, lane: Lane, now: float) -> float:
    """Seconds for which the lane is paused."""
    sql = "SELECT until FROM pause WHERE service = ? AND mark = ? AND noted <= ?"
    row = db.execute(sql, (lane.service, lane.mark, now + AHEAD)).fetchone()
    return 0.0 if row is None else max(0.0, row[0] - now)


def _go_on(db: Connection, lane: Lane) -> None:
    db.execute("DELETE FROM pause WHERE service = ? AND mark = ?", (lane.service, lane.mark))


def _settle(db: Connection, row: Waiting, *, sent: bool) -> None:
    """Note that the service may have a row all the same; one that it cannot have and that was taken back is gone."""
    if sent:
        db.execute("INSERT OR IGNORE INTO sent SELECT seq FROM waiting WHERE seq = ?", (row.seq,))
    db.execute(_DROP_GONE, (row.seq,))


_DROP_GONE = """DELETE FROM waiting
    WHERE seq = ? AND cancelled = 1 AND lease = 0 AND seq NOT IN (SELECT seq FROM sent)"""
