"""The vendor's own routes that only repairs use: rows as the server writes them. Pure."""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import quote

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api import paths
from kronmem.core import memory_json
from kronmem.core.kronvex import MOST_HITS
from kronmem.core.steps import Asker, Flow
from kronmem.core.wire import Call, Reply

JSON = (("content-type", "application/json"),)
PER_PAGE = 100
"""The largest page that the server gives."""
MOST_SEARCHED = 100
"""So much of a text is enough to find it, and short enough for any address."""


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
    return Call("forget", "DELETE", _memory(memory_id), _done, agent_id, gone_is_done=True)


def restore(agent_id: str, memory_id: str) -> Call[None]:
    """Bring a deleted row back; it counts as one memory of the month."""
    return Call("restore", "POST", f"{_memory(memory_id)}/restore", _done, agent_id)


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
    return Call("recall", "POST", paths.RECALL, _done, agent_id, (), body, JSON, attempts=1)


def rows(
    agent_id: str, asker: Asker, *, search: str | None = None, memory_type: str | None = None
) -> Flow[list[memory_json.WireMemory]]:
    """Every row of the listing that the server finds, newest first."""
    found: dict[str, memory_json.WireMemory] = {}
    number = 1
    while True:
        listed = yield from asker.ask(page(agent_id, number, search=search, memory_type=memory_type))
        found.update((row.id, row) for row in listed.memories)
        if len(listed.memories) < PER_PAGE:
            return list(found.values())
        number += 1


def like(agent_id: str, content: str, asker: Asker) -> Flow[list[memory_json.WireMemory]]:
    """The rows that hold this text or contain its longest searchable part."""
    return (yield from rows(agent_id, asker, search=searchable(content)))


def searchable(content: str) -> str:
    """The longest run of plain words in a text: no wildcard of the search, no punctuation that a repeat may change."""
    return max(re.split(r"[^\w ]|_", content), key=len)[:MOST_SEARCHED].strip()


def _memory(memory_id: str) -> str:
    return paths.fill(paths.MEMORY, memory=quote(memory_id, safe=""))


def as_it_is(reply: Reply) -> Reply:
    """Read nothing: the reply itself is the answer."""
    return reply


def _done(_: Reply) -> None:
    return None
