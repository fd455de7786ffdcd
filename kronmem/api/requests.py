"""What requests may say: one model a route. Both dialects of Kronvex are taken, and our own reserved `kronmem` object.

Unknown fields are ignored; what is refused is refused as FastAPI does it.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from kronmem.engine.recall import Search
from kronmem.engine.store import Draft, Filter, Page, Sort

MAX_CONTENT = 100_000
MAX_METADATA = 1_000_000
MAX_STATE = 8 * 1024 * 1024
"""Of one value, in bytes as JSON."""
GENERAL = "general context"
"""What the tutorials ask when they have no question."""
T = TypeVar("T")

_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f/\\?#%\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def valid_id(value: str) -> str:
    """An id of an agent, session, memory or key; `ValueError` if it could not stand alone in a path."""
    if not 1 <= len(value) <= 255 or value in (".", "..") or value != value.strip() or _FORBIDDEN.search(value):
        raise ValueError("an id has 1 to 255 characters without / \\ ? # %, control characters or outer spaces")
    return value


def storable(value: str) -> str:
    """Text that every store can keep; `ValueError` for NUL and lone surrogates."""
    if _UNSTORABLE.search(value):
        raise ValueError("text may not contain NUL or lone surrogates")
    return value


def _telling(value: str) -> str:
    if not value.strip():
        raise ValueError("text may not be blank")
    return storable(value)


def _at_most(size: int, value: T) -> T:
    # Infinity can be written in JSON as 1e999, but not read back.
    if len(json.dumps(value, allow_nan=False)) > size:
        raise ValueError(f"at most {size} bytes as JSON")
    return value


def _metadata(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return _at_most(MAX_METADATA, value)


def _state(value: JsonValue) -> JsonValue:
    return _at_most(MAX_STATE, value)


Id = Annotated[str, AfterValidator(valid_id)]
Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT), AfterValidator(_telling)]
Type = Annotated[str, Field(min_length=1, max_length=50), AfterValidator(storable)]
Tag = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(storable)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=100)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(_metadata)]
Limit = Annotated[int, Field(ge=1, le=100)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Nothing(_Body):
    """A request whose path says it all."""


class Own(_Body):
    """What our client adds to a memory, out of the way of services that know less."""

    id: Id | None = None
    type: Type | None = None
    tags: Tags | None = None


class Remember(_Body):
    """A memory to store."""

    content: Content
    memory_type: Type = "fact"
    session_id: Id | None = None
    metadata: Metadata | None = None
    tags: Tags | None = None
    ttl_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    ttl_seconds: Annotated[int, Field(ge=60, le=315_360_000)] | None = None
    pinned: bool = False

    def draft(self, key: str | None = None) -> Draft:
        """As the engine takes it; the reserved object wins over the fields around it."""
        metadata = dict(self.metadata or {})
        own = Own()
        if isinstance(metadata.get("kronmem"), dict):
            own = Own.model_validate(metadata.pop("kronmem"))
        days = None if self.ttl_days is None else self.ttl_days * 86400
        return Draft(
            content=self.content,
            memory_type=own.type or self.memory_type,
            session_id=self.session_id,
            tags=own.tags if own.tags is not None else self.tags or (),
            metadata=metadata,
            ttl=days if self.ttl_seconds is None else self.ttl_seconds,
            pinned=self.pinned,
            client_id=own.id or key,
        )


class Batch(_Body):
    """Memories to store together, all or none."""

    memories: Annotated[tuple[Remember, ...], Field(min_length=1, max_length=1000)]


class OwnQuestion(_Body):
    """What our client asks beyond what every service understands."""

    limit: Limit | None = None
    memory_type: Type | None = None
    tags: Tags | None = None


class Recall(_Body):
    """A question. The tutorials say `query` and `limit`, the vendor's server `message` and `top_k`."""

    query: str | None = Field(default=None, max_length=MAX_CONTENT)
    message: str | None = Field(default=None, max_length=MAX_CONTENT)
    top_k: Limit | None = None
    limit: Limit | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    session_id: Id | None = None
    memory_type: Type | None = None
    tags: Tags | None = None
    kronmem: OwnQuestion | None = None

    @model_validator(mode="after")
    def _asks(self) -> Recall:
        if self.query is None and self.message is None:
            raise ValueError("query or message is required")
        return self

    def search(self) -> Search:
        """As the engine takes it; the reserved object wins over the fields around it."""
        own = self.kronmem or OwnQuestion()
        query = self.query if self.query is not None else self.message
        return Search(
            query=query or "",
            limit=own.limit or self.limit or self.top_k or 5,
            threshold=self.threshold,
            only=Filter(self.session_id, own.memory_type or self.memory_type, own.tags or self.tags or ()),
        )


class Listing(_Body):
    """Which memories to list, from the query string."""

    page: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1
    per_page: Limit = 20
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    memory_type: Type | None = None
    search: Annotated[str, Field(max_length=1000), AfterValidator(storable)] | None = None
    sort: Sort = "recent"
    session_id: Id | None = None
    tag: Tags = ()
    after: Id | None = None

    @field_validator("tag", mode="before")
    @classmethod
    def _repeatable(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    def filter(self) -> Filter:
        """Which memories are meant."""
        return Filter(self.session_id, self.memory_type, self.tag, self.search)

    def page_after(self, after: tuple[int, int] | None) -> Page:
        """Which part of them; the vendor's SDK says `limit` and `offset`."""
        size = self.limit or self.per_page
        offset = (self.page - 1) * size if self.offset is None else self.offset
        return Page(self.sort, size, 0 if after else offset, after)


class Update(_Body):
    """What may change about a memory."""

    pinned: bool | None = None
    memory_type: Type | None = None


class Agent(_Body):
    """An agent to make or describe."""

    name: Id
    description: Annotated[str, Field(max_length=10_000), AfterValidator(storable)] | None = None
    metadata: Metadata | None = None


class AgentUpdate(_Body):
    """What may change about an agent; its name is its id and stays."""

    name: str | None = None
    description: Annotated[str, Field(max_length=10_000), AfterValidator(storable)] | None = None
    metadata: Metadata | None = None


class State(_Body):
    """A value to keep."""

    value: Annotated[JsonValue, AfterValidator(_state)]
