"""A context that is filled up: pinned memories, the answers, then preferences, decisions and the newest. No SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from kronmem.engine.near_duplicates import statement
from kronmem.engine.recall import FoundRow, filler
from kronmem.engine.store import Filter, Page, Reader, Row, Space

FIRST = ("preference", "decision")
"""The types that say most about somebody whom nothing was asked about, in this order."""

MOST_PAGES = 10
"""So many pages are read where near duplicates take no place of their own: a context is worth no longer walk."""


def fill(rows: Reader, space: Space, hits: Sequence[FoundRow], only: Filter, limit: int, now: float) -> list[FoundRow]:
    """Pinned memories first, at most half of `limit`; the hits; preferences, decisions and the newest up to `limit`."""
    pinned = rows.page(space, replace(only, pinned=True), Page(limit=max(limit // 2, 1)), now)
    answered = {hit.row.number: hit for hit in hits}
    found: dict[tuple[str, ...], FoundRow] = {}  # one for each statement: near duplicates take one place
    for row in pinned:
        found.setdefault(statement(row.content), answered.get(row.number) or filler(row, now))
    for hit in hits:
        found.setdefault(statement(hit.row.content), hit)
    for row in _profile(rows, space, only, limit, now):
        if len(found) >= limit:
            break
        found.setdefault(statement(row.content), filler(row, now))
    return list(islice(found.values(), limit))


def _profile(rows: Reader, space: Space, only: Filter, limit: int, now: float) -> Iterator[Row]:
    for memory_type in FIRST:
        if only.memory_type in (None, memory_type):
            yield from _newest(rows, space, replace(only, memory_type=memory_type), limit, now)
    yield from _newest(rows, space, only, limit, now)


def _newest(rows: Reader, space: Space, only: Filter, limit: int, now: float) -> Iterator[Row]:
    for page in range(MOST_PAGES):
        part = rows.page(space, only, Page(limit=limit, offset=page * limit), now)
        yield from part
        if len(part) < limit:
            return
