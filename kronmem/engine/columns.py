"""Rows as columns and back, where both stores write and read the same. Pure."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from kronmem.engine.postings import digest
from kronmem.engine.store import Row, Space

Column: TypeAlias = "str | bytes | float | bool | None"


def changing(row: Row, said_at: float | None) -> tuple[Column, ...]:
    """The columns that may change after a memory was stored; each store has its own for the time it was said."""
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
