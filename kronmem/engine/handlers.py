"""The handler of every route: a request that was read goes in, the reply that the route declares comes out.

Here requests become the engine's own terms; no transport knows more than `HANDLERS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import to_json

from kronmem.api import replies, requests, routes
from kronmem.api.requests import EmptyRequest
from kronmem.api.routes import AnyRoute, Route
from kronmem.engine import asker, serialize
from kronmem.engine.engine import ANY_TIME, Engine
from kronmem.engine.recall import Search, Told, is_general
from kronmem.engine.remembering import Place, RowChange
from kronmem.engine.store import Filter, NewRow, Page, Row
from kronmem.errors import InvalidRequestError
from kronmem.settings import installed_version

B = TypeVar("B", bound=BaseModel)
B_co = TypeVar("B_co", bound=BaseModel, covariant=True)
R = TypeVar("R")


@dataclass(frozen=True)
class Invocation(Generic[B_co]):
    """A request, read: the place in the store, the ids in its path, its body or query, and the id it was sent under."""

    place: Place
    ids: Mapping[str, str]
    body: B_co
    key: str | None


# Any: a handler takes the invocation with the request of its own route, which `_handles` has checked.
Handler = Callable[[Engine, Invocation[Any]], object]
HANDLERS: dict[AnyRoute, Handler] = {}


def _handles(
    route: Route[B, R],
) -> Callable[[Callable[[Engine, Invocation[B]], R]], Callable[[Engine, Invocation[B]], R]]:
    """Attach a handler to a route; its types are held to the route's request and reply."""

    def attach(handler: Callable[[Engine, Invocation[B]], R]) -> Callable[[Engine, Invocation[B]], R]:
        HANDLERS[route] = handler
        return handler

    return attach


# Memories


@_handles(routes.UPSERT)
@_handles(routes.REMEMBER)
def _remember(engine: Engine, asked: Invocation[requests.RememberRequest]) -> replies.StoredReply:
    stored = _stored(engine, asked.place, [_draft(asked.body, asked.key)])[0]
    if not asked.body.may_replace:
        return cast("replies.StoredReply", stored)  # the same without an optional field
    former = engine.former(asked.place, stored["id"])
    return {**stored, "may_replace": [serialize.memory(asked.place.agent, row) for row in former]}


@_handles(routes.BATCH)
def _remember_many(engine: Engine, asked: Invocation[requests.BatchRequest]) -> replies.BatchReply:
    return {"memories": _stored(engine, asked.place, [_draft(memory) for memory in asked.body.memories])}


def _stored(engine: Engine, place: Place, drafts: Sequence[NewRow]) -> list[replies.MemoryReply]:
    kept, count = engine.remember(place, drafts)
    return [serialize.memory(place.agent, k.row, count=count, deduplicated=k.deduplicated) for k in kept]


def _draft(body: requests.RememberRequest, key: str | None = None) -> NewRow:
    reserved, metadata = body.reserved()
    days = None if body.ttl_days is None else body.ttl_days * 86400
    return NewRow(
        content=body.content,
        memory_type=reserved.type or body.memory_type,
        session_id=body.session_id,
        tags=reserved.tags if reserved.tags is not None else body.tags or (),
        metadata=metadata,
        ttl=days if body.ttl_seconds is None else body.ttl_seconds,
        pinned=body.pinned,
        client_id=reserved.id or key,
        role=reserved.role or body.role,
        key=reserved.key or body.key,
        supersedes=reserved.supersedes or body.supersedes,
        said_at=_seconds(reserved.said_at),
    )


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


@_handles(routes.BULK_IMPORT)
def _import(engine: Engine, asked: Invocation[requests.BatchRequest]) -> replies.ImportReply:
    engine.remember(asked.place, [_draft(memory) for memory in asked.body.memories])
    return {"imported": len(asked.body.memories), "failed": 0, "errors": []}


@_handles(routes.RECALL)
def _recall(engine: Engine, asked: Invocation[requests.RecallRequest]) -> replies.RecallReply:
    search = _search(asked.body)
    hits = engine.recall(asked.place, search)
    agent = asked.place.agent
    reply: replies.RecallReply = {
        "query": search.query,
        "results": [serialize.hit(agent, hit) for hit in hits],
        "total_found": len(hits),
    }
    if asked.body.kronmem is None:  # our own client reads `results`: it need not be sent everything twice
        reply["memories"] = [serialize.flat_hit(agent, hit) for hit in hits]
    return reply


def _search(body: requests.RecallRequest) -> Search:
    """As the engine takes it; the reserved object wins over the fields around it."""
    reserved = body.kronmem or requests.validator(requests.ReservedSearch).python({})
    query = body.query if body.query is not None else body.message
    return Search(
        query=query or "",
        limit=reserved.limit or body.limit or body.top_k or 5,
        threshold=body.threshold,
        only=Filter(
            body.session_id,
            reserved.memory_type or body.memory_type,
            reserved.tags or body.tags or (),
            since=_seconds(reserved.since),
            until=_seconds(reserved.until),
        ),
        count_access=reserved.count_access,
        exclude=frozenset(map(str.lower, reserved.exclude)),
        fill=reserved.fill,
        told=_told(reserved.told),
    )


