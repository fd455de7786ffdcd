"""The vendor's two dialects at once: that of its tutorials and that of its server.

Bodies carry both sets of field names; replies are read from either. Data without a field there (our types, tags,
the client id) travels under one reserved metadata key and comes back under its own name. Pure.

The server's habits, and the module that handles each:

habit                                                               handled in
------------------------------------------------------------------- ------------------------------------------------
ids are UUIDs; agents are made by name, not atomically              kronvex_agents: one resolution per name and process
a demo key has one agent and allows one                             kronvex_agents: the empty one gets the user's name
any id that reads as a UUID is 404, not 422                         kronvex_agents: a 404 about it looks for the name
other types are refused, episodic ones re-classified                kronvex_types, memory_json
a text is folded into any like row: session, words, dead or alive   kronvex_storing: compared, set aside, restored
a row that is set aside is seen by nobody                           kronvex_asides: restored, or marked by forget
pin, tags, lifetime of a repeat are dropped                         kronvex_storing: PATCH, or stored anew
a PATCH changes no metadata, where own type and pin may be          kronvex_changes: PATCH, or stored anew
a newer text hides like ones of every session, pinned ones aside    kronvex_bodies.for_server: sessions are pinned
a text that cannot be embedded is 503, as in an outage              kronvex_storing: a probe tells them apart
a stalled store and its repeat are both stored                      kronvex_lookups: shown once, surplus deleted
recall cuts at 20 before tags and own types are looked at           kronvex_lookups: the rest from the listing
a name in the query adds rows past every filter                     filters.keep, kronvex_lookups
inject-context holds superseded text, ignores session and type      calls.inject_context: made from the memories
the listing shows superseded rows                                   paging
ids are the server's own, and no route reads one memory             kronvex_lookups: by metadata, by the listing
a used-up day says Retry-After 86400 and ends at midnight UTC       retry_after
every 50th store merges like rows without session, tags and id      said: by forget and README; pinned ones are spared
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api.ids import RESERVED
from kronmem.core.filters import MemoryFilter
from kronmem.core.kronvex_types import is_known, sent_type, stored_type
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
