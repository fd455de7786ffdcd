"""What a transaction of the PostgreSQL store can read. Values travel as bound parameters only."""

from __future__ import annotations

import json
import sys
import uuid
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kronmem.engine.index import SEEK, labels_of
from kronmem.engine.postgres.pool import Session, Value
from kronmem.engine.store import Filter, Found, Page, Posting, Receipt, Row, Space, StateValue

BITS = 32
"""A memory's key is `space << BITS | number`."""

_SPACE = "SELECT id, name, description, metadata, created, count, words, last FROM kronmem.space WHERE owner = %s"
COLUMNS = "number, id::text, content, type, session, tags, metadata, created, expires, pinned, accessed"
_ROW = f"SELECT {COLUMNS} FROM kronmem.memory WHERE"
_LIVE = "(expires IS NULL OR expires > %s)"
_ORDER = {"recent": "number DESC", "oldest": "number", "access_count": "accessed DESC, number DESC"}
_BEYOND = {"recent": "number < %s", "oldest": "number > %s", "access_count": "(accessed, number) < (%s, %s)"}


class Reading:
    """The `Reader` of a PostgreSQL database. `vectors` is the type of the column that holds them, if there is one."""

    def __init__(self, session: Session, vectors: str | None = None) -> None:
        self._session = session
        self._vectors = vectors
        self._expired: dict[int, int] | None = None
        """After a list of spaces: how many memories of each have expired, asked once for all."""

    def _ask(self, sql: str, values: Sequence[Value]) -> list[Any]:
        return self._session.ask(sql, values)

    def find_space(self, owner: str, name: str) -> Space | None:
        found = self._ask(f"{_SPACE} AND name = %s", (owner, name))
        return _space(found[0]) if found else None

    def spaces(self, owner: str) -> list[Space]:
        self._expired = {}
        return [_space(row) for row in self._ask(f"{_SPACE} ORDER BY name", (owner,))]

    def count(self, space: Space, now: float, only: Filter = Filter()) -> int:  # noqa: B008 - frozen
        if only == Filter():
            # The space knows its size; what has expired and is not yet swept is little.
            return space.count - self._count_expired(space, now)
        where, values = self._where(space, only, now)
        found: int = self._ask(f"SELECT count(*) FROM kronmem.memory WHERE {where}", values)[0][0]
        return found

    def _count_expired(self, space: Space, now: float) -> int:
        expired = "FROM kronmem.memory WHERE expires <= %s"
        if self._expired is None:
            one: int = self._ask(f"SELECT count(*) {expired} AND space = %s", (now, space.id))[0][0]
            return one
        if not self._expired:
            found = self._ask(f"SELECT space, count(*) {expired} GROUP BY space", (now,))
            self._expired = {0: 0, **dict(found)}  # no space has the id 0: asked, even if there was nothing
        return self._expired.get(space.id, 0)

    def find(self, space: Space, memory_id: str, now: float) -> Row | None:
        if not _is_uuid(memory_id):
            return None
        found = self._ask(f"{_ROW} space = %s AND id = %s::uuid AND {_LIVE}", (space.id, memory_id, now))
        return read_row(found[0]) if found else None

    def rows(self, space: Space, numbers: Sequence[int], now: float) -> dict[int, Row]:
        found = self._ask(f"{_ROW} space = %s AND number = ANY(%s) AND {_LIVE}", (space.id, list(numbers), now))
        return {row.number: row for row in map(read_row, found)}

    def last_said(self, space: Space) -> tuple[str | None, float] | None:
        sql = "SELECT session, created FROM kronmem.memory WHERE space = %s AND number = %s"
        found = self._ask(sql, (space.id, space.last))
        return (found[0][0] or None, found[0][1]) if found else None

    def page(self, space: Space, only: Filter, page: Page, now: float) -> list[Row]:
        where, values = self._where(space, only, now)
        if (after := page.after) is not None:
            where = f"{where} AND {_BEYOND[page.sort]}"
            number, accessed = after
            values += (accessed, number) if page.sort == "access_count" else (number,)
        sql = f"{_ROW} {where} ORDER BY {_ORDER[page.sort]} LIMIT %s OFFSET %s"
        limit = None if page.limit < 0 else page.limit
        return [read_row(row) for row in self._ask(sql, (*values, limit, page.offset))]

    def _where(self, space: Space, only: Filter, now: float) -> tuple[str, tuple[Value, ...]]:
        parts: list[tuple[str, Value]] = [("space = %s", space.id), (_LIVE, now)]
        if only.session_id is not None:
            parts.append(("session = %s", only.session_id))
        if only.memory_type is not None:
            parts.append(("type = %s", only.memory_type))
        # A tag's JSON, quotes included, occurs in the list only where the tag does: quotes inside a tag are escaped.
        parts += [("strpos(tags, %s) > 0", json.dumps(tag)) for tag in only.tags]
        if only.search:
            parts.append(("number = ANY(%s)", self._containing(space, only.search.casefold())))
        clauses = [clause for clause, _ in parts] + (["pinned"] if only.pinned else [])
        return " AND ".join(clauses), tuple(value for _, value in parts)

    def _containing(self, space: Space, wanted: str) -> list[int]:
        """The memories that contain a text, whatever its case. PostgreSQL folds ASCII as we do; we fold the rest."""
        plain = "octet_length(content) = length(content)"
        sql = f"""SELECT number, CASE WHEN {plain} THEN NULL ELSE content END FROM kronmem.memory
            WHERE space = %s AND (NOT {plain} OR strpos(lower(content), %s) > 0)"""
        found = self._ask(sql, (space.id, wanted))
        return [number for number, content in found if content is None or wanted in content.casefold()]

    def matching(self, space: Space, only: Filter) -> frozenset[int]:
        sql = "SELECT number FROM kronmem.posting WHERE space = %s AND term = %s"
        lists = (self._ask(sql, (space.id, label)) for label in labels_of(only))
        return frozenset[int].intersection(*(frozenset[int](row[0] for row in found) for found in lists))

    def postings(self, space: Space, bounds: Mapping[str, int], within: frozenset[int] | None) -> dict[str, Found]:
        if within is not None:
            return self._postings_within(space, bounds, within)
        if space.last < max(bounds.values(), default=0):
            rows = self._ask(_POSTINGS_OF, (list(bounds), space.id))  # in so small a space bounds save nothing
            return {term: Found(at, len(at), cut=False) for term, at in _by_term(bounds, rows).items()}
        rows = self._ask(_NEWEST, (list(bounds), list(bounds.values()), space.id))
        found = _by_term(bounds, rows)
        return {term: _cut(space, found[term], bound) for term, bound in bounds.items()}

    def _postings_within(self, space: Space, bounds: Mapping[str, int], within: frozenset[int]) -> dict[str, Found]:
        seen = self._ask(_SEEN, (list(bounds), list(bounds.values()), space.id))
        spread = {term: _spread(space, bounds[term], count, oldest) for term, count, oldest in seen}
        few = [term for term in bounds if SEEK * len(within) <= spread[term]]
        many = [term for term in bounds if term not in few]
        numbers = list(within)
        rows = self._ask(_AT, (space.id, few, numbers)) if few and numbers else []
        rows += self._ask(_AMONG, (many, [bounds[term] for term in many], space.id, numbers)) if many else []
        found = _by_term(bounds, rows)
        return {t: Found(found[t], spread[t], t not in few and len(found[t]) == b) for t, b in bounds.items()}

    def terms_like(self, space: Space, start: str, limit: int) -> list[str]:
        end = start + "\U0010ffff"
        return [row[0] for row in self._ask(_TERMS_LIKE, (space.id, start, end, space.id, end, limit))]

    def sessions(self, space: Space, now: float) -> list[tuple[str, int]]:
        sql = f"SELECT session, count(*) FROM kronmem.memory WHERE space = %s AND session > '' AND {_LIVE}"
        return [(name, count) for name, count in self._ask(f"{sql} GROUP BY session ORDER BY session", (space.id, now))]

    def receipt(self, owner: str, name: str, client_id: str) -> Receipt | None:
        sql = "SELECT memory::text, body, deduplicated FROM kronmem.receipt"
        found = self._ask(f"{sql} WHERE owner = %s AND name = %s AND client = %s", (owner, name, client_id))
        return Receipt(*found[0]) if found else None

    def state(self, space: Space, key: str) -> StateValue | None:
        sql = "SELECT value, created, updated FROM kronmem.state WHERE space = %s AND key = %s"
        found = self._ask(sql, (space.id, key))
        return StateValue(*found[0]) if found else None

    def state_keys(self, space: Space) -> list[str]:
        return [row[0] for row in self._ask("SELECT key FROM kronmem.state WHERE space = %s ORDER BY key", (space.id,))]

    def vectors(self, space: Space, numbers: Sequence[int]) -> Mapping[int, bytes]:
        if self._vectors is None:
            return {}
        column, read = ("vector_send(vector)", _from_pgvector) if self._vectors == "vector" else ("vector", bytes)
        sql = f"SELECT number, {column} FROM kronmem.embedding WHERE space = %s AND number = ANY(%s)"
        return {number: read(vector) for number, vector in self._ask(sql, (space.id, list(numbers)))}

    def without_vector(self, after: int, limit: int) -> list[tuple[int, str]]:
        if self._vectors is None:
            return []
        sql = """SELECT space, number, content FROM kronmem.memory AS m WHERE (space, number) > (%s, %s) AND NOT EXISTS
            (SELECT FROM kronmem.embedding AS e WHERE e.space = m.space AND e.number = m.number)
            ORDER BY space, number LIMIT %s"""
        found = self._ask(sql, (after >> BITS, after & (1 << BITS) - 1, limit))
        return [(key(space, number), content) for space, number, content in found]


