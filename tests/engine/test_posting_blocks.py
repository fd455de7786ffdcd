"""Blocks of packed postings say the same as one row for each posting."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

import pytest

from kronmem.engine.postgres.inverted_index import Block, first_of, newest, newest_among, pack, replaced, unpack
from kronmem.engine.postings import MAX_LENGTH, indexed, pack_parts, unpack_long
from kronmem.engine.store import PLACE_BITS, Indexed, Posting, Row

EMPTY = (0, b"")


def text_of(choose: random.Random) -> str:
    """One to forty words, now and then many passages."""
    words = choose.choices(["tea", "Oslo", "user", "likes", "glacier", "?"], k=choose.choice([1, 3, 8, 40]))
    return " ".join(words * choose.choice([1, 1, 1, 30]))


def index_of(content: str) -> Indexed:
    return indexed(Row(1, "", content, "fact", "s", ("red",), {}, 0.0, None, False, 0, 0.0))


def by_rows(number: int, index: Indexed, term: str) -> list[Posting]:
    """The postings of a memory as a store of one row each would have them."""
    if term not in index.terms:
        return [(number << PLACE_BITS, 0, 0)] if term in index.labels else []
    places, place = index.terms[term], number << PLACE_BITS
    if len(index.lengths) == 1:
        return [(place | index.kinds[0], min(places[0][1], MAX_LENGTH), min(index.lengths[0], MAX_LENGTH))]
    return unpack_long([(place, pack_parts(places, index))])


def blocks_of(indexes: Mapping[int, Indexed], term: str) -> list[Block]:
    """The blocks of a term, newest first, as memories that come one after another leave them."""
    found: dict[int, tuple[int, bytes]] = {}
    for number, index in sorted(indexes.items()):
        entries = dict(pack(number, index)).get(term)
        if entries is not None:
            first = first_of(number, len(index.lengths))
            memories, before = found.get(first, EMPTY)
            found[first] = (memories + 1, entries + before)
    return [(first, *found[first]) for first in sorted(found, reverse=True)]


def all_of(indexes: Mapping[int, Indexed], term: str, numbers: Iterable[int]) -> list[Posting]:
    return sorted(posting for number in numbers for posting in by_rows(number, indexes[number], term))


@pytest.fixture(scope="module")
def indexes() -> dict[int, Indexed]:
    choose = random.Random(4)
    known = {text: index_of(text) for text in (text_of(choose) for _ in range(60))}
    return {number: known[choose.choice(list(known))] for number in range(300, 1400)}


@pytest.mark.parametrize("term", ["user", "tea", "\x1dss", "\x1dgred", "nowhere"])
def test_blocks_hold_what_rows_of_their_own_would(indexes: dict[int, Indexed], term: str) -> None:
    blocks = blocks_of(indexes, term)
    assert sorted(posting for block in blocks for posting in unpack(block)) == all_of(indexes, term, indexes)


@pytest.mark.parametrize("bound", [1, 7, 300, 5000])
def test_the_newest_memories_are_cut_off_where_rows_would_be(indexes: dict[int, Indexed], bound: int) -> None:
    having = sorted((n for n, index in indexes.items() if "user" in index.terms), reverse=True)
    blocks, within = blocks_of(indexes, "user"), {n for n in indexes if n % 3}
    assert sorted(newest(blocks, bound)) == all_of(indexes, "user", having[:bound])
    among = [number for number in having if number in within][:bound]
    assert sorted(newest_among(blocks, within, bound)) == all_of(indexes, "user", among)


def test_short_memories_alone_are_cut_off_as_well() -> None:
    indexes = dict.fromkeys(range(1, 1200), index_of("tea"))
    blocks = blocks_of(indexes, "tea")
    assert [number >> PLACE_BITS for number, _, _ in newest(blocks, 600)] == list(range(1199, 599, -1))
    even = newest_among(blocks, {*range(0, 1200, 2)}, 500)
    assert [number >> PLACE_BITS for number, _, _ in even] == list(range(1198, 198, -2))


def test_a_memory_of_many_passages_fills_no_block_that_others_grow(indexes: dict[int, Indexed]) -> None:
    long = index_of("tea and biscuits " * 200)
    blocks = blocks_of({**indexes, 700: long}, "tea")
    assert len(long.lengths) > 4
    assert next(block for block in blocks if block[0] == 700)[1] == 1
    assert first_of(700, 1) == 512


def test_entries_change_and_go_with_the_rest_left_as_it_is(indexes: dict[int, Indexed]) -> None:
    few = {number: indexes[number] for number in range(512, 560)}
    short = {number: index for number, index in few.items() if "user" in index.terms and len(index.lengths) <= 4}
    first, memories, packed = blocks_of(short, "user")[0]
    gone, changed = sorted(short)[3], sorted(short)[5]
    new = index_of("user user user")
    left = replaced(packed, {gone: b"", changed: dict(pack(changed, new))["user"]})
    expected = {number: index for number, index in short.items() if number != gone} | {changed: new}
    assert (first, *left) == blocks_of(expected, "user")[0]
    assert left[0] == memories - 1
    assert replaced(packed, dict.fromkeys(short, b"")) == EMPTY


@pytest.mark.parametrize(("times", "length"), [(15, 126), (16, 20), (3, 127), (1 << 21, 1 << 21)])
def test_large_counts_follow_in_full(times: int, length: int) -> None:
    index = Indexed({"tea": [(0, times)]}, (length,), (3,), (), b"", b"")
    block = (1024, 1, dict(pack(1030, index))["tea"])
    assert unpack(block) == [(1030 << PLACE_BITS | 3, min(times, MAX_LENGTH), min(length, MAX_LENGTH))]
