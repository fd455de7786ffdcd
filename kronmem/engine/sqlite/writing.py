"""The writes of a transaction of the SQLite store. Values travel as bound parameters only."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from kronmem.engine.postings import CHANGING, LENGTH_BITS, MAX_LENGTH, changing, digest, first_shown, pack_parts, posted
from kronmem.engine.remembering import erased_digest
from kronmem.engine.sqlite.reading import (
    BITS,
    COLUMNS,
    FORMER,
    SqlConnection,
    SqliteReader,
    Value,
    key,
    read_row,
    sound_rows,
)
from kronmem.engine.store import Embedding, Erased, Indexed, Receipt, Row, Space


class SqliteWriter(SqliteReader):
    """The `Writer` of a SQLite database.

    Between two memories of a batch it keeps the state after the last insert: no other transaction writes meanwhile.
    """

    def __init__(self, connection: SqlConnection) -> None:
        super().__init__(connection)
        self._space: tuple[str, str, Space] | None = None
        self._newest: tuple[int, tuple[str | None, float]] | None = None
        self._nothing_erased = False

    # Spaces

    def find_space(self, owner: str, name: str) -> Space | None:
        if self._space is None or self._space[:2] != (owner, name):
            space = super().find_space(owner, name)
            self._space = (owner, name, space) if space else None
        return self._space and self._space[2]

    def open_space(self, owner: str, name: str, now: float) -> Space:
        if (space := self.find_space(owner, name)) is not None:
            return space
        sql = "INSERT INTO spaces(owner, name, metadata, created, count, words, last) VALUES (?, ?, '{}', ?, 0, 0, 0)"
        self._db.execute(sql, (owner, name, now))
        return self.open_space(owner, name, now)

    def describe_space(self, space: Space, description: str | None, metadata: Mapping[str, JsonValue]) -> None:
        sql = "UPDATE spaces SET description = ?, metadata = ? WHERE id = ?"
        self._db.execute(sql, (description, json.dumps(metadata), space.id))
        self._space = None

    def drop_space(self, space: Space) -> None:
        self._clear_all(space)
        self._db.execute("DELETE FROM states WHERE space = ?", (space.id,))
        self._db.execute("DELETE FROM spaces WHERE id = ?", (space.id,))
        self._space = self._newest = None

    def _count(self, space_id: int, memories: int, passages: int, terms: int, last: int = 0) -> None:
        sql = """UPDATE spaces SET count = count + ?, passages = passages + ?, words = words + ?, last = max(last, ?)
            WHERE id = ?"""
        self._db.execute(sql, (memories, passages, terms, last, space_id))
        self._space = self._newest = None

    # Memories

    def same_text(self, space: Space, session_id: str | None, key: str | None, content: str) -> Row | None:
        where = "space = ? AND session = ? AND about = ? AND digest = ? AND successor IS NULL"
        return self._one(where, (space.id, session_id or "", key or "", digest(content)))

    def keyed(self, space: Space, session_id: str | None, key: str) -> Row | None:
        where = "space = ? AND session = ? AND about = ? AND about <> '' AND successor IS NULL"
        return self._one(where, (space.id, session_id or "", key))

    def _one(self, where: str, values: Sequence[Value]) -> Row | None:
        row = self._db.execute(f"SELECT {COLUMNS} FROM memories WHERE {where}", values).fetchone()
        return row and read_row(row)

    def insert(self, space: Space, row: Row, indexed: Indexed | None) -> int:
        passages = len(indexed.lengths) if indexed else 0
        where = key(space.id, row.number)
        values = (where, row.id, *_changing(row), row.created_at, row.access_count, row.role)
        sql = f"INSERT INTO memories({_INSERTED}) VALUES (?, ?{', ?' * (len(CHANGING) + 3)}, ?, ?, ?, '')"
        self._db.execute(sql, (*values, row.superseded_by, passages, space.id))
        terms = sum(indexed.lengths) if indexed else 0
        if indexed is not None:
            self._post(space.id, row.number, indexed)
        known = self._space
        self._count(space.id, int(indexed is not None), passages, terms, row.number)
        if known is not None and known[2] is space and indexed is not None:
            self._space = (*known[:2], _grown(space, passages, terms, row.number))
        self._newest = where, (row.session_id, row.created_at)
        return where

    def last_said(self, space: Space) -> tuple[str | None, float] | None:
        if self._newest is not None and self._newest[0] == key(space.id, space.last):
            return self._newest[1]
        return super().last_said(space)

    def _post(self, space_id: int, number: int, indexed: Indexed) -> None:
        postings = _postings(space_id, number, indexed)
        self._db.executemany(_POST, postings + [(space_id, label, number, 0, None) for label in indexed.labels])
        if indexed.codes:
            sql = "INSERT INTO meanings VALUES (?, ?, ?)"
            self._db.execute(sql, (key(space_id, number), indexed.codes, indexed.vectors))

    def _unpost(self, space_id: int, row: Row) -> int:
        """Take the index entries of a memory out; the answer is how many terms it had."""
        terms, words = posted(row)
        self._db.executemany(_UNPOST, [(space_id, term, row.number) for term in terms])
        self._db.execute("DELETE FROM meanings WHERE key = ?", (key(space_id, row.number),))
        return words

    def revise(self, space: Space, old: Row, new: Row, indexed: Indexed | None = None) -> None:
        sets = ", ".join(f"{column} = ?" for column in CHANGING)
        where = key(space.id, new.number)
        self._db.execute(f"UPDATE memories SET {sets} WHERE key = ?", (*_changing(new), where))
        if indexed is None:
            return
        words = self._unpost(space.id, old)
        self._post(space.id, new.number, indexed)
        sql = "UPDATE memories SET passages = ?, vector = CASE WHEN ? THEN NULL ELSE vector END WHERE key = ?"
        self._db.execute(sql, (len(indexed.lengths), old.content != new.content, where))
        self._count(space.id, 0, len(indexed.lengths) - old.passages, sum(indexed.lengths) - words)
        self._db.execute("UPDATE spaces SET revised = revised + 1 WHERE id = ?", (space.id,))
        self._space = None

    def supersede(self, space: Space, old: Row, successor: str) -> None:
        self._count(space.id, -1, -old.passages, -self._unpost(space.id, old))
        sql = "UPDATE memories SET successor = ?, passages = 0, vector = NULL WHERE key = ?"
        self._db.execute(sql, (successor, key(space.id, old.number)))

    def delete(self, space: Space, rows: Iterable[Row]) -> None:
        for row in rows:
            self._delete(space.id, row)

    def _delete(self, space_id: int, row: Row) -> None:
        if row.superseded_by is None:
            self._count(space_id, -1, -row.passages, -self._unpost(space_id, row))
            self._db.execute(_DELETE_FORMER, (row.id, space_id, space_id))
        else:
            sql = "UPDATE memories SET successor = ? WHERE space = ? AND successor = ?"
            self._db.execute(sql, (row.superseded_by, space_id, row.id))
        self._db.execute("DELETE FROM memories WHERE key = ?", (key(space_id, row.number),))
        self._newest = None

    def clear(self, space: Space, session_id: str | None, before: float | None) -> None:
        if session_id is None and before is None:
            self._clear_all(space)
            return
        clauses = {"space = ?": space.id, "session = ?": session_id, "created < ?": first_shown(before)}
        given = {clause: value for clause, value in clauses.items() if value is not None}
        sql = f"SELECT {COLUMNS} FROM memories WHERE {' AND '.join(given)}"
        self.delete(space, sound_rows(self._db, sql, tuple(given.values())))

    def _clear_all(self, space: Space) -> None:
        self._db.execute("DELETE FROM postings WHERE space = ?", (space.id,))
        keys = (key(space.id, 0), key(space.id + 1, 0))
        self._db.execute("DELETE FROM memories WHERE key >= ? AND key < ?", keys)
        self._db.execute("DELETE FROM meanings WHERE key >= ? AND key < ?", keys)
        sql = "UPDATE spaces SET count = 0, passages = 0, words = 0, generation = generation + 1 WHERE id = ?"
        self._db.execute(sql, (space.id,))
        self._space = self._newest = None

    def erase(self, owner: str, name: str, now: float) -> Erased:
        space = self.find_space(owner, name)
        where, named = "WHERE owner = ? AND name = ?", (owner, name)
        ids = {row[0] for row in self._db.execute(f"SELECT client FROM receipts {where}", named)}
        receipts = self._db.execute(f"DELETE FROM receipts {where}", named).rowcount
        counted = (0, 0, 0)
        if space is not None:
            kept = "FROM memories WHERE space = ?"
            ids |= {row[0] for row in self._db.execute(f"SELECT id {kept}", (space.id,))}
            former: int = self._db.execute(f"SELECT count(successor) {kept}", (space.id,)).fetchone()[0]
            state: int = self._db.execute("SELECT count(*) FROM states WHERE space = ?", (space.id,)).fetchone()[0]
            counted = (self.count(space, now), former, state)
            self.drop_space(space)
        salt = self._salt()
        hashes = [(erased_digest(salt, owner, name, one), now) for one in ids]
        self._db.executemany("INSERT OR REPLACE INTO erased VALUES (?, ?)", hashes)
        return Erased(*counted, receipts)

    def _salt(self) -> bytes:
        if self.setting("salt") is None:
            self.set_setting("salt", secrets.token_hex(16))
        return bytes.fromhex(self.setting("salt") or "")

    def count_access(self, space: Space, numbers: Sequence[int]) -> None:
        sql = "UPDATE memories SET accessed = accessed + 1 WHERE key = ?"
        self._db.executemany(sql, [(key(space.id, number),) for number in numbers])

    # What else is kept

    def write_receipt(self, owner: str, name: str, client_id: str, receipt: Receipt, now: float) -> None:
        values = (owner, name, client_id, receipt.memory_id, receipt.body, receipt.deduplicated, now)
        self._db.execute("INSERT OR REPLACE INTO receipts VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def sweep(self, now: float, receipts_before: float, bound: int) -> int:
        sql = "SELECT key FROM memories WHERE expires <= ? ORDER BY expires LIMIT ?"
        expired = self._db.execute(sql, (now, bound)).fetchall()
        for (where,) in expired:
            self._sweep(where)
        old = "SELECT owner, name, client FROM receipts WHERE at < ? LIMIT ?"
        gone = self._db.execute(old, (receipts_before, bound)).fetchall()
        self._db.executemany("DELETE FROM receipts WHERE owner = ? AND name = ? AND client = ?", gone)
        # No index: an erasure is rare, and the table is empty again when its receipts would have been.
        self._db.execute("DELETE FROM erased WHERE at < ?", (receipts_before,))
        return len(expired)

    def _sweep(self, where: int) -> None:
        kept = self._db.execute("SELECT successor IS NULL FROM memories WHERE key = ?", (where,)).fetchone()
        if kept is None:  # a former text, gone with its memory
            return
        if rows := sound_rows(self._db, f"SELECT {COLUMNS} FROM memories WHERE key = ?", (where,)):
            self._delete(where >> BITS, rows[0])
            return
        if kept[0]:
            self._count(where >> BITS, -1, -1, 0)
        self._db.execute("DELETE FROM memories WHERE key = ?", (where,))

    def set_state(self, space: Space, key: str, value: str, now: float) -> None:
        sql = """INSERT INTO states(owner, space, key, value, created, updated)
            SELECT owner, id, ?, ?, ?, ? FROM spaces WHERE id = ?
            ON CONFLICT(space, key) DO UPDATE SET value = excluded.value, updated = excluded.updated"""
        self._db.execute(sql, (key, value, now, now, space.id))

    def delete_state(self, space: Space, key: str) -> bool:
        return self._db.execute("DELETE FROM states WHERE space = ? AND key = ?", (space.id, key)).rowcount > 0

    def set_embeddings(self, embeddings: Sequence[Embedding]) -> Sequence[Embedding]:
        sql = "UPDATE memories SET vector = ? WHERE key = ? AND digest = ? AND successor IS NULL"
        self._db.executemany(sql, [(vector, key, text) for key, text, vector in embeddings])
        return ()

    def forget_embeddings(self) -> None:
        self._db.execute("UPDATE memories SET vector = NULL WHERE vector IS NOT NULL")

    def is_erased(self, owner: str, name: str, client_id: str) -> bool:
        self._nothing_erased = self._nothing_erased or self.setting("salt") is None
        return not self._nothing_erased and super().is_erased(owner, name, client_id)

    def set_setting(self, name: str, value: str) -> None:
        self._nothing_erased = False
        self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def hold_setting(self, name: str) -> str | None:
        return self.setting(name)  # no other transaction writes meanwhile


_INSERTED = f"key, id, {', '.join(CHANGING)}, created, accessed, role, successor, passages, space, owner"
_POST = "INSERT INTO postings(space, term, number, worth, parts) VALUES (?, ?, ?, ?, ?)"
_DELETE_FORMER = f"{FORMER} DELETE FROM memories WHERE space = ? AND successor IN (SELECT successor FROM chain)"
_UNPOST = "DELETE FROM postings WHERE space = ? AND term = ? AND number = ?"


def _postings(space_id: int, number: int, indexed: Indexed) -> list[Sequence[Value]]:
    terms = indexed.terms.items()
    if len(indexed.lengths) != 1:
        return [(space_id, term, number, 0, pack_parts(places, indexed)) for term, places in terms]
    worth = indexed.kinds[0] << 2 * LENGTH_BITS | min(indexed.lengths[0], MAX_LENGTH)
    return [
        (space_id, term, number, worth | min(places[0][1], MAX_LENGTH) << LENGTH_BITS, None) for term, places in terms
    ]


def _grown(space: Space, passages: int, terms: int, last: int) -> Space:
    """A space with one memory more."""
    return replace(
        space,
        count=space.count + 1,
        passages=space.passages + passages,
        words=space.words + terms,
        last=max(space.last, last),
    )


def _changing(row: Row) -> tuple[Value, ...]:
    return changing(row, None if row.said_at == row.created_at else row.said_at)
