"""The durable queue behind `remember_later`: one SQLite file that several processes may share. No network.

A row is claimed with a lease, sent, and deleted when the service has it, or taken back before. Rows of one agent leave
in the order in which they came. A row carries a salted fingerprint of the key it belongs to, never the key.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from sqlite3 import Connection

from kronmem.core.calls import Draft
from kronmem.errors import ConflictError, OutboxFullError
from kronmem.models import DeadLetter, QueuedMemory
from kronmem.outbox import file
from kronmem.outbox.file import COLUMNS, Lane, QueuedRow, QueueFile, UnreadableRowError, Waiting
from kronmem.outbox.policy import AHEAD, EARLIEST, LEASE, Delay

# The way out of an outbox: rows are claimed under a lease, and settled when the service has answered or failed.

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
        row = self.read(lambda db: db.execute(sql, (lane.service, lane.mark, agent)).fetchone())
        return b"" if row is None else bytes(row[0])

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
        rows = db.execute(
            f"SELECT {COLUMNS} FROM waiting WHERE service = ? AND mark = ? AND dead = 0 AND seq >= ?"
            " AND agent = (SELECT agent FROM waiting WHERE seq = ?) ORDER BY seq LIMIT ?",
            (lane.service, lane.mark, seq, seq, CLAIMED),
        ).fetchall()
        taken: list[Waiting] = []
        left: list[tuple[int]] = []
        for row in map(QueuedRow._make, rows):
            if _is_held(row.lease, row.noted, row.holder, now):  # one before it came in late: retried or adopted
                break
            try:
                taken.append(file.waiting_row(row, now + LEASE))
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
            state = db.execute("SELECT cancelled FROM waiting WHERE seq = ?", (row.seq,)).fetchone()
            if state is not None and state[0]:
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
        """Mark a row as a dead letter, out of the way of the others."""

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
    """Pause the lane, for no less than it is: another thread may have received a longer limit."""
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


# Queued memories that are taken back: forgotten, cleared, erased or dropped before they were delivered.

SENT = "(lease > 0 OR seq IN (SELECT seq FROM sent))"
"""Of rows in `waiting`: the service may have it."""


class Withdrawals(QueueFile):
    """Takes rows back; one that the service may have is forgotten there too."""

    def cancel(self, lane: Lane, agent_id: str, client_id: str) -> bool | None:
        """Take a row back before it is delivered; one that is on its way right now is forgotten on arrival.

        None: it was a dead letter that the service may have all the same.
        """
        where = " WHERE service = ? AND mark = ? AND agent = ? AND id = ?"
        taken, unsure = self._withdraw(where, (lane.service, lane.mark, agent_id, client_id))
        return None if unsure else taken > 0

    def cancel_all(self, lane: Lane, agent_id: str, session_id: str | None, before: float | None = None) -> int:
        """Take back everything of an agent, of one session of it, or from before a time."""
        bounds = {" AND session = ?": session_id, f" AND created >= {EARLIEST} AND created < ?": before}
        given = {clause: value for clause, value in bounds.items() if value is not None}
        where = " WHERE service = ? AND mark = ? AND agent = ?" + "".join(given)
        return self._withdraw(where, (lane.service, lane.mark, agent_id, *given.values()))[0]

    def _withdraw(self, where: str, values: tuple[str | float, ...]) -> tuple[int, bool]:
        """How many rows were taken back, and whether a dead letter among them may be at the service."""
        # Looked for first: reading needs no lock, and most of the time there is nothing to take back.
        if self.read(lambda db: db.execute(f"SELECT 1 FROM waiting{where} LIMIT 1", values).fetchone()) is None:
            return 0, False

        def work(db: Connection) -> tuple[int, bool]:
            dead = db.execute(f"SELECT 1 FROM waiting{where} AND dead = 1 AND {SENT}", values).fetchone()
            # A row that may be stored although no reply came is sent once more, then forgotten.
            sent = db.execute(f"UPDATE waiting SET cancelled = 1{where} AND dead = 0 AND {SENT}", values).rowcount
            sql = f"DELETE FROM waiting{where} AND (cancelled = 0 OR dead = 1)"
            return sent + db.execute(sql, values).rowcount, dead is not None

        return self.write(work)

    def erase(self, lane: Lane, agent_id: str) -> bool:
        """Drop every row of an agent and the ids of those delivered, down to the bytes; False: one is under way."""
        values = (lane.service, lane.mark, agent_id)

        def work(db: Connection) -> bool:
            db.execute("DELETE FROM delivered WHERE service = ? AND agent = ?", (lane.service, agent_id))
            rows = self._by_hold(db, "service = ? AND mark = ? AND agent = ?", values)
            # One that was sent before may be stored: the service erases it too, right after this.
            db.executemany("DELETE FROM waiting WHERE seq = ?", [(seq,) for seq, held in rows if not held])
            return not any(held for _, held in rows)

        return self.write(work) and self._disk.scrub(self._timeout)

    def has_stranded(self, lane: Lane, agent_id: str) -> bool:
        """Are there rows of this agent under another key of the same service?"""
        sql = "SELECT 1 FROM waiting WHERE service = ? AND mark <> ? AND agent = ? LIMIT 1"
        values = (lane.service, lane.mark, agent_id)
        return self.read(lambda db: db.execute(sql, values).fetchone()) is not None

    def remove(self, lane: Lane, client_id: str) -> bool:
        """Drop one row of this service, waiting, stranded or a dead letter; one under way is forgotten on arrival."""
        where = "id = ? AND service = ? AND (cancelled = 0 OR dead = 1 OR mark <> ?)"

        def work(db: Connection) -> bool:
            rows = self._by_hold(db, where, (client_id, lane.service, lane.mark))
            for seq, held in rows:
                under_way = "UPDATE waiting SET cancelled = 1 WHERE seq = ? AND cancelled = 0 AND dead = 0"
                if not held or not db.execute(under_way, (seq,)).rowcount:
                    db.execute("DELETE FROM waiting WHERE seq = ?", (seq,))
            return bool(rows)

        return self.write(work)

    def _by_hold(self, db: Connection, where: str, values: tuple[str, ...]) -> list[tuple[int, bool]]:
        """The numbers of these rows, and whether a process that has not ended may be sending each."""
        now = self._now()
        rows = db.execute(f"SELECT seq, lease, holder FROM waiting WHERE {where}", values).fetchall()
        return [(seq, lease > now and not is_gone(holder)) for seq, lease, holder in rows]


MOST_ROWS = 100_000
MOST_BYTES = 128 * 1024 * 1024
"""A memory a second for a day, or a thousand texts of the largest size: beyond, a person has to look."""


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
        """Add rows, all or none; a memory that waits already under its id is that row, a dead letter is sent again.

        `delay` is why they are queued: the service failed, or named a time, just before; `sent`: it may have stored
        them. `origin` is the traceparent of the call that queues them.
        """
        now = self._now()
        bodies = [file.encode_row(draft) for draft in drafts]
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
        if (stored := db.execute(sql, (draft.client_id,)).fetchone()) is None:
            return False
        *columns, mark, dead, sent = stored
        row = QueuedRow._make(columns)
        if (row.service, mark, row.agent.decode(errors="replace")) != (lane.service, lane.mark, draft.agent_id):
            raise _taken(self.path, draft, f"a memory of another agent, key or url ({row.service})")
        if dead:
            db.execute("DELETE FROM waiting WHERE seq = ?", (row.seq,))
        elif not row.cancelled and file.is_other_text(row, draft):
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
        return [file.queued_memory(row) for row in self._rows("mark = ? AND dead = 0", lane)]

    def dead(self, lane: Lane) -> list[DeadLetter]:
        """The rows of dead letters, oldest first."""
        return [file.dead_letter(row) for row in self._rows("mark = ? AND dead = 1", lane)]

    def stranded(self, lane: Lane) -> list[QueuedMemory]:
        """The rows of the same service under another key, oldest first."""
        return [file.queued_memory(row) for row in self._rows("mark <> ?", lane)]

    def count_stranded(self, lane: Lane) -> int:
        """How many rows of the same service are under another key."""
        return self._count("mark <> ?", lane)

    def elsewhere(self, lane: Lane) -> dict[str, int]:
        """How many rows wait for each other service."""
        sql = "SELECT service, count(*) FROM waiting WHERE service <> ? GROUP BY service ORDER BY service"
        return dict(self.read(lambda db: db.execute(sql, (lane.service,)).fetchall()))

    def _rows(self, condition: str, lane: Lane) -> list[QueuedRow]:
        sql = f"SELECT {COLUMNS} FROM waiting WHERE service = ? AND {condition} ORDER BY seq"
        rows = self.read(lambda db: db.execute(sql, (lane.service, lane.mark)).fetchall())
        return [QueuedRow._make(one) for one in rows]

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


# Whether the process that holds a lease still lives, also when its pid is in use again. Reads /proc if it is there.


def me() -> str:
    """This process, distinct from any other that had or will have its pid."""
    return f"{_place()}|{os.getpid()}|{_started(os.getpid())}"


def is_gone(holder: str) -> bool:
    """Has this process certainly ended? Of one on another machine, or in another container, that is unknown."""
    node, pid, started = [*holder.rsplit("|", 2), "", ""][:3]
    if node != _place() or os.name != "posix" or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return started != _started(int(pid))


def _place() -> str:
    """This machine and its numbering of processes: containers of one name, such as those of a pod, have one each."""
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _started(pid: int) -> str:
    """When the process began, in the kernel's own count; a number is used again, the pair never."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
