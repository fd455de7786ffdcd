"""What answers look like, for the OpenAPI document alone: the tests hold every answer to it."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, JsonValue


class Memory(BaseModel):
    """One memory."""

    id: str
    agent_id: str
    content: str
    session_id: str | None
    memory_type: str
    metadata: dict[str, JsonValue]
    tags: list[str]
    created_at: datetime
    access_count: int
    expires_at: datetime | None
    pinned: bool
    deduplicated: bool


class Scored(BaseModel):
    """A memory with its scores from 0 to 1."""

    memory: Memory
    similarity: float
    confidence: float


class ScoredMemory(Memory):
    """The same in one object."""

    similarity: float
    confidence: float
    score: float


class Recalled(BaseModel):
    """What a question found, best first; `memories` is left out when the request has a `kronmem` object."""

    query: str
    results: list[Scored]
    total_found: int
    memories: list[ScoredMemory] = []


class Context(BaseModel):
    """A block of text for a prompt."""

    context: str
    context_block: str
    memories_used: int
    memories: list[Scored]


class Memories(BaseModel):
    """Memories stored together."""

    memories: list[Memory]


class Page(Memories):
    """A part of a list; `next` goes into `after`."""

    total: int
    page: int
    per_page: int
    pages: int
    next: str | None


class Export(Memories):
    """All memories of an agent."""

    agent_id: str
    total: int


class Imported(BaseModel):
    """How many were stored."""

    imported: int
    failed: int
    errors: list[JsonValue]


class Deleted(BaseModel):
    """How many there were."""

    deleted: int


class Session(BaseModel):
    """A session and how many memories it has."""

    session_id: str
    count: int


class Sessions(BaseModel):
    """The sessions of an agent."""

    sessions: list[Session]


class Agent(BaseModel):
    """An agent; its name is its id."""

    id: str
    name: str
    description: str | None
    metadata: dict[str, JsonValue]
    created_at: datetime
    memory_count: int


class StateValue(BaseModel):
    """A value and when it was written."""

    key: str
    value: JsonValue
    created_at: datetime
    updated_at: datetime


class StateKeys(BaseModel):
    """Every key of an agent's state."""

    keys: list[str]


class Health(BaseModel):
    """That the service answers."""

    status: str
    service: str
    version: str


class BotValue(BaseModel):
    """A value; times in seconds since 1970."""

    namespace: str
    key: str
    value: str
    created_at: float
    updated_at: float


class BotStored(BaseModel):
    """That a value is kept, and how many characters it has."""

    namespace: str
    key: str
    stored: bool
    bytes: int


class BotKey(BaseModel):
    """A key, the size of its value, and when it was written."""

    key: str
    bytes: int
    updated_at: float


class BotKeys(BaseModel):
    """The keys of a namespace, the newest first."""

    namespace: str
    count: int
    keys: list[BotKey]


class MemstoreMemory(BaseModel):
    """A memory as Memstore says it."""

    id: str
    content: str
    session: str | None
    metadata: dict[str, JsonValue]
    tags: list[str]
    created_at: datetime


class MemstoreRecalled(BaseModel):
    """What a question found."""

    memories: list[MemstoreMemory]
    count: int
    query: str


class MemstoreList(BaseModel):
    """A part of the list, and how many there are."""

    memories: list[MemstoreMemory]
    total: int


class MemstoreForgotten(BaseModel):
    """That a memory is gone."""

    deleted: bool
    id: str


_AGENT = "/api/v1/agents/{agent}"

REPLIES: dict[tuple[str, str], type[BaseModel]] = {
    ("GET", "/health"): Health,
    ("POST", "/api/v1/agents"): Agent,
    ("GET", _AGENT): Agent,
    ("PATCH", _AGENT): Agent,
    ("POST", f"{_AGENT}/remember"): Memory,
    ("POST", f"{_AGENT}/recall"): Recalled,
    ("POST", f"{_AGENT}/inject-context"): Context,
    ("POST", f"{_AGENT}/memories/batch"): Memories,
    ("POST", f"{_AGENT}/memories/bulk-import"): Imported,
    ("GET", f"{_AGENT}/memories/export"): Export,
    ("GET", f"{_AGENT}/memories"): Page,
    ("DELETE", f"{_AGENT}/memories"): Deleted,
    ("GET", f"{_AGENT}/memories/{{memory}}"): Memory,
    ("PATCH", f"{_AGENT}/memories/{{memory}}"): Memory,
    ("GET", f"{_AGENT}/sessions"): Sessions,
    ("DELETE", f"{_AGENT}/sessions/{{session}}"): Deleted,
    ("GET", f"{_AGENT}/state"): StateKeys,
    ("GET", f"{_AGENT}/state/{{key}}"): StateValue,
    ("GET", "/memory/{namespace}"): BotKeys,
    ("GET", "/memory/{namespace}/{key}"): BotValue,
    ("PUT", "/memory/{namespace}/{key}"): BotStored,
    ("POST", "/v1/memory/remember"): MemstoreMemory,
    ("GET", "/v1/memory/recall"): MemstoreRecalled,
    ("GET", "/v1/memory/list"): MemstoreList,
    ("DELETE", "/v1/memory/forget/{memory}"): MemstoreForgotten,
}
"""By method and path; a row that is not here answers with JSON that the document says nothing more about."""
