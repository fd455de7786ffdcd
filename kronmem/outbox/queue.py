"""The durable queue behind `remember_later`: one SQLite file that several processes may share. No network.

A row is claimed with a lease, sent, and deleted when the service has it. Rows of one agent leave in the order in which
they came. A row carries a salted fingerprint of the key it belongs to, never the key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timezone
from sqlite3 import Connection
from typing import Any, TypeVar, cast

from pydantic import JsonValue

from kronmem.core.calls import Draft
from kronmem.errors import OutboxFullError
from kronmem.models import DeadLetter
from kronmem.outbox.lease import is_gone, me
from kronmem.sqlite_file import Schema, SqliteFile

T = TypeVar("T")

MOST_ROWS = 100_000
MOST_BYTES = 128 * 1024 * 1024
LEASE = 60.0
"""A claim that is not acknowledged within this time belongs to a dead process."""
KEPT = 30 * 86_400.0
"""For how long the outbox knows under which id the service keeps what it delivered."""
CLAIMED = 16
"""So many rows of one agent are claimed at once."""

SCHEMA = Schema(
    application_id=0x6B726F6F,
    version=1,
    create=(
        "CREATE TABLE salt(value BLOB NOT NULL)",
        "CREATE TABLE total(rows INTEGER NOT NULL, bytes INTEGER NOT NULL)",
        "INSERT INTO total VALUES(0, 0)",
        """CREATE TABLE waiting(
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, service TEXT NOT NULL, mark TEXT NOT NULL,
            agent TEXT NOT NULL, session TEXT, body TEXT NOT NULL, bytes INTEGER NOT NULL, created REAL NOT NULL,
            dead INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0, error TEXT, noted REAL NOT NULL DEFAULT 0,
            backoff REAL NOT NULL DEFAULT 0, asked REAL NOT NULL DEFAULT 0, lease REAL NOT NULL DEFAULT 0,
            holder TEXT NOT NULL DEFAULT '')""",
        "CREATE INDEX waiting_lane ON waiting(service, mark, dead, agent, seq)",
        """CREATE TABLE delivered(
            id TEXT PRIMARY KEY, service TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL, at REAL NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX delivered_at ON delivered(at)",
        """CREATE TRIGGER waiting_in AFTER INSERT ON waiting BEGIN
            UPDATE total SET rows = rows + 1, bytes = bytes + NEW.bytes; END""",
        """CREATE TRIGGER waiting_out AFTER DELETE ON waiting BEGIN
            UPDATE total SET rows = rows - 1, bytes = bytes - OLD.bytes; END""",
    ),
)


@dataclass(frozen=True)
class Lane:
    """Whose rows: one service, one key."""

    service: str
    mark: str


@dataclass(frozen=True)
class Waiting:
    """A claimed row."""

    seq: int
    draft: Draft
    created: float
    attempts: int
    refused: int
    cancelled: bool


