"""Pin and type of one memory changed at the vendor's own server. Pure.

It can PATCH both, but our metadata says more: the user's own flag of a session's memory, which is sent pinned so that
other sessions do not hide it, and types that the server does not know. Where the metadata would undo a PATCH the memory
is stored anew in the place of its row.
"""

from __future__ import annotations

from datetime import datetime

from kronmem.core import kronvex_calls as server
from kronmem.core import kronvex_lookups, kronvex_storing, kronvex_types, memory_json
from kronmem.core.calls import Draft, MemoryChange
from kronmem.core.kronvex_repeats import end_of, lifetime
from kronmem.core.memory_json import WireMemory
from kronmem.core.retry_after import clock
from kronmem.core.steps import Asker, Flow
from kronmem.errors import ConflictError, UnsupportedError
from kronmem.models import Hit, Memory

HIDES, FOLDS = 0.72, 0.95
"""A store hides unpinned rows from the first similarity on, and is folded into any from the second."""
ROUNDS = 3
"""So often a change is begun, each time with the row as it is then: others may change it at the same moment."""


def updated(agent_id: str, memory_id: str, change: MemoryChange, asker: Asker) -> Flow[Memory]:
    """Change pin or type so that every later read shows it."""
    for _ in range(ROUNDS):
        try:
            memory = yield from _updated(agent_id, memory_id, change, asker)
        except kronvex_storing.RowGoneError:
            continue
        if _is_there(memory, change):
            return memory
    raise ConflictError(kronvex_storing.CHANGED, status=409)


def _updated(agent_id: str, memory_id: str, change: MemoryChange, asker: Asker) -> Flow[Memory]:
    own = yield from kronvex_lookups.current(agent_id, memory_id, asker)
    if own.superseded:
        raise ConflictError(f"This memory was superseded by {own.superseded_by}: update that one", status=409)
    old = memory_json.to_memory(own, agent_id)
    if _is_there(old, change):
        return old
    if not _is_undone(own, change):
        row = yield from asker.ask(server.patch(agent_id, own.id, change.fields()))
        return memory_json.to_memory(row, agent_id)
    if why := kronvex_storing.unsafe(own, asker):
        raise UnsupportedError(kronvex_storing.NOT_ANEW.format(why=why))
    near = yield from asker.ask(server.near(agent_id, own.content, HIDES))
    anew = _anew(own, old, change, clock(near))
    if any(_would_hide(row, hit) for row, hit in memory_json.scored(near, agent_id) or () if row.id != own.id):
        raise UnsupportedError(kronvex_storing.NOT_ANEW.format(why="it would hide a memory that says nearly the same"))
    return (yield from kronvex_storing.renew(anew, own, asker))


def _is_there(memory: Memory, change: MemoryChange) -> bool:
    return change.pinned in (None, memory.pinned) and change.memory_type in (None, memory.memory_type)


def _is_undone(own: WireMemory, change: MemoryChange) -> bool:
    """Would our metadata, or another session, undo a PATCH?"""
    ours = own.ours or {}
    retyped = change.memory_type is not None and ("type" in ours or not kronvex_types.is_kept(change.memory_type))
    bared = change.pinned is False and own.ours is not None and own.session_id is not None
    return retyped or bared or (change.pinned is not None and "pinned" in ours)


def _would_hide(row: WireMemory, hit: Hit) -> bool:
    return HIDES <= hit.similarity < FOLDS and not row.pinned and not row.superseded


def _anew(own: WireMemory, old: Memory, change: MemoryChange, now: datetime) -> Draft:
    pinned = old.pinned if change.pinned is None else change.pinned
    return Draft(
        old.agent_id,
        str((own.ours or {}).get("id") or own.id),
        old.content,
        change.memory_type or old.memory_type,
        old.session_id,
        {} if pinned else lifetime(end_of(own), now),
        pinned,
        old.tags,
        old.metadata,
        old.role,
        old.key,
    )
