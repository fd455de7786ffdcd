"""One function per question: checked arguments in, a `Call` out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, NoReturn, TypeVar, cast
from urllib.parse import quote

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api import paths, rules
from kronmem.api.replies import RestoreReply
from kronmem.api.rules import DeferredModel, Validator
from kronmem.core import inputs, memory_json
from kronmem.core.inputs import MemoryFilter, keep, memory_filter
from kronmem.core.wire import Call, Repeat, Reply, parse_json
from kronmem.errors import InvalidInputError, NotFoundError
from kronmem.models import AgentInfo, Erasure, Fill, Health, Hit, Memory, Session
from kronmem.text import fence
from kronmem.text.time_ranges import TimeRange

__all__ = ["Draft", "MemoryChange", "MemoryFilter", "memory_filter"]

T = TypeVar("T")

JSON = (("content-type", "application/json"),)
MORE_HITS = 20
"""So many more hits are asked for where a service cannot leave out those that the caller has."""
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
    role: str | None = None
    key: str | None = None
    supersedes: str | None = None
    said_at: float | None = None
    """When it was said (seconds since 1970), if that was before it is sent; by this machine's clock."""
    age: float | None = None
    """How many seconds before it is sent; a service that knows it asks no other clock than its own."""
    may_replace: bool = field(default=False, compare=False)
    """Whether the answer is to name the former statements that it may replace."""
    own_id: bool = field(default=False, compare=False)
    """The id is the user's own and means one text, everywhere."""

    def changed(self, change: Callable[[str], str]) -> Draft:
        """The same memory with every text in it changed."""
        metadata = cast("dict[str, JsonValue]", _changed(self.metadata, change))
        content = inputs.checked_text(change(self.content), "the redacted content")
        return replace(self, content=content, tags=_changed_tags(self.tags, change), metadata=metadata)

    def fields(self) -> dict[str, JsonValue]:
        """The body of the request that stores it."""
        return memory_json.remember_fields(
            self.content,
            self.memory_type,
            self.client_id,
            self.session_id,
            self.ttl,
            self.pinned,
            self.tags,
            self.metadata,
            {
                "role": self.role,
                "key": self.key,
                "supersedes": self.supersedes,
                "said_at": _iso(self.said_at),
                "age": self.age,
            },
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
    role: str | None = None,
    key: str | None = None,
    supersedes: str | None = None,
    may_replace: bool = False,
    own_id: bool = False,
) -> Draft:
    """Check everything a remember takes."""
    return Draft(
        inputs.identifier(agent_id, "agent_id"),
        client_id,
        inputs.content(content),
        inputs.memory_type(memory_type),
        inputs.session(session_id),
        inputs.ttl(ttl_days, ttl_seconds),
        bool(pinned),
        inputs.checked_tags(tags),
        inputs.metadata(metadata),
        inputs.role(role),
        inputs.key(key),
        None if supersedes is None else inputs.identifier(supersedes, "supersedes"),
        may_replace=bool(may_replace),
        own_id=own_id,
    )


def remember(one: Draft) -> Call[Memory]:
    """Store one memory. The id travels twice: as a header and inside, so that any retry is recognised.

    In the place of another one it goes by a path that a service without history does not have.
    """
    plain = one.key is None and one.supersedes is None
    path = paths.REMEMBER if plain else paths.UPSERT
    return Call(
        "remember" if plain else "upsert",
        "POST",
        path,
        partial(memory_json.memory, agent_id=one.agent_id),
        one.agent_id,
        body=to_json(_asking(one)),
        headers=(*JSON, ("idempotency-key", one.client_id)),
        unknown=None,
        subject=one,
        vendor=one,
        older=(lambda: (path, to_json(one.fields()))) if one.may_replace else None,
    )


def _asking(one: Draft) -> dict[str, JsonValue]:
    return {**one.fields(), "may_replace": True} if one.may_replace else one.fields()


def remember_batch(agent_id: str, drafts: Sequence[Draft]) -> Call[list[Memory]]:
    """Store many memories in one request; only our own service has this."""
    return Call(
        "remember_many",
        "POST",
        paths.BATCH,
        partial(memory_json.batch, agent_id=agent_id),
        agent_id,
        body=to_json({"memories": [one.fields() for one in drafts]}),
        headers=JSON,
        unknown=None,
    )


