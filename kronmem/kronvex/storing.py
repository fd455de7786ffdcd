"""Storing and changing at the vendor's own server, which folds a text into any like row of the agent. Pure.

The answer to a store is compared with the draft. A row of another session, with other words, or dead is never returned
and never touched: the draft is stored once more by a way that does not fold, or refused. Only the own row of a memory,
the same words in the same session, is ever changed or replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kronmem.core import memory_json
from kronmem.core.calls import PER_PAGE, Draft, MemoryChange
from kronmem.core.memory_json import WireMemory, is_kept
from kronmem.core.policy import clock, status_error
from kronmem.core.wire import Asker, Flow, Repeat, Reply
from kronmem.errors import (
    ConflictError,
    DeadlineError,
    InvalidInputError,
    InvalidRequestError,
    KronmemError,
    NotFoundError,
    ServerError,
    StatusError,
    UnsupportedError,
)
from kronmem.kronvex import dialect as server
from kronmem.kronvex import reading
from kronmem.models import Hit, Memory

LEAST_TIME = 1.0
"""Seconds kept for bringing the own row back, about three requests: a store after its delete gets the rest of the time,
and it is not deleted with less than twice as much left."""
SAME_END = timedelta(seconds=60)
"""Ends closer than the shortest lifetime are the same."""
HIDES, FOLDS = 0.72, 0.95
"""A store hides unpinned rows from the first similarity on, and is folded into any from the second."""
ROUNDS = 3
"""So often a change is begun, each time with the row as it is then: others may change it at the same moment."""
MOST_NAMED = 100
"""So many letters of the text in the way stand in an error."""
MOST_AGENTS = 4
"""So many agents' ids are remembered between calls: an import stores one agent after the other."""

USED = "This id was already used for another memory"
CHANGED = "This memory was changed or deleted by another call at the same moment. Nothing was changed: try again."
IN_THE_WAY = (
    "Kronvex takes this text for a memory that it has already, {text!r}, of another session, with other words or no "
    "longer valid; only a text without session, pin and ttl_seconds can be stored beside it. Nothing was stored: word "
    "it differently, or use one agent per user."
)
NOT_REPLACED = (
    "At Kronvex tags, metadata, a lifetime, a type of your own and the pin of a session's memory change only if it is "
    "stored again, and {why}. Nothing was changed."
)

Undone = list[tuple[str, str]]
"""Agent and id of own rows that a call has left deleted: it was cancelled, or the service failed."""
Known = dict[str, dict[str, tuple[frozenset[str], int]]]
"""By agent and row: the ids of our own and a hash of the words, where `memory_id=` had to look."""


class RowGoneError(ConflictError):
    """The row to be replaced is gone: another call has forgotten or replaced it meanwhile."""


class TextRefusedError(InvalidInputError, InvalidRequestError):
    """A text that the service can never embed: bad input to a caller, a refusal for good to the outbox."""


# ── a store ──────────────────────────────────────────────────────────────────────────────────────────────────────


def stored(draft: Draft, reply: Reply, asker: Asker, undone: Undone) -> Flow[Memory]:
    """Read the answer to a store, and see that it is about this memory."""
    if server.cannot_embed(reply):
        reply = yield from _tried_again(draft, reply, asker)
    if reply.status >= 300:
        raise status_error(reply)
    row = memory_json.row(reply)
    if not row.deduplicated:
        return memory_json.memory(reply, draft.agent_id)
    now = clock(reply)  # the server's own clock decides which rows have run out
    if (own := (yield from _own(draft, row, now, asker))) is None:
        return (yield from _unfolded(draft, row, now, asker))
    try:
        return (yield from _repeated(draft, own, now, asker, undone))
    except RowGoneError:
        return (yield from _stored_beside(draft, (), asker))


def _tried_again(draft: Draft, refused: Reply, asker: Asker) -> Flow[Reply]:
    """Tell a text that can never be embedded from an outage: does the server embed a short one, and this one then?"""
    try:
        yield from asker.ask(server.probe(draft.agent_id))
    except KronmemError:
        return refused
    try:
        return (yield from asker.ask(replace(server.store(draft), repeat=Repeat.NEVER)))
    except StatusError as error:
        if error.status != 503:
            raise
    raise TextRefusedError(
        f"the service embeds other texts but not this one of {len(draft.content)} characters: its limit is 8,192 "
        "tokens, about 32,000 Latin letters or 8,000 Chinese characters; shorten or split the text",
        status=422,
    )


