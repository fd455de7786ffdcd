"""The body of a store as the vendor's own server should get it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api import paths
from kronmem.api.ids import RESERVED
from kronmem.core import kronvex_calls as server
from kronmem.core.wire import Call, Reply

if TYPE_CHECKING:
    from kronmem.core.calls import Draft

MOST_FORMER = 20
"""So many former ids of a memory that was stored anew are kept with it, the newest, at 37 bytes each in its metadata. A
change adds up to two, the server's and ours: whoever holds an older one has slept through ten."""


def for_server(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The body of a store as the vendor's own server should get it.

    It lets a newer text hide like ones of any session, but never a pinned one: a memory of a session without a
    lifetime is sent pinned, and the user's own flag travels with our metadata. It dates a memory by its arrival.
    """
    fields = {**fields, "metadata": _undated(cast("dict[str, JsonValue]", fields["metadata"]))}
    if "session_id" not in fields or fields.get("pinned") or "ttl_days" in fields or "ttl_seconds" in fields:
        return fields
    metadata = cast("dict[str, JsonValue]", fields["metadata"])
    ours = cast("dict[str, JsonValue]", metadata[RESERVED])
    return {**fields, "pinned": True, "metadata": {**metadata, RESERVED: {**ours, "pinned": False}}}


def _undated(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    ours = cast("dict[str, JsonValue]", metadata[RESERVED])
    return {**metadata, RESERVED: {name: value for name, value in ours.items() if name not in ("said_at", "age")}}


def store(draft: Draft, former: Sequence[str] = (), attempts: int | None = None) -> Call[Reply]:
    """Store once more, the reply as it comes."""
    fields = for_server(draft.fields())
    if former:
        metadata = cast("dict[str, JsonValue]", fields["metadata"])
        ours = cast("dict[str, JsonValue]", metadata[RESERVED])
        was: list[JsonValue] = [*former[:MOST_FORMER]]
        fields = {**fields, "metadata": {**metadata, RESERVED: {**ours, "was": was}}}
    headers = (*server.JSON, ("idempotency-key", draft.client_id))
    path = paths.REMEMBER
    return Call(
        "remember", "POST", path, server.as_it_is, draft.agent_id, (), to_json(fields), headers, attempts=attempts
    )
