"""The request bodies and queries of the API: one model a route. They take both dialects of Kronvex and our own
reserved `kronmem` object, ignore unknown fields, and refuse the rest as FastAPI does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    field_validator,
    model_validator,
)
from pydantic_core import from_json, to_json

from kronmem.api import rules
from kronmem.api.rules import DeferredModel, Validator
from kronmem.models import Fill

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

Sort = Literal["recent", "oldest", "access_count"]
MOST_AGE = 3_200_000_000
"""Seconds, a hundred years."""
Role = Literal["user", "assistant", "tool"]
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def valid_id(value: str) -> str:
    """Accept an id of an agent, session, memory or key; `ValueError` if it could not stand alone in a path."""
    if problem := rules.id_problem(value):
        raise ValueError(f"an id {problem}")
    return value


def _storable(value: str) -> str:
    if problem := rules.text_problem(value):
        raise ValueError(f"text {problem}")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("text must not be blank")
    return _storable(value)


def at_most(most: int) -> BeforeValidator:
    """Refuse a longer list before its items are looked at: a million bad ones would be a million problems to list."""

    def check(value: object) -> object:
        if isinstance(value, list | tuple) and len(value) > most:  # pyright: ignore[reportUnknownArgumentType] -- from JSON
            raise ValueError(f"at most {most} items are allowed")
        return value  # pyright: ignore[reportUnknownVariableType] -- from JSON

    return BeforeValidator(check)


def _newest(value: object) -> object:
    """The tags of an exported memory, as many as one may have: kronmem 0.2 let them grow without bound."""
    return value[-rules.MAX_TAGS :] if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType] -- from JSON


def _bounded(size: int, value: T) -> T:
    try:
        written = to_json(value, inf_nan_mode="constants")
    except ValueError:  # UTF-8 cannot encode it
        raise ValueError("JSON must not contain lone surrogates") from None
    if len(written) > size:
        raise ValueError(f"at most {size} bytes as JSON")
    if b"Infinity" in written or b"NaN" in written:  # 1e999 can be written in JSON, but not read back
        from_json(written, allow_inf_nan=False)
    return value


def _metadata(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return _bounded(rules.MAX_SERVED_METADATA, value)


def _state(value: JsonValue) -> JsonValue:
    return _bounded(rules.MAX_SERVED_STATE, value)


def _in_utc(value: datetime) -> datetime:
    try:
        # The last second whole: as a float its last microseconds would be the year 10000, which cannot be written.
        return min(value.astimezone(UTC), _LAST)
    except OverflowError:
        raise ValueError("a time must be within the years 1 to 9999 in UTC") from None


Id = Annotated[str, AfterValidator(valid_id)]
MemoryId = Annotated[str, Field(pattern=rules.UUID_PATTERN), AfterValidator(str.lower)]
Content = Annotated[str, Field(min_length=1, max_length=rules.MAX_SERVED_CONTENT), AfterValidator(_not_blank)]
Query = Annotated[str, Field(max_length=rules.MAX_SERVED_CONTENT), AfterValidator(_storable)]
Type = Annotated[str, Field(min_length=1, max_length=rules.MAX_TYPE), AfterValidator(_storable)]
Tag = Annotated[str, Field(min_length=1, max_length=rules.MAX_SERVED_TAG), AfterValidator(_storable)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=rules.MAX_TAGS), at_most(rules.MAX_TAGS)]
Description = Annotated[str, Field(max_length=rules.MAX_DESCRIPTION), AfterValidator(_storable)]
Key = Annotated[str, Field(min_length=1, max_length=rules.MAX_KEY), AfterValidator(_not_blank)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(_metadata)]
Limit = Annotated[int, Field(ge=1, le=rules.MAX_HITS)]
Time = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Excluded = Annotated[
    tuple[Annotated[str, Field(pattern=rules.UUID_PATTERN)], ...],
    Field(max_length=rules.MAX_EXCLUDED),
    at_most(rules.MAX_EXCLUDED),
]


class RequestModel(DeferredModel):
    """The base of all request models."""

    model_config = ConfigDict(frozen=True, extra="ignore")


_validators: dict[type[BaseModel], Validator[Any]] = {}


def validator(model: type[M]) -> Validator[M]:
    """Reads requests of this model."""
    return _validators.get(model) or _validators.setdefault(model, Validator(model))


class EmptyRequest(RequestModel):
    """No parameters beyond those of the path."""


class ReservedMetadata(RequestModel):
    """The reserved object in a memory's metadata: fields of our client that other services do not know."""

    id: Id | None = None
    type: Type | None = None
    tags: Tags | None = None
    role: Role | None = None
    key: Key | None = None
    supersedes: Id | None = None
    said_at: Time | None = None
    age: Annotated[float, Field(ge=0, le=MOST_AGE)] | None = None