def _own(draft: Draft, row: WireMemory, now: datetime, asker: Asker) -> Flow[WireMemory | None]:
    """The row that already is this memory: the one in the answer, or one that the server did not choose."""
    if (row.ours or {}).get("id") == draft.client_id:
        if not same_words(row.content, draft.content):
            raise ConflictError(USED, status=409)
        return row
    if _is_own(draft, row) and _is_alive(row, now):
        return row
    alike = yield from reading.like(draft.agent_id, draft.content, asker)
    return next((one for one in alike if _is_own(draft, one) and _is_alive(one, now)), None)


def _is_own(draft: Draft, row: WireMemory) -> bool:
    return row.session_id == draft.session_id and same_words(row.content, draft.content)


def _is_alive(row: WireMemory, now: datetime) -> bool:
    return not row.superseded and not _ended(row, now)


def _unfolded(draft: Draft, folded: WireMemory, now: datetime, asker: Asker) -> Flow[Memory]:
    """Store a text that was folded into a row of another memory."""
    if server.is_importable(draft):
        return memory_json.to_memory((yield from _imported(draft, (), asker)), draft.agent_id)
    if folded.ours is not None and _is_own(draft, folded) and _ended(folded, now):
        # Our own, which the server sweeps away within the hour.
        yield from reading.delete(draft.agent_id, [folded], asker)
        return (yield from _stored_beside(draft, (), asker))
    raise _in_the_way(folded)


def _in_the_way(row: WireMemory) -> ConflictError:
    return ConflictError(IN_THE_WAY.format(text=row.content[:MOST_NAMED]), status=409)


def _stored_beside(draft: Draft, former: Sequence[str], asker: Asker, keep: float = 0.0) -> Flow[Memory]:
    """Store again; a text that is folded once more is refused."""
    reply = yield from asker.ask(server.store(draft, former), keep)
    if (row := memory_json.row(reply)).deduplicated:
        raise _in_the_way(row)
    return memory_json.memory(reply, draft.agent_id)


def _imported(draft: Draft, former: Sequence[str], asker: Asker) -> Flow[WireMemory]:
    """Store by a bulk import; its answer holds no ids: the row is found by ours."""
    before = frozenset(former)
    if not (yield from asker.ask(server.bulk_import(draft, former))):
        raise ServerError("the service imported nothing", status=503)
    for row in (yield from reading.like(draft.agent_id, draft.content, asker)):
        if (row.ours or {}).get("id") == draft.client_id and row.id not in before:
            return row
    raise ConflictError(CHANGED, status=409)  # forgotten in this moment


# ── the same text again ──────────────────────────────────────────────────────────────────────────────────────────


def _repeated(draft: Draft, own: WireMemory, now: datetime, asker: Asker, undone: Undone) -> Flow[Memory]:
    """Apply to the own row the difference that a repeat makes."""
    effect = _effect(draft, own, now)
    if isinstance(effect, Draft):
        memory = yield from _replaced(effect, own, asker, undone)
    else:
        for pinned in effect:
            own = yield from asker.ask(server.patch(draft.agent_id, own.id, {"pinned": pinned}))
        memory = memory_json.to_memory(own, draft.agent_id)
    return memory.model_copy(update={"deduplicated": True})


def _effect(draft: Draft, own: WireMemory, now: datetime) -> Draft | tuple[bool, ...]:
    """The difference that a repeat makes, by the rules of our own engine: tags add up, the later end and a pin win.

    Pins to be set one after the other, or the memory that takes the place of the row.
    """
    if draft.client_id in own.ids:  # the same call again
        return ()
    old = memory_json.to_memory(own, draft.agent_id)
    tags = tuple(dict.fromkeys((*old.tags, *draft.tags)))
    metadata = draft.metadata or old.metadata
    before = _end_of(own)
    end = _later(before, _end(draft, now))
    pinned = old.pinned or draft.pinned
    stays = tags == old.tags and metadata == old.metadata
    if stays and pinned == old.pinned and (pinned or _same_end(end, before)):
        return ()
    if stays and not own.pinned and (pinned or end is None):
        # A pin clears the end, and unpinning does not bring it back.
        return (True,) if pinned else (True, False)
    ttl = {} if pinned else _lifetime(end, now)
    return replace(draft, memory_type=old.memory_type, tags=tags, metadata=metadata, pinned=pinned, ttl=ttl)


