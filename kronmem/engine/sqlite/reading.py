"""The reads of a transaction of the SQLite store. Values travel as bound parameters only.

A row that cannot be read is left out of lists and recalls.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from typing import Any, Protocol

from pydantic_core import from_json

from kronmem.engine.postings import (
    LENGTH_BITS,
    MAX_LENGTH,
    SEEK,
    first_shown,
    labels_of,
    space_of,
    spread_of,
    unpack_long,
)
from kronmem.engine.remembering import erased_digest
from kronmem.engine.store import PLACE_BITS, Filter, Found, Page, Posting, Receipt, Row, Space, StateValue, Totals
from kronmem.errors import StoreError

# Memories from their columns. A row that cannot be read is left out of lists and recalls; the others go on.

Value = str | bytes | int | float | None

BITS = 32
"""A memory's key is `space << BITS | number`."""
COLUMNS = """key, id, content, type, session, tags, metadata, created, expires, pinned, accessed, said, updated, role,
    about, successor, passages"""
_TEXTS = frozenset({"id", "content", "type", "session", "tags", "metadata", "role", "about", "successor"})
_RAW = ", ".join(f"CAST({name} AS BLOB)" if name in _TEXTS else name for name in COLUMNS.replace(",", "").split())
"""The columns without decoding: sqlite3 gives up a whole query at the first text that is not UTF-8."""
_log = logging.getLogger("kronmem.engine")


