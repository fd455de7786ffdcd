"""The wire of the vendor's own server: routes that only its habits need, bodies, and signs in replies. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api import paths
from kronmem.api.rules import RESERVED, DeferredModel, Validator
from kronmem.core import memory_json
from kronmem.core.calls import JSON, PER_PAGE
from kronmem.core.memory_json import MOST_HITS
from kronmem.core.policy import clock, detail
from kronmem.core.wire import Call, Repeat, Reply, parse_json

if TYPE_CHECKING:
    from kronmem.core.calls import Draft

MOST_SEARCHED = 100
"""So much of a text is enough to find it, and short enough for any address."""
MOST_FORMER = 20
"""So many former ids of a memory that was stored again are kept with it, the newest, at 37 bytes each in its metadata.
A change adds up to two, the server's and ours: a caller that holds an older one has slept through ten."""


class _Imported(DeferredModel):
    imported: int


_IMPORTED = Validator(_Imported)

# ── routes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def page(
    agent_id: str, number: int, *, search: str | None = None, memory_type: str | None = None
) -> Call[memory_json.WirePage]:
    """One page of the listing, newest first; no limit of a plan counts it."""
    query = [("page", str(number)), ("per_page", str(PER_PAGE))]
    if search:
        query.append(("search", search))
    if memory_type is not None:
        query.append(("memory_type", memory_type))
    nothing = partial(memory_json.WirePage, memories=[])
    return Call("memories", "GET", paths.MEMORIES, memory_json.page, agent_id, tuple(query), unknown=nothing)


def delete(agent_id: str, memory_id: str) -> Call[None]:
    """Delete one row, softly."""
    return Call("forget", "DELETE", _memory(memory_id), _done, agent_id, repeat=Repeat.UNTIL_GONE)


def restore(agent_id: str, memory_id: str) -> Call[None]:
    """Bring a deleted row back; it counts as one memory of the month."""
    return Call("undelete", "POST", f"{_memory(memory_id)}/restore", _done, agent_id)


def near(agent_id: str, content: str, similarity: float) -> Call[Reply]:
    """The rows that are as similar to a text as that, the reply as it comes."""
    body = to_json({"query": content, "top_k": MOST_HITS, "threshold": similarity})
    return Call("recall", "POST", paths.RECALL, as_it_is, agent_id, (), body, JSON)


def patch(agent_id: str, memory_id: str, fields: dict[str, JsonValue]) -> Call[memory_json.WireMemory]:
    """Change pin or type. With no fields it is the only way to read one row, deleted or not."""
    return Call("update", "PATCH", _memory(memory_id), memory_json.row, agent_id, (), to_json(fields), JSON)


def probe(agent_id: str) -> Call[None]:
    """Does the server embed a short text?"""
    body = to_json({"query": "hello", "top_k": 1})
    return Call("recall", "POST", paths.RECALL, _done, agent_id, (), body, JSON, repeat=Repeat.NEVER)


def store(draft: Draft, former: Sequence[str] = ()) -> Call[Reply]:
    """Store a memory, the reply as it comes; `former` are the ids of the rows that it takes the place of."""
    headers = (*JSON, ("idempotency-key", draft.client_id))
    body = to_json(for_server(_with_former(draft, former)))
    return Call("remember", "POST", paths.REMEMBER, as_it_is, draft.agent_id, (), body, headers)


def bulk_import(draft: Draft, former: Sequence[str] = ()) -> Call[int]:
    """Store a memory by the way that folds into no row and hides none, but loses session, pin and seconds."""
    fields = _undated(_with_former(draft, former))
    body = to_json({"memories": [fields]})
    return Call("remember", "POST", paths.BULK_IMPORT, _imported, draft.agent_id, (), body, JSON)


def is_importable(draft: Draft) -> bool:
    """Does a bulk import keep all of this memory?"""
    return draft.session_id is None and not draft.pinned and "ttl_seconds" not in draft.ttl


def _memory(memory_id: str) -> str:
    return paths.fill(paths.MEMORY, memory=quote(memory_id, safe=""))


def as_it_is(reply: Reply) -> Reply:
    """Read nothing: the reply itself is the answer."""
    return reply


def _done(_: Reply) -> None:
    return None


def _imported(reply: Reply) -> int:
    return parse_json(_IMPORTED, reply).imported


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────


def for_server(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The body of a store as the vendor's own server should get it.

    It lets a newer text hide like ones of any session, but never a pinned one: a memory of a session without a
    lifetime is sent pinned, and the user's own flag travels with our metadata. It dates a memory by its arrival.
    """
    fields = _undated(fields)
    if "session_id" not in fields or fields.get("pinned") or "ttl_days" in fields or "ttl_seconds" in fields:
        return fields
    return {**_with_ours(fields, {**_ours(fields), "pinned": False}), "pinned": True}


def _undated(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return _with_ours(fields, {name: value for name, value in _ours(fields).items() if name not in ("said_at", "age")})


def _with_former(draft: Draft, former: Sequence[str]) -> dict[str, JsonValue]:
    fields = draft.fields()
    return _with_ours(fields, {**_ours(fields), "was": [*former[:MOST_FORMER]]}) if former else fields


def _ours(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", cast("dict[str, JsonValue]", fields["metadata"])[RESERVED])


def _with_ours(fields: dict[str, JsonValue], ours: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {**fields, "metadata": {**cast("dict[str, JsonValue]", fields["metadata"]), RESERVED: ours}}


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────────


def is_vendor(reply: Reply) -> bool:
    """Did the vendor's own server write this? It has habits that neither its tutorials nor our service have."""
    return "x-kronvex-version" in reply.headers or wants_uuid(reply)


def received(reply: Reply) -> Reply:
    """The reply, with the true end of a used-up day: the server names 86400 seconds at any hour of it."""
    if reply.status != 429 or _error(reply) != "daily_quota_exceeded":
        return reply
    midnight = 86_400.0 - clock(reply).timestamp() % 86_400.0  # UTC
    return replace(reply, headers={**reply.headers, "retry-after": str(midnight)})


def cannot_embed(reply: Reply) -> bool:
    """Did the server fail to embed the text? It gives the same 503 in an outage and for a text too long."""
    return reply.status == 503 and _error(reply) == "embedding_unavailable"


def wants_uuid(reply: Reply) -> bool:
    """Did the server refuse the agent id in the path because it is no UUID?"""
    said = detail(reply) if reply.status == 422 else None
    if not isinstance(said, list):
        return False
    items = [cast("dict[str, object]", item) for item in cast("list[object]", said) if isinstance(item, dict)]
    return any(item.get("type") == "uuid_parsing" and item.get("loc") == ["path", "agent_id"] for item in items)


def agent_is_gone(reply: Reply) -> bool:
    """Is this 404 about the agent? One about a memory has the same status."""
    return reply.status == 404 and detail(reply) == "Agent not found"


def _error(reply: Reply) -> object:
    said = detail(reply)
    return cast("dict[str, object]", said).get("error") if isinstance(said, dict) else None