def _replaced(draft: Draft, own: WireMemory, asker: Asker, undone: Undone) -> Flow[Memory]:
    """Store a memory in the place of its own row: before that is deleted where the server can, else after."""
    if own.ours is None:
        raise ConflictError(NOT_REPLACED.format(why="this one was not stored by kronmem"), status=409)
    former = tuple(one for one in own.lineage if one != draft.client_id)
    if server.is_importable(draft):
        row = yield from _imported(draft, former, asker)
        try:
            yield from asker.ask(server.delete(draft.agent_id, own.id))
        except NotFoundError:
            yield from reading.delete(draft.agent_id, [row], asker)
            raise RowGoneError(CHANGED, status=409) from None
        return memory_json.to_memory(row, draft.agent_id)
    return (yield from _stored_after(draft, own, former, asker, undone))


def _stored_after(draft: Draft, own: WireMemory, former: Sequence[str], asker: Asker, undone: Undone) -> Flow[Memory]:
    """Delete the own row and store the memory, or bring the row back."""
    if asker.left() < 2 * LEAST_TIME:
        raise DeadlineError("not enough time is left to replace a memory", sent=False)
    try:
        yield from asker.ask(server.delete(draft.agent_id, own.id))
    except NotFoundError:
        raise RowGoneError(CHANGED, status=409) from None
    try:
        return (yield from _stored_beside(draft, former, asker, LEAST_TIME))
    except KronmemError:
        try:
            yield from asker.ask(server.restore(draft.agent_id, own.id))
        except KronmemError:
            undone.append((draft.agent_id, own.id))
        raise
    except BaseException:  # cancelled, so nothing more can be sent: the next call brings it back
        undone.append((draft.agent_id, own.id))
        raise


def _lifetime(end: datetime | None, now: datetime) -> dict[str, int]:
    """The rest of a lifetime, as a store takes it: at least the shortest that the server allows."""
    return {} if end is None else {"ttl_seconds": max(60, round((end - now).total_seconds()))}


def _end(draft: Draft, now: datetime) -> datetime | None:
    if draft.pinned or not draft.ttl:
        return None
    return now + timedelta(seconds=draft.ttl.get("ttl_seconds", draft.ttl.get("ttl_days", 0) * 86_400))


def _end_of(row: WireMemory) -> datetime | None:
    """The end of its lifetime; a time without a zone is UTC."""
    end = row.expires_at
    return end if end is None or end.tzinfo else end.replace(tzinfo=UTC)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)


def _same_end(one: datetime | None, other: datetime | None) -> bool:
    return one is other if one is None or other is None else abs(one - other) < SAME_END


def _ended(row: WireMemory, now: datetime) -> bool:
    """Has its lifetime run out, by the clock of the server?"""
    end = _end_of(row)
    return end is not None and end <= now


def same_words(one: str, other: str) -> bool:
    """Do two texts have the same words, ignoring case, spaces and punctuation?"""
    return _words(one) == _words(other)


def _words(text: str) -> list[str]:
    """The words of a text in one case; a text without any is compared by its signs."""
    return re.findall(r"\w+", text.casefold()) or text.split()


# ── pin and type ─────────────────────────────────────────────────────────────────────────────────────────────────
#
# The server can PATCH both, but our metadata holds more: the user's own flag of a session's memory, which is sent
# pinned so that other sessions do not hide it, and types that the server does not know. Where the metadata would undo
# a PATCH the memory is stored again in the place of its row.


def updated(agent_id: str, memory_id: str, change: MemoryChange, asker: Asker, undone: Undone) -> Flow[Memory]:
    """Change pin or type so that every later read shows it."""
    for _ in range(ROUNDS):
        try:
            memory = yield from _updated(agent_id, memory_id, change, asker, undone)
        except RowGoneError:
            continue
        if _shows(memory, change):
            return memory
    raise ConflictError(CHANGED, status=409)


