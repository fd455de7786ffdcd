"""One function per question: checked arguments in, a `Call` out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NoReturn, TypeVar, cast

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic_core import to_json

from kronmem.api import paths
from kronmem.core import inputs, kronvex
from kronmem.core.wire import Call, Reply, parse_json
from kronmem.errors import NotFoundError
from kronmem.models import AgentInfo, Health, Hit, Memory, Session
from kronmem.text import context

T = TypeVar("T")

JSON = (("content-type", "application/json"),)
PER_PAGE = 100
"""The largest page that Kronvex gives."""


@dataclass(frozen=True)
class Draft:
    """A memory about to be stored: checked, with the id that every attempt carries."""

    agent_id: str
    client_id: str
    content: str
    memory_type: str = "fact"
    session_id: str | None = None
    ttl: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    pinned: bool = False
    tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = field(default_factory=lambda: dict[str, JsonValue]())

    def changed(self, change: Callable[[str], str]) -> Draft:
        """The same memory with every text in it changed."""
        metadata = cast("dict[str, JsonValue]", _changed(self.metadata, change))
        tags = tuple(change(tag) for tag in self.tags)
        return replace(self, content=change(self.content), tags=tags, metadata=metadata)

    def fields(self) -> dict[str, JsonValue]:
        """The body of the request that stores it."""
        return kronvex.remember_fields(
            self.content,
            self.memory_type,
            self.client_id,
            self.session_id,
            self.ttl,
            self.pinned,
            self.tags,
            self.metadata,
        )


def draft(
    agent_id: str,
    client_id: str,
    content: str,
    memory_type: str,
    *,
    session_id: str | None,
    ttl_days: int | None,
    ttl_seconds: int | None,
    pinned: bool,
    tags: Iterable[str],
    metadata: Mapping[str, JsonValue] | None,
) -> Draft:
    """Check everything a remember takes."""
    return Draft(
        inputs.identifier(agent_id, "agent_id"),
        client_id,
        inputs.text(content, "content"),
        inputs.memory_type(memory_type),
        inputs.session(session_id),
        inputs.ttl(ttl_days, ttl_seconds),
        bool(pinned),
        inputs.tags(tags),
        inputs.metadata(metadata),
    )


def remember(one: Draft) -> Call[Memory]:
    """Store one memory. The id travels twice: as a header and inside, so that any retry is recognised."""
    return Call(
        "remember",
        "POST",
        paths.REMEMBER,
        partial(kronvex.memory, agent_id=one.agent_id),
        one.agent_id,
        body=to_json(one.fields()),
        headers=(*JSON, ("idempotency-key", one.client_id)),
        creates=True,
    )


def remember_batch(agent_id: str, drafts: Sequence[Draft]) -> Call[list[Memory]]:
    """Store many memories in one request; only our own service has this."""
    return Call(
        "remember_many",
        "POST",
        paths.BATCH,
        partial(kronvex.batch, agent_id=agent_id),
        agent_id,
        body=to_json({"memories": [one.fields() for one in drafts]}),
        headers=JSON,
        creates=True,
    )


@dataclass(frozen=True)
class Scope:
    """The bounds of a read: type, session and tags."""

    memory_type: str | None = None
    session_id: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def narrow(self) -> bool:
        """Is there anything to filter by?"""
        return self.memory_type is not None or self.session_id is not None or bool(self.tags)

    def holds(self, one: Memory) -> bool:
        """Is this memory inside?"""
        return kronvex.matches(one, memory_type=self.memory_type, session_id=self.session_id, tags=self.tags)


def scope(memory_type: str | None, session_id: str | None, tags: Iterable[str]) -> Scope:
    """Check the bounds of a read."""
    return Scope(inputs.optional_type(memory_type), inputs.session(session_id), inputs.tags(tags))


def recall(
    agent_id: str, query: str, limit: int, within: Scope, threshold: float | None, *, most: int
) -> Call[list[Hit]]:
    """Find the memories closest to a question."""
    inputs.limit(limit, most)
    threshold = inputs.threshold(threshold)
    body = kronvex.recall_body(
        inputs.text(query, "query"), limit, within.memory_type, within.session_id, within.tags, threshold
    )

    def parse(reply: Reply) -> list[Hit]:
        return kronvex.keep(
            kronvex.hits(reply, agent_id),
            limit=limit,
            memory_type=within.memory_type,
            session_id=within.session_id,
            tags=within.tags,
            threshold=threshold,
        )

    return _of_agent("recall", "POST", paths.RECALL, agent_id, parse, list[Hit], body=body)


def inject_context(
    agent_id: str, query: str, limit: int, within: Scope, max_chars: int | None, *, most: int
) -> Call[str]:
    """Fetch ready-made context; with a session, type or tags make it from a recall: the service's own ignores them."""
    if max_chars is not None:
        inputs.whole(max_chars, "max_chars", 1, 10_000_000)
    render = partial(context.render, source=agent_id, max_chars=max_chars)
    if within.narrow:
        return recall(agent_id, query, limit, within, None, most=most).then(render)
    inputs.limit(limit, most)
    body = kronvex.recall_body(inputs.text(query, "query"), limit, None, None, (), None)

    def parse(reply: Reply) -> str:
        found, ready = kronvex.context(reply, agent_id)
        return render(found[:limit]) if found else context.fence(ready, source=agent_id, max_chars=max_chars)

    return _of_agent("inject_context", "POST", paths.INJECT_CONTEXT, agent_id, parse, str, body=body)


