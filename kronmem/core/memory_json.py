"""JSON of a service to `Memory` and `Hit`, and the bodies sent to it, in both dialects. Pure.

Fields that a service has no place for travel in the metadata and come back out of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import to_json

from kronmem.api.replies import ClearReply
from kronmem.api.rules import RESERVED, DeferredModel, Validator
from kronmem.core.inputs import MemoryFilter
from kronmem.core.wire import Reply, parse_json
from kronmem.errors import ReplyError
from kronmem.models import AgentInfo, Explanation, Fill, Hit, Memory, Session
from kronmem.text.time_ranges import TimeRange

M = TypeVar("M", Memory, Hit)

_log = logging.getLogger("kronmem")

Score = Annotated[float, Field(allow_inf_nan=False)]


class WireMemory(DeferredModel):
    """A memory as any of the services writes it, its fields in the order of `Memory`'s. Only the text is certain."""

    model_config = ConfigDict(extra="allow")

    id: str = ""
    agent_id: str | None = None
    content: str
    memory_type: str | None = None
    session_id: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, JsonValue] | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    said_at: datetime | None = None
    expires_at: datetime | None = None
    pinned: bool | None = None
    role: str | None = None
    key: str | None = None
    superseded_by: str | None = None
    access_count: int | None = None
    deduplicated: bool | None = None
    may_replace: list[WireMemory] | None = None
    superseded: bool = False

    @property
    def ours(self) -> dict[str, JsonValue] | None:
        """The object that kronmem sent along; None: another client stored this row."""
        carried = (self.metadata or {}).get(RESERVED)
        return carried if isinstance(carried, dict) else None

    @property
    def former(self) -> tuple[str, ...]:
        """The ids of the rows that this one replaced, newest first."""
        was = (self.ours or {}).get("was")
        listed: list[JsonValue] = was if isinstance(was, list) else []
        return tuple(one for one in listed if isinstance(one, str))

    @property
    def ids(self) -> frozenset[str]:
        """Every id under which a user of kronmem may know this row."""
        return frozenset(self.lineage)

    @property
    def lineage(self) -> tuple[str, ...]:
        """The same, newest first."""
        own = (self.ours or {}).get("id")
        return (self.id, *([own] if isinstance(own, str) else []), *self.former)


class _WireScores(DeferredModel):
    """Scores, beside a wrapped memory or inside a flat one. A service may give none."""

    similarity: Score | None = None
    confidence: Score | None = None
    score: Score | None = None


class _WireHit(_WireScores):
    memory: WireMemory
    excerpt: str | None = None
    filled: bool | None = None
    standing: bool | None = None
    earlier: bool | None = None
    explanation: Explanation | None = None


class _WireFlatHit(WireMemory, _WireScores):
    excerpt: str | None = None
    filled: bool | None = None
    standing: bool | None = None
    earlier: bool | None = None
    explanation: Explanation | None = None


class _WireRecall(DeferredModel):
    """`results` is the server's name, `memories` the tutorials'."""

    results: list[_WireHit] | None = None
    memories: list[Annotated[_WireHit | _WireFlatHit, Field(union_mode="left_to_right")]] | None = None


class _WireContext(_WireRecall):
    context_block: str | None = None
    context: str | None = None


class WirePage(DeferredModel):
    """One page of a listing. `next` exists on our own service only: pages there are cut by id, not by number."""

    memories: list[WireMemory]
    total: int | None = None
    pages: int | None = None
    next: str | None = None


class _WireSessions(DeferredModel):
    sessions: list[Session]


class _WireBatch(DeferredModel):
    memories: list[WireMemory]


_MEMORY = Validator(WireMemory)
_FOUND = Validator(_WireRecall)
_CONTEXT = Validator(_WireContext)
_PAGE = Validator(WirePage)
_AGENTS = Validator(list[AgentInfo])
_AGENT = Validator(AgentInfo)
_SESSIONS: Validator[_WireSessions | list[Session]] = Validator(_WireSessions | list[Session])
_DELETED = Validator(ClearReply)
_BATCH = Validator(_WireBatch)


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def memory(reply: Reply, agent_id: str) -> Memory:
    """Read one stored memory; without an id it could never be forgotten, so that is an error."""
    wire = row(reply)
    if not wire.id:
        raise ReplyError("the service's answer cannot be read: a stored memory without an id")
    return to_memory(wire, agent_id)


