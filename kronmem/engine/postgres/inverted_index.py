"""The inverted index of the PostgreSQL store: reads the blocks of postings, and writes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from kronmem.engine.postgres.posting_blocks import BLOCK, BLOCK_BITS, replaced, unpack
from kronmem.engine.postgres.transaction import Transaction, Value
from kronmem.engine.postings import SEEK, spread_of
from kronmem.engine.store import PLACE_BITS, Found, Posting, Space

Block = tuple[str, int, int, int, bytes]
"""Term, space, first number, how many memories, and their entries."""
Changes = Mapping[str, Mapping[int, bytes]]
"""By term and number, the entries that a memory has from now on; none if it goes."""


@dataclass(frozen=True)
class InvertedIndex:
    """The postings of one space, read with `ask`."""

    ask: Callable[[str, Sequence[Value]], list[Any]]
    space: Space

    def labelled(self, label: str) -> frozenset[int]:
        """The memories that have a label."""
        return _numbers(self._unpacked([label], self.ask(_ALL, (self.space.id, [label])))[label])

    def newest(self, bounds: Mapping[str, int]) -> dict[str, Found]:
        """Where each term occurs, in at most its bound of the newest memories; in a small space, in all."""
        whole = self._is_small(bounds)
        return {term: self._found(where, None if whole else bounds[term]) for term, where in self._read(bounds).items()}

    def _found(self, where: list[Posting], bound: int | None) -> Found:
        if bound is None or (oldest := _oldest(where, bound)) is None:
            return Found(where, len(where), cut=False)
        kept = _since(where, oldest)
        return Found(kept, spread_of(self.space, bound, oldest) * len(kept) / bound, cut=True)

    def within(self, bounds: Mapping[str, int], within: frozenset[int]) -> dict[str, Found]:
        """The same among these memories."""
        read = self._read(bounds)
        oldest = {term: _oldest(read[term], bound) for term, bound in bounds.items()}
        more = [] if self._is_small(bounds) else [term for term, number in oldest.items() if number is not None]
        numbers = sorted(within)
        blocks = sorted({number & -BLOCK for number in numbers} | {*numbers})
        rows = self.ask(_AMONG, (self.space.id, more, blocks)) if more and numbers else []
        known = read | self._unpacked(more, rows)
        return {t: self._among(known[t], bound, within, self._spread(read[t], bound)) for t, bound in bounds.items()}

    def _spread(self, where: list[Posting], bound: int) -> float:
        oldest = _oldest(where, bound)
        return len(_numbers(where)) if oldest is None else spread_of(self.space, bound, oldest)

    def _among(self, where: list[Posting], bound: int, within: Collection[int], spread: float) -> Found:
        kept = [posting for posting in where if posting[0] >> PLACE_BITS in within]
        if SEEK * len(within) <= spread or (oldest := _oldest(kept, bound)) is None:
            return Found(kept, spread, cut=False)
        return Found(_since(kept, oldest), spread, cut=True)

    def terms_like(self, start: str, limit: int) -> list[str]:
        """Terms that begin so."""
        end = start + "\U0010ffff"
        return [row[0] for row in self.ask(_TERMS_LIKE, (self.space.id, start, end, self.space.id, end, limit))]

    def _is_small(self, bounds: Mapping[str, int]) -> bool:
        return self.space.last < max(bounds.values(), default=0)  # bounds would save nothing

    def _read(self, bounds: Mapping[str, int]) -> dict[str, list[Posting]]:
        """The blocks of the newest memories, up to the one in which the bound is reached."""
        if self._is_small(bounds):
            return self._unpacked(bounds, self.ask(_ALL, (self.space.id, list(bounds))))
        return self._unpacked(bounds, self.ask(_NEWEST, (list(bounds), list(bounds.values()), self.space.id)))

    @staticmethod
    def _unpacked(terms: Iterable[str], rows: Iterable[Any]) -> dict[str, list[Posting]]:
        found: dict[str, list[Posting]] = {term: [] for term in terms}
        for term, first, packed in rows:
            found[term] += unpack(first, packed)
        return found


def _numbers(where: Iterable[Posting]) -> frozenset[int]:
    return frozenset([place >> PLACE_BITS for place, _, _ in where])


def _oldest(where: list[Posting], bound: int) -> int | None:
    """The oldest of the newest `bound` memories; None if there are fewer."""
    if len(where) < bound or len(numbers := _numbers(where)) < bound:
        return None
    return sorted(numbers, reverse=True)[bound - 1]


def _since(where: list[Posting], oldest: int) -> list[Posting]:
    return [posting for posting in where if posting[0] >> PLACE_BITS >= oldest]


def add_blocks(session: Transaction, blocks: Iterable[Block]) -> None:
    """Add postings of new memories, at most one block of each term and first number."""
    _insert(session, blocks, "memories = p.memories + excluded.memories, packed = excluded.packed || p.packed")


def rewrite(session: Transaction, space: int, first: int, changes: Changes) -> None:
    """Change the postings of some memories."""
    where = "WHERE space = %s AND first = %s AND term = ANY(%s)"
    terms = list(changes)
    known = dict(session.ask(f"SELECT term, packed FROM kronmem.postings {where}", (space, first, terms)))
    new = {term: replaced(known.get(term, b""), changed) for term, changed in changes.items()}
    if kept := [(term, space, first, *block) for term, block in new.items() if block[0]]:
        _insert(session, kept, "memories = excluded.memories, packed = excluded.packed")
    if empty := [term for term, (memories, _) in new.items() if not memories and term in known]:
        session.run(f"DELETE FROM kronmem.postings {where}", (space, first, empty))


def _insert(session: Transaction, blocks: Iterable[Block], update: str) -> None:
    # In the order of the index: its pages fill up instead of being split in the middle.
    rows = sorted(blocks, key=itemgetter(1, 0, 2))
    conflict = f"ON CONFLICT(space, term, first) DO UPDATE SET {update}"
    if not session.distributed:
        session.run(f"{_BLOCKS} {_COLUMNS} {conflict}", [list(column) for column in zip(*rows, strict=True)])
        return
    # Rows from a function are copied to their shard in a two-phase commit, which a node's failure leaves unfinished
    # for a minute; rows as values go there in the node's own transaction.
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        values = ", ".join(["(%s, %s, %s, %s, %s)"] * len(part))
        session.run(f"{_BLOCKS} VALUES {values} {conflict}", [value for row in part for value in row])


_BLOCKS = "INSERT INTO kronmem.postings AS p(term, space, first, memories, packed)"
_COLUMNS = "SELECT * FROM unnest(%s::text[], %s::bigint[], %s::integer[], %s::smallint[], %s::bytea[])"
_ROWS = 500
"""Blocks a statement: it may have 65,535 values."""
_ALL = "SELECT term, first, packed FROM kronmem.postings WHERE space = %s AND term = ANY(%s)"
_AMONG = f"{_ALL} AND first = ANY(%s)"
# A row has a memory at least, so as many rows as the bound hold enough of them; whatever begins among the same 512
# numbers as the last of those has to be seen as well, to tell which are the newest.
_NEWEST = f"""SELECT asked.term, first, packed FROM unnest(%s::text[], %s::integer[]) AS asked(term, bound)
    CROSS JOIN LATERAL (SELECT first, packed, sum(memories) OVER (ORDER BY first >> {BLOCK_BITS} DESC
        GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newer FROM (
        SELECT first, memories, packed FROM kronmem.postings WHERE space = %s AND term = asked.term COLLATE "C"
        ORDER BY first DESC LIMIT asked.bound + {BLOCK}) AS n) AS found
    WHERE newer IS NULL OR newer < asked.bound"""
# One seek a term: DISTINCT would walk through all postings of each.
_TERMS_LIKE = """WITH RECURSIVE alike(term) AS (
        (SELECT term FROM kronmem.postings WHERE space = %s AND term >= %s AND term < %s ORDER BY term LIMIT 1)
        UNION ALL SELECT (SELECT next.term FROM kronmem.postings AS next WHERE next.space = %s
            AND next.term > alike.term AND next.term < %s ORDER BY next.term LIMIT 1)
        FROM alike WHERE alike.term IS NOT NULL)
    SELECT term FROM alike WHERE term IS NOT NULL LIMIT %s"""
