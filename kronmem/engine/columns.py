"""Rows as columns and back, where both stores write and read the same. Pure."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any, TypeAlias

from kronmem.engine.postings import digest
from kronmem.engine.store import Row, Space

Column: TypeAlias = "str | bytes | float | bool | None"
CHANGING = (
    *("content", "digest", "type", "session", "tags", "metadata", "expires", "pinned", "said", "updated"),
    "about",
)
"""The columns that may change after a memory was stored, as `changing` fills them."""


def changing(row: Row, said_at: float | None) -> tuple[Column, ...]:
    """The values of `CHANGING`; each store has its own for the time it was said."""
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
    """A time as the API shows it and reads it back: the same number, so that a memory is as old as it says."""
    return round(seconds, 6)


def first_shown(seconds: float | None) -> float | None:
    """The earliest time that the API shows as this one: those of older memories have more digits than microseconds."""
    if seconds is None:
        return None
    shown = timedelta(seconds=seconds)
    edge = (2 * (shown // timedelta(microseconds=1)) - 1) / 2_000_000
    return min(edge if timedelta(seconds=edge) == shown else math.nextafter(edge, math.inf), seconds)
