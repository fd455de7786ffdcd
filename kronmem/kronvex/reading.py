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
from kronmem.core.memory_json import MOST_HITS, WireMemory, sent_type
from kronmem.core.policy import status_error
from kronmem.core.wire import Asker, Flow, Reply
from kronmem.errors import KronmemError, NotFoundError, StatusError
from kronmem.kronvex import dialect as server
from kronmem.models import Hit

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


def recalled(asked: RecallQuery, reply: Reply, asker: Asker) -> Flow[list[Hit]]:
    """Read a recall; delete the duplicates it shows, and look behind the 20 hits for memories that pass the filter."""
    if reply.status >= 300:
        raise status_error(reply)
    found = memory_json.scored(reply, asked.agent_id) or []
    surplus = duplicates(row for row, _ in found)
    hits = _kept(asked, found, surplus)
    yield from _drop(asked.agent_id, surplus, asker)
    if _filters_here(asked) and len(hits) < asked.limit and len(found) >= MOST_HITS:
        hits += yield from _behind(asked, {row.id for row, _ in found}, asker)
    return hits[: asked.limit]


def _filters_here(asked: RecallQuery) -> bool:
    """May rows that pass be behind the 20 hits, and be shown? Stand-in types, tags and times pass the server's filter.

    Rows of the listing carry no similarity, so a threshold above 0 lets none of them pass.
    """
    return not asked.threshold and replace(asked.within, session_id=None).narrow


def context(asked: ContextQuery, reply: Reply, asker: Asker) -> Flow[str | None]:
    """Read an injected context; with fewer memories than wanted, one page of the listing fills it up.

    None: the reply lists no memories at all, only its own text.
    """
    if reply.status >= 300:
        raise status_error(reply)
    question = asked.asked
    found = memory_json.scored(reply, question.agent_id)
    if found is None:
        return None
    rows = {row.id: row for row, _ in found}
    surplus = duplicates(rows.values())
    hits = _kept(question, found, surplus)
    if asked.fill and len(hits) < question.limit:
        page = yield from asker.ask(server.page(question.agent_id, 1))
        more = [(row, memory_json.unscored(row, question.agent_id)) for row in page.memories if row.id not in rows]
        surplus = duplicates((*rows.values(), *(row for row, _ in more)))
        more.sort(key=lambda one: _by_rank(one[1]))
        hits = [*_kept(question, found, surplus), *_kept(question, more, surplus)][: question.limit]
    yield from _drop(question.agent_id, surplus, asker)
    return asked.render(hits)


def _kept(asked: RecallQuery, found: Iterable[tuple[WireMemory, Hit]], surplus: set[str]) -> list[Hit]:
    """The hits that are alive and pass the filter, best first; those without a score in their order."""
    alive = [hit for row, hit in found if not row.superseded and row.id not in surplus]
    return asked.keep(sorted(alive, key=lambda hit: -hit.similarity))


def _by_rank(hit: Hit) -> tuple[bool, bool]:
    return (not hit.memory.pinned, hit.memory.memory_type not in ("preference", "decision"))


def _behind(asked: RecallQuery, shown: set[str], asker: Asker) -> Flow[list[Hit]]:
    """Memories past the 20 closest, by the words they share with the query; they carry no score."""
    listed = yield from rows(asked.agent_id, asker, memory_type=sent_type(asked.within.memory_type))
    surplus = duplicates(listed)
    rest = [row for row in listed if row.id not in shown and row.id not in surplus and not row.superseded]
    words = _words(asked.query)
    rest.sort(key=lambda row: -len(words & _words(row.content)))
    return asked.keep([memory_json.unscored(row, asked.agent_id) for row in rest])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


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