def row(reply: Reply) -> WireMemory:
    """Read one stored memory as the server wrote it."""
    wire = parse_json(_MEMORY, reply)
    if not _is_own(reply, wire):
        raise ReplyError("the service answered with a memory of another agent")
    return wire


def _is_own(reply: Reply, wire: WireMemory) -> bool:
    """Whether it is of the agent that was asked about; one of another is logged once for each agent."""
    if not reply.agent_ref or wire.agent_id is None or wire.agent_id.lower() == reply.agent_ref.lower():
        return True
    _warn_of_others(reply.agent_ref)
    return False


@lru_cache(maxsize=256)
def _warn_of_others(agent_id: str) -> None:
    _log.warning("the service answers for agent %s with memories of another agent: they are left out", agent_id)


def scored(reply: Reply, agent_id: str) -> list[tuple[WireMemory, Hit]] | None:
    """Read recalled rows as the server wrote them with their hits, superseded ones too; None: it lists none at all."""
    listed = _listed(parse_json(_FOUND, reply), reply)
    return None if listed is None else [(wire := _wire(one), _hit(one, wire, agent_id)) for one in listed]


def unscored(wire: WireMemory, agent_id: str) -> Hit:
    """A hit that the service gave no scores for."""
    memory = to_memory(wire, agent_id)
    return _made(
        Hit,
        {**_NO_SCORES, "memory": memory, "excerpt": memory.content, "filled": True},
        _UNSCORED,
        None,
    )


def batch(reply: Reply, agent_id: str) -> list[Memory]:
    """Read the answer to a batch, in the order it was sent."""
    wires = parse_json(_BATCH, reply).memories
    if not all(_is_own(reply, wire) for wire in wires):
        raise ReplyError("the service answered with memories of another agent")
    return [to_memory(wire, agent_id) for wire in wires]


def hits(reply: Reply, agent_id: str) -> list[Hit]:
    """Read the hits of a recall, best first, superseded memories left out."""
    return _hits(_listed(parse_json(_FOUND, reply), reply), agent_id)


def context(reply: Reply, agent_id: str) -> tuple[list[Hit] | None, str]:
    """Read an injected context: its memories where the service lists any or none, and its own text."""
    recall = parse_json(_CONTEXT, reply)
    ready = recall.context_block if recall.context_block is not None else recall.context
    if recall.results is None and recall.memories is None:
        if ready is None:
            raise ReplyError("the service's answer cannot be read: no context in it")
        return None, ready
    return _hits(_listed(recall, reply), agent_id), ready or ""


def page(reply: Reply) -> WirePage:
    """Read one page of a listing."""
    page = parse_json(_PAGE, reply)
    page.memories = [wire for wire in page.memories if _is_own(reply, wire)]
    return page


def agents(reply: Reply) -> list[AgentInfo]:
    """Read the agents of this key."""
    return parse_json(_AGENTS, reply)


def agent(reply: Reply) -> AgentInfo:
    """Read one agent."""
    return parse_json(_AGENT, reply)


def sessions(reply: Reply) -> list[Session]:
    """Read the sessions of an agent, bare or wrapped. The nameless one is no session."""
    answer = parse_json(_SESSIONS, reply)
    listed = answer if isinstance(answer, list) else answer.sessions
    return [session for session in listed if session.session_id]


def deleted(reply: Reply) -> int:
    """Read how many memories a clear removed."""
    return parse_json(_DELETED, reply)["deleted"] if reply.body else 0


def to_memory(wire: WireMemory, agent_id: str) -> Memory:
    """Make the user's memory of a service's: own agent id, own type, own tags, own metadata."""
    read = wire.__dict__
    fields = read.copy() if type(wire) is WireMemory else {name: read[name] for name in WireMemory.model_fields}
    del fields["superseded"]
    fields["agent_id"] = agent_id
    fields["memory_type"] = fields["memory_type"] or "fact"
    fields["tags"] = tuple(fields["tags"] or ())
    metadata: dict[str, JsonValue] = fields["metadata"] or {}
    fields["metadata"] = metadata
    fields["pinned"] = bool(fields["pinned"])
    fields["access_count"] = fields["access_count"] or 0
    fields["deduplicated"] = bool(fields["deduplicated"])
    if former := fields["may_replace"]:
        fields["may_replace"] = tuple(to_memory(one, agent_id) for one in former)
    else:
        fields["may_replace"] = ()
    fields["queued"] = False
    if RESERVED in metadata:
        fields["metadata"] = {name: value for name, value in metadata.items() if name != RESERVED}
        _unpack(fields, metadata[RESERVED])
    return _made(Memory, fields, _MEMORY_FIELDS, wire.__pydantic_extra__)


