"""What a transaction of the SQLite store can read. Values travel as bound parameters only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol

from kronmem.engine.index import LENGTH_BITS, SEEK, labels_of
from kronmem.engine.store import Filter, Found, Page, Posting, Receipt, Row, Space, StateValue

Value = str | bytes | int | float | None

BITS = 32
"""A memory's key is `space << BITS | number`."""

_SPACE = "SELECT id, name, description, metadata, created, count, words, last FROM space WHERE owner = ?"
_ROW = "SELECT key, id, content, type, session, tags, metadata, created, expires, pinned, accessed FROM memory WHERE "
_LIVE = "(expires IS NULL OR expires > ?)"
_ORDER = {"recent": "key DESC", "oldest": "key", "access_count": "accessed DESC, key DESC"}
_BEYOND = {"recent": "key < ?", "oldest": "key > ?", "access_count": "(accessed < ? OR accessed = ? AND key < ?)"}


class Cursor(Protocol):
    """What `execute` gives back. The database, not the type checker, knows what is in a row."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What a transaction runs on."""

    def execute(self, sql: str, parameters: Sequence[Value] = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[Value]], /) -> Cursor: ...


class Reading:
    """The `Reader` of a SQLite database."""

    def __init__(self, connection: Connection) -> None:
        self._db = connection

    def find_space(self, owner: str, name: str) -> Space | None:
        row = self._db.execute(f"{_SPACE} AND name = ?", (owner, name)).fetchone()
        return row and _space(row)

    def spaces(self, owner: str) -> list[Space]:
        return [_space(row) for row in self._db.execute(f"{_SPACE} ORDER BY name", (owner,))]

    def count(self, space: Space, now: float, only: Filter = Filter()) -> int:  # noqa: B008 - frozen
        if only == Filter():
            # The space knows its size; what has expired and is not yet swept is little. The plus keeps SQLite from
            # walking through the space instead.
            sql = "SELECT count(*) FROM memory WHERE expires <= ? AND +space = ?"
            expired: int = self._db.execute(sql, (now, space.id)).fetchone()[0]
            return space.count - expired
        where, values = _where(space, only, now)
        found: int = self._db.execute(f"SELECT count(*) FROM memory WHERE {where}", values).fetchone()[0]
        return found

    def find(self, space: Space, memory_id: str, now: float) -> Row | None:
        row = self._db.execute(f"{_ROW} space = ? AND id = ? AND {_LIVE}", (space.id, memory_id, now)).fetchone()
        return row and read_row(row)

    def rows(self, space: Space, numbers: Sequence[int], now: float) -> dict[int, Row]:
        keys = json.dumps([key(space.id, number) for number in numbers])
        found = self._db.execute(f"{_ROW} key IN (SELECT value FROM json_each(?)) AND {_LIVE}", (keys, now))
        return {row.number: row for row in map(read_row, found)}

    def last_said(self, space: Space) -> tuple[str | None, float] | None:
        sql = "SELECT session, created FROM memory WHERE key = ?"
        row = self._db.execute(sql, (key(space.id, space.last),)).fetchone()
        return row and (row[0] or None, row[1])

    def page(self, space: Space, only: Filter, page: Page, now: float) -> list[Row]:
        where, values = _where(space, only, now)
        if (after := page.after) is not None:
            where = f"{where} AND {_BEYOND[page.sort]}"
            number, accessed = after
            values += (accessed,) * 2 if page.sort == "access_count" else ()
            values += (key(space.id, number),)
        sql = f"{_ROW} {where} ORDER BY {_ORDER[page.sort]} LIMIT ? OFFSET ?"
        return [read_row(row) for row in self._db.execute(sql, (*values, page.limit, page.offset))]

    def matching(self, space: Space, only: Filter) -> frozenset[int]:
        lists = (self._db.execute(_NUMBERS, (space.id, label)) for label in labels_of(only))
        return frozenset[int].intersection(*(frozenset[int](row[0] for row in found) for found in lists))

    def postings(self, space: Space, bounds: Mapping[str, int], within: frozenset[int] | None) -> dict[str, Found]:
        if within is None and space.last < max(bounds.values(), default=0):
            return self._all_postings(space, bounds)  # in so small a space bounds save nothing: one look for all
        if within is None:
            return {term: self._newest_postings(space, term, bound) for term, bound in bounds.items()}
        return {term: self._postings_within(space, term, within, bound) for term, bound in bounds.items()}

    def _all_postings(self, space: Space, terms: Iterable[str]) -> dict[str, Found]:
        found = dict.fromkeys(terms, _NOWHERE)
        rows = self._db.execute(_POSTINGS_OF, (space.id, json.dumps(list(found)))).fetchall()
        for term, group in groupby(rows, _term):
            postings = [row[1:] for row in group]
            found[term] = Found(postings, len(postings), cut=False)
        return found

    def _newest_postings(self, space: Space, term: str, bound: int) -> Found:
        found: list[Posting] = self._db.execute(f"{_POSTINGS} LIMIT ?", (space.id, term, bound)).fetchall()
        cut = len(found) == bound
        return Found(found, _spread(space, bound, found[-1][0]) if cut else len(found), cut)

    def terms_like(self, space: Space, start: str, limit: int) -> list[str]:
        # One seek a term: DISTINCT would walk through all postings of each.
        sql = "SELECT min(term) FROM posting WHERE space = ? AND term > ? AND term < ?"
        found: list[str] = []
        last, end = start[:-1] + chr(ord(start[-1]) - 1) + "\U0010ffff", start + "\U0010ffff"
        while len(found) < limit and (last := self._db.execute(sql, (space.id, last, end)).fetchone()[0]) is not None:
            found.append(last)
        return found

    def _postings_within(self, space: Space, term: str, within: frozenset[int], bound: int) -> Found:
        sql = f"SELECT count(*), min(number) FROM ({_POSTINGS} LIMIT ?)"
        seen, oldest = self._db.execute(sql, (space.id, term, bound)).fetchone()
        spread = _spread(space, bound, oldest) if seen == bound else seen
        if SEEK * len(within) <= spread:
            sql = f"{_POSTINGS_AT} AND number IN (SELECT value FROM json_each(?))"
            found = self._db.execute(sql, (space.id, term, json.dumps(list(within))))
            return Found(found.fetchall(), spread, cut=False)
        postings = self._db.execute(_POSTINGS, (space.id, term))
        kept: list[Posting] = list(islice((row for row in postings if row[0] in within), bound))
        return Found(kept, spread, cut=len(kept) == bound)

    def sessions(self, space: Space, now: float) -> list[tuple[str, int]]:
        sql = f"SELECT session, count(*) FROM memory WHERE space = ? AND session > '' AND {_LIVE} GROUP BY session"
        return [(session, count) for session, count in self._db.execute(f"{sql} ORDER BY session", (space.id, now))]

    def receipt(self, owner: str, name: str, client_id: str) -> Receipt | None:
        sql = "SELECT memory, body, deduplicated FROM receipt WHERE owner = ? AND name = ? AND client = ?"
        row = self._db.execute(sql, (owner, name, client_id)).fetchone()
        return row and Receipt(row[0], row[1], bool(row[2]))

    def state(self, space: Space, key: str) -> StateValue | None:
        sql = "SELECT value, created, updated FROM state WHERE space = ? AND key = ?"
        row = self._db.execute(sql, (space.id, key)).fetchone()
        return row and StateValue(*row)

    def state_keys(self, space: Space) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT key FROM state WHERE space = ? ORDER BY key", (space.id,))]

    def vectors(self, space: Space, numbers: Sequence[int]) -> Mapping[int, bytes]:
        sql = "SELECT key, vector FROM memory WHERE key IN (SELECT value FROM json_each(?)) AND vector IS NOT NULL"
        found = self._db.execute(sql, (json.dumps([key(space.id, number) for number in numbers]),))
        return {row[0] & (1 << BITS) - 1: row[1] for row in found}

    def without_vector(self, after: int, limit: int) -> list[tuple[int, str]]:
        sql = "SELECT key, content FROM memory WHERE key > ? AND vector IS NULL ORDER BY key LIMIT ?"
        return [(key, content) for key, content in self._db.execute(sql, (after, limit))]


