"""The inverted index of the PostgreSQL store: postings packed into blocks, read and written."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from kronmem.engine.postgres.transaction import Transaction, Value
from kronmem.engine.postings import MAX_LENGTH, MAX_PART, SEEK, spread_of
from kronmem.engine.store import PLACE_BITS, Found, Indexed, Posting, Space

# Postings of one term, packed into blocks of neighbouring memories: as rows of their own they are mostly header. Pure.
#
# A block holds the postings of 512 consecutive numbers, newest first. A memory of many passages has blocks of its own:
# every later memory would rewrite what it fills. `first` is the number that a block begins with, or that memory's.
#
# An entry is one passage: 21 bits of its place, 4 of how many times, 7 of how many terms; larger ones follow in full.

Block = tuple[int, int, bytes]
"""The first number, how many memories, and their entries."""
BLOCK_BITS = 9
BLOCK = 1 << BLOCK_BITS
"""A block of a term that every memory has stays below 2 kB, beyond which PostgreSQL would move it out of its row."""
SHARING = 4
"""The most passages of a memory that shares its blocks."""
_TIMES_SHIFT = 7
_PLACE_SHIFT = 11
_NUMBER_SHIFT = _PLACE_SHIFT + PLACE_BITS
_MAX_TIMES = 15
_FOLLOWS = 127
"""In place of a length: times and length follow, each in a word."""
_LONG = struct.Struct(">III")


def first_of(number: int, passages: int) -> int:
    """The block of a memory's postings."""
    return number if passages > SHARING else number & -BLOCK


def pack(number: int, indexed: Indexed) -> Iterator[tuple[str, bytes]]:
    """The terms and labels of a memory, each with its entries."""
    most = MAX_LENGTH if len(indexed.lengths) == 1 else MAX_PART
    lengths = [min(length, most) for length in indexed.lengths]
    offset = (number & BLOCK - 1) << _NUMBER_SHIFT
    heads = [offset | (at << 2 | kind) << _PLACE_SHIFT for at, kind in enumerate(indexed.kinds)]
    for term, places in indexed.terms.items():
        yield term, b"".join([_entry(heads[at], min(times, most), lengths[at]) for at, times in places])
    for label in indexed.labels:
        yield label, _entry(offset, 0, 0)


def _entry(head: int, times: int, length: int) -> bytes:
    if times <= _MAX_TIMES and length < _FOLLOWS:
        return (head | times << _TIMES_SHIFT | length).to_bytes(4, "big")
    return _LONG.pack(head | _FOLLOWS, times, length)


def unpack(block: Block) -> list[Posting]:
    """The postings of a block."""
    first, _, packed = block
    if is_plain(block):
        return _unpack_plain(first, packed)
    base = first >> BLOCK_BITS << BLOCK_BITS + PLACE_BITS
    words = iter(struct.unpack(f">{len(packed) // 4}I", packed))
    postings: list[Posting] = []
    for word in words:
        if (length := word & _FOLLOWS) != _FOLLOWS:
            postings.append((base | word >> _PLACE_SHIFT, word >> _TIMES_SHIFT & _MAX_TIMES, length))
        else:
            postings.append((base | word >> _PLACE_SHIFT, next(words), next(words)))
    return postings


def is_plain(block: Block) -> bool:
    """Is every memory of the block one word of it? That is most blocks, and quickly read."""
    first, memories, packed = block
    return len(packed) == 4 * memories and not first & BLOCK - 1


def _unpack_plain(first: int, packed: bytes) -> list[Posting]:
    return _plain(first, struct.unpack(f">{len(packed) // 4}I", packed))


def _plain(first: int, words: Iterable[int]) -> list[Posting]:
    base = first << PLACE_BITS
    return [(base | word >> _PLACE_SHIFT, word >> _TIMES_SHIFT & _MAX_TIMES, word & _FOLLOWS) for word in words]


