"""What a transaction of the SQLite store can change. Values travel as bound parameters only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from kronmem.engine import terms
from kronmem.engine.index import LENGTH_BITS, MAX_LENGTH, labels_of
from kronmem.engine.sqlite.reading import Reading, Value, key, read_row
from kronmem.engine.store import Filter, Receipt, Row, Space

_COLUMNS = "key, id, content, type, session, tags, metadata, created, expires, pinned, accessed"


class Writing(Reading):
    """The `Writer` of a SQLite database."""

    def open_space(self, owner: str, name: str, now: float) -> Space:
        if (space := self.find_space(owner, name)) is not None:
            return space
        sql = "INSERT INTO space(owner, name, metadata, created, count, words, last) VALUES (?, ?, '{}', ?, 0, 0, 0)"
        self._db.execute(sql, (owner, name, now))
        return self.open_space(owner, name, now)

    def describe_space(self, space: Space, description: str | None, metadata: Mapping[str, JsonValue]) -> None:
        sql = "UPDATE space SET description = ?, metadata = ? WHERE id = ?"
        self._db.execute(sql, (description, json.dumps(metadata), space.id))

    def drop_space(self, space: Space) -> None:
        self._clear_all(space)
        self._db.execute("DELETE FROM state WHERE space = ?", (space.id,))
        self._db.execute("DELETE FROM space WHERE id = ?", (space.id,))

    def same_text(self, space: Space, session_id: str | None, content: str) -> Row | None:
        sql = f"SELECT {_COLUMNS} FROM memory WHERE space = ? AND session = ? AND digest = ?"
        row = self._db.execute(sql, (space.id, session_id or "", _digest(content))).fetchone()
        return row and read_row(row)

    def insert(self, space: Space, row: Row) -> int:
        values: tuple[Value, ...] = (
            key(space.id, row.number),
            row.id,
            row.content,
            row.memory_type,
            row.session_id or "",
            json.dumps(row.tags) if row.tags else "[]",
            json.dumps(row.metadata) if row.metadata else "{}",
            row.created_at,
            row.expires_at,
            row.pinned,
            row.access_count,
            space.id,
            _digest(row.content),
        )
        sql = f"INSERT INTO memory({_COLUMNS}, space, digest, owner) "
        owner = "(SELECT owner FROM space WHERE id = ?)"
        self._db.execute(f"{sql} VALUES ({'?, ' * len(values)}{owner})", (*values, space.id))
        words = self._index(space, row)
        sql = "UPDATE space SET count = count + 1, words = words + ?, last = max(last, ?) WHERE id = ?"
        self._db.execute(sql, (words, row.number, space.id))
        return key(space.id, row.number)

    def _index(self, space: Space, row: Row) -> int:
        counted = terms.count_terms(row.content)
        words = min(sum(counted.values()), MAX_LENGTH)
        said = [(space.id, term, row.number, times << LENGTH_BITS | words) for term, times in counted.items()]
        self._db.executemany(_POST, said + [(space.id, label, row.number, 0) for label in _labels(row)])
        return words

    def revise(self, space: Space, old: Row, new: Row) -> None:
        sql = "UPDATE memory SET type = ?, tags = ?, metadata = ?, expires = ?, pinned = ? WHERE key = ?"
        plain = (json.dumps(new.tags), json.dumps(new.metadata), new.expires_at, new.pinned)
        self._db.execute(sql, (new.memory_type, *plain, key(space.id, new.number)))
        before, after = set(_labels(old)), set(_labels(new))
        self._db.executemany(_UNPOST, [(space.id, label, old.number) for label in before - after])
        self._db.executemany(_POST, [(space.id, label, old.number, 0) for label in after - before])

    def delete(self, space: Space, rows: Iterable[Row]) -> None:
        for row in rows:
            self._delete(space.id, row)

    def _delete(self, space_id: int, row: Row) -> None:
        counted = terms.count_terms(row.content)
        self._db.executemany(_UNPOST, [(space_id, term, row.number) for term in (*counted, *_labels(row))])
        self._db.execute("DELETE FROM memory WHERE key = ?", (key(space_id, row.number),))
        words = min(sum(counted.values()), MAX_LENGTH)
        self._db.execute("UPDATE space SET count = count - 1, words = words - ? WHERE id = ?", (words, space_id))

    def clear(self, space: Space, session_id: str | None) -> None:
        if session_id is None:
            self._clear_all(space)
        else:
            sql = f"SELECT {_COLUMNS} FROM memory WHERE space = ? AND session = ?"
            self.delete(space, map(read_row, self._db.execute(sql, (space.id, session_id)).fetchall()))

    def _clear_all(self, space: Space) -> None:
        self._db.execute("DELETE FROM posting WHERE space = ?", (space.id,))
        keys = (key(space.id, 0), key(space.id + 1, 0))
        self._db.execute("DELETE FROM memory WHERE key >= ? AND key < ?", keys)
        self._db.execute("UPDATE space SET count = 0, words = 0 WHERE id = ?", (space.id,))

    def count_access(self, space: Space, numbers: Sequence[int]) -> None:
        sql = "UPDATE memory SET accessed = accessed + 1 WHERE key = ?"
        self._db.executemany(sql, [(key(space.id, number),) for number in numbers])

    def write_receipt(self, owner: str, name: str, client_id: str, receipt: Receipt, now: float) -> None:
        values = (owner, name, client_id, receipt.memory_id, receipt.body, receipt.deduplicated, now)
        self._db.execute("INSERT OR REPLACE INTO receipt VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def sweep(self, now: float, receipts_before: float, bound: int) -> None:
        expired = f"SELECT {_COLUMNS}, space FROM memory WHERE expires <= ? ORDER BY expires LIMIT ?"
        for *row, space_id in self._db.execute(expired, (now, bound)).fetchall():
            self._delete(space_id, read_row(row))
        old = "SELECT owner, name, client FROM receipt WHERE at < ? LIMIT ?"
        gone = self._db.execute(old, (receipts_before, bound)).fetchall()
        self._db.executemany("DELETE FROM receipt WHERE owner = ? AND name = ? AND client = ?", gone)

    def set_state(self, space: Space, key: str, value: str, now: float) -> None:
        sql = """INSERT INTO state(owner, space, key, value, created, updated)
            SELECT owner, id, ?, ?, ?, ? FROM space WHERE id = ?
            ON CONFLICT(space, key) DO UPDATE SET value = excluded.value, updated = excluded.updated"""
        self._db.execute(sql, (key, value, now, now, space.id))

    def delete_state(self, space: Space, key: str) -> bool:
        return self._db.execute("DELETE FROM state WHERE space = ? AND key = ?", (space.id, key)).rowcount > 0

    def set_vectors(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        self._db.executemany("UPDATE memory SET vector = ? WHERE key = ?", [(vector, key) for key, vector in vectors])


_POST = "INSERT INTO posting(space, term, number, worth) VALUES (?, ?, ?, ?)"
_UNPOST = "DELETE FROM posting WHERE space = ? AND term = ? AND number = ?"


def _labels(row: Row) -> list[str]:
    return labels_of(Filter(row.session_id, row.memory_type, row.tags))


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.strip().encode()).digest()[:16]
