"""Postings of one term, packed into blocks of neighbouring memories: as rows of their own they are mostly header. Pure.

A block holds the postings of 512 consecutive numbers, newest first. A memory of many passages has blocks of its own:
every later memory would rewrite what it fills. `first` is the number that a block begins with, or that memory's.

An entry is one passage: 21 bits of its place, 4 of how many times, 7 of how many terms; larger ones follow in full.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kronmem.engine.postings import MAX_LENGTH, MAX_PART
from kronmem.engine.store import PLACE_BITS, Indexed, Posting

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
    found: list[Posting] = []
    for word in words:
        if (length := word & _FOLLOWS) != _FOLLOWS:
            found.append((base | word >> _PLACE_SHIFT, word >> _TIMES_SHIFT & _MAX_TIMES, length))
        else:
            found.append((base | word >> _PLACE_SHIFT, next(words), next(words)))
    return found


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
    found: list[Posting] = []
    for first, _, packed in blocks:
        found += _unpack_plain(first, packed[: 4 * (bound - len(found))])
    return found


def newest_among(blocks: Sequence[Block], within: Collection[int], bound: int) -> list[Posting]:
    """The same of these memories alone."""
    if not all(map(is_plain, blocks)):
        postings = (posting for block in blocks for posting in unpack(block))
        return _cut([posting for posting in postings if posting[0] >> PLACE_BITS in within], bound)
    found: list[Posting] = []
    for first, memories, packed in blocks:
        words = struct.unpack(f">{memories}I", packed)
        found += _plain(first, [word for word in words if first | word >> _NUMBER_SHIFT in within])
        if len(found) >= bound:
            break
    return found[:bound]


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