class RememberRequest(RequestModel):
    """A memory to store."""

    content: Content
    memory_type: Type = "fact"
    session_id: Id | None = None
    metadata: Metadata | None = None
    tags: Tags | None = None
    ttl_days: Annotated[int, Field(ge=1, le=rules.MAX_TTL_DAYS)] | None = None
    ttl_seconds: Annotated[int, Field(ge=rules.MIN_TTL_SECONDS, le=rules.MAX_TTL_SECONDS)] | None = None
    pinned: bool = False
    role: Role | None = None
    key: Key | None = None
    supersedes: Id | None = None
    may_replace: bool = False

    def reserved(self) -> tuple[ReservedMetadata, dict[str, JsonValue]]:
        """The reserved object, which wins over the fields around it, and the metadata without it."""
        metadata = dict(self.metadata or {})
        if isinstance(metadata.get(rules.RESERVED), dict):
            return validator(ReservedMetadata).python(metadata.pop(rules.RESERVED)), metadata
        return ReservedMetadata(), metadata


class BatchRequest(RequestModel):
    """Memories to store together, all or none."""

    memories: Annotated[
        tuple[RememberRequest, ...], Field(min_length=1, max_length=rules.MAX_BATCH), at_most(rules.MAX_BATCH)
    ]


class RestoredMemory(RequestModel):
    """A memory as an export wrote it, kept with its id, times and history."""

    id: MemoryId
    content: Content
    memory_type: Type = "fact"
    session_id: Id | None = None
    metadata: Metadata = Field(default_factory=dict)
    tags: Annotated[tuple[Tag, ...], BeforeValidator(_newest)] = ()
    created_at: Time
    updated_at: Time | None = None
    said_at: Time | None = None
    expires_at: Time | None = None
    pinned: bool = False
    access_count: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0
    role: Role | None = None
    key: Key | None = None
    superseded_by: MemoryId | None = None


class RestoreRequest(RequestModel):
    """Exported memories to keep as they were, the oldest first, all or none."""

    memories: Annotated[
        tuple[RestoredMemory, ...], Field(min_length=1, max_length=rules.MAX_BATCH), at_most(rules.MAX_BATCH)
    ]


class EraseRequest(RequestModel):
    """How many seconds to wait for readers that keep the files from being cleaned; a client waits a little longer."""

    wait: Annotated[float, Field(ge=0, le=3600)] | None = None


class ClearRequest(RequestModel):
    """Which memories to delete: those of a session, those created before a time, or both."""

    session_id: Id | None = None
    before: Time | None = None


class ToldRange(RequestModel):
    """The range of time that a question names, of the clock and zone that asked it."""

    since: Time
    until: Time
    alone: bool = False
    dated: bool = False


class ReservedSearch(RequestModel):
    """The reserved object of a recall: the exact question of our client, beyond the fields that every service knows."""

    limit: Limit | None = None
    memory_type: Type | None = None
    tags: Tags | None = None
    since: Time | None = None
    until: Time | None = None
    count_access: bool = True
    exclude: Excluded = ()
    fill: Fill = False
    told: ToldRange | None = None


class RecallRequest(RequestModel):
    """A question. The tutorials say `query` and `limit`, the vendor's server `message` and `top_k`."""

    query: Query | None = None
    message: Query | None = None
    top_k: Limit | None = None
    limit: Limit | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    session_id: Id | None = None
    memory_type: Type | None = None
    tags: Tags | None = None
    kronmem: ReservedSearch | None = None

    @model_validator(mode="after")
    def _has_a_query(self) -> RecallRequest:
        if self.query is None and self.message is None:
            raise ValueError("query or message is required")
        return self


class ListRequest(RequestModel):
    """Which memories to list, from the query string."""

    page: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1
    per_page: Limit = 20
    limit: Annotated[int, Field(ge=1, le=rules.MAX_PAGE)] | None = None
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    memory_type: Type | None = None
    search: Annotated[str, Field(max_length=1000), AfterValidator(_storable)] | None = None
    sort: Sort = "recent"
    session_id: Id | None = None
    tag: Tags = ()
    after: Id | None = None
    since: Time | None = None
    until: Time | None = None
    history: bool = False
    max_bytes: Annotated[int, Field(ge=1)] | None = None
    """A caller that names it follows `next`: a page may have fewer memories than asked for."""

    @field_validator("tag", mode="before")
    @classmethod
    def _repeatable(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class HistoryRequest(RequestModel):
    """Which part of a history, from the query string: after the memory of this id, and at most so many bytes."""

    after: Id | None = None
    max_bytes: Annotated[int, Field(ge=1)] | None = None


class UpdateRequest(RequestModel):
    """Changes to a memory; absent fields stay. A `ttl_days` of 0 removes the lifetime."""

    content: Content | None = None
    memory_type: Type | None = None
    tags: Tags | None = None
    metadata: Metadata | None = None
    pinned: bool | None = None
    ttl_days: Annotated[int, Field(ge=0, le=rules.MAX_TTL_DAYS)] | None = None


class AgentRequest(RequestModel):
    """An agent to make or describe."""

    name: Id
    description: Description | None = None
    metadata: Metadata | None = None


class AgentUpdateRequest(RequestModel):
    """Changes to an agent; its name is its id and stays."""

    name: str | None = None
    description: Description | None = None
    metadata: Metadata | None = None


class StateRequest(RequestModel):
    """A value to keep; with `if_updated_at` only in place of the value of that time, null meaning no value.

    With it a value of null takes the key away.
    """

    value: Annotated[JsonValue, AfterValidator(_state)]
    if_updated_at: Time | None = None


class StateKeysRequest(RequestModel):
    """In which order to list keys, from the query string."""

    sort: Literal["name", "recent"] = "name"
