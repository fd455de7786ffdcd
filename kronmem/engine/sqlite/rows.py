"""Memories from their columns. A row that cannot be read is left out of lists and recalls; the others go on."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from kronmem.engine.store import Row
from kronmem.errors import StoreError

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
    """What `execute` gives back. The database, not the type checker, knows what is in a row."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """What a transaction runs on."""

    def execute(self, sql: str, parameters: Sequence[Value] = ..., /) -> SqlCursor: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[Value]], /) -> SqlCursor: ...


def key(space_id: int, number: int) -> int:
    """Where the memory `number` of a space lies."""
    return space_id << BITS | number


def read_row(row: Any) -> Row:
    """A memory from its columns; `StoreError` when they hold no memory."""
    (where, memory_id, content, memory_type, session, tags, metadata, created, expires, pinned, accessed) = row[:11]
    said, updated, role, about, successor, passages = row[11:]
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
        said_at=created if said is None else said,
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
    """One page of such a query, which ends with a limit and an offset; what follows takes the place of damaged rows."""
    try:
        return [read_row(row) for row in db.execute(sql, (*values, limit, offset))]
    except (StoreError, sqlite3.OperationalError) as error:
        check_damage(error)
        found = (row for row in each_row(db, sql, (*values, -1, offset)) if isinstance(row, Row))
        return list(found if limit < 0 else islice(found, limit))


def check_damage(error: Exception) -> None:
    """Raise an error again that is not about one unreadable row; log one that is."""
    if isinstance(error, sqlite3.Error) and not str(error).startswith("Could not decode to UTF-8"):
        raise error
    told = str(error) if isinstance(error, StoreError) else "a memory is damaged: its text is not UTF-8"
    _log.warning("%s; it is left out (`kronmem doctor` names it)", told)


def each_row(db: SqlConnection, sql: str, values: Sequence[Value]) -> Iterator[Row | tuple[int, str]]:
    """Every memory of a query of `COLUMNS`; in place of a damaged one its key and its id, as far as it is readable."""
    for raw in db.execute(sql.replace(COLUMNS, _RAW), values):
        try:
            yield read_row([part.decode() if isinstance(part, bytes) else part for part in raw])
        except (StoreError, UnicodeDecodeError):
            memory_id = raw[1]
            yield raw[0], memory_id.decode(errors="replace") if isinstance(memory_id, bytes) else str(memory_id)