# A posting's worth is `times << LENGTH_BITS | length`.
_NUMBERS = "SELECT number FROM posting WHERE space = ? AND term = ?"
_POSTINGS_AT = (
    f"SELECT number, worth >> {LENGTH_BITS}, worth & {(1 << LENGTH_BITS) - 1} FROM posting WHERE space = ? AND term = ?"
)
_POSTINGS = f"{_POSTINGS_AT} ORDER BY number DESC"
_POSTINGS_OF = _POSTINGS_AT.replace("SELECT", "SELECT term,").replace(
    "term = ?", "term IN (SELECT value FROM json_each(?))"
)
_NOWHERE = Found((), 0, cut=False)
_term = itemgetter(0)


def key(space_id: int, number: int) -> int:
    """Where the memory `number` of a space lies."""
    return space_id << BITS | number


def read_row(row: Any) -> Row:
    """A memory from its columns."""
    where, memory_id, content, memory_type, session, tags, metadata, created, expires, pinned, accessed = row
    return Row(
        number=where & (1 << BITS) - 1,
        id=memory_id,
        content=content,
        memory_type=memory_type,
        session_id=session or None,
        tags=tuple(json.loads(tags)) if tags != "[]" else (),
        metadata=json.loads(metadata) if metadata != "{}" else {},
        created_at=created,
        expires_at=expires,
        pinned=bool(pinned),
        access_count=accessed,
    )


def _space(row: Any) -> Space:
    space, name, description, metadata, created, count, words, last = row
    return Space(space, name, description, json.loads(metadata), created, count, words, last)


def _spread(space: Space, bound: int, oldest: int) -> float:
    """In how many memories a term occurs whose newest `bound` ones reach back to `oldest`: as dense before as since."""
    return min(bound * space.last / (space.last - oldest + 1), space.count)


def _where(space: Space, only: Filter, now: float) -> tuple[str, tuple[Value, ...]]:
    parts: list[tuple[str, Value]] = [("key >= ?", key(space.id, 0)), ("key < ?", key(space.id + 1, 0))]
    if only.session_id is not None:
        parts = [("space = ?", space.id), ("session = ?", only.session_id)]
    if only.pinned:
        parts += [("space = ?", space.id), ("pinned = ?", 1)]
    parts.append((_LIVE, now))
    if only.memory_type is not None:
        parts.append(("type = ?", only.memory_type))
    # A tag's JSON, quotes included, occurs in the list only where the tag does: quotes inside a tag are escaped.
    parts += [("instr(tags, ?)", json.dumps(tag)) for tag in only.tags]
    if only.search:
        parts.append(("contains(content, ?)", only.search.casefold()))
    return " AND ".join(clause for clause, _ in parts), tuple(value for _, value in parts)
