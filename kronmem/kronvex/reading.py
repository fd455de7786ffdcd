"""Reading and deleting at the vendor's own server: each memory once, filters past its 20 hits, ids of our own. Pure.

A store that stalls is finished by the server although its repeat is stored too, so two rows may carry one id and one
text. The oldest of them is the memory; the others are deleted when they are seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from kronmem.core import memory_json
from kronmem.core.calls import PER_PAGE, ContextQuery, RecallQuery
from kronmem.core.inputs import words
from kronmem.core.memory_json import MOST_HITS, WireMemory, sent_type
from kronmem.core.policy import status_error
from kronmem.core.wire import Asker, Flow, Reply
from kronmem.errors import KronmemError, NotFoundError, StatusError
from kronmem.kronvex import dialect as server
from kronmem.models import Hit

Scored = tuple[WireMemory, Hit]
Notes = dict[str, tuple[float, list[Scored]]]
"""By agent: until when they count, and the rows that may be standing notes, pinned ones first, newest first."""
KEPT = 60.0
"""Seconds for which a listing of standing notes counts: they are asked for in every turn."""
STANDING, STANDING_CHARS = 5, 600
MERGED = "Memory not found. Kronvex may have merged it with others of its agent; clear() deletes what came of it."

# ── walks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def rows(
    agent_id: str, asker: Asker, *, search: str | None = None, memory_type: str | None = None
) -> Flow[list[WireMemory]]:
    """Every row of the listing that the server finds, newest first."""
    found: dict[str, WireMemory] = {}
    number = 1
    while True:
        listed = yield from asker.ask(server.page(agent_id, number, search=search, memory_type=memory_type))
        found.update((row.id, row) for row in listed.memories)
        if len(listed.memories) < PER_PAGE:
            return list(found.values())
        number += 1


def like(agent_id: str, content: str, asker: Asker) -> Flow[list[WireMemory]]:
    """The rows that hold this text or contain its longest searchable part."""
    return (yield from rows(agent_id, asker, search=_searchable(content)))


def _searchable(content: str) -> str:
    """The longest run of plain words in a text: no wildcard of the search, no punctuation that a repeat may change."""
    return max(re.split(r"[^\w ]|_", content), key=len)[: server.MOST_SEARCHED].strip()


# ── recall and context ───────────────────────────────────────────────────────────────────────────────────────────


def recalled(asked: RecallQuery, reply: Reply, asker: Asker, notes: Notes) -> Flow[list[Hit]]:
    """Read a recall; delete the duplicates it shows, and look behind the 20 hits for memories that pass the filter."""
    if reply.status >= 300:
        raise status_error(reply)
    found = memory_json.scored(reply, asked.agent_id) or []
    hits = yield from _around(asked, found, asker, notes)
    if _filters_here(asked) and len(found) >= MOST_HITS:
        passing = _kept(replace(asked, exclude=frozenset()), found, duplicates(row for row, _ in found))
        if len(passing) < asked.limit:  # for the sake of the filter alone, never of what is left out
            hits += yield from _behind(asked, {*(row.id for row, _ in found), *(hit.memory.id for hit in hits)}, asker)
    return hits[: asked.limit]


def _filters_here(asked: RecallQuery) -> bool:
    """May rows that pass be behind the 20 hits, and be shown? Stand-in types, tags and times pass the server's filter.

    Rows of the listing carry no similarity, so a threshold above 0 lets none of them pass.
    """
    return not asked.threshold and replace(asked.within, session_id=None).narrow


def context(asked: ContextQuery, reply: Reply, asker: Asker, notes: Notes) -> Flow[str | None]:
    """Read an injected context; None: the reply lists no memories at all, only its own text."""
    if reply.status >= 300:
        raise status_error(reply)
    found = memory_json.scored(reply, asked.asked.agent_id)
    return None if found is None else asked.render((yield from _around(asked.asked, found, asker, notes)))


def _around(asked: RecallQuery, found: list[Scored], asker: Asker, notes: Notes) -> Flow[list[Hit]]:
    """The hits, with the standing notes before them, or with one page of the listing that fills them up."""
    rows = {row.id: row for row, _ in found}
    surplus = duplicates(rows.values())
    hits = _kept(asked, found, surplus)
    if asked.fill == "profile":
        hits = _with_standing(asked, (yield from _notes(asked.agent_id, asker, notes)), found, surplus)
    elif asked.fill and len(hits) < asked.limit:
        page = yield from asker.ask(server.page(asked.agent_id, 1))
        more = [(row, memory_json.unscored(row, asked.agent_id)) for row in page.memories if row.id not in rows]
        surplus = duplicates((*rows.values(), *(row for row, _ in more)))
        more.sort(key=lambda one: _by_rank(one[1]))
        hits = [*_kept(asked, found, surplus), *_kept(asked, more, surplus)][: asked.limit]
    yield from _drop(asked.agent_id, surplus, asker)
    return hits


def _notes(agent_id: str, asker: Asker, notes: Notes) -> Flow[list[Scored]]:
    """Pinned memories, then preferences, of the newest rows; where there are more, of the newest preferences too."""
    now = asker.now()
    for outdated in [one for one, (until, _) in list(notes.items()) if until <= now]:
        notes.pop(outdated, None)
    if kept := notes.get(agent_id):
        return kept[1]
    rows = (yield from asker.ask(server.page(agent_id, 1))).memories
    if len(rows) == PER_PAGE:
        rows += (yield from asker.ask(server.page(agent_id, 1, memory_type="preference"))).memories
    once = {row.id: (row, memory_json.unscored(row, agent_id)) for row in rows}
    surplus = duplicates(row for row, _ in once.values())
    may_stand = [
        (row, hit.model_copy(update={"standing": True}))
        for row, hit in once.values()
        if row.id not in surplus and (hit.memory.pinned or hit.memory.memory_type == "preference")
    ]
    may_stand.sort(key=lambda one: not one[1].memory.pinned)
    notes[agent_id] = (asker.now() + KEPT, may_stand)
    return may_stand


def _with_standing(asked: RecallQuery, notes: list[Scored], found: list[Scored], surplus: set[str]) -> list[Hit]:
    """Standing notes first, then the hits, which have half of the places if there are enough."""
    every = _kept(replace(asked, limit=len(notes) + len(found)), [*notes, *found], surplus)
    standing: dict[frozenset[str], Hit] = {}
    left = STANDING_CHARS
    for hit in every:
        if hit.standing and len(hit.content) <= left and len(standing) < STANDING:
            left -= len(hit.content) if standing.setdefault(words(hit.content), hit) is hit else 0
    shown = {hit.memory.id for hit in standing.values()}
    others = [hit for hit in every if not hit.standing and hit.memory.id not in shown]
    return [*[*standing.values()][: asked.limit - min(len(others), asked.limit // 2)], *others][: asked.limit]


def _kept(asked: RecallQuery, found: Iterable[Scored], surplus: set[str]) -> list[Hit]:
    """The hits that are alive and pass the filter, best first; those without a score in their order."""
    alive = [(row, hit) for row, hit in found if not row.superseded and row.id not in surplus]
    alive.sort(key=lambda one: (not one[1].standing, -one[1].similarity))
    known = asked.exclude.union(*(row.ids for row, _ in alive if row.ids & asked.exclude))
    return replace(asked, exclude=known).keep([hit for _, hit in alive])


def _by_rank(hit: Hit) -> tuple[bool, bool]:
    return (not hit.memory.pinned, hit.memory.memory_type not in ("preference", "decision"))


def _behind(asked: RecallQuery, shown: set[str], asker: Asker) -> Flow[list[Hit]]:
    """Memories past the 20 closest, by the words they share with the query; they carry no score."""
    listed = yield from rows(asked.agent_id, asker, memory_type=sent_type(asked.within.memory_type))
    surplus = duplicates(listed)
    rest = [row for row in listed if row.id not in shown and row.id not in surplus and not row.superseded]
    asking = words(asked.query)
    rest.sort(key=lambda row: -len(asking & words(row.content)))
    return _kept(asked, [(row, memory_json.unscored(row, asked.agent_id)) for row in rest], surplus)


def listed(agent_id: str, reply: Reply, asker: Asker) -> Flow[memory_json.WirePage]:
    """Read a page of the listing and delete the duplicates it shows; a walk leaves them out as superseded ones."""
    if reply.status >= 300:
        raise status_error(reply)
    page = memory_json.page(reply)
    surplus = duplicates(page.memories)
    yield from _drop(agent_id, surplus, asker)
    for row in page.memories:
        row.superseded = row.superseded or row.id in surplus
    return page


# ── one memory ───────────────────────────────────────────────────────────────────────────────────────────────────


def current(agent_id: str, memory_id: str, asker: Asker) -> Flow[WireMemory]:
    """The row that is this memory now, by any id it is known under. The server reads out deleted rows too: only what
    it lists is there."""
    try:
        read = yield from asker.ask(server.patch(agent_id, memory_id, {}))
    except StatusError as error:
        if error.status not in (404, 405, 422):  # an id of ours, no UUID at all, or no such route
            raise
        mine = [row for row in (yield from rows(agent_id, asker)) if memory_id in row.ids]
    else:
        mine = yield from _same(agent_id, read, asker)
    if not mine:
        raise NotFoundError(MERGED, status=404)
    surplus = duplicates(mine)
    yield from _drop(agent_id, surplus, asker)
    return min(mine, key=lambda row: (row.superseded, row.id in surplus))


def forgotten(agent_id: str, memory_id: str, reply: Reply, asker: Asker) -> Flow[None]:
    """Finish a delete: every duplicate too; an id that the server does not know may be one of ours."""
    if reply.status == 422:  # ids are checked before they are sent, so this one is no UUID
        return (yield from _forget_own(agent_id, memory_id, asker))
    if reply.status >= 300 and reply.status != 404:
        raise status_error(reply)
    try:
        gone = yield from asker.ask(server.patch(agent_id, memory_id, {}))
    except NotFoundError:
        return (yield from _forget_own(agent_id, memory_id, asker))
    others = [] if gone.ours is None else (yield from _same(agent_id, gone, asker))
    yield from delete(agent_id, others, asker)
    if reply.status == 404 and not others:
        raise NotFoundError(MERGED, status=404)
    return None


def _same(agent_id: str, one: WireMemory, asker: Asker) -> Flow[list[WireMemory]]:
    """The listed rows that are the same memory as one: itself, its duplicates, or the row that took its place."""
    own = (one.ours or {}).get("id")
    alike = yield from like(agent_id, one.content, asker)
    return [
        row
        for row in alike
        if one.id in row.ids or (own is not None and (row.ours or {}).get("id") == own and row.content == one.content)
    ]


def _forget_own(agent_id: str, memory_id: str, asker: Asker) -> Flow[None]:
    mine = [row for row in (yield from rows(agent_id, asker)) if memory_id in row.ids]
    if not mine:
        raise NotFoundError(MERGED, status=404)
    yield from delete(agent_id, mine, asker)


def delete(agent_id: str, rows: Iterable[WireMemory], asker: Asker) -> Flow[None]:
    for memory_id in sorted({row.id for row in rows}):
        try:
            yield from asker.ask(server.delete(agent_id, memory_id))
        except NotFoundError:
            continue


# ── duplicates ───────────────────────────────────────────────────────────────────────────────────────────────────


def duplicates(rows: Iterable[WireMemory]) -> set[str]:
    """The ids of rows that repeat an older one, both alive: the same id of ours and text, or stored again since."""
    first: dict[tuple[str, str], WireMemory] = {}
    rows = list(rows)
    former = frozenset[str]().union(*(row.former for row in rows if not row.superseded))
    surplus = {row.id for row in rows if row.id in former}
    for row in rows:
        own = (row.ours or {}).get("id")
        if not isinstance(own, str) or row.superseded or row.id in surplus:
            continue
        older = first.setdefault((own, row.content), row)
        if older is not row:
            newer, first[own, row.content] = (row, older) if _age(older) <= _age(row) else (older, row)
            surplus.add(newer.id)
    return surplus


def _age(row: WireMemory) -> tuple[float, str]:
    return (row.created_at.timestamp() if row.created_at else 0.0, row.id)


def _drop(agent_id: str, surplus: Iterable[str], asker: Asker) -> Flow[None]:
    """Delete surplus rows; if that fails they are deleted when they are next seen."""
    for memory_id in sorted(surplus):
        try:
            yield from asker.ask(server.delete(agent_id, memory_id))
        except KronmemError:
            return
