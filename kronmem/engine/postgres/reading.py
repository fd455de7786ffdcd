"""The reads of a transaction of the PostgreSQL store. Values travel as bound parameters only."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kronmem.engine.postgres.inverted_index import InvertedIndex
from kronmem.engine.postgres.schema import SpaceKey, space_key
from kronmem.engine.postgres.transaction import Transaction, Value
from kronmem.engine.postings import first_shown, labels_of, space_of
from kronmem.engine.remembering import erased_digest
from kronmem.engine.store import Filter, Found, Page, Receipt, Row, Space, StateValue, Totals
from kronmem.errors import StoreError

BITS = 32
"""Outside of the store `space << BITS | number` stands for a memory."""

_SPACE = """SELECT id, name, description, metadata, created, count, passages, words, last, generation, revised
    FROM kronmem.spaces WHERE"""
COLUMNS = """number, id::text, content, type, session, tags, metadata, created, expires, pinned, accessed, said,
    updated, role, about, successor::text, passages"""
_ROW = f"SELECT {COLUMNS} FROM kronmem.memories WHERE"
_LIVE = "(expires IS NULL OR expires > %s)"
_CURRENT = "successor IS NULL"
_TAGGED = "tags::jsonb ? %s"
_ORDER = {
    "recent": "number DESC",
    "oldest": "number",
    "access_count": "accessed DESC, number DESC",
    "history recent": "created DESC, said DESC, number DESC",
    "history oldest": "created, said, number",
}
_BEYOND = {
    "recent": "number < %s",
    "oldest": "number > %s",
    "access_count": "(accessed, number) < (%s, %s)",
    "history recent": "(created, said, number) < (%s, %s, %s)",
    "history oldest": "(created, said, number) > (%s, %s, %s)",
}


class PostgresReader:
    """The `Reader` of a PostgreSQL database."""

    def __init__(self, session: Transaction, key_of: SpaceKey = space_key) -> None:
        self._session = session
        self._key_of = key_of
        self._expired: dict[int, int] | None = None
        """After a list of spaces: how many memories of each have expired, asked once for all."""

    def _ask(self, sql: str, values: Sequence[Value]) -> list[Any]:
        return self._session.ask(sql, values)

    # Spaces

    def find_space(self, owner: str, name: str) -> Space | None:
        rows = self._ask(f"{_SPACE} id = %s AND NOT gone AND owner = %s", (self._key_of(owner, name), owner))
        space = space_of(rows[0]) if rows else None
        if space is not None and space.name != name:
            raise StoreError(f"the agents {name!r} and {space.name!r} have the same key: rename one of them")
        return space

    def spaces(self, owner: str) -> list[Space]:
        self._expired = {}
        return [space_of(row) for row in self._ask(f"{_SPACE} owner = %s AND NOT gone ORDER BY name", (owner,))]

    # Memories

    def count(self, space: Space, now: float, only: Filter = Filter()) -> int:  # noqa: B008 - frozen
        if only == Filter():
            # The space knows its size; what has expired and is not yet swept is little.
            return space.count - self._count_expired(space, now)
        where, values = self._where(space, only, now)
        count: int = self._ask(f"SELECT count(*) FROM kronmem.memories WHERE {where}", values)[0][0]
        return count

    def _count_expired(self, space: Space, now: float) -> int:
        expired = f"FROM kronmem.memories WHERE expires <= %s AND {_CURRENT}"
        if self._expired is None:
            one: int = self._ask(f"SELECT count(*) {expired} AND space = %s", (now, space.id))[0][0]
            return one
        if not self._expired:
            rows = self._ask(f"SELECT space, count(*) {expired} GROUP BY space", (now,))
            self._expired = {0: 0, **dict(rows)}  # asked, even if there was nothing
        return self._expired.get(space.id, 0)

    def totals(self, space: Space, now: float) -> Totals:
        where, values = self._where(space, Filter(), now)
        by = f"FROM kronmem.memories WHERE {where} GROUP BY 1 ORDER BY 1"
        tags = "FROM kronmem.memories CROSS JOIN LATERAL json_array_elements_text(tags::json) AS tag"
        day = "to_char(to_timestamp(created) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
        return Totals(
            self.count(space, now),
            dict(self._ask(f"SELECT type, count(*) {by}", values)),
            dict(self._ask(f'SELECT tag COLLATE "C", count(*) {tags} WHERE {where} GROUP BY 1 ORDER BY 1', values)),
            dict(self.sessions(space, now)),
            dict(self._ask(f"SELECT {day}, count(*) {by}", values)),
        )

    def find(self, space: Space, memory_id: str, now: float) -> Row | None:
        if not _is_uuid(memory_id):
            return None
        rows = self._ask(f"{_ROW} space = %s AND id = %s::uuid AND {_LIVE}", (space.id, memory_id, now))
        return read_row(rows[0]) if rows else None

    def former(self, space: Space, memory_id: str, now: float) -> list[Row]:
        return [read_row(row) for row in self._ask(_FORMER, (memory_id, space.id, space.id, now))]

    def numbers(self, space: Space, ids: Collection[str]) -> dict[str, int]:
        sql = "SELECT id::text, number FROM kronmem.memories WHERE space = %s AND id = ANY(%s::uuid[])"
        return dict(self._ask(sql, (space.id, [one for one in ids if _is_uuid(one)])))

    def rows(self, space: Space, numbers: Sequence[int], now: float) -> dict[int, Row]:
        sql = f"{_ROW} space = %s AND number = ANY(%s) AND {_CURRENT} AND {_LIVE}"
        return {row.number: row for row in map(read_row, self._ask(sql, (space.id, list(numbers), now)))}

    def last_said(self, space: Space) -> tuple[str | None, float] | None:
        sql = "SELECT session, created FROM kronmem.memories WHERE space = %s AND number = %s"
        rows = self._ask(sql, (space.id, space.last))
        return (rows[0][0] or None, rows[0][1]) if rows else None

    def page(self, space: Space, only: Filter, page: Page, now: float) -> list[Row]:
        where, values = self._where(space, only, now)
        order = f"history {page.sort}" if only.history and page.sort != "access_count" else page.sort
        if (after := page.after) is not None:
            where = f"{where} AND {_BEYOND[order]}"
            number, accessed = after
            values += (accessed,) if order == "access_count" else page.moment or ()
            values += (number,)
        sql = f"{_ROW} {where} ORDER BY {_ORDER[order]} LIMIT %s OFFSET %s"
        limit = None if page.limit < 0 else page.limit
        return [read_row(row) for row in self._ask(sql, (*values, limit, page.offset))]

    def _where(self, space: Space, only: Filter, now: float | None) -> tuple[str, tuple[Value, ...]]:
        parts: list[tuple[str, Value]] = [("space = %s", space.id)]
        equal: dict[str, Value] = {_LIVE: now, "session = %s": only.session_id, "type = %s": only.memory_type}
        equal |= {"created >= %s": first_shown(only.since), "created < %s": first_shown(only.until)}
        parts += [(clause, value) for clause, value in equal.items() if value is not None]
        # Few lists without the tag contain its JSON, so few are read in vain.
        parts += [part for tag in only.tags for part in (("strpos(tags, %s) > 0", json.dumps(tag)), (_TAGGED, tag))]
        if only.search:
            parts.append(("number = ANY(%s)", self._containing(space, only.search.casefold())))
        clauses = [clause for clause, _ in parts]
        clauses += [*(["pinned"] if only.pinned else []), *([] if only.history else [_CURRENT])]
        return " AND ".join(clauses), tuple(value for _, value in parts)

    def _containing(self, space: Space, wanted: str) -> list[int]:
        """The memories that contain a text in any case. PostgreSQL folds ASCII as we do; we fold the rest."""
        plain = "octet_length(content) = length(content)"
        sql = f"""SELECT number, CASE WHEN {plain} THEN NULL ELSE content END FROM kronmem.memories
            WHERE space = %s AND (NOT {plain} OR strpos(lower(content), %s) > 0)"""
        rows = self._ask(sql, (space.id, wanted))
        return [number for number, content in rows if content is None or wanted in content.casefold()]

    def sessions(self, space: Space, now: float) -> list[tuple[str, int]]:
        sql = f"SELECT session, count(*) FROM kronmem.memories WHERE space = %s AND session > '' AND {_CURRENT}"
        rows = self._ask(f"{sql} AND {_LIVE} GROUP BY session ORDER BY session", (space.id, now))
        return [(name, count) for name, count in rows]

    # What they are found by

    def matching(self, space: Space, only: Filter) -> frozenset[int]:
        index = InvertedIndex(self._ask, space)
        sets = [index.labelled(label) for label in labels_of(only)]
        if only.since is not None or only.until is not None:
            where, values = self._where(space, Filter(since=only.since, until=only.until), None)
            rows = self._ask(f"SELECT number FROM kronmem.memories WHERE {where}", values)
            sets.append(frozenset(row[0] for row in rows))
        return frozenset[int].intersection(*sets)

    def postings(self, space: Space, bounds: Mapping[str, int], within: frozenset[int] | None) -> dict[str, Found]:
        index = InvertedIndex(self._ask, space)
        return index.newest(bounds) if within is None else index.within(bounds, within)

    def terms_like(self, space: Space, start: str, limit: int) -> list[str]:
        return InvertedIndex(self._ask, space).terms_like(start, limit)

    def codes(self, space: Space, after: int) -> Iterable[tuple[int, bytes]]:
        sql = "SELECT number, codes FROM kronmem.meanings WHERE space = %s AND number > %s ORDER BY number"
        return self._ask(sql, (space.id, after))

    def vectors(self, space: Space, numbers: Sequence[int], known: Collection[int]) -> Mapping[int, bytes | None]:
        sql = """SELECT number, CASE WHEN number <> ALL(%s) THEN vectors END FROM kronmem.meanings
            WHERE space = %s AND number = ANY(%s)"""
        return dict(self._ask(sql, (list(known), space.id, list(numbers))))

    def size(self, now: float) -> tuple[int, int]:
        sizes = "SELECT count(*), coalesce(sum(count), 0)::bigint FROM kronmem.spaces WHERE NOT gone"
        spaces, memories = self._ask(sizes, ())[0]
        expired = f"SELECT count(*) FROM kronmem.memories WHERE expires <= %s AND {_CURRENT}"
        return spaces, memories - self._ask(expired, (now,))[0][0]

    # What else is kept

    def receipt(self, owner: str, name: str, client_id: str) -> Receipt | None:
        sql = "SELECT memory::text, body, deduplicated FROM kronmem.receipts WHERE space = %s AND client = %s"
        rows = self._ask(sql, (self._key_of(owner, name), client_id))
        return Receipt(*rows[0]) if rows else None

    def is_erased(self, owner: str, name: str, client_id: str) -> bool:
        space = self._key_of(owner, name)
        if not self._ask("SELECT 1 FROM kronmem.erased WHERE space = %s LIMIT 1", (space,)):
            return False
        known = erased_digest(bytes.fromhex(self.setting("salt") or ""), owner, name, client_id)
        return bool(self._ask("SELECT 1 FROM kronmem.erased WHERE space = %s AND digest = %s", (space, known)))

    def state(self, space: Space, key: str) -> StateValue | None:
        sql = "SELECT value, created, updated FROM kronmem.states WHERE space = %s AND key = %s"
        rows = self._ask(sql, (space.id, key))
        return StateValue(*rows[0]) if rows else None

    def state_keys(self, space: Space, *, newest: bool = False) -> list[str]:
        order = "updated DESC, key" if newest else "key"
        sql = f"SELECT key FROM kronmem.states WHERE space = %s ORDER BY {order}"
        return [row[0] for row in self._ask(sql, (space.id,))]

    def embeddings(self, space: Space, numbers: Sequence[int]) -> Mapping[int, bytes]:
        sql = "SELECT number, vector FROM kronmem.embeddings WHERE space = %s AND number = ANY(%s)"
        return dict(self._ask(sql, (space.id, list(numbers))))

    def without_embedding(self, after: int | None, limit: int) -> list[tuple[int, str]]:
        sql = f"""SELECT space, number, content FROM kronmem.memories AS m
            WHERE (space, number) > (%s, %s) AND {_CURRENT} AND NOT EXISTS
            (SELECT 1 FROM kronmem.embeddings AS e WHERE e.space = m.space AND e.number = m.number)
            ORDER BY space, number LIMIT %s"""
        at = (-(1 << 63), 0) if after is None else (after >> BITS, after & (1 << BITS) - 1)
        return [(key(space, number), content) for space, number, content in self._ask(sql, (*at, limit))]

    def count_embedded(self) -> int:
        return int(self._ask("SELECT count(*) FROM kronmem.embeddings", ())[0][0])

    def setting(self, name: str) -> str | None:
        rows = self._ask("SELECT value FROM kronmem.settings WHERE name = %s", (name,))
        return str(rows[0][0]) if rows else None


# UNION, not UNION ALL: damaged rows in which two memories supersede each other still have an end.
FORMER = """WITH RECURSIVE chain(successor) AS (SELECT %s::uuid UNION
    SELECT m.id FROM kronmem.memories AS m JOIN chain ON m.successor = chain.successor WHERE m.space = %s)"""
_FORMER = f"""{FORMER} SELECT {COLUMNS} FROM kronmem.memories WHERE space = %s
    AND successor IN (SELECT successor FROM chain) AND {_LIVE} ORDER BY said DESC, id DESC"""


def key(space_id: int, number: int) -> int:
    """The id of the memory `number` of a space outside of the store."""
    return space_id << BITS | number


def read_row(row: Any) -> Row:
    """A memory from its columns."""
    number, memory_id, content, memory_type, session, tags, metadata, created, expires, pinned, accessed = row[:11]
    stated, updated, role, about, successor, passages = row[11:]
    return Row(
        number=number,
        id=memory_id,
        content=content,
        memory_type=memory_type,
        session_id=session or None,
        tags=tuple(json.loads(tags)),
        metadata=json.loads(metadata),
        created_at=created,
        expires_at=expires,
        pinned=pinned,
        access_count=accessed,
        said_at=stated,
        updated_at=updated,
        role=role,
        key=about or None,
        superseded_by=successor,
        passages=passages,
    )


def _is_uuid(memory_id: str) -> bool:
    try:
        return str(uuid.UUID(memory_id)) == memory_id
    except ValueError:
        return False