def page(agent_id: str, within: Scope, number: int, after: str | None) -> Call[kronvex.WirePage]:
    """Fetch one page of an agent's memories, newest first; the filters help our own service and are checked again."""
    query = [("page", str(number)), ("per_page", str(PER_PAGE))]
    if within.session_id is not None:
        query.append(("session_id", within.session_id))
    query += [("tag", tag) for tag in within.tags]
    if after is not None:
        query.append(("after", after))
    nothing = partial(kronvex.WirePage, memories=[])
    return _of_agent("memories", "GET", paths.MEMORIES, agent_id, kronvex.page, nothing, query=tuple(query))


def forget(agent_id: str, memory_id: str) -> Call[None]:
    """Delete one memory."""
    path = paths.fill(paths.MEMORY, memory=inputs.segment(memory_id, "memory_id"))
    return _of_agent("forget", "DELETE", path, agent_id, acknowledged, _raise_no_memory, gone_is_done=True)


def clear(agent_id: str) -> Call[int]:
    """Delete every memory of an agent."""
    return _of_agent("clear", "DELETE", paths.MEMORIES, agent_id, kronvex.deleted, int)


def clear_session(agent_id: str, session_id: str) -> Call[int]:
    """Delete a session's memories by a path that only our own service has.

    Never as a filter on the other clear: Kronvex ignores filters there and would delete everything.
    """
    path = paths.fill(paths.SESSION, session=inputs.segment(session_id, "session_id"))
    return _of_agent("clear", "DELETE", path, agent_id, kronvex.deleted, int)


def agents() -> Call[list[AgentInfo]]:
    """List the agents of this key."""
    return Call("agents", "GET", paths.AGENTS, kronvex.agents)


def create_agent(name: str) -> Call[AgentInfo]:
    """Make an agent of that name."""
    return Call("agents", "POST", paths.AGENTS, kronvex.agent, body=to_json({"name": name}), headers=JSON)


def sessions(agent_id: str) -> Call[list[Session]]:
    """List the sessions of an agent."""
    return _of_agent("sessions", "GET", paths.SESSIONS, agent_id, kronvex.sessions, list[Session])


def health() -> Call[Health]:
    """Ask whether the service is up."""
    return Call("health", "GET", paths.HEALTH, _health)


class _Up(BaseModel):
    status: str = "ok"
    service: str = ""
    version: str = ""


_UP = TypeAdapter(_Up)
_OBJECT = TypeAdapter(dict[str, object])


def _health(reply: Reply) -> Health:
    up = parse_json(_UP, reply)
    return Health(ok=up.status == "ok", status=up.status, service=up.service, version=up.version)


def _changed(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return change(value) if value.strip() else value
    if isinstance(value, dict):
        return {key: _changed(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_changed(inner, change) for inner in value]
    return value


def _of_agent(
    name: str,
    method: str,
    path: str,
    agent_id: str,
    parse: Callable[[Reply], T],
    unknown: Callable[[], T],
    *,
    query: tuple[tuple[str, str], ...] = (),
    body: bytes | None = None,
    gone_is_done: bool = False,
) -> Call[T]:
    """A call about one agent that never creates it: `unknown` is the answer when there is none."""
    return Call(
        name,
        method,
        path,
        parse,
        inputs.identifier(agent_id, "agent_id"),
        query,
        body,
        JSON if body is not None else (),
        unknown=unknown,
        gone_is_done=gone_is_done,
    )


def acknowledged(reply: Reply) -> None:
    """Read a reply that only confirms: a page of some proxy with status 200 must not pass for one."""
    if reply.body:
        parse_json(_OBJECT, reply)


def _raise_no_memory() -> NoReturn:
    raise NotFoundError("Memory not found", status=404)
