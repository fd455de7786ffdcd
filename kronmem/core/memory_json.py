"""JSON of a service to `Memory` and `Hit`: either dialect of Kronvex, and that of kronmem's own service. Pure.

Fields that a service has no place for come back out of its metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from kronmem.api.ids import RESERVED
from kronmem.api.replies import ClearReply
from kronmem.api.validators import DeferredModel, Validator
from kronmem.core.wire import Reply, parse_json
from kronmem.errors import ReplyError
from kronmem.models import AgentInfo, Explanation, Hit, Memory, Session

M = TypeVar("M", Memory, Hit)

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
        """The object that kronmem sent along; None: somebody else stored this row."""
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
    wire = parse_json(_MEMORY, reply)
    if not wire.id:
        raise ReplyError("the service's answer cannot be read: a stored memory without an id")
    return to_memory(wire, agent_id)


def row(reply: Reply) -> WireMemory:
    """Read one stored memory as the server wrote it."""
    return parse_json(_MEMORY, reply)


def scored(reply: Reply, agent_id: str) -> list[tuple[WireMemory, Hit]] | None:
    """Read recalled rows as the server wrote them with their hits, superseded ones too; None: it lists none at all."""
    found = parse_json(_FOUND, reply)
    listed = found.results if found.results is not None else found.memories
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
    return [to_memory(wire, agent_id) for wire in parse_json(_BATCH, reply).memories]


def hits(reply: Reply, agent_id: str) -> list[Hit]:
    """Read the hits of a recall, best first, superseded memories left out."""
    return _hits(parse_json(_FOUND, reply), agent_id)


def context(reply: Reply, agent_id: str) -> tuple[list[Hit] | None, str]:
    """Read an injected context: its memories where the service lists any or none, and its own text."""
    found = parse_json(_CONTEXT, reply)
    ready = found.context_block if found.context_block is not None else found.context
    if found.results is None and found.memories is None:
        if ready is None:
            raise ReplyError("the service's answer cannot be read: no context in it")
        return None, ready
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


def _hits(found: _WireRecall, agent_id: str) -> list[Hit]:
    rows: Sequence[_WireHit | _WireFlatHit] | None = found.results if found.results is not None else found.memories
    if rows is None:
        raise ReplyError("the service's answer cannot be read: neither results nor memories in it")
    read = [_hit(row, wire, agent_id) for row in rows if not (wire := _wire(row)).superseded]
    read.sort(key=_rank, reverse=True)  # a reversed sort keeps the order of equals too
    return read


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