_ASKED = "FROM unnest(%s::text[], %s::bigint[]) AS asked(term, bound) CROSS JOIN LATERAL"
_NEW = """SELECT number, times, length FROM kronmem.posting
    WHERE space = %s AND term = asked.term COLLATE "C" ORDER BY number DESC LIMIT asked.bound"""
_NEWEST = f"SELECT asked.term, number, times, length {_ASKED} ({_NEW}) AS found"
_SEEN = f"SELECT asked.term, count, oldest {_ASKED} (SELECT count(*), min(number) AS oldest FROM ({_NEW}) AS n) AS seen"
_POSTINGS_OF = """SELECT asked.term, number, times, length FROM unnest(%s::text[]) AS asked(term) CROSS JOIN LATERAL (
    SELECT number, times, length FROM kronmem.posting
    WHERE space = %s AND term = asked.term COLLATE "C" ORDER BY number DESC) AS found"""
_AT = """SELECT term, number, times, length FROM kronmem.posting
    WHERE space = %s AND term = ANY(%s) AND number = ANY(%s) ORDER BY number DESC"""
# IS TRUE: else the planner turns the list of numbers into a join and reads each term's postings to their end.
_AMONG = f"""SELECT asked.term, number, times, length {_ASKED} (
    {_NEW.replace("ORDER BY", "AND (number IN (SELECT unnest(%s::bigint[]))) IS TRUE ORDER BY")}) AS found"""