@dataclass(frozen=True)
class RecallQuery:
    """The arguments of a recall."""

    agent_id: str
    query: str
    limit: int
    within: MemoryFilter
    threshold: float | None
    exclude: frozenset[str] = frozenset()
    fill: Fill = False

    def keep(self, found: list[Hit]) -> list[Hit]:
        """Filter again, leave out what the caller has, which an older service does not, and cut."""
        found = inputs.without(found, self.exclude)
        return keep(found, limit=self.limit, within=self.within, threshold=self.threshold)

    def older(self, path: str, body: Callable[..., bytes]) -> tuple[str, bytes]:
        """Ask a service that leaves nothing out for more, and one that knows no standing notes for the hits alone."""
        limit = min(self.limit + min(len(self.exclude), MORE_HITS), rules.MAX_HITS)
        return path, body(limit=limit, fill=self.fill is True)


class ContextQuery(NamedTuple):
    """The question behind a context, and the memories that the context was made of."""

    asked: RecallQuery
    used: list[Hit]
    max_chars: int | None = None

    def render(self, found: Sequence[Hit]) -> str:
        """The context of these memories."""
        self.used.extend(found)
        return fence.render(found, source=self.asked.agent_id, max_chars=self.max_chars)


class Forget(NamedTuple):
    """The arguments of a forget."""

    agent_id: str
    memory_id: str


class ListingQuery(NamedTuple):
    """The arguments of a page of the listing that the vendor's own server reads."""

    agent_id: str


def recall(
    agent_id: str,
    query: str,
    limit: int,
    within: MemoryFilter,
    threshold: float | None,
    *,
    most: int,
    count_access: bool = True,
    exclude: Iterable[str] = (),
    fill: Fill = False,
    told: TimeRange | None = None,
) -> Call[list[Hit]]:
    """Find the memories closest to a question."""
    inputs.limit(limit, most)
    threshold = inputs.threshold(threshold)
    text = inputs.checked_text(query, "query")
    known, fill = inputs.excluded(exclude), inputs.fill(fill)
    body = partial(memory_json.recall_body, text, within=within, threshold=threshold, count_access=bool(count_access))
    asked = RecallQuery(agent_id, query, limit, within, threshold, _ids(known), fill)
    # Before 0.3 a recall ignores `fill`, but a context lists what fills it up.
    before = partial(asked.older, paths.INJECT_CONTEXT if fill is True else paths.RECALL, body)
    older = before if known or fill or told else None

    def parse(reply: Reply) -> list[Hit]:
        return asked.keep(memory_json.hits(reply, agent_id))

    path, sent = paths.RECALL, body(limit=limit, exclude=known, fill=fill, told=told)
    return _of_agent("recall", "POST", path, agent_id, parse, list, body=sent, subject=asked, vendor=asked, older=older)


def inject_context(
    agent_id: str,
    query: str,
    limit: int,
    within: MemoryFilter,
    max_chars: int | None,
    *,
    most: int,
    exclude: Iterable[str] = (),
    fill: Fill = True,
    told: TimeRange | None = None,
) -> Call[str]:
    """Fetch the memories of a context, and render them ourselves: a service's own block may hold superseded text."""
    if max_chars is not None:
        inputs.whole(max_chars, "max_chars", 1, 10_000_000)
    inputs.limit(limit, most)
    # Nothing in particular may be asked here: that is a question too.
    text = rules.GENERAL_QUERY if inputs.blank(query) else inputs.checked_text(query, "query")
    known, fill = inputs.excluded(exclude), inputs.fill(fill)
    body = partial(memory_json.recall_body, text, within=within)
    asked = ContextQuery(RecallQuery(agent_id, text, limit, within, None, _ids(known), fill), [], max_chars)

    def parse(reply: Reply) -> str:
        found, ready = memory_json.context(reply, agent_id)
        if found is None:  # no memories are listed at all: its own block is the only text
            return fence.fence(ready, source=agent_id, max_chars=max_chars)
        return asked.render(asked.asked.keep(found))

    path, sent = paths.INJECT_CONTEXT, body(limit=limit, exclude=known, fill=fill, told=told)
    older = partial(asked.asked.older, path, body) if known or fill == "profile" or told else None
    return _of_agent(
        "inject_context", "POST", path, agent_id, parse, str, body=sent, subject=asked, vendor=asked, older=older
    )


