"""The bodies of a store and of a search: both dialects of Kronvex at once, and what kronmem's own service reads. Pure.

Bodies carry both sets of field names; replies are read from either. Data without a field there (our types, tags,
the client id) travels under one reserved metadata key and comes back under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api.ids import RESERVED
from kronmem.core.filters import MemoryFilter
from kronmem.models import Fill
from kronmem.text.time_ranges import TimeRange

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
