"""Reading and deleting at the vendor's own server: each memory once, filters past its 20 hits, ids of our own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from kronmem.core import kronvex, kronvex_asides, kronvex_types, memory_json
from kronmem.core import kronvex_calls as server
from kronmem.core.filters import MemoryFilter, keep
from kronmem.core.kronvex_duplicates import drop, duplicates
from kronmem.core.memory_json import WireMemory
from kronmem.core.status_errors import status_error
from kronmem.core.steps import Asker, Flow
from kronmem.core.wire import Reply
from kronmem.errors import InvalidRequestError, NotFoundError
from kronmem.models import Hit

MERGED = "Memory not found. Kronvex may have merged it with others of its agent; clear() deletes what came of it."


class ContextQuery(NamedTuple):
    """The question behind a context, and the memories that the context was made of."""

    asked: RecallQuery
    used: list[Hit]


@dataclass(frozen=True)
class RecallQuery:
    """The arguments of a recall."""

    agent_id: str
    query: str
    limit: int
    within: MemoryFilter
    threshold: float | None

    def keep(self, found: list[Hit]) -> list[Hit]:
        """Filter again, and cut."""
        return keep(found, limit=self.limit, within=self.within, threshold=self.threshold)

    @property
    def unsent(self) -> bool:
        """Is there a filter that the server cannot apply before it cuts at 20? A threshold needs its scores."""
        within = self.within
        own_type = within.memory_type is not None and kronvex_types.sent_type(within.memory_type) != within.memory_type
        timed = within.since is not None or within.until is not None
        return (bool(within.tags) or own_type or timed) and self.threshold is None


def recalled(asked: RecallQuery, reply: Reply, asker: Asker) -> Flow[list[Hit]]:
    """Read a recall; delete the duplicates it shows, and look behind the 20 hits for memories that pass the filter."""
    if reply.status >= 300:
        raise status_error(reply)
    found = memory_json.scored(reply, asked.agent_id) or []
    surplus = duplicates(row for row, _ in found)
    hits = _kept(asked, found, surplus)
    yield from drop(asked.agent_id, surplus, asker)
    if asked.unsent and len(hits) < asked.limit and len(found) >= kronvex.MOST_HITS:
        hits += yield from _behind(asked, {row.id for row, _ in found}, asker)
    return hits[: asked.limit]


def filled(asked: RecallQuery, reply: Reply, asker: Asker, *, fill: bool) -> Flow[list[Hit] | None]:
    """Read an injected context; with fewer memories than wanted, one page of the listing fills it up.

    None: the reply lists no memories at all, only its own text.
    """
    if reply.status >= 300:
        raise status_error(reply)
    found = memory_json.scored(reply, asked.agent_id)
    if found is None:
        return None
    rows = {row.id: row for row, _ in found}
    surplus = duplicates(rows.values())
    hits = _kept(asked, found, surplus)
    if fill and len(hits) < asked.limit:
        page = yield from asker.ask(server.page(asked.agent_id, 1))
        more = [(row, memory_json.unscored(row, asked.agent_id)) for row in page.memories if row.id not in rows]
        surplus = duplicates((*rows.values(), *(row for row, _ in more)))
        more.sort(key=lambda one: _by_rank(one[1]))
        hits = [*_kept(asked, found, surplus), *_kept(asked, more, surplus)][: asked.limit]
    yield from drop(asked.agent_id, surplus, asker)
    return hits


def _kept(asked: RecallQuery, found: Iterable[tuple[WireMemory, Hit]], surplus: set[str]) -> list[Hit]:
    """The hits that are alive and pass the filter, best first; those without a score in their order."""
    alive = [hit for row, hit in found if not row.superseded and row.id not in surplus]
    return asked.keep(sorted(alive, key=lambda hit: -hit.similarity))


def _by_rank(hit: Hit) -> tuple[bool, bool]:
    return (not hit.memory.pinned, hit.memory.memory_type not in ("preference", "decision"))


def _behind(asked: RecallQuery, shown: set[str], asker: Asker) -> Flow[list[Hit]]:
    """Memories past the 20 closest, by the words they share with the query; they carry no score."""
    memory_type = kronvex_types.sent_type(asked.within.memory_type)
    rows = yield from server.rows(asked.agent_id, asker, memory_type=memory_type)
    surplus = duplicates(rows)
    rest = [row for row in rows if row.id not in shown and row.id not in surplus and not row.superseded]
    words = _words(asked.query)
    rest.sort(key=lambda row: -len(words & _words(row.content)))
    return asked.keep([memory_json.unscored(row, asked.agent_id) for row in rest])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def listed(agent_id: str, reply: Reply, asker: Asker) -> Flow[memory_json.WirePage]:
    """Read a page of the listing and delete the duplicates it shows; the walk leaves them out."""
    if reply.status >= 300:
        raise status_error(reply)
    page = memory_json.page(reply)
    yield from drop(agent_id, duplicates(page.memories), asker)
    return page


def current(agent_id: str, memory_id: str, asker: Asker) -> Flow[WireMemory]:
    """The row that is this memory now, by any id it is known under. The server reads out deleted rows too: only what
    it lists is there."""
    try:
        read = yield from asker.ask(server.patch(agent_id, memory_id, {}))
    except (NotFoundError, InvalidRequestError):  # an id of ours, or no UUID at all
        rows = yield from server.rows(agent_id, asker)
        mine = [row for row in rows if memory_id in row.ids]
    else:
        mine = yield from _same(agent_id, read, asker)
    if not mine:
        raise NotFoundError(MERGED, status=404)
    surplus = duplicates(mine)
    yield from drop(agent_id, surplus, asker)
    return min(mine, key=lambda row: (row.superseded, row.id in surplus))


def forgotten(agent_id: str, memory_id: str, reply: Reply, asker: Asker) -> Flow[None]:
    """Finish a delete: every duplicate too; an id that the server does not know may be one of ours."""
    if reply.status == 422:  # ids are checked before they are sent, so this one is no UUID
        return (yield from _forget_own(agent_id, memory_id, asker))
    if reply.status >= 300 and reply.status != 404:
        raise status_error(reply)
    # Although it was deleted: a killed process may have noted it and not come to its own delete.
    hidden = (yield from kronvex_asides.forget(agent_id, partial(_is, memory_id), asker)) > 0
    try:
        gone = yield from asker.ask(server.patch(agent_id, memory_id, {}))
    except NotFoundError:
        return (yield from _forget_own(agent_id, memory_id, asker, hidden=hidden))
    others = [] if gone.ours is None else (yield from _same(agent_id, gone, asker))
    yield from _delete(agent_id, others, asker)
    if reply.status == 404 and not others and not hidden:
        raise NotFoundError(MERGED, status=404)
    return None


def _same(agent_id: str, one: WireMemory, asker: Asker) -> Flow[list[WireMemory]]:
    """The listed rows that are the same memory as one: itself, its duplicates, or the row that took its place."""
    own = (one.ours or {}).get("id")
    alike = yield from server.like(agent_id, one.content, asker)
    return [
        row
        for row in alike
        if one.id in row.ids or (own is not None and (row.ours or {}).get("id") == own and row.content == one.content)
    ]


def _is(memory_id: str, row: WireMemory) -> bool:
    return memory_id in row.ids


def _forget_own(agent_id: str, memory_id: str, asker: Asker, *, hidden: bool = False) -> Flow[None]:
    rows = yield from server.rows(agent_id, asker)
    mine = [row for row in rows if memory_id in row.ids]
    if not mine and not hidden:
        raise NotFoundError(MERGED, status=404)
    yield from _delete(agent_id, mine, asker)


def _delete(agent_id: str, rows: Iterable[WireMemory], asker: Asker) -> Flow[None]:
    for memory_id in sorted({row.id for row in rows}):
        try:
            yield from asker.ask(server.delete(agent_id, memory_id))
        except NotFoundError:
            continue