def _ids(known: Iterable[str]) -> frozenset[str]:
    return frozenset(map(str.lower, known))


def page(
    agent_id: str, within: MemoryFilter, number: int, after: str | None, *, history: bool = False
) -> Call[memory_json.WirePage]:
    """Fetch one page of an agent's memories, newest first; the filters help our own service and are checked again."""
    query = [("page", str(number)), ("per_page", str(PER_PAGE)), _MAX_BYTES]
    if within.session_id is not None:
        query.append(("session_id", within.session_id))
    query += [("tag", tag) for tag in within.tags]
    query += memory_json.times(within).items()
    if history:
        query.append(("history", "true"))
    if after is not None:
        query.append(("after", after))
    nothing = partial(memory_json.WirePage, memories=[])
    asked, path = tuple(query), paths.MEMORIES
    vendor = ListingQuery(agent_id)
    return _of_agent("memories", "GET", path, agent_id, memory_json.page, nothing, query=asked, vendor=vendor)


def get(agent_id: str, memory_id: str) -> Call[Memory]:
    """Read one memory."""
    parse = partial(memory_json.memory, agent_id=agent_id)
    return _of_agent("get", "GET", _memory(paths.MEMORY, memory_id), agent_id, parse, _raise_no_memory)


def history(agent_id: str, memory_id: str, after: str | None) -> Call[memory_json.WirePage]:
    """Read a page of a memory and its former texts, newest first."""
    query, path = (_MAX_BYTES, *([("after", after)] if after else [])), _memory(paths.HISTORY, memory_id)
    return _of_agent("history", "GET", path, agent_id, memory_json.page, _raise_no_memory, query=query)


@dataclass(frozen=True)
class MemoryChange:
    """Changes to one memory, checked; None leaves as it is."""

    content: str | None = None
    memory_type: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: dict[str, JsonValue] | None = None
    pinned: bool | None = None
    ttl_days: int | None = None

    @property
    def by_any_service(self) -> bool:
        """Does it change pin and type alone, which every service can?"""
        return set(self.fields()) <= {"pinned", "memory_type"}

    def redacted(self, change: Callable[[str], str]) -> MemoryChange:
        """The same changes with every text in them changed."""
        metadata = cast("dict[str, JsonValue] | None", _changed(self.metadata, change))
        tags = None if self.tags is None else _changed_tags(self.tags, change)
        content = None if self.content is None else inputs.checked_text(change(self.content), "the redacted content")
        return replace(self, content=content, tags=tags, metadata=metadata)

    def fields(self) -> dict[str, JsonValue]:
        """The body of the request: only the fields that change."""
        tags = None if self.tags is None else list[JsonValue](self.tags)
        found: dict[str, JsonValue] = {
            "content": self.content,
            "memory_type": self.memory_type,
            "tags": tags,
            "metadata": self.metadata,
            "pinned": self.pinned,
            "ttl_days": self.ttl_days,
        }
        return {name: value for name, value in found.items() if value is not None}


def change(
    content: str | None,
    memory_type: str | None,
    tags: Iterable[str] | None,
    metadata: Mapping[str, JsonValue] | None,
    pinned: bool | None,
    ttl_days: int | None,
) -> MemoryChange:
    """Check everything an update takes."""
    changed = MemoryChange(
        None if content is None else inputs.checked_text(content, "content"),
        inputs.optional_type(memory_type),
        None if tags is None else inputs.checked_tags(tags),
        None if metadata is None else inputs.metadata(metadata),
        None if pinned is None else bool(pinned),
        None if ttl_days is None else inputs.whole(ttl_days, "ttl_days", 0, rules.MAX_TTL_DAYS),
    )
    if changed == MemoryChange():
        raise InvalidInputError(
            "update needs at least one field to change: content, memory_type, tags, metadata, pinned or ttl_days"
        )
    return changed


