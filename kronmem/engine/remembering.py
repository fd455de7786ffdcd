"""The decision about a memory that arrives: new, a repeat of a text, a repeat of a request, or a change of mind.

A request may come twice because its reply was lost. The receipt of a client's id separates it from a second wish, also
when the memory has been forgotten in between: a deleted memory does not come back through a late retry, which is
refused.

One current memory stands under a key. Which of two texts is the newer is decided by when they were said: a direct call
is said when it arrives, one that waited in an outbox when it was queued, so that a late delivery buries nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from kronmem.api.rules import FORGOTTEN, MAX_TAGS
from kronmem.engine.postings import indexed, to_microseconds
from kronmem.engine.ranking import COMPANY
from kronmem.engine.store import NewRow, Reader, Receipt, Row, Space, Writer
from kronmem.errors import ConflictError, NotFoundError

SWEPT = 32
"""A write clears away at most this many expired memories: no write pays for all the others."""
PAUSE = 3600.0
"""After so many seconds without a memory, a conversation has ended: an hour, longer than a break in one."""
_EVER = -math.inf
"""A time at which nothing had expired yet."""
_TICK = 1e-6
"""A direct call is said after the memory that it replaces, however coarse the clock is or how far it was set back."""
_CANONICAL = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Place:
    """The agent that a call is about, its owner, and how many seconds the caller waits."""

    owner: str
    agent: str
    timeout: float = 10.0


@dataclass(frozen=True)
class Kept:
    """A remembered memory: as it is now, and whether its text was already there."""

    row: Row
    deduplicated: bool = False


def remember(rows: Writer, place: Place, draft: NewRow, now: float, new: list[tuple[int, str]]) -> Kept:
    """Store one memory; a really new one is also appended to `new` with its key."""
    if draft.age is not None:
        draft = replace(draft, said_at=to_microseconds(now - draft.age))
    body = fingerprint(place.agent, draft) if draft.client_id else b""
    space = rows.find_space(place.owner, place.agent)
    if (again := _replayed(rows, place, space, draft, body, now)) is not None:
        return again
    space = space or rows.open_space(place.owner, place.agent, now)
    kept = _stored(rows, space, draft, now, new)
    if draft.client_id:
        receipt = Receipt(kept.row.id, body, kept.deduplicated)
        rows.write_receipt(place.owner, place.agent, draft.client_id, receipt, now)
    return kept


def _replayed(rows: Writer, place: Place, space: Space | None, draft: NewRow, body: bytes, now: float) -> Kept | None:
    if draft.client_id is None:
        return None
    receipt = rows.receipt(place.owner, place.agent, draft.client_id)
    if receipt is None:
        if rows.is_erased(place.owner, place.agent, draft.client_id):
            raise ConflictError(FORGOTTEN, status=409)
        return _outlived(rows, space, draft, now) if space else None
    if receipt.body != body:
        raise ConflictError("This id was already used for another memory", status=409)
    row = rows.find(space, receipt.memory_id, now) if space else None
    if row is None:
        raise ConflictError(FORGOTTEN, status=409)
    return Kept(row, receipt.deduplicated)


def _outlived(rows: Writer, space: Space, draft: NewRow, now: float) -> Kept | None:
    """The memory of that id, if its receipt is no longer kept."""
    row = rows.find(space, _as_uuid(draft.client_id) or "", _EVER)
    if row is not None and _expired(row, now):
        rows.delete(space, [row])
        return None
    if row is not None and row.content != draft.content:
        raise ConflictError("This id was already used for another memory", status=409)
    return Kept(row) if row is not None else None


def _stored(rows: Writer, space: Space, draft: NewRow, now: float, new: list[tuple[int, str]]) -> Kept:
    """Store a memory that is no repeat of a request: as new, as news about a text that is there, or as history."""
    replaced = _replaced(rows, space, draft, now)
    if replaced and not draft.key:
        draft = replace(draft, key=next((old.key for old in replaced if old.key), None))
    same = _unless_expired(rows, space, rows.same_text(space, draft.session_id, draft.key, draft.content), now)
    others = [old for old in replaced if same is None or old.id != same.id]
    after = max((old.said_at for old in others), default=_EVER)
    statement = _fresh(draft, draft.client_id, space.last + 1, now, after)
    row = statement if same is None else _merged(rows, space, same, draft, statement, now)
    newer = max((old for old in others if _said(old) > _said(statement)), key=_said, default=None)
    if newer is not None and _said(newer) > _said(row):
        row = replace(row, superseded_by=newer.id)
        rows.insert(space, row, None) if same is None else rows.supersede(space, row, newer.id)
    for old in others:
        if old is not newer:
            rows.supersede(space, old, row.superseded_by or row.id)
    if row.superseded_by is not None:
        return Kept(row, deduplicated=same is not None)
    if same is None:
        entries = indexed(row)
        row = replace(row, number=_next_number(rows, space, draft, now), passages=len(entries.lengths))
        new.append((rows.insert(space, row, entries), row.content))
    return Kept(row, deduplicated=same is not None)


def _replaced(rows: Writer, space: Space, draft: NewRow, now: float) -> list[Row]:
    """The current memories that this one takes the place of: the one under its key, the one it names by id."""
    replaced = [rows.keyed(space, draft.session_id, draft.key)] if draft.key else []
    if draft.supersedes is not None:
        replaced.append(_named(rows, space, draft, draft.supersedes, now))
    living = (_unless_expired(rows, space, old, now) for old in replaced)
    return list({old.id: old for old in living if old is not None}.values())


def _named(rows: Writer, space: Space, draft: NewRow, memory_id: str, now: float) -> Row:
    """The memory of that id, or the current one that has taken its place since, unless that has expired."""
    row = rows.find(space, memory_id, now)
    if row is not None and row.session_id == draft.session_id:
        *_, last = _successors(rows, space, row, _EVER)
        if last.superseded_by is None and not _expired(last, now):
            return last
    raise NotFoundError("The memory to supersede was not found in this session", status=404)


def _unless_expired(rows: Writer, space: Space, row: Row | None, now: float) -> Row | None:
    if row is not None and _expired(row, now):
        rows.delete(space, [row])
        return None
    return row


def _merged(rows: Writer, space: Space, old: Row, draft: NewRow, statement: Row, now: float) -> Row:
    """The same text again: its tags and metadata are added, and it counts as stated now."""
    new = replace(
        old,
        tags=_tags(old.tags, draft.tags),
        metadata=draft.metadata or old.metadata,
        expires_at=_later(old.expires_at, _expiry(draft, now)),
        pinned=old.pinned or draft.pinned,
        said_at=max(old.said_at, statement.said_at),
    )
    return revised(rows, space, old, new)


def _tags(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """The tags of both, without the oldest of the old ones where they are too many."""
    both = tuple(dict.fromkeys((*old, *new)))
    newest_first = tuple(dict.fromkeys((*new[::-1], *old[::-1])))
    return both if len(both) <= MAX_TAGS else newest_first[:MAX_TAGS][::-1]


def revised(rows: Writer, space: Space, old: Row, new: Row) -> Row:
    """Write a changed memory, indexed again if other terms find it now."""
    if (old.content, old.memory_type, old.tags) == (new.content, new.memory_type, new.tags):
        rows.revise(space, old, new)
        return new
    entries = indexed(new)
    new = replace(new, passages=len(entries.lengths))
    rows.revise(space, old, new, entries)
    return new


@dataclass(frozen=True)
class RowChange:
    """The changes to a memory; None leaves as it is. A `ttl` of 0 removes the lifetime."""

    content: str | None = None
    memory_type: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: dict[str, JsonValue] | None = None
    pinned: bool | None = None
    ttl: int | None = None


def update(rows: Writer, space: Space, old: Row, change: RowChange, now: float) -> Row:
    """Change a current memory; its former text becomes history."""
    if old.superseded_by is not None:
        raise ConflictError(f"This memory was superseded by {old.superseded_by}: update that one", status=409)
    pinned = old.pinned if change.pinned is None else change.pinned
    expires_at = old.expires_at if change.ttl is None else (now + change.ttl if change.ttl else None)
    new = replace(
        old,
        content=old.content if change.content is None else change.content,
        memory_type=change.memory_type or old.memory_type,
        tags=old.tags if change.tags is None else tuple(dict.fromkeys(change.tags)),
        metadata=old.metadata if change.metadata is None else change.metadata,
        pinned=pinned,
        expires_at=None if pinned else expires_at,
        updated_at=now,
    )
    if new.content == old.content:
        return revised(rows, space, old, new)
    if _taken(rows, space, new, now):
        raise ConflictError("Another memory of this session has that text already", status=409)
    new = replace(new, said_at=max(now, to_microseconds(old.said_at + _TICK)))
    former = replace(old, number=space.last + 1, id=str(uuid.uuid4()), superseded_by=old.id, passages=0)
    changed = revised(rows, space, old, new)
    rows.insert(space, former, None)
    return changed


def _taken(rows: Writer, space: Space, new: Row, now: float) -> bool:
    other = _unless_expired(rows, space, rows.same_text(space, new.session_id, new.key, new.content), now)
    return other is not None and other.id != new.id


def make_way(rows: Writer, space: Space, exported: Sequence[Row], now: float) -> None:
    """Delete expired memories under the ids of exported ones, with its history, before any of them comes back."""
    if rows.count(space, now) < space.count:
        for one in exported:
            if not _expired(one, now):  # such a one does not come back, and its history must not without it
                _unless_expired(rows, space, rows.find(space, one.id, _EVER), now)


def restore(rows: Writer, space: Space, exported: Row, now: float) -> bool:
    """Keep an exported memory as it was, under the next number; False when its id or its text is there already.

    Under a key that has another text now, the later statement of the two is current and the other one history.
    """
    there = rows.find(space, exported.id, _EVER)
    if _expired(exported, now) or _unless_expired(rows, space, there, now) is not None:
        return False
    row = replace(exported, number=space.last + 1)
    if row.superseded_by is None:
        same = _unless_expired(rows, space, rows.same_text(space, row.session_id, row.key, row.content), now)
        if same is not None and not rows.former(space, row.id, _EVER):
            return False
        row = _against(rows, space, row, same, now)
    entries = indexed(row) if row.superseded_by is None else None
    rows.insert(space, replace(row, passages=len(entries.lengths) if entries else 0), entries)
    return True


def _against(rows: Writer, space: Space, row: Row, same: Row | None, now: float) -> Row:
    """An exported current memory beside those that are there: one of the same text keeps its place."""
    there = same
    if there is None and row.key is not None:
        there = _unless_expired(rows, space, rows.keyed(space, row.session_id, row.key), now)
    if there is None:
        return row
    if there is same or _said(there) > _said(row):
        return replace(row, superseded_by=there.id)
    rows.supersede(space, there, row.id)
    return row


def _fresh(draft: NewRow, client_id: str | None, number: int, now: float, after: float = _EVER) -> Row:
    said_at = max(now, to_microseconds(after + _TICK)) if draft.said_at is None else min(draft.said_at, now)
    return Row(
        number=number,
        id=_as_uuid(client_id) or str(uuid.uuid4()),
        content=draft.content,
        memory_type=draft.memory_type,
        session_id=draft.session_id,
        tags=tuple(dict.fromkeys(draft.tags)),
        metadata=draft.metadata,
        created_at=now if draft.said_at is None else said_at,
        expires_at=_expiry(draft, now),
        pinned=draft.pinned,
        access_count=0,
        said_at=said_at,
        role=draft.role,
        key=draft.key,
    )


def _next_number(rows: Writer, space: Space, draft: NewRow, now: float) -> int:
    """The next number, after a gap where a conversation ends: neighbours in number support each other in a recall."""
    session_id, at = rows.last_said(space) or (None, -math.inf)
    goes_on = session_id == draft.session_id and abs(now - at) <= PAUSE
    return space.last + (1 if goes_on else 1 + len(COMPANY))


def _said(row: Row) -> tuple[float, str]:
    return row.said_at, row.id


def _expired(row: Row, now: float) -> bool:
    return row.expires_at is not None and row.expires_at <= now


def _expiry(draft: NewRow, now: float) -> float | None:
    return None if draft.pinned or draft.ttl is None else now + draft.ttl


def _later(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


def _as_uuid(client_id: str | None) -> str | None:
    if client_id is not None and _CANONICAL.fullmatch(client_id):  # as our client sends it
        return client_id
    try:
        return str(uuid.UUID(client_id)) if client_id else None
    except ValueError:
        return None


def resolve(rows: Reader, place: Place, memory_id: str, now: float) -> tuple[Space, Row]:
    """Find a memory by its id, or by a client's id, if its text was already there under another one."""
    space = rows.find_space(place.owner, place.agent)
    row = rows.find(space, memory_id, now) if space else None
    if space and row is None and (receipt := rows.receipt(place.owner, place.agent, memory_id)):
        row = rows.find(space, receipt.memory_id, now)
    if space is None or row is None:
        raise NotFoundError("Memory not found", status=404)
    return space, row


