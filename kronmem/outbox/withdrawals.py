"""Queued memories that are taken back: forgotten, cleared, erased or dropped before they were delivered."""

from __future__ import annotations

from sqlite3 import Connection

from kronmem.outbox.lease import EARLIEST
from kronmem.outbox.process_liveness import is_gone
from kronmem.outbox.queue_file import Lane, QueueFile

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
            # A row that may be stored although nobody heard so is sent once more, then forgotten.
            sent = db.execute(f"UPDATE waiting SET cancelled = 1{where} AND dead = 0 AND {SENT}", values).rowcount
            sql = f"DELETE FROM waiting{where} AND (cancelled = 0 OR dead = 1)"
            return sent + db.execute(sql, values).rowcount, dead is not None

        return self.write(work)

    def erase(self, lane: Lane, agent_id: str) -> bool:
        """Drop every row of an agent and the ids of those delivered, down to the bytes; False: one is under way."""
        values = (lane.service, lane.mark, agent_id)

        def work(db: Connection) -> bool:
            db.execute("DELETE FROM delivered WHERE service = ? AND agent = ?", (lane.service, agent_id))
            found = self._by_hold(db, "service = ? AND mark = ? AND agent = ?", values)
            # One that was sent before may be stored: the service erases it too, right after this.
            db.executemany("DELETE FROM waiting WHERE seq = ?", [(seq,) for seq, held in found if not held])
            return not any(held for _, held in found)

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
            found = self._by_hold(db, where, (client_id, lane.service, lane.mark))
            for seq, held in found:
                under_way = "UPDATE waiting SET cancelled = 1 WHERE seq = ? AND cancelled = 0 AND dead = 0"
                if not held or not db.execute(under_way, (seq,)).rowcount:
                    db.execute("DELETE FROM waiting WHERE seq = ?", (seq,))
            return bool(found)

        return self.write(work)

    def _by_hold(self, db: Connection, where: str, values: tuple[str, ...]) -> list[tuple[int, bool]]:
        """The numbers of these rows, and whether a process that has not ended may be sending each."""
        now = self._now()
        found = db.execute(f"SELECT seq, lease, holder FROM waiting WHERE {where}", values).fetchall()
        return [(seq, lease > now and not is_gone(holder)) for seq, lease, holder in found]
