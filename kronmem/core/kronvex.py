"""The vendor's two dialects at once: that of its tutorials and that of its server.

Bodies carry both sets of field names; replies are read from either. Data without a field there (our types, tags,
the client id) travels under one reserved metadata key and comes back under its own name. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter
from pydantic_core import to_json

from kronmem.api.ids import RESERVED
from kronmem.api.replies import ClearReply
from kronmem.core.wire import Reply, detail, parse_json
from kronmem.errors import ReplyError
from kronmem.models import AgentInfo, Hit, Memory, Session

MOST_HITS = 20
"""The server refuses a larger top_k."""

# The server keeps these as they are. It re-classifies an unpinned "episodic" by a model of its own,
# and refuses every other name, so those travel in the metadata.
_KEPT = frozenset({"semantic", "procedural", "fact", "preference", "context"})
_STAND_IN = {"decision": "fact", "episodic": "episodic"}

M = TypeVar("M", Memory, Hit)

Score = Annotated[float, Field(allow_inf_nan=False)]


class WireMemory(BaseModel):
    """A memory as any of the services writes it. Only the text is certain to be there."""

    model_config = ConfigDict(extra="allow")

    content: str
    id: str = ""
    agent_id: str | None = None
    memory_type: str | None = None
    session_id: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, JsonValue] | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    pinned: bool | None = None
    access_count: int | None = None
    deduplicated: bool | None = None
    superseded: bool = False


class _WireScores(BaseModel):
    """Scores, beside a wrapped memory or inside a flat one. A service may give none."""

    similarity: Score | None = None
    confidence: Score | None = None
    score: Score | None = None


class _WireHit(_WireScores):
    memory: WireMemory


class _WireFlatHit(WireMemory, _WireScores):
    pass


class _WireRecall(BaseModel):
    """`results` is the server's name, `memories` the tutorials'."""

    results: list[_WireHit] | None = None
    memories: list[Annotated[_WireHit | _WireFlatHit, Field(union_mode="left_to_right")]] | None = None


class _WireContext(_WireRecall):
    context_block: str | None = None
    context: str | None = None


class WirePage(BaseModel):
    """One page of a listing. `next` exists on our own service only: pages there are cut by id, not by number."""

    memories: list[WireMemory]
    total: int | None = None
    pages: int | None = None
    next: str | None = None


class _WireSessions(BaseModel):
    sessions: list[Session]


class _WireBatch(BaseModel):
    memories: list[WireMemory]


_MEMORY = TypeAdapter(WireMemory)
_FOUND = TypeAdapter(_WireRecall)
_CONTEXT = TypeAdapter(_WireContext)
_PAGE = TypeAdapter(WirePage)
_AGENTS = TypeAdapter(list[AgentInfo])
_AGENT = TypeAdapter(AgentInfo)
_SESSIONS: TypeAdapter[_WireSessions | list[Session]] = TypeAdapter(_WireSessions | list[Session])
_DELETED = TypeAdapter(ClearReply)
_BATCH = TypeAdapter(_WireBatch)


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def remember_fields(
    content: str,
    memory_type: str,
    client_id: str,
    session_id: str | None,
    ttl: dict[str, int],
    pinned: bool,
    tags: Sequence[str],
    metadata: dict[str, JsonValue],
) -> dict[str, JsonValue]:
    """The body of a remember. Fields with nothing to say are left out: the server refuses some nulls."""
    ours: dict[str, JsonValue] = {"id": client_id}
    if memory_type not in _KEPT:
        ours["type"] = memory_type
    if tags:
        ours["tags"] = list(tags)
    fields: dict[str, JsonValue] = {
        "content": content,
        "memory_type": memory_type if memory_type in _KEPT else _STAND_IN.get(memory_type, "context"),
        "metadata": {**metadata, RESERVED: ours},
        **ttl,
    }
    if session_id is not None:
        fields["session_id"] = session_id
    if pinned:
        fields["pinned"] = True
    return fields


def recall_body(
    query: str,
    limit: int,
    memory_type: str | None,
    session_id: str | None,
    tags: Sequence[str],
    threshold: float | None,
) -> bytes:
    """The body of a recall or an inject-context: both names of every field.

    The server filters badly or not at all, so as many as it gives are asked for when the client has to filter.
    Our own service reads the exact question from the reserved object.
    """
    filtered = memory_type is not None or session_id is not None or bool(tags)
    asked = MOST_HITS if filtered else min(limit, MOST_HITS)
    fields: dict[str, JsonValue] = {"query": query, "message": query, "limit": asked, "top_k": asked}
    if threshold is not None:
        fields["threshold"] = threshold
    if session_id is not None:
        fields["session_id"] = session_id
    if memory_type in _KEPT:
        fields["memory_type"] = memory_type
    exact: dict[str, JsonValue] = {"limit": limit}
    if memory_type is not None:
        exact["memory_type"] = memory_type
    if tags:
        exact["tags"] = list(tags)
    fields[RESERVED] = exact
    return to_json(fields)


# ── back ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def memory(reply: Reply, agent_id: str) -> Memory:
    """Read one stored memory; without an id it could never be forgotten, so that is an error."""
    wire = parse_json(_MEMORY, reply)
    if not wire.id:
        raise ReplyError("the service's answer cannot be read: a stored memory without an id")
    return to_memory(wire, agent_id)


def batch(reply: Reply, agent_id: str) -> list[Memory]:
    """Read the answer to a batch, in the order it was sent."""
    return [to_memory(wire, agent_id) for wire in parse_json(_BATCH, reply).memories]


def hits(reply: Reply, agent_id: str) -> list[Hit]:
    """Read the hits of a recall, best first, superseded memories left out."""
    return _hits(parse_json(_FOUND, reply), agent_id)


def context(reply: Reply, agent_id: str) -> tuple[list[Hit], str]:
    """Read an injected context: its memories where the service lists them, and its own text."""
    found = parse_json(_CONTEXT, reply)
    ready = found.context_block if found.context_block is not None else found.context
    if found.results is None and found.memories is None:
        if ready is None:
            raise ReplyError("the service's answer cannot be read: no context in it")
        return [], ready
    return _hits(found, agent_id), ready or ""


def page(reply: Reply) -> WirePage:
    """Read one page of a listing."""
    return parse_json(_PAGE, reply)


def agents(reply: Reply) -> list[AgentInfo]:
    """Read the agents of this key."""
    return parse_json(_AGENTS, reply)


def agent(reply: Reply) -> AgentInfo:
    """Read one agent."""
    return parse_json(_AGENT, reply)


def sessions(reply: Reply) -> list[Session]:
    """Read the sessions of an agent, bare or wrapped. The nameless one is no session."""
    found = parse_json(_SESSIONS, reply)
    listed = found if isinstance(found, list) else found.sessions
    return [session for session in listed if session.session_id]


def deleted(reply: Reply) -> int:
    """Read how many memories a clear removed."""
    return parse_json(_DELETED, reply)["deleted"] if reply.body else 0


def oldest_named(known: Iterable[AgentInfo], name: str) -> str | None:
    """The id of the oldest agent of that name: names are not unique there, and everyone must pick the same."""
    named = [one for one in known if one.name == name]
    if not named:
        return None
    return min(named, key=lambda one: (one.created_at.timestamp() if one.created_at else 0.0, one.id)).id


def wants_uuid(reply: Reply) -> bool:
    """Did the server refuse the agent id in the path because it is no UUID?"""
    said = detail(reply) if reply.status == 422 else None
    if not isinstance(said, list):
        return False
    items = [cast("dict[str, object]", item) for item in cast("list[object]", said) if isinstance(item, dict)]
    return any(item.get("type") == "uuid_parsing" and item.get("loc") == ["path", "agent_id"] for item in items)


def agent_is_gone(reply: Reply) -> bool:
    """Is this 404 about the agent? One about a memory says so with the same status."""
    return reply.status == 404 and detail(reply) == "Agent not found"


def has_no_route(reply: Reply) -> bool:
    """Does the service not know this path or method at all?"""
    return reply.status == 405 or (reply.status == 404 and detail(reply) in {"Not Found", None})


def keep(
    found: list[Hit],
    *,
    limit: int,
    memory_type: str | None,
    session_id: str | None,
    tags: Sequence[str],
    threshold: float | None,
) -> list[Hit]:
    """Filter again: an entity match makes the server return memories that ignore every filter it was given."""
    kept = [
        hit
        for hit in found
        if matches(hit.memory, memory_type=memory_type, session_id=session_id, tags=tags)
        and (threshold is None or hit.similarity >= threshold or "similarity" not in hit.model_fields_set)
    ]
    return kept[:limit]


def matches(one: Memory, *, memory_type: str | None, session_id: str | None, tags: Sequence[str]) -> bool:
    """Is this memory within the scope that was asked for?"""
    return (
        (memory_type is None or one.memory_type == memory_type)
        and (session_id is None or one.session_id == session_id)
        and set(tags) <= set(one.tags)
    )


def to_memory(wire: WireMemory, agent_id: str) -> Memory:
    """Make the user's memory of a service's: own agent id, own type, own tags, own metadata."""
    metadata = wire.metadata or {}
    carried = metadata.get(RESERVED)
    if RESERVED in metadata:
        metadata = {name: value for name, value in metadata.items() if name != RESERVED}
    ours = carried if isinstance(carried, dict) else {}
    own_type, own_tags = ours.get("type"), ours.get("tags")
    tags = own_tags if isinstance(own_tags, list) else (wire.tags or [])
    fields = {
        "id": wire.id,
        "agent_id": agent_id,
        "content": wire.content,
        "memory_type": own_type if isinstance(own_type, str) else (wire.memory_type or "fact"),
        "session_id": wire.session_id,
        "tags": tuple(map(str, tags)),
        "metadata": metadata,
        "created_at": wire.created_at,
        "expires_at": wire.expires_at,
        "pinned": bool(wire.pinned),
        "access_count": wire.access_count or 0,
        "deduplicated": bool(wire.deduplicated),
        "queued": False,
    }
    return _made(Memory, fields, _MEMORY_FIELDS, wire.model_extra)


def _hits(found: _WireRecall, agent_id: str) -> list[Hit]:
    rows: Sequence[_WireHit | _WireFlatHit] | None = found.results if found.results is not None else found.memories
    if rows is None:
        raise ReplyError("the service's answer cannot be read: neither results nor memories in it")
    read = [_hit(row, agent_id) for row in rows if not _wire(row).superseded]
    return sorted(read, key=lambda hit: -hit.similarity)


def _wire(row: _WireHit | _WireFlatHit) -> WireMemory:
    return row.memory if isinstance(row, _WireHit) else row


def _hit(row: _WireHit | _WireFlatHit, agent_id: str) -> Hit:
    memory = to_memory(_wire(row), agent_id)
    similarity = row.similarity if row.similarity is not None else row.score
    if similarity is None:  # the tutorials' reply may carry no score: keep the order it came in
        return _made(Hit, {"memory": memory, "similarity": 0.0, "confidence": 0.0}, _UNSCORED, None)
    confidence = row.confidence if row.confidence is not None else similarity
    fields = {"memory": memory, "similarity": similarity, "confidence": confidence}
    return _made(Hit, fields, _HIT_FIELDS, None)


_set = object.__setattr__
# Shared by all: the models are frozen, and a copy of one copies its set.
_MEMORY_FIELDS, _HIT_FIELDS, _UNSCORED = set(Memory.model_fields), set(Hit.model_fields), {"memory"}


def _made(kind: type[M], fields: dict[str, Any], given: set[str], extra: dict[str, Any] | None) -> M:
    """A model from values that were checked already: `model_construct` at a tenth of its cost."""
    made = kind.__new__(kind)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", given)
    _set(made, "__pydantic_extra__", extra or {})
    _set(made, "__pydantic_private__", None)
    return made
