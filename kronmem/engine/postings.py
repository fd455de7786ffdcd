"""Rows and index entries of a memory as both stores write and read them: columns, terms by passage, labels. Pure."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from datetime import timedelta
from itertools import chain, repeat
from typing import Any, TypeAlias

from kronmem.engine import index
from kronmem.engine.store import Filter, Indexed, Posting, Row, Space
from kronmem.engine.word_vectors import SIZE, pack_codes

SEEK = 8
"""Looking one number up costs about as much as reading so many in a row: the bound between the two ways to filter."""
LENGTH_BITS = 20
"""A posting's worth is `kind << 2 * LENGTH_BITS | times << LENGTH_BITS | length`."""
MAX_LENGTH = (1 << LENGTH_BITS) - 1
_PART = struct.Struct("<HHH")
"""One passage of a posting: `passage << 2 | kind`, how many times the term occurs there, how many terms it has."""
MAX_PART = 0xFFFF
"""The largest number that a field of `_PART` holds."""


def labels_of(only: Filter) -> list[str]:
    """The postings that stand for session, type and tags. Their first character occurs in no term."""
    session = [f"\x1ds{only.session_id}"] if only.session_id is not None else []
    memory_type = [f"\x1dt{only.memory_type}"] if only.memory_type is not None else []
    return session + memory_type + [f"\x1dg{tag}" for tag in only.tags]


def labels(row: Row) -> tuple[str, ...]:
    """The labels of one memory."""
    return tuple(labels_of(Filter(row.session_id, row.memory_type, row.tags)))


def digest(content: str) -> bytes:
    """The hash by which texts are compared, without outer spaces."""
    return hashlib.sha256(content.strip().encode()).digest()[:16]


def posted(row: Row) -> tuple[list[str], int]:
    """Every term and label that has a posting of this memory, and how many terms its passages have together."""
    counted = list(index.counted(row.content, row.tags, row.memory_type))
    return [*dict.fromkeys(term for counts, _ in counted for term in counts), *labels(row)], sum(n for _, n in counted)


def pack_parts(places: Sequence[tuple[int, int]], indexed: Indexed) -> bytes:
    """A posting of a memory of several passages: the kind, times and length of each of them."""
    lengths, kinds = indexed.lengths, indexed.kinds
    return b"".join(
        _PART.pack(passage << 2 | kinds[passage], min(times, MAX_PART), min(lengths[passage], MAX_PART))
        for passage, times in places
    )


def unpack_long(rows: Sequence[tuple[int, bytes]]) -> list[Posting]:
    """Postings by passage, from places of memories of several passages and their parts: thousands in one go."""
    bases = chain.from_iterable(repeat(place, len(parts) // _PART.size) for place, parts in rows)
    parts = _PART.iter_unpack(b"".join(parts for _, parts in rows))
    return [(base | part, times, length) for base, (part, times, length) in zip(bases, parts, strict=True)]


def spread_of(space: Space, bound: int, oldest: int) -> float:
    """The number of memories with a term, by its newest `bound` ones back to `oldest`: as dense before as since."""
    return min(bound * space.last / (space.last - oldest + 1), space.count)


def indexed(row: Row) -> Indexed:
    """Everything that a memory is found by."""
    entries = list(index.entries(row.content, row.role, row.tags, row.memory_type))
    kinds = tuple(entry.kind for entry in entries)
    vectors = [entry.vector for entry in entries]
    return Indexed(
        _by_term(entries),
        tuple(entry.length for entry in entries),
        kinds,
        labels(row),
        pack_codes(kinds, vectors),
        b"".join(vector or bytes(SIZE) for vector in vectors),
    )


def _by_term(entries: Sequence[index.Entry]) -> dict[str, list[tuple[int, int]]]:
    if len(entries) == 1:
        return {term: [(0, times)] for term, times in entries[0].terms.items()}
    by_term: dict[str, list[tuple[int, int]]] = {}
    for entry in entries:
        for term, times in entry.terms.items():
            by_term.setdefault(term, []).append((entry.passage, times))
    return by_term


# Rows as columns and back, where both stores write and read the same. Pure.

Column: TypeAlias = "str | bytes | float | bool | None"
CHANGING = (
    *("content", "digest", "type", "session", "tags", "metadata", "expires", "pinned", "said", "updated"),
    "about",
)
"""The columns that may change after a memory was stored, as `changing` fills them."""


def changing(row: Row, said_at: float | None) -> tuple[Column, ...]:
    """The values of `CHANGING`; each store has its own for `said_at`."""
    return (
        row.content,
        digest(row.content),
        row.memory_type,
        row.session_id or "",
        json.dumps(row.tags) if row.tags else "[]",
        json.dumps(row.metadata) if row.metadata else "{}",
        row.expires_at,
        row.pinned,
        said_at,
        row.updated_at,
        row.key or "",
    )


def space_of(columns: Any) -> Space:
    """A space from the columns that both stores select for it; the database knows their types."""
    space, name, description, metadata, *numbers = columns
    return Space(space, name, description, json.loads(metadata) if metadata != "{}" else {}, *numbers)


def to_microseconds(seconds: float) -> float:
    """A time as the API shows it and reads it back: the same number, so that a memory is as old as shown."""
    return round(seconds, 6)


def first_shown(seconds: float | None) -> float | None:
    """The earliest time that the API shows as this one: those of older memories have more digits than microseconds."""
    if seconds is None:
        return None
    shown = timedelta(seconds=seconds)
    edge = (2 * (shown // timedelta(microseconds=1)) - 1) / 2_000_000
    return min(edge if timedelta(seconds=edge) == shown else math.nextafter(edge, math.inf), seconds)
