"""The bounds of a read. Sent to services that filter, and held against every answer: not all of them do. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from kronmem.core import inputs
from kronmem.models import Hit, Memory


@dataclass(frozen=True)
class MemoryFilter:
    """Only memories that pass every bound are read. `since` is included, `until` is not."""

    memory_type: str | None = None
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def narrow(self) -> bool:
        """Is there anything to filter by?"""
        return self is not EVERYTHING and self != EVERYTHING

    def holds(self, one: Memory) -> bool:
        """Is this memory inside?"""
        return (
            (self.memory_type is None or one.memory_type == self.memory_type)
            and (self.session_id is None or one.session_id == self.session_id)
            and set(self.tags) <= set(one.tags)
            and self._is_time_inside(one.created_at)
        )

    def _is_time_inside(self, created_at: datetime | None) -> bool:
        if self.since is None and self.until is None:
            return True
        if created_at is None:
            return False
        at = inputs.aware(created_at)
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


EVERYTHING = MemoryFilter()
"""The filter that every memory passes."""


def memory_filter(
    memory_type: str | None = None,
    session_id: str | None = None,
    tags: Iterable[str] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
) -> MemoryFilter:
    """Check the bounds of a read."""
    if memory_type is None and session_id is None and tags == () and since is None and until is None:
        return EVERYTHING
    return MemoryFilter(
        inputs.optional_type(memory_type),
        inputs.session(session_id),
        inputs.tags(tags),
        inputs.moment(since, "since"),
        inputs.moment(until, "until"),
    )


def keep(found: list[Hit], *, limit: int, within: MemoryFilter, threshold: float | None) -> list[Hit]:
    """Filter again: at Kronvex an entity match returns memories that ignore every filter."""
    if threshold is None and not within.narrow:
        return found[:limit]
    kept = [
        hit
        for hit in found
        if within.holds(hit.memory)
        and (threshold is None or hit.standing or hit.similarity >= threshold or _is_unscored(hit))
    ]
    return kept[:limit]


def _is_unscored(hit: Hit) -> bool:
    return "similarity" not in hit.model_fields_set
