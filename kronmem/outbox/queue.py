"""The durable queue behind `remember_later`: one SQLite file that several processes may share. No network.

A row is claimed with a lease, sent, and deleted when the service has it. Rows of one agent leave in the order in which
they came. A row carries a salted fingerprint of the key it belongs to, never the key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from sqlite3 import Connection

from kronmem.core.calls import Draft
from kronmem.errors import ConflictError, OutboxFullError
from kronmem.models import DeadLetter, QueuedMemory
from kronmem.outbox import rows
from kronmem.outbox.claims import CLAIMED, Claims, pause, paused, until
from kronmem.outbox.lease import AHEAD
from kronmem.outbox.policy import Delay
from kronmem.outbox.queue_file import Lane
from kronmem.outbox.rows import COLUMNS, QueuedRow
from kronmem.outbox.withdrawals import SENT, Withdrawals

MOST_ROWS = 100_000
MOST_BYTES = 128 * 1024 * 1024
"""A memory a second for a day, or a thousand texts of the largest size: beyond, somebody has to look."""


class OutboxFile(Claims, Withdrawals):
    """The queue itself. Every method is one transaction; a row that is put, buried or withdrawn is on disk after it."""

    def __init__(
        self,
        path: str,
        *,
        now: Callable[[], float] = time.time,
        most_rows: int = MOST_ROWS,
        most_bytes: int = MOST_BYTES,
        timeout: float = 5.0,
    ) -> None:
        super().__init__(path, now=now, timeout=timeout)
        self._most_rows, self._most_bytes = most_rows, most_bytes

    # ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(
        self,
        lane: Lane,
        drafts: Sequence[Draft],
        delay: Delay | None = None,
        *,
        sent: bool = False,
        origin: str | None = None,
    ) -> None:
        """Add rows, all or none; a memory that waits already under its id is that row, a dead letter goes anew.

        `delay` is why they are queued: the service failed, or named a time, just before; `sent`: it may have stored
        them. `origin` is the traceparent of the call that queues them.
        """
        now = self._now()
        bodies = [rows.encode(draft) for draft in drafts]
        more = sum(len(body.encode()) for body in bodies)

        def work(db: Connection) -> None:
            count, size = db.execute("SELECT rows, bytes FROM total").fetchone()
            if count + len(drafts) > self._most_rows or size + more > self._most_bytes:
                raise OutboxFullError(f"{self.path} holds {count} memories ({size} bytes) and takes no more")
            for one, body in zip(drafts, bodies, strict=True):
                sent_before = self._make_way(db, lane, one)
                _insert(db, lane, one, body, now)
                if sent or sent_before:
                    db.execute("INSERT OR IGNORE INTO sent SELECT seq FROM waiting WHERE id = ?", (one.client_id,))
            if origin is not None:
                sql = "INSERT OR IGNORE INTO origin SELECT seq, ? FROM waiting WHERE id = ?"
                db.executemany(sql, [(origin, one.client_id) for one in drafts])
            if delay is not None and drafts:
                pause(db, lane, delay.lane, now)
                _put_off(db, lane, drafts[0], delay, now)

        self._disk.make_reserve()
        self._disk.run("BEGIN IMMEDIATE", "FULL", self._timeout, work, drains=False)

    def _make_way(self, db: Connection, lane: Lane, draft: Draft) -> bool:
        """Remove a dead letter of the same id, and tell whether the service may have it; refuse an id in other use.

        One that was taken back stays so: the same id after `forget` stores nothing, here as at the service.
        """
        sql = f"SELECT {COLUMNS}, mark, dead, {SENT} FROM waiting WHERE id = ?"
        if (found := db.execute(sql, (draft.client_id,)).fetchone()) is None:
            return False
        *columns, mark, dead, sent = found
        row = QueuedRow._make(columns)
        if (row.service, mark, row.agent.decode(errors="replace")) != (lane.service, lane.mark, draft.agent_id):
            raise _taken(self.path, draft, f"a memory of another agent, key or url ({row.service})")
        if dead:
            db.execute("DELETE FROM waiting WHERE seq = ?", (row.seq,))
        elif not row.cancelled and rows.is_other_text(row, draft):
            raise _taken(self.path, draft, "another text")
        return bool(dead and sent)

    def revive(self, lane: Lane) -> int:
        """Put the dead letters back in the queue."""
        sql = "UPDATE waiting SET dead = 0, refused = 0, backoff = 0, asked = 0"
        where = " WHERE service = ? AND mark = ? AND dead = 1"
        return self.write(lambda db: db.execute(sql + where, (lane.service, lane.mark)).rowcount)

    def adopt(self, lane: Lane, service: str) -> int:
        """Make the rows of this service that are not this lane's its own, each in the place of its age."""
        sql = "UPDATE waiting SET service = ?, mark = ?, lease = 0, backoff = 0, asked = 0"
        where = " WHERE service = ? AND NOT (service = ? AND mark = ?)"
        there = (service, lane.service, lane.mark)

        def work(db: Connection) -> int:
            # Claimed by a process that may have sent them: the end of its lease must not be forgotten with the lease.
            db.execute(f"INSERT OR IGNORE INTO sent SELECT seq FROM waiting{where} AND lease > 0", there)
            return db.execute(sql + where, (lane.service, lane.mark, *there)).rowcount

        return self.write(work)

    # ── about ────────────────────────────────────────────────────────────────────────────────────────────────────

    def ahead(self, lane: Lane, agent_id: str) -> tuple[int, bool, bool]:
        """How many rows of this agent wait (16 stands for more), whether the lane is paused, and whether they are.

        They are until the time that the service named for the first of them or for the lane.
        """
        now = self._now()
        some = "SELECT 1 FROM waiting WHERE service = ? AND mark = ? AND dead = 0 AND agent = ? LIMIT ?"

        def work(db: Connection) -> tuple[int, bool, bool]:
            agent = (lane.service, lane.mark, agent_id)
            count = db.execute(f"SELECT count(*) FROM ({some})", (*agent, CLAIMED)).fetchone()[0]
            named = db.execute(_NAMED, (*agent, now, now + AHEAD)).fetchone() is not None
            waits = paused(db, lane, now) > 0
            return count, waits, waits or named

        return self.read(work)

    def waits(self, lane: Lane, agent_id: str, client_id: str) -> bool:
        """Is the memory of this id still to be delivered?"""
        sql = "SELECT 1 FROM waiting WHERE id = ? AND service = ? AND mark = ? AND agent = ? AND cancelled = 0"
        values = (client_id, lane.service, lane.mark, agent_id)
        return self.read(lambda db: db.execute(sql, values).fetchone()) is not None

    def delivered(self, lane: Lane, agent_id: str, client_id: str) -> str | None:
        """Under which id the service keeps the memory that was queued under this one."""
        sql = "SELECT memory FROM delivered WHERE id = ? AND service = ? AND agent = ?"
        row = self.read(lambda db: db.execute(sql, (client_id, lane.service, agent_id)).fetchone())
        return None if row is None else str(row[0])

    def pending(self, lane: Lane) -> int:
        """How many rows wait."""
        return self._count("mark = ? AND dead = 0", lane)

    def queued(self, lane: Lane) -> list[QueuedMemory]:
        """The rows that wait, oldest first."""
        return [rows.queued_memory(row) for row in self._rows("mark = ? AND dead = 0", lane)]

    def dead(self, lane: Lane) -> list[DeadLetter]:
        """The rows of dead letters, oldest first."""
        return [rows.dead_letter(row) for row in self._rows("mark = ? AND dead = 1", lane)]

    def stranded(self, lane: Lane) -> list[QueuedMemory]:
        """The rows of the same service under another key, oldest first."""
        return [rows.queued_memory(row) for row in self._rows("mark <> ?", lane)]

    def count_stranded(self, lane: Lane) -> int:
        """How many rows of the same service are under another key."""
        return self._count("mark <> ?", lane)

    def elsewhere(self, lane: Lane) -> dict[str, int]:
        """How many rows wait for each other service."""
        sql = "SELECT service, count(*) FROM waiting WHERE service <> ? GROUP BY service ORDER BY service"
        return dict(self.read(lambda db: db.execute(sql, (lane.service,)).fetchall()))

    def _rows(self, condition: str, lane: Lane) -> list[QueuedRow]:
        sql = f"SELECT {COLUMNS} FROM waiting WHERE service = ? AND {condition} ORDER BY seq"
        found = self.read(lambda db: db.execute(sql, (lane.service, lane.mark)).fetchall())
        return [QueuedRow._make(one) for one in found]

    def _count(self, condition: str, lane: Lane) -> int:
        sql = f"SELECT count(*) FROM waiting WHERE service = ? AND {condition}"
        return int(self.read(lambda db: db.execute(sql, (lane.service, lane.mark)).fetchone())[0])


_NAMED = """SELECT 1 FROM waiting WHERE asked > ?4 AND noted <= ?5
    AND seq = (SELECT seq FROM head WHERE service = ?1 AND mark = ?2 AND agent = ?3)"""


def _taken(path: str, draft: Draft, by: str) -> ConflictError:
    message = f"the id {draft.client_id} waits in {path} for {by}: choose another id, or drop that one"
    return ConflictError(message, status=409)


def _insert(db: Connection, lane: Lane, draft: Draft, body: str, now: float) -> None:
    db.execute(
        "INSERT OR IGNORE INTO waiting(id, service, mark, agent, session, body, bytes, created)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        (draft.client_id, lane.service, lane.mark, draft.agent_id, draft.session_id, body, len(body.encode()), now),
    )


def _put_off(db: Connection, lane: Lane, draft: Draft, delay: Delay, now: float) -> None:
    # Of a row that has others before it nothing is known: it was not the one that the service refused.
    db.execute(
        "UPDATE waiting SET noted = ?, backoff = ?, asked = ? WHERE id = ? AND seq ="
        " (SELECT seq FROM head WHERE service = ? AND mark = ? AND agent = ?)",
        (now, *until(delay, now), draft.client_id, lane.service, lane.mark, draft.agent_id),
    )