def update(agent_id: str, memory_id: str, changed: MemoryChange) -> Call[Memory]:
    """Change one memory. Pin and type alone go by the route that every service has."""
    everywhere = changed.by_any_service
    parse = partial(memory_json.memory, agent_id=agent_id)
    where = _memory(paths.MEMORY if everywhere else paths.UPDATE, memory_id)
    name, method = ("update", "PATCH") if everywhere else ("change", "POST")
    body = to_json(changed.fields())
    return _of_agent(name, method, where, agent_id, parse, _raise_no_memory, body=body, subject=memory_id)


def clear_some(agent_id: str, session_id: str | None, before: datetime) -> Call[int]:
    """Delete memories created before a time by a path that only our own service has; see `clear_session`."""
    fields = {"session_id": inputs.session(session_id), "before": before.isoformat()}
    return _of_agent("clear_part", "POST", paths.CLEAR_SOME, agent_id, memory_json.deleted, int, body=to_json(fields))


def erase(agent_id: str, wait: float) -> Call[Erasure]:
    """Remove everything of an agent; the service waits so many seconds for readers of its files."""
    parse, body = partial(parse_json, _ERASURE), to_json({"wait": round(min(wait, 3600.0), 3)})
    return _of_agent("erase", "POST", paths.ERASE, agent_id, parse, _nothing_erased, body=body)


def delete_agent(agent_id: str) -> Call[None]:
    """Delete an agent with its memories."""
    return _of_agent("delete_agent", "DELETE", paths.AGENT, agent_id, acknowledged, _nothing, repeat=Repeat.UNTIL_GONE)


def restore(agent_id: str, memories: Sequence[Memory]) -> Call[int]:
    """Keep exported memories as they were, by a path that only our own service has; the answer is how many were new."""
    rows = [one.model_dump(mode="json", include=_RESTORED) for one in memories]
    return Call(
        "restore",
        "POST",
        paths.RESTORE,
        lambda reply: parse_json(_RESTORED_REPLY, reply)["restored"],
        inputs.identifier(agent_id, "agent_id"),
        body=to_json({"memories": rows}),
        headers=JSON,
        unknown=None,
        subject=list(memories),
    )


def restorable(memory: Memory) -> Memory:
    """A memory with as many tags as it may have: kronmem 0.2 let them grow without bound."""
    inputs.free_of_reserved(memory.metadata)
    if len(memory.tags) <= rules.MAX_TAGS:
        return memory
    return memory.model_copy(update={"tags": memory.tags[-rules.MAX_TAGS :]})


def redacted(memory: Memory, change: Callable[[str], str]) -> Memory:
    """A memory with every text in it changed."""
    metadata, tags = _changed(memory.metadata, change), _changed_tags(memory.tags, change)
    content = inputs.checked_text(change(memory.content), "the redacted content")
    return memory.model_copy(update={"content": content, "tags": tags, "metadata": metadata})


def _changed_tags(tags: Iterable[str], change: Callable[[str], str]) -> tuple[str, ...]:
    return inputs.checked_tags([change(tag) for tag in tags])


def _memory(path: str, memory_id: str) -> str:
    return paths.fill(path, memory=inputs.segment(memory_id, "memory_id"))


def forget(agent_id: str, memory_id: str) -> Call[None]:
    """Delete one memory."""
    path, vendor = _memory(paths.MEMORY, memory_id), Forget(agent_id, memory_id)
    call = _of_agent("forget", "DELETE", path, agent_id, acknowledged, _raise_no_memory, repeat=Repeat.UNTIL_GONE)
    return replace(call, subject=memory_id, vendor=vendor)


def clear(agent_id: str) -> Call[int]:
    """Delete every memory of an agent."""
    return _of_agent("clear", "DELETE", paths.MEMORIES, agent_id, memory_json.deleted, int)