def _unpack(fields: dict[str, Any], carried: JsonValue) -> None:
    """Take the fields that travelled in the metadata: our type and tags, and those of services that have no such."""
    if not isinstance(carried, dict):
        return
    if isinstance(carried.get("type"), str):
        fields["memory_type"] = carried["type"]
    if isinstance(tags := carried.get("tags"), list):
        fields["tags"] = tuple(map(str, tags))
    if isinstance(carried.get("pinned"), bool):
        fields["pinned"] = carried["pinned"]
    for name in ("role", "key"):
        if fields[name] is None and isinstance(carried.get(name), str):
            fields[name] = carried[name]


def _listed(recall: _WireRecall, reply: Reply) -> Sequence[_WireHit | _WireFlatHit] | None:
    rows: Sequence[_WireHit | _WireFlatHit] | None = recall.results if recall.results is not None else recall.memories
    return None if rows is None else [row for row in rows if _is_own(reply, _wire(row))]


def _hits(rows: Sequence[_WireHit | _WireFlatHit] | None, agent_id: str) -> list[Hit]:
    seen: set[tuple[str, str]] = set()
    if rows is None:
        raise ReplyError("the service's answer cannot be read: neither results nor memories in it")
    read = [_hit(row, wire, agent_id) for row in rows if _is_first(wire := _wire(row), seen) and not wire.superseded]
    read.sort(key=_rank, reverse=True)  # a reversed sort keeps the order of equals too
    return read


def _is_first(wire: WireMemory, seen: set[tuple[str, str]]) -> bool:
    """Whether no row before it holds the same memory: a service that ignores ids may have stored it twice."""
    if (own := (wire.ours or {}).get("id")) is None or wire.superseded:
        return True
    before = len(seen)
    seen.add((str(own), wire.content))
    return len(seen) > before


def _rank(hit: Hit) -> float:
    """Standing notes keep their fixed order before the others."""
    return 2.0 if hit.standing else hit.similarity


def _wire(row: _WireHit | _WireFlatHit) -> WireMemory:
    return row.memory if isinstance(row, _WireHit) else row


def _hit(row: _WireHit | _WireFlatHit, wire: WireMemory, agent_id: str) -> Hit:
    memory = to_memory(wire, agent_id)
    similarity = row.similarity if row.similarity is not None else row.score
    excerpt = row.excerpt if row.excerpt is not None else memory.content
    filled = bool(row.filled)
    if similarity is None:  # the tutorials' reply may carry no score: keep the order it came in
        return _made(
            Hit,
            {**_NO_SCORES, "memory": memory, "excerpt": excerpt, "filled": filled},
            _UNSCORED,
            None,
        )
    confidence = row.confidence if row.confidence is not None else similarity
    fields = {
        "memory": memory,
        "similarity": similarity,
        "confidence": confidence,
        "excerpt": excerpt,
        "filled": filled,
        "standing": bool(row.standing),
        "earlier": bool(row.earlier),
        "explanation": row.explanation,
    }
    return _made(Hit, fields, _HIT_FIELDS, None)