def newest(blocks: Sequence[Block], bound: int) -> list[Posting]:
    """The postings of the newest memories of blocks that come newest first, at most `bound` memories."""
    if not all(map(is_plain, blocks)):
        return _cut([posting for block in blocks for posting in unpack(block)], bound)
    postings: list[Posting] = []
    for first, _, packed in blocks:
        postings += _unpack_plain(first, packed[: 4 * (bound - len(postings))])
    return postings


def newest_among(blocks: Sequence[Block], within: Collection[int], bound: int) -> list[Posting]:
    """The same of these memories alone."""
    if not all(map(is_plain, blocks)):
        postings = (posting for block in blocks for posting in unpack(block))
        return _cut([posting for posting in postings if posting[0] >> PLACE_BITS in within], bound)
    chosen: list[Posting] = []
    for first, memories, packed in blocks:
        words = struct.unpack(f">{memories}I", packed)
        chosen += _plain(first, [word for word in words if first | word >> _NUMBER_SHIFT in within])
        if len(chosen) >= bound:
            break
    return chosen[:bound]


def _cut(postings: list[Posting], bound: int) -> list[Posting]:
    numbers = {place >> PLACE_BITS for place, _, _ in postings}
    if len(numbers) <= bound:
        return postings
    oldest = sorted(numbers, reverse=True)[bound - 1]
    return [posting for posting in postings if posting[0] >> PLACE_BITS >= oldest]


def oldest(blocks: Sequence[Block], bound: int) -> int:
    """The oldest of the newest `bound` memories of blocks that have so many."""
    if not all(map(is_plain, blocks)):
        return min(newest(blocks, bound))[0] >> PLACE_BITS
    for first, memories, packed in blocks:
        if memories >= bound:
            return first | int.from_bytes(packed[4 * bound - 4 : 4 * bound], "big") >> _NUMBER_SHIFT
        bound -= memories
    raise ValueError("there are fewer")


def replaced(packed: bytes, changes: Mapping[int, bytes]) -> tuple[int, bytes]:
    """How many memories a block has, and the block, with new entries for some numbers; none takes a number out."""
    kept: dict[int, bytes] = {}
    at = 0
    while at < len(packed):
        word = int.from_bytes(packed[at : at + 4], "big")
        end = at + (_LONG.size if word & _FOLLOWS == _FOLLOWS else 4)
        offset = word >> _NUMBER_SHIFT
        kept[offset] = kept.get(offset, b"") + packed[at:end]
        at = end
    kept |= {number & BLOCK - 1: entries for number, entries in changes.items()}
    filled = [kept[offset] for offset in sorted(kept, reverse=True) if kept[offset]]
    return len(filled), b"".join(filled)


Row = tuple[str, int, int, int, bytes]
"""Term, space, and a block."""
Changes = Mapping[str, Mapping[int, bytes]]
"""By term and number, the entries that a memory has from now on; none if it goes."""


