"""What a transaction of the PostgreSQL store can change. Values travel as bound parameters only.

Whoever writes to a space holds its lock first, on whichever server: numbers, counts and duplicates are then decided as
in one process. New rows wait in a batch that is sent before the next question, at the latest before the commit.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from kronmem.engine import terms
from kronmem.engine.index import MAX_LENGTH, labels_of
from kronmem.engine.postgres.batch import Batch
from kronmem.engine.postgres.pool import Session, Value, lock_key
from kronmem.engine.postgres.reading import BITS, COLUMNS, Reading, key, read_row
from kronmem.engine.store import Filter, Receipt, Row, Space

_SWEEP = lock_key("sweep")


class Writing(Reading):
    """The `Writer` of a PostgreSQL database."""

    def __init__(self, session: Session, vectors: str | None = None) -> None:
        super().__init__(session, vectors)
        self._stored = Reading(session, vectors)
        """What can be read without sending first what waits here."""
        self._new = Batch()
        self._spaces: dict[tuple[str, str], Space | None] = {}
        """The spaces whose locks we hold: nobody else changes them."""
        self._counted: dict[int, Space] = {}
        self._last: dict[int, Row] = {}

    def _ask(self, sql: str, values: Sequence[Value]) -> list[Any]:
        self._send()
        return super()._ask(sql, values)

    def _run(self, sql: str, values: Sequence[Value]) -> int:
        self._send()
        return self._session.run(sql, values)

    def finish(self) -> None:
        """Send what waits, and the counters of the spaces that changed."""
        if not self._counted and not self._new:
            return
        sql = "UPDATE kronmem.space SET count = %s, words = %s, last = %s WHERE id = %s"
        with self._session.together():
            self._send()
            for space in self._counted.values():
                self._session.run(sql, (space.count, space.words, space.last, space.id))
        self._counted = {}

    # Spaces

    def _lock(self, owner: str, name: str) -> None:
        if (owner, name) not in self._spaces:
            self._session.run("SELECT pg_advisory_xact_lock(%s)", (_space_lock(owner, name),))
            self._spaces[owner, name] = self._stored.find_space(owner, name)

    def find_space(self, owner: str, name: str) -> Space | None:
        self._lock(owner, name)
        space = self._spaces[owner, name]
        counted = space and self._counted.get(space.id)
        if space is None or counted is None:
            return space
        return replace(space, count=counted.count, words=counted.words, last=counted.last)

    def open_space(self, owner: str, name: str, now: float) -> Space:
        if (space := self.find_space(owner, name)) is not None:
            return space
        sql = """INSERT INTO kronmem.space(owner, name, metadata, created, count, words, last)
            VALUES (%s, %s, '{}', %s, 0, 0, 0)"""
        self._run(sql, (owner, name, now))
        self._spaces[owner, name] = space = self._stored.find_space(owner, name)
        assert space is not None  # just inserted
        return space

    def describe_space(self, space: Space, description: str | None, metadata: Mapping[str, JsonValue]) -> None:
        sql = "UPDATE kronmem.space SET description = %s, metadata = %s WHERE id = %s"
        self._run(sql, (description, json.dumps(metadata), space.id))
        self._forget_spaces()

    def drop_space(self, space: Space) -> None:
        self._clear_all(space)
        self._run("DELETE FROM kronmem.state WHERE space = %s", (space.id,))
        self._run("DELETE FROM kronmem.space WHERE id = %s", (space.id,))
        self._counted.pop(space.id, None)
        self._forget_spaces()

    def _forget_spaces(self) -> None:
        """Read the spaces anew; their locks are ours to the end."""
        self._spaces = {place: self._stored.find_space(*place) for place in self._spaces}

    def _count(self, space: Space, memories: int, words: int, last: int = 0) -> None:
        now = self._counted.get(space.id, space)
        self._counted[space.id] = replace(
            now, count=now.count + memories, words=now.words + words, last=max(now.last, last)
        )

    # Memories

    def find(self, space: Space, memory_id: str, now: float) -> Row | None:
        waits = (space.id, memory_id) in self._new.names
        return super().find(space, memory_id, now) if waits else self._stored.find(space, memory_id, now)

    def last_said(self, space: Space) -> tuple[str | None, float] | None:
        if (row := self._last.get(space.id)) is not None and row.number == space.last:
            return row.session_id, row.created_at
        return super().last_said(space)

    def same_text(self, space: Space, session_id: str | None, content: str) -> Row | None:
        digest = _digest(content)
        if (space.id, session_id, digest) in self._new.names:
            self._send()
        sql = f"SELECT {COLUMNS} FROM kronmem.memory WHERE space = %s AND session = %s AND digest = %s"
        found = self._session.ask(sql, (space.id, session_id or "", digest))
        return read_row(found[0]) if found else None

    def insert(self, space: Space, row: Row) -> int:
        self._new.add_memory(space.id, row, _digest(row.content))
        self._last[space.id] = row
        self._count(space, 1, self._index(space, row), row.number)
        return key(space.id, row.number)

    def _index(self, space: Space, row: Row) -> int:
        counted = terms.count_terms(row.content)
        words = min(sum(counted.values()), MAX_LENGTH)
        self._new.postings += [(term, (space.id, row.number, times, words)) for term, times in counted.items()]
        self._new.postings += [(label, (space.id, row.number, 0, 0)) for label in _labels(row)]
        return words

    def revise(self, space: Space, old: Row, new: Row) -> None:
        sql = """UPDATE kronmem.memory SET type = %s, tags = %s, metadata = %s, expires = %s, pinned = %s
            WHERE space = %s AND number = %s"""
        plain = (json.dumps(new.tags), json.dumps(new.metadata), new.expires_at, new.pinned)
        self._run(sql, (new.memory_type, *plain, space.id, new.number))
        before, after = set(_labels(old)), set(_labels(new))
        if before - after:
            self._run(_UNPOST, (space.id, old.number, sorted(before - after)))
        self._new.postings += [(label, (space.id, old.number, 0, 0)) for label in after - before]

    def delete(self, space: Space, rows: Iterable[Row]) -> None:
        for row in rows:
            self._count(space, -1, -self._delete(space.id, row))

    def _delete(self, space_id: int, row: Row) -> int:
        self._last.pop(space_id, None)
        counted = terms.count_terms(row.content)
        self._run(_UNPOST, (space_id, row.number, [*counted, *_labels(row)]))
        self._run("DELETE FROM kronmem.memory WHERE space = %s AND number = %s", (space_id, row.number))
        return min(sum(counted.values()), MAX_LENGTH)

    def clear(self, space: Space, session_id: str | None) -> None:
        if session_id is None:
            self._clear_all(space)
        else:
            sql = f"SELECT {COLUMNS} FROM kronmem.memory WHERE space = %s AND session = %s ORDER BY number"
            self.delete(space, map(read_row, self._ask(sql, (space.id, session_id))))

    def _clear_all(self, space: Space) -> None:
        self._last.pop(space.id, None)
        self._run("DELETE FROM kronmem.posting WHERE space = %s", (space.id,))
        self._run("DELETE FROM kronmem.memory WHERE space = %s", (space.id,))
        now = self._counted.get(space.id, space)
        self._counted[space.id] = replace(now, count=0, words=0)

    def count_access(self, space: Space, numbers: Sequence[int]) -> None:
        # Whoever changes one of these rows at the moment is left alone: a count waits for nobody.
        sql = """UPDATE kronmem.memory SET accessed = accessed + 1 WHERE space = %s AND number = ANY(ARRAY(
            SELECT number FROM kronmem.memory WHERE space = %s AND number = ANY(%s) FOR NO KEY UPDATE SKIP LOCKED))"""
        self._run(sql, (space.id, space.id, list(numbers)))

    # What else is kept

    def receipt(self, owner: str, name: str, client_id: str) -> Receipt | None:
        self._lock(owner, name)
        waits = (owner, name, client_id) in self._new.names
        return super().receipt(owner, name, client_id) if waits else self._stored.receipt(owner, name, client_id)

    def write_receipt(self, owner: str, name: str, client_id: str, receipt: Receipt, now: float) -> None:
        self._new.add_receipt(owner, name, client_id, receipt, now)

    def sweep(self, now: float, receipts_before: float, bound: int) -> None:
        # One server at a time, and nobody waits: what is left is for the next write.
        if self._ask(_ANYTHING_OLD, (now, receipts_before))[0][0] and self._try_lock(_SWEEP):
            self.finish()
            self._sweep_memories(now, bound)
            self._run(_SWEEP_RECEIPTS, (receipts_before, bound))
            self._forget_spaces()

    def _sweep_memories(self, now: float, bound: int) -> None:
        sql = f"SELECT {COLUMNS}, space FROM kronmem.memory WHERE expires <= %s ORDER BY expires LIMIT %s"
        for space_id, owner, name in self._ask(_EXPIRED_SPACES, (now, bound)):
            if self._try_lock(_space_lock(owner, name)):
                rows = [read_row(row) for *row, at in self._ask(sql, (now, bound)) if at == space_id]
                words = sum(self._delete(space_id, row) for row in rows)
                counters = "UPDATE kronmem.space SET count = count - %s, words = words - %s WHERE id = %s"
                self._run(counters, (len(rows), words, space_id))

    def _try_lock(self, number: int) -> bool:
        return bool(self._ask("SELECT pg_try_advisory_xact_lock(%s)", (number,))[0][0])

    def set_state(self, space: Space, key: str, value: str, now: float) -> None:
        sql = """INSERT INTO kronmem.state(owner, space, key, value, created, updated)
            SELECT owner, id, %s, %s, %s, %s FROM kronmem.space WHERE id = %s
            ON CONFLICT(space, key) DO UPDATE SET value = excluded.value, updated = excluded.updated"""
        self._run(sql, (key, value, now, now, space.id))

    def delete_state(self, space: Space, key: str) -> bool:
        return self._run("DELETE FROM kronmem.state WHERE space = %s AND key = %s", (space.id, key)) > 0

    def set_vectors(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        if self._vectors is None:
            return
        # What has been deleted in the meantime needs none.
        sql = f"""INSERT INTO kronmem.embedding SELECT space, number, %s::{self._vectors} FROM kronmem.memory
            WHERE space = %s AND number = %s ON CONFLICT(space, number) DO UPDATE SET vector = excluded.vector"""
        show = _to_pgvector if self._vectors == "vector" else bytes
        self._session.run_many(
            sql, [(show(vector), key >> BITS, key & (1 << BITS) - 1) for key, vector in sorted(vectors)]
        )

    def _send(self) -> None:
        if self._new:
            new, self._new = self._new, Batch()
            new.send(self._session)


_UNPOST = "DELETE FROM kronmem.posting WHERE space = %s AND number = %s AND term = ANY(%s)"
_ANYTHING_OLD = """SELECT EXISTS (SELECT FROM kronmem.memory WHERE expires <= %s)
    OR EXISTS (SELECT FROM kronmem.receipt WHERE at < %s)"""
_EXPIRED_SPACES = """SELECT DISTINCT s.id, s.owner, s.name FROM kronmem.space AS s JOIN
    (SELECT space FROM kronmem.memory WHERE expires <= %s ORDER BY expires LIMIT %s) AS m ON m.space = s.id"""
_SWEEP_RECEIPTS = """DELETE FROM kronmem.receipt WHERE (owner, name, client) IN
    (SELECT owner, name, client FROM kronmem.receipt WHERE at < %s LIMIT %s FOR UPDATE SKIP LOCKED)"""


def _space_lock(owner: str, name: str) -> int:
    return lock_key("space", owner, name)


def _labels(row: Row) -> list[str]:
    return labels_of(Filter(row.session_id, row.memory_type, row.tags))


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.strip().encode()).digest()[:16]


def _to_pgvector(packed: bytes) -> str:
    return str(list(struct.unpack(f"<{len(packed) // 4}f", packed)))