def _told(range_: requests.ToldRange | None) -> Told | None:
    if range_ is None:
        return None
    return Told(range_.since.timestamp(), range_.until.timestamp(), range_.alone, range_.dated)


@_handles(routes.INJECT_CONTEXT)
def _inject_context(engine: Engine, asked: Invocation[requests.RecallRequest]) -> replies.ContextReply:
    search = _search(asked.body)
    if is_general(search.query) and not asker.is_meant(search.query):
        # Programs that know nothing of filling ask "general context" and expect the profile for it.
        search = replace(search, query="", fill=search.fill if asked.body.kronmem else True)
    hits = engine.recall(asked.place, search)
    context = serialize.context(hits)
    memories = [serialize.hit(asked.place.agent, hit) for hit in hits]
    return {"context_block": context, "context": context, "memories_used": len(hits), "memories": memories}


@_handles(routes.LIST_MEMORIES)
def _list_memories(engine: Engine, asked: Invocation[requests.ListRequest]) -> replies.PageReply:
    body, place = asked.body, asked.place
    only = Filter(
        body.session_id,
        body.memory_type,
        body.tag,
        body.search,
        since=_seconds(body.since),
        until=_seconds(body.until),
        history=body.history,
    )
    page = _page(body, engine, place)
    rows, total = engine.memories(place, only, replace(page, limit=page.limit + 1))
    rows, more = rows[: page.limit], rows[page.limit :]
    return {
        "memories": [serialize.memory(place.agent, row) for row in rows],
        "total": total,
        "page": body.page,
        "per_page": page.limit,
        "pages": max(-(-total // page.limit), 1),
        "next": _mark(rows[-1], body) if more else None,
    }


def _page(body: requests.ListRequest, engine: Engine, place: Place) -> Page:
    """Which part of the list; the vendor's SDK says `limit` and `offset`."""
    size = body.limit or body.per_page
    if body.after is not None:
        return replace(_page_after(engine, place, body.after, history=body.history), sort=body.sort, limit=size)
    return Page(body.sort, size, (body.page - 1) * size if body.offset is None else body.offset)


def _mark(row: Row, body: requests.ListRequest) -> str:
    mark = f"~{row.number}~{row.access_count}"
    return f"{mark}~{row.created_at!r}~{row.said_at!r}" if body.history else mark


def _page_after(engine: Engine, place: Place, after: str, *, history: bool) -> Page:
    """Where a page begins. A mark still works when the memory it was made of has been forgotten, an id does not."""
    if mark := re.fullmatch(_MARK, after):
        if history and mark[3] is None:
            raise InvalidRequestError("after: this mark is of a list without history", status=422)
        moment = (float(mark[3]), float(mark[4])) if history else None
        return Page(after=(int(mark[1]), int(mark[2])), moment=moment)
    row = engine.memory(place, after)
    return Page(after=(row.number, row.access_count), moment=(row.created_at, row.said_at) if history else None)


_TIME = r"(-?\d{1,12}(?:\.\d{1,12})?(?:e[+-]?\d{1,2})?)"
_MARK = rf"~(\d{{1,15}})~(\d{{1,15}})(?:~{_TIME}~{_TIME})?"


@_handles(routes.EXPORT)
def _export(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.ExportReply:
    rows = engine.all_memories(asked.place)
    memories = [serialize.memory(asked.place.agent, row) for row in rows]
    return {"agent_id": asked.place.agent, "total": len(memories), "memories": memories}


@_handles(routes.GET_MEMORY)
def _get_memory(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.MemoryReply:
    return serialize.memory(asked.place.agent, engine.memory(asked.place, asked.ids["memory"]))


@_handles(routes.UPDATE)
@_handles(routes.UPDATE_MEMORY)
def _update_memory(engine: Engine, asked: Invocation[requests.UpdateRequest]) -> replies.MemoryReply:
    body = asked.body
    ttl = None if body.ttl_days is None else body.ttl_days * 86400
    change = RowChange(body.content, body.memory_type, body.tags, body.metadata, body.pinned, ttl)
    return serialize.memory(asked.place.agent, engine.update(asked.place, asked.ids["memory"], change))


@_handles(routes.HISTORY)
def _history(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.HistoryReply:
    rows = engine.history(asked.place, asked.ids["memory"])
    return {"memories": [serialize.memory(asked.place.agent, row) for row in rows]}


@_handles(routes.SUMMARY)
def _summary(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.SummaryReply:
    found = engine.totals(asked.place)
    by = (dict(found.types), dict(found.tags), dict(found.sessions), dict(found.days))
    return {"count": found.count, "types": by[0], "tags": by[1], "sessions": by[2], "days": by[3]}


@_handles(routes.ERASE)
def _erase(engine: Engine, asked: Invocation[requests.EraseRequest]) -> replies.EraseReply:
    gone, complete = engine.erase(asked.place, asked.body.wait)
    return {
        "memories": gone.memories,
        "history": gone.history,
        "state": gone.state,
        "receipts": gone.receipts,
        "complete": complete,
    }


@_handles(routes.RESTORE)
def _restore(engine: Engine, asked: Invocation[requests.RestoreRequest]) -> replies.RestoreReply:
    restored = engine.restore(asked.place, [_row(memory) for memory in asked.body.memories])
    return {"restored": restored, "present": len(asked.body.memories) - restored}


def _row(body: requests.RestoredMemory) -> Row:
    created_at, updated_at = body.created_at.timestamp(), _seconds(body.updated_at)
    return Row(
        number=0,
        id=body.id,
        content=body.content,
        memory_type=body.memory_type,
        session_id=body.session_id,
        tags=tuple(dict.fromkeys(body.tags)),
        metadata=body.metadata,
        created_at=created_at,
        expires_at=_seconds(body.expires_at),
        pinned=body.pinned,
        access_count=body.access_count,
        # An export without it: the text is as old as the last change.
        said_at=max(created_at, updated_at or created_at) if body.said_at is None else body.said_at.timestamp(),
        updated_at=updated_at,
        role=body.role,
        key=body.key,
        superseded_by=body.superseded_by,
    )


@_handles(routes.FORGET)
def _forget(engine: Engine, asked: Invocation[EmptyRequest]) -> None:
    engine.forget(asked.place, asked.ids["memory"])


@_handles(routes.CLEAR)
def _clear(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.ClearReply:
    return {"deleted": engine.clear(asked.place)}


@_handles(routes.CLEAR_SOME)
def _clear_some(engine: Engine, asked: Invocation[requests.ClearRequest]) -> replies.ClearReply:
    return {"deleted": engine.clear(asked.place, asked.body.session_id, _seconds(asked.body.before))}


@_handles(routes.CLEAR_SESSION)
def _clear_session(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.ClearReply:
    return {"deleted": engine.clear(asked.place, asked.ids["session"])}


@_handles(routes.LIST_SESSIONS)
def _list_sessions(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.SessionsReply:
    found = engine.sessions(asked.place)
    return {"sessions": [{"session_id": session, "count": count} for session, count in found]}


# Agents


@_handles(routes.LIST_AGENTS)
def _list_agents(engine: Engine, asked: Invocation[EmptyRequest]) -> list[replies.AgentReply]:
    return [serialize.agent(space) for space in engine.agents(asked.place)]


@_handles(routes.CREATE_AGENT)
def _create_agent(engine: Engine, asked: Invocation[requests.AgentRequest]) -> replies.AgentReply:
    body = asked.body
    place = Place(asked.place.owner, body.name, asked.place.timeout)
    return serialize.agent(engine.describe_agent(place, body.description, body.metadata, create=True))


@_handles(routes.GET_AGENT)
def _get_agent(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.AgentReply:
    return serialize.agent(engine.agent(asked.place))


@_handles(routes.UPDATE_AGENT)
def _update_agent(engine: Engine, asked: Invocation[requests.AgentUpdateRequest]) -> replies.AgentReply:
    body = asked.body
    if body.name not in (None, asked.place.agent):
        raise InvalidRequestError("An agent's name is its id and cannot change", status=422)
    return serialize.agent(engine.describe_agent(asked.place, body.description, body.metadata, create=False))


@_handles(routes.DELETE_AGENT)
def _delete_agent(engine: Engine, asked: Invocation[EmptyRequest]) -> None:
    engine.drop_agent(asked.place)


# State


@_handles(routes.SET_STATE)
def _set_state(engine: Engine, asked: Invocation[requests.StateRequest]) -> replies.StateStoredReply:
    body, key = asked.body, asked.ids["key"]
    conditional = "if_updated_at" in body.model_fields_set
    expected = _seconds(body.if_updated_at) if conditional else ANY_TIME
    if conditional and body.value is None:
        engine.delete_state(asked.place, key, expected)
        return {"key": key, "stored": False, "updated_at": None}
    updated_at = engine.set_state(asked.place, key, to_json(body.value).decode(), expected)
    return {"key": key, "stored": True, "updated_at": serialize.timestamp(updated_at)}


@_handles(routes.GET_STATE)
def _get_state(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.StateReply:
    key = asked.ids["key"]
    return serialize.state(key, engine.state(asked.place, key))


@_handles(routes.DELETE_STATE)
def _delete_state(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.StateDeletedReply:
    engine.delete_state(asked.place, asked.ids["key"])
    return {"deleted": True}


@_handles(routes.LIST_STATE_KEYS)
def _list_state_keys(engine: Engine, asked: Invocation[requests.StateKeysRequest]) -> replies.StateKeysReply:
    return {"keys": engine.state_keys(asked.place, newest=asked.body.sort == "recent")}


@_handles(routes.HEALTH)
def _health(_engine: Engine, _asked: Invocation[EmptyRequest]) -> replies.HealthReply:
    return {"status": "ok", "service": "kronmem", "version": installed_version()}