def clear_session(agent_id: str, session_id: str) -> Call[int]:
    """Delete a session's memories by a path that only our own service has.

    Never as a filter on the other clear: Kronvex ignores filters there and would delete everything.
    """
    path = paths.fill(paths.SESSION, session=inputs.segment(session_id, "session_id"))
    return _of_agent("clear_part", "DELETE", path, agent_id, memory_json.deleted, int)


def agents() -> Call[list[AgentInfo]]:
    """List the agents of this key."""
    return Call("agents", "GET", paths.AGENTS, memory_json.agents)


def create_agent(name: str) -> Call[AgentInfo]:
    """Make an agent of that name."""
    return Call("agents", "POST", paths.AGENTS, memory_json.agent, body=to_json({"name": name}), headers=JSON)


def agent(agent_id: str) -> Call[AgentInfo | None]:
    """One agent; None when there is none."""
    parse: Callable[[Reply], AgentInfo | None] = memory_json.agent
    return _of_agent("describe", "GET", paths.AGENT, agent_id, parse, lambda: None)


def description(
    text: str | None, metadata: Mapping[str, JsonValue] | None, change: Callable[[str], str]
) -> dict[str, JsonValue]:
    """The fields that describe an agent, every text in them changed; without those that stay as they are."""
    given: dict[str, JsonValue] = {
        "description": text,
        "metadata": None if metadata is None else inputs.agent_metadata(metadata),
    }
    if text is not None and not inputs.blank(text):  # which takes a description away
        inputs.checked_text(text, "description", rules.MAX_DESCRIPTION)
    return {name: _changed(value, change) for name, value in given.items() if value is not None}


def describe(agent_id: str, fields: Mapping[str, JsonValue]) -> Call[AgentInfo]:
    """Describe an agent, which is made if it is not there."""
    named = inputs.identifier(agent_id, "agent_id")
    return Call(
        "describe",
        "PATCH",
        paths.AGENT,
        memory_json.agent,
        named,
        body=to_json(dict(fields)),
        headers=JSON,
        unknown=None,
    )


def update_agent(ref: str, fields: Mapping[str, JsonValue]) -> Call[AgentInfo]:
    """Change name or metadata of an agent by the service's own id of it."""
    body = to_json(dict(fields))
    return Call(
        "agents",
        "PATCH",
        paths.fill(paths.AGENT, agent=quote(ref, safe="")),
        memory_json.agent,
        body=body,
        headers=JSON,
    )


def sessions(agent_id: str) -> Call[list[Session]]:
    """List the sessions of an agent."""
    return _of_agent("sessions", "GET", paths.SESSIONS, agent_id, memory_json.sessions, list[Session])


def health() -> Call[Health]:
    """Ask whether the service is up."""
    return Call("health", "GET", paths.HEALTH, _health)


class _Up(DeferredModel):
    status: str = "ok"
    service: str = ""
    version: str = ""


_UP = Validator(_Up)
_MAX_BYTES = ("max_bytes", str(rules.PAGE_BYTES))
_OBJECT = Validator(dict[str, object])
_ERASURE = Validator(Erasure)
_RESTORED_REPLY = Validator(RestoreReply)
_RESTORED = set(Memory.model_fields) - {"agent_id", "deduplicated", "may_replace", "queued"}
"""The fields that a `RestoredMemory` takes."""


def _nothing() -> None:
    return None


def _nothing_erased() -> Erasure:
    return Erasure(complete=True)


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


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
    repeat: Repeat = Repeat.FREELY,
    subject: object = None,
    vendor: object = None,
    older: Callable[[], tuple[str, bytes]] | None = None,
) -> Call[T]:
    """A call about one agent that never creates it: `unknown` is the answer when there is none."""
    agent, headers = inputs.identifier(agent_id, "agent_id"), JSON if body is not None else ()
    return Call(name, method, path, parse, agent, query, body, headers, unknown, repeat, subject, vendor, older)


def acknowledged(reply: Reply) -> None:
    """Read a reply that only confirms: a page of some proxy with status 200 must not pass for one."""
    if reply.body:
        parse_json(_OBJECT, reply)


def _raise_no_memory() -> NoReturn:
    raise NotFoundError("Memory not found", status=404)
