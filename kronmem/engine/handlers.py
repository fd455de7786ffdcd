"""The handler of every route: a request that was read goes in, the declared reply goes out, rows in both dialects."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, dropwhile
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import to_json

from kronmem.api import replies, requests, routes
from kronmem.api.replies import (
    AgentReply,
    ExplanationReply,
    FlatHitReply,
    HitReply,
    MemoryReply,
    ScoresReply,
    StateReply,
)
from kronmem.api.requests import EmptyRequest
from kronmem.api.routes import AnyRoute, Route
from kronmem.api.rules import MAX_TAGS
from kronmem.engine import asker
from kronmem.engine.engine import ANY_TIME, Engine
from kronmem.engine.ranking import Score
from kronmem.engine.recall import FoundRow, Search, Told, is_general
from kronmem.engine.remembering import Place, RowChange
from kronmem.engine.store import Filter, NewRow, Page, Row, Space, StateValue
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
    return {**stored, "may_replace": [memory_reply(asked.place.agent, row) for row in former]}


@_handles(routes.BATCH)
def _remember_many(engine: Engine, asked: Invocation[requests.BatchRequest]) -> replies.BatchReply:
    return {"memories": _stored(engine, asked.place, [_draft(memory) for memory in asked.body.memories])}


def _stored(engine: Engine, place: Place, drafts: Sequence[NewRow]) -> list[replies.MemoryReply]:
    kept, count = engine.remember(place, drafts)
    return [memory_reply(place.agent, k.row, count=count, deduplicated=k.deduplicated) for k in kept]


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
        age=reserved.age,
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
        "results": [hit_reply(agent, hit) for hit in hits],
        "total_found": len(hits),
    }
    if asked.body.kronmem is None:  # our own client reads `results`: it need not be sent everything twice
        reply["memories"] = [flat_hit_reply(agent, hit) for hit in hits]
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
        told=_time_range(reserved.told),
    )


def _time_range(range_: requests.ToldRange | None) -> Told | None:
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
    context = context_reply(hits)
    memories = [hit_reply(asked.place.agent, hit) for hit in hits]
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
    memories = fitting(place.agent, rows[: page.limit], body.max_bytes)
    return {
        "memories": memories,
        "total": total,
        "page": body.page,
        "per_page": page.limit,
        "pages": max(-(-total // page.limit), 1),
        "next": _mark(rows[len(memories) - 1], body) if len(memories) < len(rows) else None,
    }


def _page(body: requests.ListRequest, engine: Engine, place: Place) -> Page:
    """Which part of the list; the vendor's SDK sends `limit` and `offset`."""
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
    memories = [memory_reply(asked.place.agent, row) for row in rows]
    return {"agent_id": asked.place.agent, "total": len(memories), "memories": memories}