def history(rows: Reader, space: Space, row: Row, now: float) -> list[Row]:
    """The current memory and all that it took the place of, the latest statement first."""
    *_, last = _successors(rows, space, row, now)
    return [last, *rows.former(space, last.id, now)]


def _successors(rows: Reader, space: Space, row: Row | None, now: float) -> Iterator[Row]:
    """A memory and those that took its place, one after the other; in a circle, which an import can make, each once."""
    seen: set[str] = set()
    while row is not None and row.id not in seen:
        seen.add(row.id)
        yield row
        row = rows.find(space, row.superseded_by, now) if row.superseded_by is not None else None


# The receipts of clients' ids: for how long they are kept, and the hash by which a repeat of a request is known. Pure.

RECEIPTS_KEPT = 30 * 86400.0
"""Seconds for which a client's id is known: a machine that comes back within a month retries without duplicates."""
_encode = json.JSONEncoder(sort_keys=True).encode


def fingerprint(agent: str, draft: NewRow) -> bytes:
    """The hash that separates a repeat of a request from another memory under its id."""
    # Not the lifetime, and not when it was said: what waited in an outbox arrives with what is left of the one and
    # with the other, and is still the same memory.
    parts: list[object] = [agent, draft.content, draft.memory_type, draft.session_id]
    parts += [draft.tags, draft.metadata, draft.pinned]
    more = {"role": draft.role, "key": draft.key, "supersedes": draft.supersedes}
    if any(more.values()):  # else as before there were any of these: receipts outlive an upgrade
        parts.append(more)
    return hashlib.sha256(_encode(parts).encode()).digest()


def erased_digest(salt: bytes, owner: str, name: str, client_id: str) -> bytes:
    """The trace of an erased id: enough to recognise it, too little to learn it or its agent."""
    return hmac.new(salt, "\0".join((owner, name, client_id)).encode(), hashlib.sha256).digest()[:16]