# One seek a term: DISTINCT would walk through all postings of each.
_TERMS_LIKE = """WITH RECURSIVE alike(term) AS (
        (SELECT term FROM kronmem.posting WHERE space = %s AND term >= %s AND term < %s ORDER BY term LIMIT 1)
        UNION ALL SELECT (SELECT next.term FROM kronmem.posting AS next WHERE next.space = %s
            AND next.term > alike.term AND next.term < %s ORDER BY next.term LIMIT 1)
        FROM alike WHERE alike.term IS NOT NULL)
    SELECT term FROM alike WHERE term IS NOT NULL LIMIT %s"""


def key(space_id: int, number: int) -> int:
    """What stands for the memory `number` of a space outside of the store."""
    return space_id << BITS | number


def read_row(row: Any) -> Row:
    """A memory from its columns."""
    number, memory_id, content, memory_type, session, tags, metadata, created, expires, pinned, accessed = row
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
    )


def _space(row: Any) -> Space:
    space, name, description, metadata, created, count, words, last = row
    return Space(space, name, description, json.loads(metadata), created, count, words, last)


def _by_term(terms: Iterable[str], rows: Iterable[Any]) -> dict[str, list[Posting]]:
    found: dict[str, list[Posting]] = {term: [] for term in terms}
    for term, *posting in rows:
        found[term].append((posting[0], posting[1], posting[2]))
    return found


def _cut(space: Space, found: list[Posting], bound: int) -> Found:
    oldest = found[-1][0] if found else None
    return Found(found, _spread(space, bound, len(found), oldest), cut=len(found) == bound)


def _spread(space: Space, bound: int, seen: int, oldest: int | None) -> float:
    """In how many memories a term occurs whose newest `bound` ones reach back to `oldest`: as dense before as since."""
    if seen < bound or oldest is None:
        return seen
    return min(bound * space.last / (space.last - oldest + 1), space.count)


def _is_uuid(memory_id: str) -> bool:
    try:
        return str(uuid.UUID(memory_id)) == memory_id
    except ValueError:
        return False


def _from_pgvector(sent: bytes) -> bytes:
    """From pgvector's wire format (a header of four bytes, big-endian floats) to ours (little-endian floats)."""
    numbers = array("f", sent[4:])
    numbers.byteswap()
    return numbers.tobytes() if sys.byteorder == "little" else sent[4:]
