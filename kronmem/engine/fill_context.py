"""A context that is filled up: pinned memories, the answers, then preferences, decisions and the newest. No SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from kronmem.engine.recall import FoundRow, filler
from kronmem.engine.store import Filter, Page, Reader, Row, Space

FIRST = ("preference", "decision")
"""The types that say most about somebody whom nothing was asked about, in this order."""


def fill(rows: Reader, space: Space, hits: Sequence[FoundRow], only: Filter, limit: int, now: float) -> list[FoundRow]:
    """Pinned memories first, at most half of `limit`; the hits; preferences, decisions and the newest up to `limit`."""
    pinned = rows.page(space, replace(only, pinned=True), Page(limit=max(limit // 2, 1)), now)
    answered = {hit.row.number: hit for hit in hits}
    found = {row.number: answered.get(row.number) or filler(row, now) for row in pinned}
    found |= {number: hit for number, hit in answered.items() if number not in found}
    for row in _profile(rows, space, only, limit, now):
        if len(found) >= limit:
            break
        found.setdefault(row.number, filler(row, now))
    return list(islice(found.values(), limit))


def _profile(rows: Reader, space: Space, only: Filter, limit: int, now: float) -> Iterator[Row]:
    for memory_type in FIRST:
        if only.memory_type in (None, memory_type):
            yield from rows.page(space, replace(only, memory_type=memory_type), Page(limit=limit), now)
    yield from rows.page(space, only, Page(limit=limit), now)
