"""The reply bodies of the API. Typed dicts, because the service answers with plain dicts: the types cost nothing at
run time, the type checkers hold every handler to them, and the OpenAPI document is derived from them."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import JsonValue, WithJsonSchema
from typing_extensions import TypedDict  # pydantic reads that of `typing` from Python 3.12 on

Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""ISO 8601 in UTC with microseconds."""


class MemoryReply(TypedDict):
    """One memory."""

    id: str
    agent_id: str
    content: str
    session_id: str | None
    memory_type: str
    metadata: dict[str, JsonValue]
    tags: list[str]
    created_at: Timestamp
    updated_at: Timestamp | None
    said_at: Timestamp
    access_count: int
    expires_at: Timestamp | None
    pinned: bool
    role: str | None
    key: str | None
    agent_memory_count: int | None
    deduplicated: bool
    superseded: bool
    superseded_by: str | None
    conflict_detected: bool
    conflicts_resolved: int


class StoredReply(MemoryReply, total=False):
    """A memory that was stored; `may_replace` lists former statements, the likeliest first, if they were asked for."""

    may_replace: list[MemoryReply]


class ExplanationReply(TypedDict):
    """The parts of a similarity: `(words + meaning) * speaker`, at most 1, rounded to four digits."""

    words: float
    meaning: float
    speaker: float


class ScoresReply(TypedDict):
    """The scores of a hit, from 0 to 1, and the passage that earned them."""

    similarity: float
    confidence: float
    score: float
    excerpt: str
    filled: bool
    standing: bool
    earlier: bool
    explanation: ExplanationReply | None


class HitReply(ScoresReply):
    """A memory beside its scores."""

    memory: MemoryReply


class FlatHitReply(MemoryReply, ScoresReply):
    """The same in one object."""


class RecallReply(TypedDict):
    """The memories that answer a question, best first; `memories` is absent when the request has a `kronmem` object."""

    query: str
    results: list[HitReply]
    total_found: int
    memories: NotRequired[list[FlatHitReply]]


class ContextReply(TypedDict):
    """A block of text for a prompt."""

    context: str
    context_block: str
    memories_used: int
    memories: list[HitReply]


class BatchReply(TypedDict):
    """Memories stored together."""

    memories: list[MemoryReply]


class PageReply(BatchReply):
    """A part of a list; `next` goes into `after`."""

    total: int
    page: int
    per_page: int
    pages: int
    next: str | None


class ExportReply(BatchReply):
    """All memories of an agent."""

    agent_id: str
    total: int


class ImportReply(TypedDict):
    """How many were stored."""

    imported: int
    failed: int
    errors: list[JsonValue]


class ClearReply(TypedDict):
    """How many memories were deleted."""

    deleted: int


class HistoryReply(BatchReply):
    """The current memory and its former texts, newest first; `next` goes into `after`."""

    next: str | None


class RestoreReply(TypedDict):
    """How many memories were restored, and how many were there already."""

    restored: int
    present: int


class SummaryReply(TypedDict):
    """Exact counts of an agent's current memories; days are those of `created_at` in UTC."""

    count: int
    types: dict[str, int]
    tags: dict[str, int]
    sessions: dict[str, int]
    days: dict[str, int]


class EraseReply(TypedDict):
    """How many rows of each kind were erased; `complete` is false while a reader keeps old pages of the file."""

    memories: int
    history: int
    state: int
    receipts: int
    complete: bool


class SessionReply(TypedDict):
    """A session and how many memories it has."""

    session_id: str
    count: int


class SessionsReply(TypedDict):
    """The sessions of an agent."""

    sessions: list[SessionReply]


class AgentReply(TypedDict):
    """An agent; its name is its id."""

    id: str
    name: str
    description: str | None
    metadata: dict[str, JsonValue]
    created_at: Timestamp
    memory_count: int


class StateReply(TypedDict):
    """A value and when it was written."""

    key: str
    value: JsonValue
    created_at: Timestamp
    updated_at: Timestamp


class StateStoredReply(TypedDict):
    """That a value is kept; one that was taken away has no time."""

    key: str
    stored: bool
    updated_at: Timestamp | None


class StateDeletedReply(TypedDict):
    """That a value is gone."""

    deleted: bool


class StateKeysReply(TypedDict):
    """Every key of an agent's state."""

    keys: list[str]


class HealthReply(TypedDict):
    """That the service answers."""

    status: str
    service: str
    version: str
