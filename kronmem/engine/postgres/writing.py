"""The writes of a transaction of the PostgreSQL store. Values travel as bound parameters only.

A writer to a space holds its lock first, on any server: numbers, counts and duplicates are then decided as in one
process. New rows wait in a batch that is sent before the next question, at the latest before the commit.
"""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from kronmem.engine.postgres.inverted_index import add_blocks, first_of, pack, rewrite
from kronmem.engine.postgres.reading import BITS, COLUMNS, FORMER, PostgresReader, key, read_row
from kronmem.engine.postgres.schema import ADD_SALT, SpaceKey, space_key
from kronmem.engine.postgres.transaction import Transaction, Value
from kronmem.engine.postings import CHANGING, changing, digest, first_shown, posted
from kronmem.engine.remembering import erased_digest
from kronmem.engine.store import Embedding, Erased, Indexed, Receipt, Row, Space
from kronmem.errors import StoreError


@dataclass(frozen=True)
class Sweep:
    """The rows old enough to go: memories that expired by `now`, receipts from before, `bound` memories at most."""

    now: float
    receipts_before: float
    bound: int


class PostgresWriter(PostgresReader):
    """The `Writer` of a PostgreSQL database."""

    def __init__(self, session: Transaction, key_of: SpaceKey = space_key, swept_before: int = 0) -> None:
        super().__init__(session, key_of)
        self._stored = PostgresReader(session, key_of)
        """The parts that can be read before the waiting rows are sent."""
        self._new = Batch()
        self._spaces: dict[tuple[str, str], Space | None] = {}
        """The spaces whose locks we hold: no other transaction changes them."""
        self._counted: dict[int, Space] = {}
        self._last: dict[int, Row] = {}
        self.due: Sweep | None = None
        self.swept = 0
        self._swept_before = swept_before
        self._stale: Space | None = None

    def _ask(self, sql: str, values: Sequence[Value]) -> list[Any]:
        self._send()
        return super()._ask(sql, values)

    def _run(self, sql: str, values: Sequence[Value]) -> int:
        self._send()
        return self._session.run(sql, values)

    def finish(self) -> None:
        """Send the rows that wait, and the counters of the spaces that changed."""
        if self.due is not None and self._stale is not None:
            space, self._stale = self._stale, None
            self._delete_expired(space, self.due.now, self.due.bound)
        if not self._counted and not self._new:
            return
        sql = """UPDATE kronmem.spaces SET count = %s, passages = %s, words = %s, last = %s, generation = %s,
            revised = %s WHERE id = %s"""
        with self._session.pipeline():
            self._send()
            for space in self._counted.values():
                self._session.run(sql, (*_counters(space), space.id))
        self._counted = {}

    # Spaces

    def _lock(self, owner: str, name: str) -> None:
        if (owner, name) not in self._spaces:
            self._session.run("SELECT pg_advisory_xact_lock(%s)", (self._key_of(owner, name),))
            self._spaces[owner, name] = self._stored.find_space(owner, name)

    def find_space(self, owner: str, name: str) -> Space | None:
        self._lock(owner, name)
        space = self._spaces[owner, name]
        if space is None or (counted := self._counted.get(space.id)) is None:
            return space
        return replace(counted, description=space.description, metadata=space.metadata)

    def open_space(self, owner: str, name: str, now: float) -> Space:
        if (space := self.find_space(owner, name)) is not None:
            return space
        # What was dropped leaves its row behind: its numbers are not given out a second time.
        sql = """INSERT INTO kronmem.spaces AS s VALUES (%s, %s, %s, false, NULL, '{}', %s, 0, 0, 0, 0, 0, 0)
            ON CONFLICT(id) DO UPDATE SET owner = excluded.owner, name = excluded.name, gone = false,
            created = excluded.created WHERE s.gone"""
        if not self._run(sql, (self._key_of(owner, name), owner, name, now)):
            raise _same_key(name)
        self._spaces[owner, name] = space = self._stored.find_space(owner, name)
        assert space is not None  # just inserted
        return space

    def describe_space(self, space: Space, description: str | None, metadata: Mapping[str, JsonValue]) -> None:
        sql = "UPDATE kronmem.spaces SET description = %s, metadata = %s WHERE id = %s"
        self._run(sql, (description, json.dumps(metadata), space.id))
        self._forget_spaces()

    def drop_space(self, space: Space) -> None:
        self._clear_all(space)
        self._run("DELETE FROM kronmem.states WHERE space = %s", (space.id,))
        self.finish()
        sql = """UPDATE kronmem.spaces SET gone = true, owner = '', name = '', description = NULL, metadata = '{}'
            WHERE id = %s"""
        self._run(sql, (space.id,))
        self._forget_spaces()

    def _forget_spaces(self) -> None:
        """Read the spaces again; their locks are ours to the end."""
        self._spaces = {place: self._stored.find_space(*place) for place in self._spaces}

    def _count(self, space: Space, memories: int, passages: int, words: int, last: int = 0, revised: int = 0) -> None:
        now = self._counted.get(space.id, space)
        self._counted[space.id] = replace(
            now,
            count=now.count + memories,
            passages=now.passages + passages,
            words=now.words + words,
            last=max(now.last, last),
            revised=now.revised + revised,
        )

    # Memories

    def find(self, space: Space, memory_id: str, now: float) -> Row | None:
        waits = (space.id, memory_id) in self._new.names
        return super().find(space, memory_id, now) if waits else self._stored.find(space, memory_id, now)

    def last_said(self, space: Space) -> tuple[str | None, float] | None:
        if (row := self._last.get(space.id)) is not None and row.number == space.last:
            return row.session_id, row.created_at
        return super().last_said(space)

    def same_text(self, space: Space, session_id: str | None, key: str | None, content: str) -> Row | None:
        if (space.id, session_id, key, digest(content)) in self._new.names:
            self._send()
        where = "space = %s AND session = %s AND about = %s AND digest = %s AND successor IS NULL"
        return self._one(where, (space.id, session_id or "", key or "", digest(content)))

    def keyed(self, space: Space, session_id: str | None, key: str) -> Row | None:
        if (space.id, session_id, key) in self._new.names:
            self._send()
        where = "space = %s AND session = %s AND about = %s AND about <> '' AND successor IS NULL"
        return self._one(where, (space.id, session_id or "", key))

    def _one(self, where: str, values: Sequence[Value]) -> Row | None:
        rows = self._session.ask(f"SELECT {COLUMNS} FROM kronmem.memories WHERE {where}", values)
        return read_row(rows[0]) if rows else None

    def insert(self, space: Space, row: Row, indexed: Indexed | None) -> int:
        passages = len(indexed.lengths) if indexed else 0
        self._new.add_memory(space.id, row, passages)
        self._last[space.id] = row
        if indexed is None:
            self._count(space, 0, 0, 0, row.number)
        else:
            self._new.add_index(space.id, row.number, indexed)
            self._count(space, 1, passages, sum(indexed.lengths), row.number)
        return key(space.id, row.number)

    def _change(self, sql: str, values: Sequence[Value]) -> None:
        """Change rows of memories. Their index entries may go on waiting: those of many are written together."""
        if self._new.memories:
            self._send()
        self._session.run(sql, values)

    def revise(self, space: Space, old: Row, new: Row, indexed: Indexed | None = None) -> None:
        sets = ", ".join(f"{column} = %s" for column in (*CHANGING, "passages"))
        passages = new.passages if indexed is None else len(indexed.lengths)
        sql = f"UPDATE kronmem.memories SET {sets} WHERE space = %s AND number = %s"
        self._change(sql, (*changing(new, new.said_at), passages, space.id, new.number))
        if indexed is not None:
            words = self._new.replace_index(space.id, old, indexed, reworded=old.content != new.content)
            self._count(space, 0, passages - old.passages, sum(indexed.lengths) - words, 0, 1)

    def supersede(self, space: Space, old: Row, successor: str) -> None:
        sql = "UPDATE kronmem.memories SET successor = %s::uuid, passages = 0 WHERE space = %s AND number = %s"
        self._change(sql, (successor, space.id, old.number))
        self._count(space, -1, -old.passages, -self._new.remove_index(space.id, old))

    def delete(self, space: Space, rows: Iterable[Row]) -> None:
        with self._session.pipeline():  # an expired thousand, a round trip each, would outlast the time for a sweep
            for row in rows:
                self._delete(space, row)

    def _delete(self, space: Space, row: Row) -> None:
        self._last.pop(space.id, None)
        if row.superseded_by is None:
            self._change(_DELETE_FORMER, (row.id, space.id, space.id))
            self._count(space, -1, -row.passages, -self._new.remove_index(space.id, row))
        else:
            sql = "UPDATE kronmem.memories SET successor = %s::uuid WHERE space = %s AND successor = %s::uuid"
            self._change(sql, (row.superseded_by, space.id, row.id))
        self._change("DELETE FROM kronmem.memories WHERE space = %s AND number = %s", (space.id, row.number))

    def clear(self, space: Space, session_id: str | None, before: float | None) -> None:
        if session_id is None and before is None:
            self._clear_all(space)
            return
        clauses = {"space = %s": space.id, "session = %s": session_id, "created < %s": first_shown(before)}
        given = {clause: value for clause, value in clauses.items() if value is not None}
        sql = f"SELECT {COLUMNS} FROM kronmem.memories WHERE {' AND '.join(given)} ORDER BY number"
        self.delete(space, map(read_row, self._ask(sql, tuple(given.values()))))

    def _clear_all(self, space: Space) -> None:
        self._last.pop(space.id, None)
        for table in ("postings", "meanings", "embeddings", "memories"):
            self._run(f"DELETE FROM kronmem.{table} WHERE space = %s", (space.id,))
        now = self._counted.get(space.id, space)
        self._counted[space.id] = replace(now, count=0, passages=0, words=0, generation=now.generation + 1)

    def erase(self, owner: str, name: str, now: float) -> Erased:
        space, at = self.find_space(owner, name), (self._key_of(owner, name),)
        if space is None and self._ask("SELECT 1 FROM kronmem.spaces WHERE id = %s AND NOT gone", at):
            raise _same_key(name)
        ids = {row[0] for row in self._ask("DELETE FROM kronmem.receipts WHERE space = %s RETURNING client", at)}
        receipts = len(ids)
        counted = (0, 0, 0)
        if space is not None:
            rows = self._ask("SELECT id::text, successor IS NOT NULL FROM kronmem.memories WHERE space = %s", at)
            state = self._ask("SELECT count(*) FROM kronmem.states WHERE space = %s", at)[0][0]
            counted = (self.count(space, now), sum(former for _, former in rows), int(state))
            ids |= {memory_id for memory_id, _ in rows}
            self.drop_space(space)
        salt = self._salt()
        sql = "INSERT INTO kronmem.erased VALUES (%s, %s, %s) ON CONFLICT(space, digest) DO UPDATE SET at = excluded.at"
        self._session.run_many(sql, [(*at, erased_digest(salt, owner, name, one), now) for one in sorted(ids)])
        return Erased(*counted, receipts)

    def _salt(self) -> bytes:
        if (salt := self.setting("salt")) is None:
            self._run(ADD_SALT, (secrets.token_hex(16),))
            salt = self.setting("salt")
        return bytes.fromhex(salt or "")

    def count_access(self, space: Space, numbers: Sequence[int]) -> None:
        # Rows that another transaction is changing are skipped: a count waits for no lock.
        sql = """UPDATE kronmem.memories SET accessed = accessed + 1 WHERE space = %s AND number = ANY(ARRAY(
            SELECT number FROM kronmem.memories WHERE space = %s AND number = ANY(%s) FOR NO KEY UPDATE SKIP LOCKED))"""
        self._run(sql, (space.id, space.id, list(numbers)))

    # What else is kept

    def receipt(self, owner: str, name: str, client_id: str) -> Receipt | None:
        self._lock(owner, name)
        waits = (self._key_of(owner, name), client_id, "receipt") in self._new.names
        return super().receipt(owner, name, client_id) if waits else self._stored.receipt(owner, name, client_id)

    def is_erased(self, owner: str, name: str, client_id: str) -> bool:
        return self._stored.is_erased(owner, name, client_id)

    def write_receipt(self, owner: str, name: str, client_id: str, receipt: Receipt, now: float) -> None:
        self._new.add_receipt(self._key_of(owner, name), client_id, receipt, now)

    def sweep(self, now: float, receipts_before: float, bound: int) -> int:
        # Here what has expired in this agent's own space, once it is counted; the rest after the commit.
        self.due = Sweep(now, receipts_before, bound)
        return self._swept_before

    def _count_expired(self, space: Space, now: float) -> int:
        if expired := super()._count_expired(space, now):
            self._stale = space
        return expired

    def sweep_space(self, space_id: int, sweep: Sweep, bound: int) -> None:
        """Delete what is old in one space, unless a transaction is writing to it."""
        if not self._ask("SELECT pg_try_advisory_xact_lock(%s)", (space_id,))[0][0]:
            return
        for owner, name in self._ask("SELECT owner, name FROM kronmem.spaces WHERE id = %s AND NOT gone", (space_id,)):
            if (space := self.find_space(owner, name)) is not None:
                self._delete_expired(space, sweep.now, bound)
        for table in ("receipts", "erased"):
            self._run(f"DELETE FROM kronmem.{table} WHERE space = %s AND at < %s", (space_id, sweep.receipts_before))

    def _delete_expired(self, space: Space, now: float, bound: int) -> None:
        sql = f"{_OF_SPACE} AND expires <= %s ORDER BY expires LIMIT %s"
        expired = [read_row(row) for row in self._ask(sql, (space.id, now, bound))]
        self.delete(space, expired)
        self.swept += len(expired)

    def set_state(self, space: Space, key: str, value: str, now: float) -> None:
        sql = """INSERT INTO kronmem.states VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT(space, key) DO UPDATE SET value = excluded.value, updated = excluded.updated"""
        self._run(sql, (space.id, key, value, now, now))

    def delete_state(self, space: Space, key: str) -> bool:
        return self._run("DELETE FROM kronmem.states WHERE space = %s AND key = %s", (space.id, key)) > 0

    def set_embeddings(self, embeddings: Sequence[Embedding]) -> Sequence[Embedding]:
        # What has been deleted or changed in the meantime needs none.
        sql = """INSERT INTO kronmem.embeddings SELECT space, number, %s FROM kronmem.memories
            WHERE space = %s AND number = %s AND digest = %s AND successor IS NULL
            ON CONFLICT(space, number) DO UPDATE SET vector = excluded.vector"""
        values = [(vector, key >> BITS, key & (1 << BITS) - 1, text) for key, text, vector in embeddings]
        spaces = list(dict.fromkeys(value[1] for value in values))
        # An erasure that is not committed yet leaves its rows to be seen: a vector added to one would outlive it. An
        # agent is waited for only when no other one is locked meanwhile.
        free = {one for one in spaces if self._ask("SELECT pg_try_advisory_xact_lock(%s)", (one,))[0][0]}
        if not free:
            self._run("SELECT pg_advisory_xact_lock(%s)", (spaces[0],))
            free.add(spaces[0])
        self._session.run_many(sql, [value for value in values if value[1] in free])
        return [one for one in embeddings if one[0] >> BITS not in free]

    def forget_embeddings(self) -> None:
        self._run("DELETE FROM kronmem.embeddings", ())

    def set_setting(self, name: str, value: str) -> None:
        sql = "INSERT INTO kronmem.settings VALUES (%s, %s) ON CONFLICT(name) DO UPDATE SET value = excluded.value"
        self._run(sql, (name, value))

    def hold_setting(self, name: str) -> str | None:
        rows = self._ask("SELECT value FROM kronmem.settings WHERE name = %s FOR SHARE", (name,))
        return str(rows[0][0]) if rows else None

    def _send(self) -> None:
        if self._new:
            new, self._new = self._new, Batch()
            new.send(self._session)


