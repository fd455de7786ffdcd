"""Signs in a reply by which the vendor's own server, and its meaning, are known. Pure."""

from __future__ import annotations

from typing import cast

from kronmem.core.status_errors import detail
from kronmem.core.wire import Reply


def is_vendor(reply: Reply) -> bool:
    """Did the vendor's own server write this? It has habits that neither its tutorials nor our service have."""
    return "x-kronvex-version" in reply.headers or wants_uuid(reply)


def cannot_embed(reply: Reply) -> bool:
    """Did the server fail to embed the text? It says so with the same 503 in an outage and for a text too long."""
    said = detail(reply) if reply.status == 503 else None
    return isinstance(said, dict) and cast("dict[str, object]", said).get("error") == "embedding_unavailable"


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