class OutboxFile:
    """The queue itself. Every method is one transaction; what puts, buries or withdraws is on disk when it returns."""

    def __init__(
        self,
        path: str,
        *,
        now: Callable[[], float] = time.time,
        most_rows: int = MOST_ROWS,
        most_bytes: int = MOST_BYTES,
        timeout: float = 5.0,
    ) -> None:
        self.path = path
        self._now, self._most_rows, self._most_bytes, self._timeout = now, most_rows, most_bytes, timeout
        self._file = SqliteFile(path, SCHEMA)

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def set_aside(self) -> str:
        """Move a damaged file out of the way; the answer is where it is now. Nothing of it is deleted."""
        self._file.close()
        aside = f"{self.path}.damaged-{int(self._now())}-{secrets.token_hex(3)}"
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(self.path + ending):
                os.rename(self.path + ending, aside + ending)
        self._file = SqliteFile(self.path, SCHEMA)
        return aside

    def lane(self, service: str, key: str) -> Lane:
        """The lane of a service and a key: the key itself is not written anywhere."""
        with self._write() as db:
            row = db.execute("SELECT value FROM salt").fetchone()
            if row is None:
                row = (secrets.token_bytes(16),)
                db.execute("INSERT INTO salt VALUES(?)", row)
        return Lane(service, hmac.new(row[0], key.encode(), hashlib.sha256).hexdigest()[:32])

    # ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, lane: Lane, drafts: list[Draft]) -> None:
        """Add rows, all or none; a row whose id is already there is that row."""
        now = self._now()
        bodies = [json.dumps(_body(draft), ensure_ascii=False) for draft in drafts]
        with self._write() as db:
            rows, size = db.execute("SELECT rows, bytes FROM total").fetchone()
            if rows + len(drafts) > self._most_rows or size + sum(map(len, bodies)) > self._most_bytes:
                raise OutboxFullError(f"{self.path} holds {rows} memories ({size} bytes) and takes no more")
            db.executemany(
                "INSERT OR IGNORE INTO waiting(id, service, mark, agent, session, body, bytes, created)"
                " VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (one.client_id, lane.service, lane.mark, one.agent_id, one.session_id, body, len(body), now)
                    for one, body in zip(drafts, bodies, strict=True)
                ],
            )

    def holds(self, lane: Lane, agent_id: str) -> bool:
        """Is anything of this agent still on its way?"""
        sql = "SELECT 1 FROM waiting WHERE service = ? AND mark = ? AND dead = 0 AND agent = ?"
        return bool(self._one(sql, lane, agent_id))

    # ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def claim(self, lane: Lane, *, hurry: bool = False) -> list[Waiting]:
        """Take the oldest rows of one agent that are due. In a hurry a backoff is skipped, a Retry-After never."""
        now = self._now()
        with self._note() as db:
            heads = db.execute(
                "SELECT agent, min(seq) FROM waiting WHERE service = ? AND mark = ? AND dead = 0"
                " GROUP BY agent ORDER BY 2",
                (lane.service, lane.mark),
            ).fetchall()
            for agent, seq in heads:
                if self._due(db, seq, now, hurry):
                    return self._take(db, lane, agent, now)
        return []

    def _due(self, db: Connection, seq: int, now: float, hurry: bool) -> bool:
        noted, backoff, asked, lease, holder = db.execute(
            "SELECT noted, backoff, asked, lease, holder FROM waiting WHERE seq = ?", (seq,)
        ).fetchone()
        # A clock that went backwards would make every wait longer than it was meant: such a note no longer counts.
        if noted > now:
            return True
        free = lease <= now or is_gone(holder)
        return free and asked <= now and (hurry or backoff <= now)

    def _take(self, db: Connection, lane: Lane, agent: str, now: float) -> list[Waiting]:
        rows = db.execute(
            "SELECT seq, id, agent, body, created, attempts, refused, cancelled FROM waiting"
            " WHERE service = ? AND mark = ? AND dead = 0 AND agent = ? ORDER BY seq LIMIT ?",
            (lane.service, lane.mark, agent, CLAIMED),
        ).fetchall()
        db.executemany(
            "UPDATE waiting SET lease = ?, noted = ?, holder = ? WHERE seq = ?",
            [(now + LEASE, now, me(), row[0]) for row in rows],
        )
        return [Waiting(row[0], _draft(row[1], row[2], row[3]), row[4], row[5], row[6], bool(row[7])) for row in rows]

    def done(self, lane: Lane, row: Waiting, memory_id: str) -> bool:
        """The service has it: drop the row, keep the mapping. False: taken back meanwhile, forget it there."""
        with self._note() as db:
            found = db.execute("SELECT cancelled FROM waiting WHERE seq = ?", (row.seq,)).fetchone()
            if found is not None and found[0]:
                return False
            db.execute("DELETE FROM waiting WHERE seq = ?", (row.seq,))
            if memory_id and memory_id != row.draft.client_id:
                values = (row.draft.client_id, lane.service, row.draft.agent_id, memory_id, self._now())
                db.execute("INSERT OR REPLACE INTO delivered VALUES(?, ?, ?, ?, ?)", values)
            db.execute("DELETE FROM delivered WHERE at < ?", (self._now() - KEPT,))
        return True

    def drop(self, row: Waiting) -> None:
        """Remove a row for good."""
        with self._note() as db:
            db.execute("DELETE FROM waiting WHERE seq = ?", (row.seq,))

    def later(self, row: Waiting, error: str, backoff: float, asked: float, *, refused: bool) -> None:
        """Not now: come back after `backoff` seconds, and never before the `asked` ones the service named."""
        now = self._now()
        with self._note() as db:
            db.execute(
                "UPDATE waiting SET attempts = attempts + 1, refused = refused + ?, error = ?, noted = ?, backoff = ?,"
                " asked = ?, lease = 0 WHERE seq = ?",
                (int(refused), error[:500], now, now + backoff, now + asked if asked else 0.0, row.seq),
            )

    def release(self, rows: list[Waiting]) -> None:
        """Give claimed rows back untouched."""
        with self._note() as db:
            db.executemany("UPDATE waiting SET lease = 0 WHERE seq = ?", [(row.seq,) for row in rows])

    def renew(self, rows: list[Waiting]) -> None:
        """Hold on to claimed rows for another lease."""
        now = self._now()
        with self._note() as db:
            db.executemany(
                "UPDATE waiting SET lease = ?, noted = ? WHERE seq = ?", [(now + LEASE, now, row.seq) for row in rows]
            )

    def bury(self, row: Waiting, error: str) -> None:
        """The service will never take it: keep it as a dead letter, out of the way of the others."""
        with self._write() as db:
            sql = "UPDATE waiting SET dead = 1, lease = 0, error = ? WHERE seq = ?"
            db.execute(sql, (error[:500], row.seq))

    def next_due(self, lane: Lane) -> float | None:
        """In how many seconds something of this lane can be tried; None when nothing waits."""
        now = self._now()
        with self._read() as db:
            due = db.execute(
                "SELECT min(CASE WHEN noted > ? THEN 0 ELSE max(backoff, asked, lease) END) FROM waiting WHERE seq IN"
                " (SELECT min(seq) FROM waiting WHERE service = ? AND mark = ? AND dead = 0 GROUP BY agent)",
                (now, lane.service, lane.mark),
            ).fetchone()[0]
        return None if due is None else max(0.0, due - now)

    # ── about ────────────────────────────────────────────────────────────────────────────────────────────────────

    def cancel(self, lane: Lane, agent_id: str, client_id: str) -> bool:
        """Take a row back before it is delivered; one that is on its way right now is forgotten on arrival."""
        with self._write() as db:
            where = " WHERE service = ? AND mark = ? AND agent = ? AND id = ?"
            values = (lane.service, lane.mark, agent_id, client_id)
            return self._withdraw(db, where, values) > 0

    def cancel_all(self, lane: Lane, agent_id: str, session_id: str | None) -> int:
        """Take back everything of an agent, or of one session of it."""
        with self._write() as db:
            where = " WHERE service = ? AND mark = ? AND agent = ?" + ("" if session_id is None else " AND session = ?")
            values = (lane.service, lane.mark, agent_id) + (() if session_id is None else (session_id,))
            return self._withdraw(db, where, values)

    def _withdraw(self, db: Connection, where: str, values: tuple[str, ...]) -> int:
        # A row that was ever sent may be stored although nobody heard so: it is sent once more, then forgotten.
        sent = db.execute(f"UPDATE waiting SET cancelled = 1{where} AND (lease > 0 OR attempts > 0)", values).rowcount
        return sent + db.execute(f"DELETE FROM waiting{where} AND cancelled = 0", values).rowcount

    def delivered(self, lane: Lane, agent_id: str, client_id: str) -> str | None:
        """Under which id the service keeps what was queued under this one."""
        with self._read() as db:
            sql = "SELECT memory FROM delivered WHERE id = ? AND service = ? AND agent = ?"
            row = db.execute(sql, (client_id, lane.service, agent_id)).fetchone()
        return None if row is None else str(row[0])

    def pending(self, lane: Lane) -> int:
        """How many rows wait."""
        return int(self._one("SELECT count(*) FROM waiting WHERE service = ? AND mark = ? AND dead = 0", lane))

    def dead(self, lane: Lane) -> list[DeadLetter]:
        """The rows that the service refused, oldest first."""
        with self._read() as db:
            rows = db.execute(
                "SELECT id, agent, body, error, created FROM waiting"
                " WHERE service = ? AND mark = ? AND dead = 1 ORDER BY seq",
                (lane.service, lane.mark),
            ).fetchall()
        return [_letter(_draft(row[0], row[1], row[2]), row[3], row[4]) for row in rows]

    def revive(self, lane: Lane) -> int:
        """Put the dead letters back in the queue."""
        with self._write() as db:
            sql = "UPDATE waiting SET dead = 0, refused = 0, backoff = 0, asked = 0"
            return db.execute(f"{sql} WHERE service = ? AND mark = ? AND dead = 1", (lane.service, lane.mark)).rowcount

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do `work` as one reading transaction."""
        with self._read() as db:
            return work(db)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do `work` as one transaction that is on disk when this returns."""
        with self._write() as db:
            return work(db)

    def _one(self, sql: str, lane: Lane, *more: str) -> int:
        with self._read() as db:
            row = db.execute(sql + " LIMIT 1", (lane.service, lane.mark, *more)).fetchone()
        return 0 if row is None else row[0]

    def _read(self) -> AbstractContextManager[Connection]:
        return self._file.transaction("BEGIN", self._timeout)

    def _note(self) -> AbstractContextManager[Connection]:
        # Without an fsync: a power cut may undo it, and then the row is sent once more under the same id.
        return self._file.transaction("BEGIN IMMEDIATE", self._timeout, synchronous="NORMAL")

    def _write(self) -> AbstractContextManager[Connection]:
        return self._file.transaction("BEGIN IMMEDIATE", self._timeout)


def _body(draft: Draft) -> dict[str, JsonValue]:
    return {
        "content": draft.content,
        "memory_type": draft.memory_type,
        "session_id": draft.session_id,
        "ttl": cast("JsonValue", draft.ttl),
        "pinned": draft.pinned,
        "tags": list(draft.tags),
        "metadata": draft.metadata,
    }


def _draft(client_id: str, agent_id: str, body: str) -> Draft:
    fields: dict[str, Any] = json.loads(body)  # written by `_body` above
    fields["tags"] = tuple(fields["tags"])
    return Draft(agent_id, client_id, **fields)


def _letter(draft: Draft, error: str | None, created: float) -> DeadLetter:
    return DeadLetter(
        id=draft.client_id,
        agent_id=draft.agent_id,
        content=draft.content,
        memory_type=draft.memory_type,
        error=error or "",
        queued_at=datetime.fromtimestamp(created, timezone.utc),
    )