class SqlCursor(Protocol):
    """The result of `execute`. The database, not the type checker, knows the types of a row."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """The connection that a transaction runs on."""

    def execute(self, sql: str, parameters: Sequence[Value] = ..., /) -> SqlCursor: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[Value]], /) -> SqlCursor: ...


def key(space_id: int, number: int) -> int:
    """Where the memory `number` of a space lies."""
    return space_id << BITS | number


def read_row(row: Any) -> Row:
    """A memory from its columns; `StoreError` when they hold no memory."""
    (where, memory_id, content, memory_type, session, tags, metadata, created, expires, pinned, accessed) = row[:11]
    stated, updated, role, about, successor, passages = row[11:]
    if not isinstance(content, str):
        raise StoreError(f"memory {memory_id} is damaged: its content is no text")
    return Row(
        number=where & (1 << BITS) - 1,
        id=memory_id,
        content=content,
        memory_type=memory_type,
        session_id=session or None,
        tags=tuple(_json(tags, list, memory_id)) if tags != "[]" else (),
        metadata=_json(metadata, dict, memory_id) if metadata != "{}" else {},
        created_at=created,
        expires_at=expires,
        pinned=bool(pinned),
        access_count=accessed,
        said_at=created if stated is None else stated,
        updated_at=updated,
        role=role,
        key=about or None,
        superseded_by=successor,
        passages=passages,
    )


def _json(text: str, kind: type[Any], memory_id: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise StoreError(f"memory {memory_id} is damaged: its tags or metadata are not readable as JSON")
    return value


def sound_rows(db: SqlConnection, sql: str, values: Sequence[Value]) -> list[Row]:
    """The memories that a query of `COLUMNS` finds, without damaged ones, which are logged."""
    try:
        return [read_row(row) for row in db.execute(sql, values)]
    except (StoreError, sqlite3.OperationalError) as error:
        check_damage(error)
        return [row for row in each_row(db, sql, values) if isinstance(row, Row)]


def sound_page(db: SqlConnection, sql: str, values: Sequence[Value], limit: int, offset: int) -> list[Row]:
    """One page of such a query, ending with a limit and an offset; following rows take the place of damaged ones."""
    try:
        return [read_row(row) for row in db.execute(sql, (*values, limit, offset))]
    except (StoreError, sqlite3.OperationalError) as error:
        check_damage(error)
        rows = (row for row in each_row(db, sql, (*values, -1, offset)) if isinstance(row, Row))
        return list(rows if limit < 0 else islice(rows, limit))


def check_damage(error: Exception) -> None:
    """Raise an error again that is not about one unreadable row; log one that is."""
    if isinstance(error, sqlite3.Error) and not str(error).startswith("Could not decode to UTF-8"):
        raise error
    problem = str(error) if isinstance(error, StoreError) else "a memory is damaged: its text is not UTF-8"
    _log.warning("%s; it is left out (`kronmem doctor` names it)", problem)


def each_row(db: SqlConnection, sql: str, values: Sequence[Value]) -> Iterator[Row | tuple[int, str]]:
    """Every memory of a query of `COLUMNS`; in place of a damaged one its key and its id, as far as it is readable."""
    for raw in db.execute(sql.replace(COLUMNS, _RAW), values):
        try:
            yield read_row([part.decode() if isinstance(part, bytes) else part for part in raw])
        except (StoreError, UnicodeDecodeError):
            memory_id = raw[1]
            yield raw[0], memory_id.decode(errors="replace") if isinstance(memory_id, bytes) else str(memory_id)


_SPACE = """SELECT id, name, description, metadata, created, count, passages, words, last, generation, revised
    FROM spaces WHERE """
_ROW = f"SELECT {COLUMNS} FROM memories WHERE "
_LIVE = "(expires IS NULL OR expires > ?)"
_CURRENT = "successor IS NULL"
_READABLE_TAGS = "CASE WHEN json_valid(tags) THEN tags ELSE '[]' END"
_TAGGED = f"EXISTS (SELECT 1 FROM json_each({_READABLE_TAGS}) AS tag WHERE tag.value = ?)"
# As bytes: SQLite gives a query up at the first text that is not UTF-8.
_CONTAINS = "typeof(content) = 'text' AND contains(CAST(content AS BLOB), ?)"
_SAID = "coalesce(said, created)"
_ORDER = {
    "recent": "key DESC",
    "oldest": "key",
    "access_count": "accessed DESC, key DESC",
    "history recent": f"created DESC, {_SAID} DESC, key DESC",
    "history oldest": f"created, {_SAID}, key",
}
_BEYOND = {
    "recent": "key < ?",
    "oldest": "key > ?",
    "access_count": "(accessed < ? OR accessed = ? AND key < ?)",
    "history recent": f"(created, {_SAID}, key) < (?, ?, ?)",
    "history oldest": f"(created, {_SAID}, key) > (?, ?, ?)",
}


class SqliteReader:
    """The `Reader` of a SQLite database."""

    def __init__(self, connection: SqlConnection) -> None:
        self._db = connection

    # Spaces

    def find_space(self, owner: str, name: str) -> Space | None:
        row = self._db.execute(f"{_SPACE} owner = ? AND name = ?", (owner, name)).fetchone()
        return row and space_of(row)

    def spaces(self, owner: str) -> list[Space]:
        return [space_of(row) for row in self._db.execute(f"{_SPACE} owner = ? ORDER BY name", (owner,))]

    # Memories

    def count(self, space: Space, now: float, only: Filter = Filter()) -> int:  # noqa: B008 - frozen
        if only == Filter():
            # The space knows its size; what has expired and is not yet swept is little. The plus keeps SQLite from
            # walking through the space instead.
            sql = f"SELECT count(*) FROM memories WHERE expires <= ? AND +space = ? AND {_CURRENT}"
            expired: int = self._db.execute(sql, (now, space.id)).fetchone()[0]
            return space.count - expired
        where, values = _where(space, only, now)
        count: int = self._db.execute(f"SELECT count(*) FROM memories WHERE {where}", values).fetchone()[0]
        return count

    def totals(self, space: Space, now: float) -> Totals:
        where, values = _where(space, Filter(), now)
        by = f"FROM memories WHERE {where} GROUP BY 1 ORDER BY 1"
        tags = f"SELECT value, count(*) FROM memories, json_each({_READABLE_TAGS})"
        tags += f" WHERE {where.replace('key', 'memories.key')}"
        return Totals(
            self.count(space, now),
            dict(self._db.execute(f"SELECT type, count(*) {by}", values).fetchall()),
            dict(self._db.execute(f"{tags} GROUP BY 1 ORDER BY 1", values).fetchall()),
            dict(self.sessions(space, now)),
            dict(self._db.execute(f"SELECT date(created, 'unixepoch'), count(*) {by}", values).fetchall()),
        )

    def find(self, space: Space, memory_id: str, now: float) -> Row | None:
        row = self._db.execute(f"{_ROW} space = ? AND id = ? AND {_LIVE}", (space.id, memory_id, now)).fetchone()
        return row and read_row(row)

    def former(self, space: Space, memory_id: str, now: float) -> list[Row]:
        return sound_rows(self._db, _FORMER, (memory_id, space.id, space.id, now))

    def numbers(self, space: Space, ids: Collection[str]) -> dict[str, int]:
        # In the order of the index: half the time of any other.
        asked = (space.id, json.dumps(sorted(ids)))
        return dict(self._db.execute(_NUMBERS_BY_ID, asked).fetchall())

    def rows(self, space: Space, numbers: Sequence[int], now: float) -> dict[int, Row]:
        keys = json.dumps([key(space.id, number) for number in numbers])
        sql = f"{_ROW} key IN (SELECT value FROM json_each(?)) AND {_CURRENT} AND {_LIVE}"
        return {row.number: row for row in sound_rows(self._db, sql, (keys, now))}

    def last_said(self, space: Space) -> tuple[str | None, float] | None:
        sql = "SELECT session, created FROM memories WHERE key = ?"
        row = self._db.execute(sql, (key(space.id, space.last),)).fetchone()
        return row and (row[0] or None, row[1])

    def page(self, space: Space, only: Filter, page: Page, now: float) -> list[Row]:
        where, values = _where(space, only, now)
        order = f"history {page.sort}" if only.history and page.sort != "access_count" else page.sort
        if (after := page.after) is not None:
            where = f"{where} AND {_BEYOND[order]}"
            number, accessed = after
            values += (accessed,) * 2 if order == "access_count" else page.moment or ()
            values += (key(space.id, number),)
        sql = f"{_ROW} {where} ORDER BY {_ORDER[order]} LIMIT ? OFFSET ?"
        return sound_page(self._db, sql, values, page.limit, page.offset)

    def sessions(self, space: Space, now: float) -> list[tuple[str, int]]:
        sql = "SELECT session, count(*) FROM memories WHERE space = ? AND session > ''"
        rows = self._db.execute(f"{sql} AND {_CURRENT} AND {_LIVE} GROUP BY session ORDER BY session", (space.id, now))
        return [(session, count) for session, count in rows]

    # What they are found by

    def matching(self, space: Space, only: Filter) -> frozenset[int]:
        lists = [self._db.execute(_NUMBERS, (space.id, label)) for label in labels_of(only)]
        if only.since is not None or only.until is not None:
            where, values = _where(space, Filter(since=only.since, until=only.until, pinned=only.pinned), None)
            lists.append(self._db.execute(f"SELECT key & {(1 << BITS) - 1} FROM memories WHERE {where}", values))
        return frozenset[int].intersection(*(frozenset[int](row[0] for row in rows) for rows in lists))

    def postings(self, space: Space, bounds: Mapping[str, int], within: frozenset[int] | None) -> dict[str, Found]:
        if within is not None:
            return {term: self._postings_within(space, term, within, bound) for term, bound in bounds.items()}
        if space.last < max(bounds.values(), default=0):
            return self._all_postings(space, bounds)  # in so small a space bounds save nothing: one look for all
        by_term: dict[str, Found] = {}
        for bound in set(bounds.values()):
            by_term |= self._newest_postings(space, [term for term, own in bounds.items() if own == bound], bound)
        return by_term

    def _all_postings(self, space: Space, terms: Iterable[str]) -> dict[str, Found]:
        by_term = dict.fromkeys(terms, _NOWHERE)
        for term, arrays in self._db.execute(_ALL_POSTINGS, (space.id, json.dumps(list(by_term)))):
            postings = _postings(from_json(arrays))
            by_term[term] = Found(postings, len(postings), cut=False)
        return by_term

    def _newest_postings(self, space: Space, terms: Sequence[str], bound: int) -> dict[str, Found]:
        rows = self._db.execute(_NEWEST_POSTINGS, (space.id, bound, json.dumps(terms)))
        return {term: _newest(space, from_json(arrays), bound) for term, arrays in rows}

    def _postings_within(self, space: Space, term: str, within: frozenset[int], bound: int) -> Found:
        sql = f"SELECT count(*), min(number) FROM (SELECT number {_OF_TERM} ORDER BY number DESC LIMIT ?)"
        seen, oldest = self._db.execute(sql, (space.id, term, bound)).fetchone()
        spread = spread_of(space, bound, oldest) if seen == bound else seen
        if SEEK * len(within) <= spread:
            arrays = self._db.execute(_POSTINGS_AT, (space.id, term, json.dumps(list(within)))).fetchone()[0]
            return Found(_postings(from_json(arrays)), spread, cut=False)
        postings = self._db.execute(_POSTINGS, (space.id, term))
        kept = list(islice((row for row in postings if row[0] >> PLACE_BITS in within), bound))
        return Found(_by_passage(kept), spread, cut=len(kept) == bound)

    def terms_like(self, space: Space, start: str, limit: int) -> list[str]:
        # One seek a term: DISTINCT would walk through all postings of each.
        sql = "SELECT min(term) FROM postings WHERE space = ? AND term > ? AND term < ?"
        names: list[str] = []
        last, end = start[:-1] + chr(ord(start[-1]) - 1) + "\U0010ffff", start + "\U0010ffff"
        while len(names) < limit and (last := self._db.execute(sql, (space.id, last, end)).fetchone()[0]) is not None:
            names.append(last)
        return names

    def codes(self, space: Space, after: int) -> Iterable[tuple[int, bytes]]:
        sql = f"SELECT key & {(1 << BITS) - 1}, codes FROM meanings WHERE key > ? AND key < ? ORDER BY key"
        rows: Iterable[tuple[int, bytes]] = self._db.execute(sql, (key(space.id, after), key(space.id + 1, 0)))
        return rows

    def vectors(self, space: Space, numbers: Sequence[int], known: Collection[int]) -> Mapping[int, bytes | None]:
        new = self._by_number("vectors", "meanings", space, [number for number in numbers if number not in known])
        keys = json.dumps(sorted(key(space.id, number) for number in known))
        there: list[int] = from_json(self._db.execute(_WITH_VECTORS, (keys,)).fetchone()[0]) if known else []
        return {**dict.fromkeys(there), **new}

    # What else is kept

    def receipt(self, owner: str, name: str, client_id: str) -> Receipt | None:
        sql = "SELECT memory, body, deduplicated FROM receipts WHERE owner = ? AND name = ? AND client = ?"
        row = self._db.execute(sql, (owner, name, client_id)).fetchone()
        return row and Receipt(row[0], row[1], bool(row[2]))

    def is_erased(self, owner: str, name: str, client_id: str) -> bool:
        if (salt := self.setting("salt")) is None:
            return False
        known = erased_digest(bytes.fromhex(salt), owner, name, client_id)
        return self._db.execute("SELECT 1 FROM erased WHERE digest = ?", (known,)).fetchone() is not None

    def state(self, space: Space, key: str) -> StateValue | None:
        sql = "SELECT value, created, updated FROM states WHERE space = ? AND key = ?"
        row = self._db.execute(sql, (space.id, key)).fetchone()
        return row and StateValue(*row)

    def state_keys(self, space: Space, *, newest: bool = False) -> list[str]:
        order = "updated DESC, key" if newest else "key"
        sql = f"SELECT key FROM states WHERE space = ? ORDER BY {order}"
        return [row[0] for row in self._db.execute(sql, (space.id,))]

    def embeddings(self, space: Space, numbers: Sequence[int]) -> Mapping[int, bytes]:
        vectors = self._by_number("vector", "memories", space, numbers)
        return {number: vector for number, vector in vectors.items() if vector is not None}

    def without_embedding(self, after: int | None, limit: int) -> list[tuple[int, str]]:
        return list(islice(without_vector(self._db, after or 0), limit))

    def count_embedded(self) -> int:
        sql = f"SELECT count(vector) FROM memories WHERE {_CURRENT}"
        return int(self._db.execute(sql).fetchone()[0])

    def setting(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return row and str(row[0])

    def size(self, now: float) -> tuple[int, int]:
        spaces, memories = self._db.execute("SELECT count(*), coalesce(sum(count), 0) FROM spaces").fetchone()
        expired = self._db.execute(f"SELECT count(*) FROM memories WHERE expires <= ? AND {_CURRENT}", (now,))
        return spaces, memories - expired.fetchone()[0]

    def _by_number(self, column: str, table: str, space: Space, numbers: Sequence[int]) -> dict[int, Any]:
        keys = json.dumps(sorted(key(space.id, number) for number in numbers))
        sql = f"SELECT {table}.key & {(1 << BITS) - 1}, {column} {_among(table)}"
        return dict(self._db.execute(sql, (keys,)).fetchall())


def _among(table: str) -> str:
    # In the order of the table, one look for each and no list to check: half the time of IN (…).
    return f"FROM json_each(?) AS asked CROSS JOIN {table} ON {table}.key = asked.value"


_WITH_VECTORS = f"SELECT json_group_array(meanings.key & {(1 << BITS) - 1}) {_among('meanings')}"
_OF_TERM = "FROM postings WHERE space = ? AND term = ?"
_NUMBERS = f"SELECT number {_OF_TERM}"
_NUMBERS_BY_ID = f"""SELECT memories.id, memories.key & {(1 << BITS) - 1} FROM json_each(?2) AS asked
    CROSS JOIN memories ON memories.space = ?1 AND memories.id = asked.value"""
_PLACE = f"(number << {PLACE_BITS}) | (worth >> {2 * LENGTH_BITS})"
_TIMES = f"(worth >> {LENGTH_BITS}) & {MAX_LENGTH}"
_LENGTH = f"CASE WHEN parts IS NULL THEN worth & {MAX_LENGTH} ELSE hex(parts) END"
_POSTINGS = f"SELECT {_PLACE}, {_TIMES}, {_LENGTH} {_OF_TERM} ORDER BY number DESC"
# As one row of JSON a term: sqlite3 lets go of the interpreter's lock for every row that it hands out, and a thread
# that writes takes it. It costs a recall no more than rows.
_ARRAYS = f"json_array(json_group_array({_PLACE}), json_group_array({_TIMES}), json_group_array({_LENGTH}))"
_POSTINGS_AT = f"SELECT {_ARRAYS} {_OF_TERM} AND number IN (SELECT value FROM json_each(?))"
_ALL_POSTINGS = f"""SELECT term, {_ARRAYS} FROM postings
    WHERE space = ? AND term IN (SELECT value FROM json_each(?)) GROUP BY term"""
_NEWEST_POSTINGS = f"""SELECT asked.value, (SELECT json_array(count(*), min(number), {_ARRAYS}) FROM (
    SELECT number, worth, parts FROM postings WHERE space = ? AND term = asked.value ORDER BY number DESC LIMIT ?
    )) FROM json_each(?) AS asked"""
# UNION, not UNION ALL: a damaged file in which two memories supersede each other still has an end.
FORMER = """WITH RECURSIVE chain(successor) AS (
    VALUES(?) UNION SELECT m.id FROM memories AS m JOIN chain ON m.successor = chain.successor WHERE m.space = ?)"""
_FORMER = f"""{FORMER} SELECT {COLUMNS} FROM memories WHERE space = ? AND successor IN (SELECT successor FROM chain)
    AND (expires IS NULL OR expires > ?) ORDER BY coalesce(said, created) DESC, id DESC"""
_third = itemgetter(2)
_NOWHERE = Found((), 0, cut=False)


def _newest(space: Space, row: Sequence[Any], bound: int) -> Found:
    memories, oldest, arrays = row
    postings = _postings(arrays)
    if memories < bound:
        return Found(postings, len(postings), cut=False)
    return Found(postings, spread_of(space, bound, oldest) * len(postings) / bound, cut=True)


def _postings(arrays: Iterable[Sequence[Any]]) -> list[Posting]:
    return _by_passage(list(zip(*arrays, strict=True)))


def _by_passage(rows: list[Any]) -> list[Posting]:
    """Postings by passage: the rows as they are, unless there are parts in place of a length."""
    if set(map(type, map(_third, rows))) <= {int}:
        return rows
    long = [(place, bytes.fromhex(parts)) for place, _, parts in rows if isinstance(parts, str)]
    return [row for row in rows if isinstance(row[2], int)] + unpack_long(long)


def _where(space: Space, only: Filter, now: float | None) -> tuple[str, tuple[Value, ...]]:
    parts: list[tuple[str, Value]] = []
    if any((only.since, only.until, only.session_id)) or only.pinned or only.history:
        parts.append(("space = ?", space.id))
    else:
        parts += [("key >= ?", key(space.id, 0)), ("key < ?", key(space.id + 1, 0))]
    equal: dict[str, Value] = {"session = ?": only.session_id, "type = ?": only.memory_type}
    equal |= {_LIVE: now, "created >= ?": first_shown(only.since), "created < ?": first_shown(only.until)}
    parts += [(clause, value) for clause, value in equal.items() if value is not None]
    # Few lists without the tag contain its JSON, so few are read in vain.
    parts += [part for tag in only.tags for part in (("instr(tags, ?)", json.dumps(tag)), (_TAGGED, tag))]
    if only.search:
        parts.append((_CONTAINS, only.search.casefold()))
    clauses = [clause for clause, _ in parts]
    clauses += [*(["pinned"] if only.pinned else []), *([] if only.history else [_CURRENT])]
    return " AND ".join(clauses), tuple(value for _, value in parts)


# Texts of memories that wait for a vector. One that cannot be read is left out; the others go on.

# Without decoding: sqlite3 gives up a whole query at the first text that is not UTF-8.
_WITHOUT_VECTOR = """SELECT key, CASE typeof(content) WHEN 'text' THEN CAST(content AS BLOB) END FROM memories
    WHERE key > ? AND vector IS NULL AND successor IS NULL ORDER BY key"""


def without_vector(db: SqlConnection, after: int) -> Iterator[tuple[int, str]]:
    """The current memories behind this key that have no vector, by key; damaged ones are logged."""
    for where, raw in db.execute(_WITHOUT_VECTOR, (after,)):
        text: str | None = None
        with suppress(UnicodeDecodeError):
            text = None if raw is None else raw.decode()
        if text is None:
            _log.warning("the text at %d is damaged and gets no vector (`kronmem doctor` names its memory)", where)
        else:
            yield where, text