@dataclass(frozen=True)
class InvertedIndex:
    """The postings of one space, read with `ask`."""

    ask: Callable[[str, Sequence[Value]], list[Any]]
    space: Space

    def labelled(self, label: str) -> frozenset[int]:
        """The memories that have a label."""
        blocks = self._blocks([label], _ALL, (self.space.id, [label]))[label]
        return frozenset([place >> PLACE_BITS for block in blocks for place, _, _ in unpack(block)])

    def newest(self, bounds: Mapping[str, int]) -> dict[str, Found]:
        """Where each term occurs, in at most its bound of the newest memories; in a small space, in all."""
        whole = self._is_small(bounds)
        return {t: self._newest(blocks, None if whole else bounds[t]) for t, blocks in self._read(bounds).items()}

    def _newest(self, blocks: list[Block], bound: int | None) -> Found:
        if bound is None or _count(blocks) < bound:
            where = [posting for block in blocks for posting in unpack(block)]
            return Found(where, len(where), cut=False)
        where = newest(blocks, bound)
        spread = spread_of(self.space, bound, oldest(blocks, bound)) * len(where) / bound
        return Found(where, spread, cut=True)

    def within(self, bounds: Mapping[str, int], within: frozenset[int]) -> dict[str, Found]:
        """The same among these memories."""
        read = self._read(bounds)
        spread = {term: self._spread(read[term], bound) for term, bound in bounds.items()}
        by_term: dict[str, Found] = {}
        for term, bound in bounds.items():
            whole = not within or self._is_small(bounds) or _count(read[term]) < bound
            if whole or SEEK * len(within) > spread[term]:
                known = _among(read[term], bound, within, spread[term])
                by_term |= {term: known} if whole or known.cut else {}
        if more := [term for term in bounds if term not in by_term]:
            blocks = self._read_among(more, within)
            by_term |= {term: _among(blocks[term], bounds[term], within, spread[term]) for term in more}
        return by_term

    def _spread(self, blocks: list[Block], bound: int) -> float:
        if (count := _count(blocks)) < bound:
            return count
        return spread_of(self.space, bound, oldest(blocks, bound))

    def terms_like(self, start: str, limit: int) -> list[str]:
        """Terms that begin so."""
        end = start + "\U0010ffff"
        return [row[0] for row in self.ask(_TERMS_LIKE, (self.space.id, start, end, self.space.id, end, limit))]

    def _is_small(self, bounds: Mapping[str, int]) -> bool:
        return self.space.last < max(bounds.values(), default=0)  # bounds would save nothing

    def _read(self, bounds: Mapping[str, int]) -> dict[str, list[Block]]:
        """The blocks of the newest memories, up to those in which the bound is reached."""
        if self._is_small(bounds):
            return self._blocks(bounds, _ALL, (self.space.id, list(bounds)))
        return self._blocks(bounds, _NEWEST, (list(bounds), list(bounds.values()), self.space.id))

    def _read_among(self, terms: list[str], within: frozenset[int]) -> dict[str, list[Block]]:
        """The blocks that these memories are in."""
        if self.space.last < BLOCK * len(within):
            return self._blocks(terms, _BETWEEN, (self.space.id, terms, min(within) & -BLOCK, max(within)))
        return self._blocks(terms, _AT, (self.space.id, terms, sorted({number & -BLOCK for number in within} | within)))

    def _blocks(self, terms: Iterable[str], sql: str, values: Sequence[Value]) -> dict[str, list[Block]]:
        """By term, newest first."""
        by_term: dict[str, list[Block]] = {term: [] for term in terms}
        for term, *block in sorted(self.ask(sql, values), key=_first, reverse=True):
            by_term[term].append((block[0], block[1], block[2]))
        return by_term


_first = itemgetter(1)


def _count(blocks: Iterable[Block]) -> int:
    return sum([memories for _, memories, _ in blocks])


def _among(blocks: list[Block], bound: int, within: frozenset[int], spread: float) -> Found:
    if SEEK * len(within) <= spread:  # so few are looked up one by one, and none is left out
        return Found(newest_among(blocks, within, len(within)), spread, cut=False)
    where = newest_among(blocks, within, bound)
    return Found(where, spread, cut=len({place >> PLACE_BITS for place, _, _ in where}) == bound)


def add_blocks(session: Transaction, blocks: Iterable[Row]) -> None:
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


def _insert(session: Transaction, blocks: Iterable[Row], update: str) -> None:
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
_ALL = "SELECT term, first, memories, packed FROM kronmem.postings WHERE space = %s AND term = ANY(%s)"
_AT = f"{_ALL} AND first = ANY(%s)"
_BETWEEN = f"{_ALL} AND first BETWEEN %s AND %s"
# A row has a memory at least, so as many rows as the bound hold enough of them; whatever begins among the same 512
# numbers as the last of those has to be seen as well, to tell which are the newest.
_NEWEST = f"""SELECT asked.term, first, memories, packed FROM unnest(%s::text[], %s::integer[]) AS asked(term, bound)
    CROSS JOIN LATERAL (SELECT first, memories, packed, sum(memories) OVER (ORDER BY first >> {BLOCK_BITS} DESC
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
