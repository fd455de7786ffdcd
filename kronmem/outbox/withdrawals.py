"""Queued memories that are taken back: forgotten, cleared, erased or dropped before they were delivered."""

from __future__ import annotations

from sqlite3 import Connection

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
        bounds = {" AND session = ?": session_id, " AND created < ?": before}
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
        now, where = self._now(), "service = ? AND mark = ? AND agent = ?"

        def work(db: Connection) -> bool:
            db.execute("DELETE FROM delivered WHERE service = ? AND agent = ?", (lane.service, agent_id))
            # One that was sent before may be stored: the service erases it too, right after this.
            db.execute(f"DELETE FROM waiting WHERE {where} AND lease <= ?", (lane.service, lane.mark, agent_id, now))
            left = db.execute(f"SELECT 1 FROM waiting WHERE {where}", (lane.service, lane.mark, agent_id))
            return left.fetchone() is None

        return self.write(work) and self._disk.scrub(self._timeout)

    def has_stranded(self, lane: Lane, agent_id: str) -> bool:
        """Are there rows of this agent under another key of the same service?"""
        sql = "SELECT 1 FROM waiting WHERE service = ? AND mark <> ? AND agent = ? LIMIT 1"
        values = (lane.service, lane.mark, agent_id)
        return self.read(lambda db: db.execute(sql, values).fetchone()) is not None

    def remove(self, lane: Lane, client_id: str) -> bool:
        """Drop one row of this service, waiting, stranded or a dead letter; one under way is forgotten on arrival."""
        now, where = self._now(), " WHERE id = ? AND service = ? AND (cancelled = 0 OR dead = 1 OR mark <> ?)"

        def work(db: Connection) -> bool:
            values = (client_id, lane.service, lane.mark)
            under_way = f"UPDATE waiting SET cancelled = 1{where} AND cancelled = 0 AND dead = 0 AND lease > ?"
            if db.execute(under_way, (*values, now)).rowcount:
                return True
            return db.execute(f"DELETE FROM waiting{where}", values).rowcount > 0

        return self.write(work)
