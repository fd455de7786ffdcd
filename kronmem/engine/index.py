"""Rules of the index that both stores hold alike, so that the same question has the same answer in each. Pure."""

from __future__ import annotations

from kronmem.engine.store import Filter

SEEK = 8
"""Looking one number up costs about as much as reading so many in a row: the bound between the two ways to filter."""
LENGTH_BITS = 20
MAX_LENGTH = (1 << LENGTH_BITS) - 1
"""Longer texts count as this long: SQLite packs the length into so many bits of a posting."""


def labels_of(only: Filter) -> list[str]:
    """The postings that stand for session, type and tags. Their first character occurs in no term."""
    session = [f"\x1ds{only.session_id}"] if only.session_id is not None else []
    memory_type = [f"\x1dt{only.memory_type}"] if only.memory_type is not None else []
    return session + memory_type + [f"\x1dg{tag}" for tag in only.tags]