# Shared by all: the models are frozen, and a copy of one copies its set.
_MEMORY_FIELDS, _HIT_FIELDS, _UNSCORED = set(Memory.model_fields), set(Hit.model_fields), {"memory"}
_NO_SCORES = {"similarity": 0.0, "confidence": 0.0, "standing": False, "earlier": False, "explanation": None}
_new = object.__new__
_set_values, _set_given, _set_extra, _set_private = (
    BaseModel.__dict__[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def _made(kind: type[M], fields: dict[str, Any], given: set[str], extra: dict[str, Any] | None) -> M:
    """A model from values that were checked already.

    Writes the slots of pydantic's models, which `tests/core/test_models.py` holds against pydantic's own: 0.4 µs, where
    `model_construct` takes 6.7 and validating once more 3.1 (pydantic 2.14); a hundred hits are 200 models.
    """
    made = _new(kind)
    _set_values(made, fields)
    _set_given(made, given)
    _set_extra(made, extra or {})
    _set_private(made, None)
    return made


# The bodies of a store and of a search: both dialects of Kronvex at once, and what kronmem's own service reads. Pure.
#
# Bodies carry both sets of field names; replies are read from either. Data without a field there (our types, tags,
# the client id) travels under one reserved metadata key and comes back under its own name.

MOST_HITS = 20
"""The server refuses a larger top_k."""


def remember_fields(
    content: str,
    memory_type: str,
    client_id: str,
    session_id: str | None,
    ttl: dict[str, int],
    pinned: bool,
    tags: Sequence[str],
    metadata: dict[str, JsonValue],
    more: dict[str, JsonValue],
) -> dict[str, JsonValue]:
    """The body of a remember. Fields with nothing to say are left out: the server refuses some nulls."""
    ours: dict[str, JsonValue] = {"id": client_id, **{name: value for name, value in more.items() if value is not None}}
    if not is_known(memory_type):
        ours["type"] = memory_type
    if tags:
        ours["tags"] = list(tags)
    fields: dict[str, JsonValue] = {
        "content": content,
        "memory_type": stored_type(memory_type),
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
    within: MemoryFilter,
    threshold: float | None = None,
    *,
    count_access: bool = True,
    exclude: Sequence[str] = (),
    fill: Fill = False,
    told: TimeRange | None = None,
) -> bytes:
    """The body of a recall or an inject-context: both names of every field.

    The server filters badly or not at all, so as many as it gives are asked for when the client has to filter.
    Our own service reads the exact question from the reserved object.
    """
    asked = MOST_HITS if within.narrow else min(limit, MOST_HITS)
    fields: dict[str, JsonValue] = {"query": query, "message": query, "limit": asked, "top_k": asked}
    if threshold is not None:
        fields["threshold"] = threshold
    if within.session_id is not None:
        fields["session_id"] = within.session_id
    if (sent := sent_type(within.memory_type)) is not None:
        fields["memory_type"] = sent
    exact: dict[str, JsonValue] = {"limit": limit}
    if within.narrow:
        exact.update(times(within))
    if within.memory_type is not None:
        exact["memory_type"] = within.memory_type
    if within.tags:
        exact["tags"] = list(within.tags)
    if not count_access:
        exact["count_access"] = False
    if exclude:
        exact["exclude"] = list(exclude)
    if fill:
        exact["fill"] = fill
    if told is not None:
        bounds = {"since": told.since.astimezone().isoformat(), "until": told.until.astimezone().isoformat()}
        exact["told"] = {**bounds, "alone": told.alone, "dated": told.dated}
    fields[RESERVED] = exact
    return to_json(fields)


def times(within: MemoryFilter) -> dict[str, str]:
    """The bounds of a read in time, as our own service takes them."""
    bounds = {"since": within.since, "until": within.until}
    return {name: time.isoformat() for name, time in bounds.items() if time is not None}


# ── types ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# The server keeps these as they are. It re-classifies an unpinned "episodic" by a model of its own,
# and refuses every other name, so those travel in the metadata.
_KNOWN = frozenset({"semantic", "procedural", "fact", "preference", "context"})
_STAND_IN = {"decision": "fact", "episodic": "episodic"}


def is_known(memory_type: str) -> bool:
    """Does the server store this type as it is?"""
    return memory_type in _KNOWN


def is_kept(memory_type: str) -> bool:
    """Does the server know this type, once a memory is stored?"""
    return memory_type in _KNOWN or memory_type == "episodic"


def stored_type(memory_type: str) -> str:
    """The type under which the server stores a memory of this one."""
    return memory_type if memory_type in _KNOWN else _STAND_IN.get(memory_type, "context")


def sent_type(memory_type: str | None) -> str | None:
    """The type to filter by at the server; None where its own names cannot tell: it re-classifies episodic ones."""
    return None if memory_type is None or memory_type == "episodic" else stored_type(memory_type)
