"""The API: one table of (method, path, what is read, handler, status), and the handlers. No transport knows more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Generic, TypeVar, cast

from pydantic import BaseModel, JsonValue

from kronmem.api import requests as bodies
from kronmem.engine import serialize as answers
from kronmem.engine.engine import Engine
from kronmem.engine.recall import Hit
from kronmem.engine.remembering import Place
from kronmem.engine.serialize import Json
from kronmem.engine.store import Draft, Row
from kronmem.errors import InvalidRequestError

B = TypeVar("B", bound=BaseModel)
B_co = TypeVar("B_co", bound=BaseModel, covariant=True)


@dataclass(frozen=True)
class Asked(Generic[B_co]):
    """A request, read: whose memory, the ids in its path, what it says, and the id it was sent under."""

    place: Place
    ids: Mapping[str, str]
    said: B_co
    key: str | None


Handler = Callable[[Engine, Asked[B]], JsonValue]


@dataclass(frozen=True)
class Route:
    """One row of the API. `reads` is the model of the body, or of the query string of a GET."""

    method: str
    path: str
    reads: type[BaseModel]
    handler: Callable[[Engine, Asked[BaseModel]], JsonValue]
    status: int


def _route(method: str, path: str, reads: type[B], handler: Handler[B], status: int = 200) -> Route:
    # The cast is safe because whoever calls the handler validates with `reads` first.
    return Route(method, path, reads, cast("Handler[BaseModel]", handler), status)


# Memories


def _remember(engine: Engine, asked: Asked[bodies.Remember]) -> JsonValue:
    return _kept(engine, asked.place, [asked.said.draft(asked.key)])[0]


def _remember_many(engine: Engine, asked: Asked[bodies.Batch]) -> JsonValue:
    drafts = [memory.draft() for memory in asked.said.memories]
    return {"memories": list[JsonValue](_kept(engine, asked.place, drafts))}


def _kept(engine: Engine, place: Place, drafts: Sequence[Draft]) -> list[Json]:
    kept, count = engine.remember(place, drafts)
    return [answers.memory(place.agent, k.row, count=count, deduplicated=k.deduplicated) for k in kept]


def _import(engine: Engine, asked: Asked[bodies.Batch]) -> JsonValue:
    engine.remember(asked.place, [memory.draft() for memory in asked.said.memories])
    return {"imported": len(asked.said.memories), "failed": 0, "errors": []}


def _recall(engine: Engine, asked: Asked[bodies.Recall]) -> JsonValue:
    search = asked.said.search()
    hits = engine.recall(asked.place, search)
    agent = asked.place.agent
    reply: Json = {"query": search.query, "results": [answers.hit(agent, h) for h in hits], "total_found": len(hits)}
    if asked.said.kronmem is None:  # our own client reads `results`: it need not be sent everything twice
        reply["memories"] = [answers.flat_hit(agent, h) for h in hits]
    return reply


def _inject(engine: Engine, asked: Asked[bodies.Recall]) -> JsonValue:
    hits = _context_hits(engine, asked)
    context = answers.context(hits)
    memories: list[JsonValue] = [answers.hit(asked.place.agent, h) for h in hits]
    return {"context_block": context, "context": context, "memories_used": len(hits), "memories": memories}


def _context_hits(engine: Engine, asked: Asked[bodies.Recall]) -> list[Hit]:
    search = asked.said.search()
    if search.query == bodies.GENERAL:
        return engine.latest(asked.place, search.only, search.limit)
    return engine.recall(asked.place, search)


def _list(engine: Engine, asked: Asked[bodies.Listing]) -> JsonValue:
    said, place = asked.said, asked.place
    page = said.page_after(_position(engine, place, said.after))
    rows, total = engine.memories(place, said.filter(), replace(page, limit=page.limit + 1))
    rows, more = rows[: page.limit], rows[page.limit :]
    return {
        "memories": [answers.memory(place.agent, row) for row in rows],
        "total": total,
        "page": said.page,
        "per_page": page.limit,
        "pages": max(-(-total // page.limit), 1),
        "next": _mark(rows[-1]) if more else None,
    }


def _mark(row: Row) -> str:
    return f"~{row.number}~{row.access_count}"


def _position(engine: Engine, place: Place, after: str | None) -> tuple[int, int] | None:
    """Where a page begins. A mark still works when the memory it was made of has been forgotten, an id does not."""
    if after is None:
        return None
    if mark := re.fullmatch(r"~(\d{1,15})~(\d{1,15})", after):
        return int(mark[1]), int(mark[2])
    row = engine.memory(place, after)
    return row.number, row.access_count


def _export(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    rows = engine.all_memories(asked.place)
    memories: list[JsonValue] = [answers.memory(asked.place.agent, row) for row in rows]
    return {"agent_id": asked.place.agent, "total": len(memories), "memories": memories}


def _memory(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    return answers.memory(asked.place.agent, engine.memory(asked.place, asked.ids["memory"]))


def _update(engine: Engine, asked: Asked[bodies.Update]) -> JsonValue:
    row = engine.update(asked.place, asked.ids["memory"], asked.said.pinned, asked.said.memory_type)
    return answers.memory(asked.place.agent, row)


def _forget(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    engine.forget(asked.place, asked.ids["memory"])
    return None


def _clear(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    return {"deleted": engine.clear(asked.place)}


def _clear_session(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    return {"deleted": engine.clear(asked.place, asked.ids["session"])}


def _sessions(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    found = engine.sessions(asked.place)
    return {"sessions": [{"session_id": session, "count": count} for session, count in found]}


# Agents


def _agents(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    return [answers.agent(space) for space in engine.agents(asked.place)]


def _create_agent(engine: Engine, asked: Asked[bodies.Agent]) -> JsonValue:
    said = asked.said
    place = Place(asked.place.owner, said.name, asked.place.timeout)
    return answers.agent(engine.describe_agent(place, said.description, said.metadata, create=True))


def _agent(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    return answers.agent(engine.agent(asked.place))


def _update_agent(engine: Engine, asked: Asked[bodies.AgentUpdate]) -> JsonValue:
    said = asked.said
    if said.name not in (None, asked.place.agent):
        raise InvalidRequestError("An agent's name is its id and cannot change", status=422)
    return answers.agent(engine.describe_agent(asked.place, said.description, said.metadata, create=False))


def _drop_agent(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    engine.drop_agent(asked.place)
    return None


# State


def _set_state(engine: Engine, asked: Asked[bodies.State]) -> JsonValue:
    engine.set_state(asked.place, asked.ids["key"], json.dumps(asked.said.value))
    return {"key": asked.ids["key"], "stored": True}


def _state(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    kept = engine.state(asked.place, asked.ids["key"])
    times: Json = {"created_at": answers.timestamp(kept.created_at), "updated_at": answers.timestamp(kept.updated_at)}
    return {"key": asked.ids["key"], "value": json.loads(kept.value), **times}


def _delete_state(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    engine.delete_state(asked.place, asked.ids["key"])
    return {"deleted": True}


def _state_keys(engine: Engine, asked: Asked[bodies.Nothing]) -> JsonValue:
    return {"keys": list[JsonValue](engine.state_keys(asked.place))}


def _health(_engine: Engine, _asked: Asked[bodies.Nothing]) -> JsonValue:
    return {"status": "ok", "service": "kronmem", "version": _version()}


@lru_cache(maxsize=1)
def _version() -> str:
    try:
        return version("kronmem")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0"


_AGENT = "/api/v1/agents/{agent}"

# Fixed words stand before ids: the first row that fits answers.
ROUTES: tuple[Route, ...] = (
    _route("GET", "/health", bodies.Nothing, _health),
    _route("GET", "/api/v1/agents", bodies.Nothing, _agents),
    _route("POST", "/api/v1/agents", bodies.Agent, _create_agent, 201),
    _route("GET", _AGENT, bodies.Nothing, _agent),
    _route("PATCH", _AGENT, bodies.AgentUpdate, _update_agent),
    _route("DELETE", _AGENT, bodies.Nothing, _drop_agent, 204),
    _route("POST", f"{_AGENT}/remember", bodies.Remember, _remember, 201),
    _route("POST", f"{_AGENT}/recall", bodies.Recall, _recall),
    _route("POST", f"{_AGENT}/inject-context", bodies.Recall, _inject),
    _route("POST", f"{_AGENT}/memories/batch", bodies.Batch, _remember_many, 201),
    _route("POST", f"{_AGENT}/memories/bulk-import", bodies.Batch, _import),
    _route("GET", f"{_AGENT}/memories/export", bodies.Nothing, _export),
    _route("GET", f"{_AGENT}/memories", bodies.Listing, _list),
    _route("DELETE", f"{_AGENT}/memories", bodies.Nothing, _clear),
    _route("GET", f"{_AGENT}/memories/{{memory}}", bodies.Nothing, _memory),
    _route("PATCH", f"{_AGENT}/memories/{{memory}}", bodies.Update, _update),
    _route("DELETE", f"{_AGENT}/memories/{{memory}}", bodies.Nothing, _forget, 204),
    _route("GET", f"{_AGENT}/sessions", bodies.Nothing, _sessions),
    _route("DELETE", f"{_AGENT}/sessions/{{session}}", bodies.Nothing, _clear_session),
    _route("GET", f"{_AGENT}/state", bodies.Nothing, _state_keys),
    _route("GET", f"{_AGENT}/state/{{key}}", bodies.Nothing, _state),
    _route("PUT", f"{_AGENT}/state/{{key}}", bodies.State, _set_state),
    _route("DELETE", f"{_AGENT}/state/{{key}}", bodies.Nothing, _delete_state),
)
