"""What stands around the hits of a question: standing notes, a profile, or all that fills a context up. No SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from kronmem.engine import asker
from kronmem.engine.code_cache import CachedCodes
from kronmem.engine.near_duplicates import statement
from kronmem.engine.recall import FoundRow, Search, Told, filler, listing
from kronmem.engine.scoring import CLEAR
from kronmem.engine.store import Page, Reader, Row, Space

FIRST = ("preference", "decision")
"""The types that say most about somebody whom nothing was asked about, in this order."""

MOST_PAGES = 10
"""So many pages are read where near duplicates take no place of their own: a context is worth no longer walk."""
STANDING, STANDING_CHARS = 5, 600
"""Of standing notes: they are in every prompt, so they take about 150 tokens of it and no more."""
OLDEST, NEWEST = 200, 800
"""So many facts are looked at for a profile: people introduce themselves at the beginning."""
FACTS = 3
"""So many places of a profile are kept for facts, however many preferences there are."""


class _Surroundings:
    """The rows of one agent that a question may be filled up with: within its filter, and not known to the caller."""

    def __init__(self, rows: Reader, space: Space, asked: Search, now: float, codes: CachedCodes) -> None:
        self._rows, self._space, self._only, self._now, self._codes = rows, space, asked.only, now, codes
        self._known = codes.numbers(rows, space, asked.exclude) if asked.exclude else frozenset[int]()

    def pinned(self, limit: int) -> list[Row]:
        page = Page(limit=limit + len(self._known))
        return self._rows.page(self._space, replace(self._only, pinned=True), page, self._now)

    def of_type(self, memory_type: str, *, oldest: int = 0, newest: int = NEWEST) -> Iterator[Row]:
        """Memories of a type, newest first, by the index of types: few of many have one of those asked for."""
        if self._only.memory_type not in (None, memory_type):
            return
        numbers = sorted(self._rows.matching(self._space, replace(self._only, memory_type=memory_type)), reverse=True)
        wanted = list(dict.fromkeys((*numbers[:newest], *numbers[len(numbers) - oldest :])))
        for start in range(0, len(wanted), 100):
            found = self._rows.rows(self._space, wanted[start : start + 100], self._now)
            yield from (found[number] for number in wanted[start : start + 100] if number in found)

    def newest(self, limit: int) -> Iterator[Row]:
        size = limit + len(self._known)
        for page in range(MOST_PAGES):
            part = self._rows.page(self._space, self._only, Page(limit=size, offset=page * size), self._now)
            yield from part
            if len(part) < size:
                return

    def unknown(self, found: Iterable[Row]) -> Iterator[Row]:
        """Those that the caller does not have, in these or nearly these words."""
        return (row for row in found if row.number not in self._known and not self._repeats(row))

    def _repeats(self, row: Row) -> bool:
        if not self._known or not (alike := self._codes.alike(row.number, self._known)):
            return False
        known = self._rows.rows(self._space, alike, self._now).values()
        return statement(row.content) in {statement(one.content) for one in known}


def fill(
    rows: Reader, space: Space, hits: Sequence[FoundRow], asked: Search, now: float, codes: CachedCodes
) -> list[FoundRow]:
    """The hits with what the question wants around them."""
    around = _Surroundings(rows, space, asked, now, codes)
    filled = _with_standing if asked.fill == "profile" else _filled_up
    return filled(around, hits, asked.limit, now)


def _with_standing(around: _Surroundings, hits: Sequence[FoundRow], limit: int, now: float) -> list[FoundRow]:
    """Standing notes first, then the hits; where there is room for one of both only, half of it is the hits'."""
    answered = {hit.row.number: hit for hit in hits}
    notes = list(around.unknown(_standing_notes(around)))
    numbers = {row.number for row in notes}
    others = [hit for hit in hits if hit.row.number not in numbers]
    notes = notes[: limit - min(len(others), limit // 2)]
    standing = [replace(answered.get(row.number) or filler(row, now), standing=True) for row in notes]
    return [*standing, *others][:limit]


def _standing_notes(around: _Surroundings) -> list[Row]:
    """Pinned memories, then preferences, newest first, within both bounds; the same whatever was asked."""
    notes: dict[tuple[str, ...], Row] = {}
    left = STANDING_CHARS
    for row in chain(around.pinned(4 * STANDING), islice(around.of_type("preference"), 4 * STANDING)):
        if len(row.content) <= left and (said := statement(row.content)) not in notes:
            notes[said] = row
            left -= len(row.content)
        if len(notes) == STANDING:
            break
    return list(notes.values())


def _filled_up(around: _Surroundings, hits: Sequence[FoundRow], limit: int, now: float) -> list[FoundRow]:
    """Pinned memories first, at most half of `limit`; the hits; preferences, decisions and the newest up to `limit`."""
    answered = {hit.row.number: hit for hit in hits}
    found: dict[tuple[str, ...], FoundRow] = {}  # one for each statement: near duplicates take one place
    for row in islice(around.unknown(around.pinned(limit)), max(limit // 2, 1)):
        found.setdefault(statement(row.content), answered.get(row.number) or filler(row, now))
    for hit in hits:
        found.setdefault(statement(hit.row.content), hit)
    rest = chain(*(around.of_type(memory_type) for memory_type in FIRST), around.newest(limit))
    for row in around.unknown(rest):
        if len(found) >= limit:
            break
        found.setdefault(statement(row.content), filler(row, now))
    return list(islice(found.values(), limit))


def told(
    rows: Reader, space: Space, hits: Sequence[FoundRow], asked: Search, when: Told, now: float, codes: CachedCodes
) -> list[FoundRow]:
    """All of a range of time, newest first; what is found by a date that it names itself stands before."""
    within = replace(asked, only=replace(asked.only, since=when.since, until=when.until))
    around = _Surroundings(rows, space, within, now, codes)
    listed = _distinct(islice(around.unknown(around.newest(asked.limit)), 4 * asked.limit))
    if _DECIDED.search(asked.query):
        listed.sort(key=lambda row: row.memory_type != "decision")
    named = [hit for hit in hits if when.dated and hit.similarity >= CLEAR] if listed else hits
    numbers = {hit.row.number for hit in named}
    return [*named, *(listing(row, now) for row in listed if row.number not in numbers)][: asked.limit]


_DECIDED = re.compile(r"decid|decision|entschieden|beschlossen", re.IGNORECASE)


def profile(rows: Reader, space: Space, asked: Search, now: float, codes: CachedCodes) -> list[FoundRow]:
    """The person who asks: pinned memories, preferences, decisions, then the facts that say most; none of it if nothing
    is known but what an assistant said."""
    around = _Surroundings(rows, space, asked, now, codes)
    noted = [*around.pinned(asked.limit), *islice(around.of_type("preference"), 2 * asked.limit)]
    decided = list(islice(around.of_type("decision"), 2 * asked.limit))
    told = [row for row in around.of_type("fact", oldest=OLDEST) if row.role in ("user", None)]
    facts = sorted(told, key=lambda row: -asker.importance(row.content))
    if not noted and not any(row.role == "user" or asker.importance(row.content) for row in (*facts, *decided)):
        return []
    before, behind = _distinct(around.unknown((*noted, *decided))), _distinct(around.unknown(facts))
    before = before[: asked.limit - min(len(behind), FACTS, (asked.limit + 1) // 2, asked.limit - 1)]
    chosen = _distinct((*before, *behind))[: asked.limit]
    return [replace(filler(row, now), standing=True) for row in chosen]


def _distinct(found: Iterable[Row]) -> list[Row]:
    kept: dict[tuple[str, ...], Row] = {}
    for row in found:
        kept.setdefault(statement(row.content), row)
    return list(kept.values())