_OF_SPACE = f"SELECT {COLUMNS} FROM kronmem.memories WHERE space = %s"
_DELETE_FORMER = f"""{FORMER} DELETE FROM kronmem.memories
    WHERE space = %s AND successor IN (SELECT successor FROM chain)"""


def _same_key(name: str) -> StoreError:
    return StoreError(f"the agent {name!r} has the same key as one of another owner: rename it")


def _counters(space: Space) -> tuple[int, ...]:
    return space.count, space.passages, space.words, space.last, space.generation, space.revised


# New rows that wait to be sent to PostgreSQL together: a round trip for each would be most of the work.


@dataclass
class Batch:
    """Rows not yet sent, and the names under which they will be found."""

    memories: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    postings: dict[tuple[str, int, int], list[bytes]] = field(
        default_factory=lambda: defaultdict[tuple[str, int, int], list[bytes]](list)
    )
    """By term, space and first number: entries of new memories."""
    changes: dict[tuple[int, int], dict[str, dict[int, bytes]]] = field(
        default_factory=lambda: dict[tuple[int, int], dict[str, dict[int, bytes]]]()
    )
    """By space, first number, term and number: entries of older memories that have changed; none if they go."""
    unindexed: dict[int, set[int]] = field(default_factory=lambda: defaultdict[int, set[int]](set))
    """By space, the memories whose meanings go; before new ones come."""
    unembedded: dict[int, set[int]] = field(default_factory=lambda: defaultdict[int, set[int]](set))
    """By space, the memories whose text has changed or that go: a model's vector is of the text alone."""
    meanings: dict[tuple[int, int], Sequence[Value]] = field(
        default_factory=lambda: dict[tuple[int, int], Sequence[Value]]()
    )
    receipts: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    names: set[object] = field(default_factory=lambda: set[object]())

    def __bool__(self) -> bool:
        """Is there anything to send?"""
        return bool(self.memories or self.postings or self.changes or self.unindexed or self.meanings or self.receipts)

    def add_memory(self, space: int, row: Row, passages: int) -> None:
        """Let a memory wait."""
        values = (space, row.number, row.id, row.created_at, row.access_count, row.role, row.superseded_by, passages)
        self.memories.append((*values, *changing(row, row.said_at)))
        self.names |= {(space, row.id), (space, row.session_id, row.key), text_name(space, row)}

    def add_index(self, space: int, number: int, indexed: Indexed) -> None:
        """Let the index entries of a new memory wait."""
        first = first_of(number, len(indexed.lengths))
        for term, entries in pack(number, indexed):
            self.postings[term, space, first].append(entries)
        self._add_meaning(space, number, indexed)

    def replace_index(self, space: int, old: Row, indexed: Indexed, *, reworded: bool) -> int:
        """Let the index entries of a changed memory wait; how many terms it had."""
        words = self._unindex(space, old)
        if reworded:
            self.unembedded[space].add(old.number)
        changed = self._changed(space, old.number, len(indexed.lengths))
        for term, entries in pack(old.number, indexed):
            changed.setdefault(term, {})[old.number] = entries
        self._add_meaning(space, old.number, indexed)
        return words

    def remove_index(self, space: int, row: Row) -> int:
        """Let the removal of a memory's index entries wait; how many terms it had."""
        self.unembedded[space].add(row.number)
        return self._unindex(space, row)

    def _unindex(self, space: int, row: Row) -> int:
        terms, words = posted(row)
        changed = self._changed(space, row.number, row.passages)
        for term in terms:
            changed.setdefault(term, {})[row.number] = b""
        self.unindexed[space].add(row.number)
        self.meanings.pop((space, row.number), None)
        return words

    def _changed(self, space: int, number: int, passages: int) -> dict[str, dict[int, bytes]]:
        return self.changes.setdefault((space, first_of(number, passages)), {})

    def _add_meaning(self, space: int, number: int, indexed: Indexed) -> None:
        if indexed.codes:
            self.meanings[space, number] = (space, number, indexed.codes, indexed.vectors)

    def add_receipt(self, space: int, client_id: str, receipt: Receipt, now: float) -> None:
        """Let a receipt wait."""
        self.receipts.append((space, client_id, receipt.memory_id, receipt.body, receipt.deduplicated, now))
        self.names.add((space, client_id, "receipt"))

    def send(self, session: Transaction) -> None:
        """Write everything."""
        if self.memories:
            session.run_many(_MEMORY, self.memories)
        if self.postings:
            waiting = self.postings.items()
            add_blocks(session, ((*at, len(entries), b"".join(reversed(entries))) for at, entries in waiting))
        for (space, first), changed in self.changes.items():
            rewrite(session, space, first, changed)
        for table, gone in (("meanings", self.unindexed), ("embeddings", self.unembedded)):
            for space, numbers in gone.items():
                session.run(
                    f"DELETE FROM kronmem.{table} WHERE space = %s AND number = ANY(%s)", (space, sorted(numbers))
                )
        if self.meanings:
            session.run_many(_MEANING, self.meanings.values())
        if self.receipts:
            session.run_many(_RECEIPT, self.receipts)


_INSERTED = ("space", "number", "id", "created", "accessed", "role", "successor", "passages", *CHANGING)
_MEMORY = f"INSERT INTO kronmem.memories({', '.join(_INSERTED)}) VALUES ({', '.join(['%s'] * len(_INSERTED))})"
_MEANING = """INSERT INTO kronmem.meanings VALUES (%s, %s, %s, %s)
    ON CONFLICT(space, number) DO UPDATE SET codes = excluded.codes, vectors = excluded.vectors"""
_RECEIPT = """INSERT INTO kronmem.receipts(space, client, memory, body, deduplicated, at)
    VALUES (%s, %s, %s::uuid, %s, %s, %s) ON CONFLICT(space, client) DO UPDATE SET
    memory = excluded.memory, body = excluded.body, deduplicated = excluded.deduplicated, at = excluded.at"""


def text_name(space: int, row: Row) -> object:
    """The key under which a memory is found by its text."""
    return (space, row.session_id, row.key, digest(row.content))