@_handles(routes.GET_MEMORY)
def _get_memory(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.MemoryReply:
    return memory_reply(asked.place.agent, engine.memory(asked.place, asked.ids["memory"]))


@_handles(routes.UPDATE)
@_handles(routes.UPDATE_MEMORY)
def _update_memory(engine: Engine, asked: Invocation[requests.UpdateRequest]) -> replies.MemoryReply:
    body = asked.body
    ttl = None if body.ttl_days is None else body.ttl_days * 86400
    change = RowChange(body.content, body.memory_type, body.tags, body.metadata, body.pinned, ttl)
    return memory_reply(asked.place.agent, engine.update(asked.place, asked.ids["memory"], change))


@_handles(routes.HISTORY)
def _history(engine: Engine, asked: Invocation[requests.HistoryRequest]) -> replies.HistoryReply:
    rows, body = engine.history(asked.place, asked.ids["memory"]), asked.body
    if body.after is not None:
        rows = list(dropwhile(lambda row: row.id != body.after, rows))[1:]
    memories = fitting(asked.place.agent, rows, body.max_bytes)
    return {"memories": memories, "next": memories[-1]["id"] if len(memories) < len(rows) else None}


@_handles(routes.SUMMARY)
def _summary(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.SummaryReply:
    totals = engine.totals(asked.place)
    by = (dict(totals.types), dict(totals.tags), dict(totals.sessions), dict(totals.days))
    return {"count": totals.count, "types": by[0], "tags": by[1], "sessions": by[2], "days": by[3]}


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
    sessions = engine.sessions(asked.place)
    return {"sessions": [{"session_id": session, "count": count} for session, count in sessions]}


# Agents


@_handles(routes.LIST_AGENTS)
def _list_agents(engine: Engine, asked: Invocation[EmptyRequest]) -> list[replies.AgentReply]:
    return [agent_reply(space) for space in engine.agents(asked.place)]


@_handles(routes.CREATE_AGENT)
def _create_agent(engine: Engine, asked: Invocation[requests.AgentRequest]) -> replies.AgentReply:
    body = asked.body
    place = Place(asked.place.owner, body.name, asked.place.timeout)
    return agent_reply(engine.describe_agent(place, body.description, body.metadata, create=True))


@_handles(routes.GET_AGENT)
def _get_agent(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.AgentReply:
    return agent_reply(engine.agent(asked.place))


@_handles(routes.UPDATE_AGENT)
def _update_agent(engine: Engine, asked: Invocation[requests.AgentUpdateRequest]) -> replies.AgentReply:
    body = asked.body
    if body.name not in (None, asked.place.agent):
        raise InvalidRequestError("An agent's name is its id and cannot change", status=422)
    return agent_reply(engine.describe_agent(asked.place, body.description, body.metadata, create=False))


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
    return {"key": key, "stored": True, "updated_at": timestamp(updated_at)}


@_handles(routes.GET_STATE)
def _get_state(engine: Engine, asked: Invocation[EmptyRequest]) -> replies.StateReply:
    key = asked.ids["key"]
    return state_reply(key, engine.state(asked.place, key))


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


# Rows as replies, with the fields that both dialects of Kronvex expect. Pure.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp(seconds: float) -> str:
    """ISO 8601 in UTC with microseconds."""
    # Not fromtimestamp: it fails on some systems for times before 1970.
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def encoded(value: object) -> bytes:
    """JSON in UTF-8."""
    try:
        return to_json(value)
    except ValueError:  # a lone surrogate that an earlier version stored: JSON can escape it, UTF-8 cannot encode it
        return json.dumps(value).encode()


def fitting(agent: str, rows: Sequence[Row], most: int | None) -> list[MemoryReply]:
    """As many of the memories as fit into so many bytes, at least one of them."""
    replies = [memory_reply(agent, row) for row in rows]
    if most is None:
        return replies
    sizes = list(accumulate(len(encoded(one)) + 1 for one in replies))
    return replies[: max(bisect_right(sizes, most), 1)]


def memory_reply(agent: str, row: Row, *, count: int | None = None, deduplicated: bool = False) -> MemoryReply:
    """One memory. `count`: how many the agent now has, known only after a write."""
    created_at = timestamp(row.created_at)
    return {
        "id": row.id,
        "agent_id": agent,
        "content": row.content,
        "session_id": row.session_id,
        "memory_type": row.memory_type,
        "metadata": row.metadata,
        "tags": list(row.tags[-MAX_TAGS:]),  # kronmem 0.2 kept more
        "created_at": created_at,
        "updated_at": None if row.updated_at is None else timestamp(row.updated_at),
        "said_at": created_at if row.said_at == row.created_at else timestamp(row.said_at),
        "access_count": row.access_count,
        "expires_at": None if row.expires_at is None else timestamp(row.expires_at),
        "pinned": row.pinned,
        "role": row.role,
        "key": row.key,
        "agent_memory_count": count,
        "deduplicated": deduplicated,
        "superseded": row.superseded_by is not None,
        "superseded_by": row.superseded_by,
        "conflict_detected": False,
        "conflicts_resolved": 0,
    }


def hit_reply(agent: str, hit: FoundRow) -> HitReply:
    """A memory with its scores around it, as the vendor's server sends it."""
    return {"memory": memory_reply(agent, hit.row), **_scores(hit)}


def flat_hit_reply(agent: str, hit: FoundRow) -> FlatHitReply:
    """A memory with its scores among its fields, as the vendor's tutorials say it."""
    return {**memory_reply(agent, hit.row), **_scores(hit)}


def _scores(hit: FoundRow) -> ScoresReply:
    return {
        "similarity": hit.similarity,
        "confidence": hit.confidence,
        "score": hit.similarity,
        "excerpt": hit.excerpt,
        "filled": hit.score is None,
        "standing": hit.standing,
        "earlier": hit.earlier,
        "explanation": explanation(hit.score),
    }


def explanation(score: Score | None) -> ExplanationReply | None:
    """The parts of a similarity; none for a memory that fills a context up."""
    return {"words": score.words, "meaning": score.meaning, "speaker": score.speaker} if score else None


def context_reply(hits: Sequence[FoundRow]) -> str:
    """One line a memory; empty when there is none."""
    lines = [f"- {' '.join(h.row.content.split())} (confidence: {h.confidence:.2f})" for h in hits]
    return "\n".join(["[KRONMEM CONTEXT]", *lines]) if lines else ""


def agent_reply(space: Space) -> AgentReply:
    """An agent; its name is its id."""
    return {
        "id": space.name,
        "name": space.name,
        "description": space.description,
        "metadata": space.metadata,
        "created_at": timestamp(space.created_at),
        "memory_count": space.count,
    }


def state_reply(key: str, stored: StateValue) -> StateReply:
    """A value of an agent's state."""
    return {
        "key": key,
        "value": json.loads(stored.value),
        "created_at": timestamp(stored.created_at),
        "updated_at": timestamp(stored.updated_at),
    }
