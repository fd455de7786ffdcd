"""Postings of one term, packed into blocks of neighbouring memories: as rows of their own they are mostly header. Pure.

A block holds the postings of 512 consecutive numbers, newest first. A memory of many passages has blocks of its own:
every later memory would rewrite what it fills. `first` is the number that a block begins with, or that memory's.

An entry is one passage: 21 bits of its place, 4 of how many times, 7 of how many terms; larger ones follow in full.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from kronmem.engine.postings import MAX_LENGTH, MAX_PART
from kronmem.engine.store import PLACE_BITS, Indexed, Posting

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
_OFFSET = f"((number & {BLOCK - 1})::bigint << {_NUMBER_SHIFT})"
# PostgreSQL's operators on bits have one precedence among them.
MIGRATE = f"""INSERT INTO kronmem.postings(term, space, first, memories, packed)
    SELECT term, r.space, (number >> {BLOCK_BITS}) << {BLOCK_BITS}, count(*), string_agg(CASE
        WHEN times <= {_MAX_TIMES} AND length < {_FOLLOWS}
        THEN int4send(({_OFFSET} | (times << {_TIMES_SHIFT}) | length)::bit(32)::integer)
        ELSE int4send(({_OFFSET} | {_FOLLOWS})::bit(32)::integer) || int4send(times) || int4send(length)
        END, '' ORDER BY number DESC)
    FROM kronmem.posting AS p JOIN renamed AS r ON r.old = p.space GROUP BY r.space, term, number >> {BLOCK_BITS}"""
"""The blocks from the postings of schema 1, which were a row each and of memories as a whole."""


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


def unpack(first: int, packed: bytes) -> list[Posting]:
    """The postings of a block."""
    base = first >> BLOCK_BITS << BLOCK_BITS + PLACE_BITS
    words = iter(struct.unpack(f">{len(packed) // 4}I", packed))
    found: list[Posting] = []
    for word in words:
        if (length := word & _FOLLOWS) != _FOLLOWS:
            found.append((base | word >> _PLACE_SHIFT, word >> _TIMES_SHIFT & _MAX_TIMES, length))
        else:
            found.append((base | word >> _PLACE_SHIFT, next(words), next(words)))
    return found


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
