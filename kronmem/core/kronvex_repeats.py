"""A text that is told again: whether it is the same, and the difference that the repeat makes to its row. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from kronmem.core import memory_json
from kronmem.core.memory_json import WireMemory

if TYPE_CHECKING:
    from kronmem.core.calls import Draft

SAME_END = timedelta(seconds=60)
"""Ends closer than the shortest lifetime are the same."""


@dataclass(frozen=True)
class RepeatEffect:
    """The difference that a repeat makes: `anew` is to be stored in place of the row; None: setting `pins` will do."""

    anew: Draft | None = None
    pins: tuple[bool, ...] = ()


def change(draft: Draft, own: WireMemory, now: datetime) -> RepeatEffect | None:
    """The difference that a repeat makes, by the rules of our own engine: tags add up, the later end and a pin win."""
    if draft.client_id in own.ids:  # the same call again
        return None
    old = memory_json.to_memory(own, draft.agent_id)
    tags = tuple(dict.fromkeys((*old.tags, *draft.tags)))
    metadata = draft.metadata or old.metadata
    before = end_of(own)
    end = _later(before, _end(draft, now))
    pinned = old.pinned or draft.pinned
    stays = tags == old.tags and metadata == old.metadata
    if stays and pinned == old.pinned and (pinned or _same_end(end, before)):
        return None
    if stays and not own.pinned and (pinned or end is None):
        # A pin clears the end, and unpinning does not bring it back.
        return RepeatEffect(pins=(True,) if pinned else (True, False))
    ttl = {} if pinned else lifetime(end, now)
    anew = replace(draft, memory_type=old.memory_type, tags=tags, metadata=metadata, pinned=pinned, ttl=ttl)
    return RepeatEffect(anew)


def lifetime(end: datetime | None, now: datetime) -> dict[str, int]:
    """The rest of a lifetime, as a store takes it: at least the shortest that the server allows."""
    return {} if end is None else {"ttl_seconds": max(60, round((end - now).total_seconds()))}


def _end(draft: Draft, now: datetime) -> datetime | None:
    if draft.pinned or not draft.ttl:
        return None
    return now + timedelta(seconds=draft.ttl.get("ttl_seconds", draft.ttl.get("ttl_days", 0) * 86_400))


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)


def _same_end(one: datetime | None, other: datetime | None) -> bool:
    return one is other if one is None or other is None else abs(one - other) < SAME_END


def ended(row: WireMemory, now: datetime) -> bool:
    """Has its lifetime run out, by the clock of the server?"""
    end = end_of(row)
    return end is not None and end <= now


def end_of(row: WireMemory) -> datetime | None:
    """The end of its lifetime; a time without a zone is UTC."""
    end = row.expires_at
    return end if end is None or end.tzinfo else end.replace(tzinfo=timezone.utc)


def same_words(one: str, other: str) -> bool:
    """Do two texts say the same, case, spaces and punctuation aside?"""
    return words(one) == words(other)


def words(text: str) -> list[str]:
    """The words of a text in one case; a text without any is compared by its signs."""
    return re.findall(r"\w+", text.casefold()) or text.split()
