"""What becomes of a memory that arrives: new, a repeat of a text, or a repeat of a request.

A request may come twice because its reply was lost. The receipt of a client's id tells that from a second wish, also
when the memory has been forgotten in between: what was deleted does not come back through a late retry.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from dataclasses import dataclass, replace

from kronmem.engine.ranking import COMPANY
from kronmem.engine.store import Draft, Reader, Receipt, Row, Space, Writer
from kronmem.errors import ConflictError, NotFoundError

RECEIPTS_KEPT = 30 * 86400.0
"""For how many seconds a client's id is known."""
SWEPT = 32
"""A write clears away at most this many expired memories: no write pays for all the others."""
PAUSE = 3600.0
"""After so many seconds without a memory, a conversation has ended."""
_EVER = -math.inf
"""A time at which nothing had expired yet."""


@dataclass(frozen=True)
class Place:
    """Whose memory a call is about, and how many seconds the caller waits."""

    owner: str
    agent: str
    timeout: float = 10.0


@dataclass(frozen=True)
class Kept:
    """A remembered memory: as it is now, and whether its text was already there."""

    row: Row
    deduplicated: bool = False


def remember(rows: Writer, place: Place, draft: Draft, now: float, new: list[tuple[int, str]]) -> Kept:
    """Store one memory; what is really new is also appended to `new` with its key."""
    body = _fingerprint(place, draft) if draft.client_id else b""
    space = rows.find_space(place.owner, place.agent)
    if (again := _replayed(rows, place, space, draft, body, now)) is not None:
        return again
    space = space or rows.open_space(place.owner, place.agent, now)
    kept = _merged(rows, space, draft, now)
    if kept is None:
        kept = Kept(_fresh(draft, draft.client_id, _next_number(rows, space, draft, now), now))
        new.append((rows.insert(space, kept.row), kept.row.content))
    if draft.client_id:
        receipt = Receipt(kept.row.id, body, kept.deduplicated)
        rows.write_receipt(place.owner, place.agent, draft.client_id, receipt, now)
    return kept


def _replayed(rows: Writer, place: Place, space: Space | None, draft: Draft, body: bytes, now: float) -> Kept | None:
    if draft.client_id is None:
        return None
    receipt = rows.receipt(place.owner, place.agent, draft.client_id)
    if receipt is None:
        return _outlived(rows, space, draft, now) if space else None
    if receipt.body != body:
        raise ConflictError("This id was already used for another memory", status=409)
    row = rows.find(space, receipt.memory_id, now) if space else None
    return Kept(row or _fresh(draft, receipt.memory_id, 0, now), receipt.deduplicated)


def _outlived(rows: Writer, space: Space, draft: Draft, now: float) -> Kept | None:
    """The memory of that id whose receipt is no longer kept."""
    row = rows.find(space, _as_uuid(draft.client_id) or "", _EVER)
    if row is not None and _expired(row, now):
        rows.delete(space, [row])
        return None
    if row is not None and row.content != draft.content:
        raise ConflictError("This id was already used for another memory", status=409)
    return Kept(row) if row is not None else None


def _merged(rows: Writer, space: Space, draft: Draft, now: float) -> Kept | None:
    old = rows.same_text(space, draft.session_id, draft.content)
    if old is not None and _expired(old, now):
        rows.delete(space, [old])
        return None
    if old is None:
        return None
    new = replace(
        old,
        tags=tuple(dict.fromkeys((*old.tags, *draft.tags))),
        metadata=draft.metadata or old.metadata,
        expires_at=_later(old.expires_at, _expiry(draft, now)),
        pinned=old.pinned or draft.pinned,
    )
    rows.revise(space, old, new)
    return Kept(new, deduplicated=True)


def _fresh(draft: Draft, client_id: str | None, number: int, now: float) -> Row:
    return Row(
        number=number,
        id=_as_uuid(client_id) or str(uuid.uuid4()),
        content=draft.content,
        memory_type=draft.memory_type,
        session_id=draft.session_id,
        tags=tuple(dict.fromkeys(draft.tags)),
        metadata=draft.metadata,
        created_at=now,
        expires_at=_expiry(draft, now),
        pinned=draft.pinned,
        access_count=0,
    )


def _next_number(rows: Writer, space: Space, draft: Draft, now: float) -> int:
    """The next number, after a gap where a conversation ends: neighbours in number support each other in a recall."""
    session_id, at = rows.last_said(space) or (None, -math.inf)
    goes_on = session_id == draft.session_id and abs(now - at) <= PAUSE
    return space.last + (1 if goes_on else 1 + len(COMPANY))


def _expired(row: Row, now: float) -> bool:
    return row.expires_at is not None and row.expires_at <= now


def _expiry(draft: Draft, now: float) -> float | None:
    return None if draft.pinned or draft.ttl is None else now + draft.ttl


def _later(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


def _as_uuid(client_id: str | None) -> str | None:
    try:
        return str(uuid.UUID(client_id)) if client_id else None
    except ValueError:
        return None


def _fingerprint(place: Place, draft: Draft) -> bytes:
    # Not the lifetime: what waited in an outbox arrives with what is left of it, and is still the same memory.
    said = [place.agent, draft.content, draft.memory_type, draft.session_id, draft.tags, draft.metadata, draft.pinned]
    text = json.dumps(said, sort_keys=True)
    return hashlib.sha256(text.encode()).digest()


def resolve(rows: Reader, place: Place, memory_id: str, now: float) -> tuple[Space, Row]:
    """Find a memory by its id, or by a client's id whose text was already there under another one."""
    space = rows.find_space(place.owner, place.agent)
    row = rows.find(space, memory_id, now) if space else None
    if space and row is None and (receipt := rows.receipt(place.owner, place.agent, memory_id)):
        row = rows.find(space, receipt.memory_id, now)
    if space is None or row is None:
        raise NotFoundError("Memory not found", status=404)
    return space, row