def _updated(agent_id: str, memory_id: str, change: MemoryChange, asker: Asker, undone: Undone) -> Flow[Memory]:
    own = yield from reading.current(agent_id, memory_id, asker)
    if own.superseded:
        raise ConflictError(f"This memory was superseded by {own.superseded_by}: update that one", status=409)
    old = memory_json.to_memory(own, agent_id)
    if _shows(old, change):
        return old
    if not _is_undone(own, change):
        row = yield from asker.ask(server.patch(agent_id, own.id, change.fields()))
        return memory_json.to_memory(row, agent_id)
    if own.ours is None:
        raise UnsupportedError(NOT_REPLACED.format(why="this one was not stored by kronmem"))
    near = yield from asker.ask(server.near(agent_id, own.content, HIDES))
    draft = _changed(own, old, change, clock(near))
    alike = memory_json.scored(near, agent_id) or ()
    if not server.is_importable(draft) and any(_would_hide(row, hit) for row, hit in alike if row.id != own.id):
        raise UnsupportedError(NOT_REPLACED.format(why="it would hide a memory that is nearly the same"))
    return (yield from _replaced(draft, own, asker, undone))


def _shows(memory: Memory, change: MemoryChange) -> bool:
    return change.pinned in (None, memory.pinned) and change.memory_type in (None, memory.memory_type)


def _is_undone(own: WireMemory, change: MemoryChange) -> bool:
    """Would our metadata, or another session, undo a PATCH?"""
    ours = own.ours or {}
    retyped = change.memory_type is not None and ("type" in ours or not is_kept(change.memory_type))
    bared = change.pinned is False and own.ours is not None and own.session_id is not None
    return retyped or bared or (change.pinned is not None and "pinned" in ours)


def _would_hide(row: WireMemory, hit: Hit) -> bool:
    return HIDES <= hit.similarity < FOLDS and not row.pinned and not row.superseded


def _changed(own: WireMemory, old: Memory, change: MemoryChange, now: datetime) -> Draft:
    pinned = old.pinned if change.pinned is None else change.pinned
    return Draft(
        old.agent_id,
        str((own.ours or {}).get("id") or own.id),
        old.content,
        change.memory_type or old.memory_type,
        old.session_id,
        {} if pinned else _lifetime(_end_of(own), now),
        pinned,
        old.tags,
        old.metadata,
        old.role,
        old.key,
    )


# ── ids of the user's own ────────────────────────────────────────────────────────────────────────────────────────
#
# The server keeps them as metadata and checks nothing. Before a memory is stored under such an id, the listing is read
# down to the rows that are known already, so that one id never means two texts. Only `memory_id=` pays for it.


def unused(draft: Draft, known: Known, asker: Asker) -> Flow[None]:
    """Refuse an id that already means another text."""
    index: dict[str, tuple[frozenset[str], int]] = known.pop(draft.agent_id, {})
    known[draft.agent_id] = index
    while len(known) > MOST_AGENTS:
        known.pop(next(iter(list(known)), ""), None)  # another thread may have dropped it
    yield from _read(draft.agent_id, index, asker)
    if _clashes(draft, index):
        # The row may have been deleted since it was read. Another thread may be about to add to the index: emptied,
        # it would know the newest rows only and take them for all.
        known[draft.agent_id] = index = {}
        yield from _read(draft.agent_id, index, asker)
        if _clashes(draft, index):
            raise ConflictError(USED, status=409)


def _read(agent_id: str, index: dict[str, tuple[frozenset[str], int]], asker: Asker) -> Flow[None]:
    """Add the rows that are newer than any in the index: the listing begins with the newest."""
    number = 1
    newer: dict[str, tuple[frozenset[str], int]] = {}
    while True:
        rows = (yield from asker.ask(server.page(agent_id, number))).memories
        fresh = [row for row in rows if row.id not in index]
        newer.update((row.id, (row.ids, hash(tuple(_words(row.content))))) for row in fresh)
        if len(fresh) < len(rows) or len(rows) < PER_PAGE:
            index.update(newer)  # all at once: after a walk that broke off, the next one must not stop half-way
            return
        number += 1


def _clashes(draft: Draft, index: dict[str, tuple[frozenset[str], int]]) -> bool:
    own = hash(tuple(_words(draft.content)))
    return any(draft.client_id in ids and words != own for ids, words in list(index.values()))
