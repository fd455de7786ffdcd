"""What the engine keeps, and what it asks of a store.

A store hands out transactions; inside one, the engine reads and writes rows. SQL stays in the store, decisions in the
engine, so that two stores cannot give two answers. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from kronmem.api.requests import Sort


@dataclass(frozen=True)
class Space:
    """The memory space of one agent of one owner. `last` is the number of its newest memory, used or deleted."""

    id: int
    name: str
    description: str | None
    metadata: dict[str, JsonValue]
    created_at: float
    count: int
    words: int
    last: int


@dataclass(frozen=True)
class Draft:
    """A memory about to be written; `ttl` in seconds, `client_id` the name its sender gave it."""

    content: str
    memory_type: str = "fact"
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    ttl: int | None = None
    pinned: bool = False
    client_id: str | None = None


@dataclass(frozen=True)
class Row:
    """A stored memory. `number` counts up within its space and is never used twice."""

    number: int
    id: str
    content: str
    memory_type: str
    session_id: str | None
    tags: tuple[str, ...]
    metadata: dict[str, JsonValue]
    created_at: float
    expires_at: float | None
    pinned: bool
    access_count: int


@dataclass(frozen=True)
class Filter:
    """Which memories of a space are meant. Every field that is set must hold; all `tags` must be there."""

    session_id: str | None = None
    memory_type: str | None = None
    tags: tuple[str, ...] = ()
    search: str | None = None
    pinned: bool = False


@dataclass(frozen=True)
class Page:
    """Which part of a list: past the first `offset`, or after the memory with this number and access count."""

    sort: Sort = "recent"
    limit: int = 20
    offset: int = 0
    after: tuple[int, int] | None = None


Posting = tuple[int, int, int]
"""That in the memory with this number a term occurs so many times among so many terms."""


@dataclass(frozen=True)
class Found:
    """Where a term occurs: newest first, cut at a bound, and in about how many memories of the whole space."""

    postings: Sequence[Posting]
    spread: float
    cut: bool


@dataclass(frozen=True)
class Receipt:
    """What became of a memory that came with a client's id."""

    memory_id: str
    body: bytes
    deduplicated: bool


@dataclass(frozen=True)
class StateValue:
    """One value of an agent's state, as JSON text."""

    value: str
    created_at: float
    updated_at: float


class Reader(Protocol):
    """One consistent view of the store. `now` hides what has expired by then."""

    def find_space(self, owner: str, name: str) -> Space | None: ...
    def spaces(self, owner: str) -> list[Space]: ...
    def count(self, space: Space, now: float, only: Filter = ...) -> int: ...
    def find(self, space: Space, memory_id: str, now: float) -> Row | None: ...
    def rows(self, space: Space, numbers: Sequence[int], now: float) -> dict[int, Row]: ...
    def last_said(self, space: Space) -> tuple[str | None, float] | None: ...
    def page(self, space: Space, only: Filter, page: Page, now: float) -> list[Row]: ...
    def matching(self, space: Space, only: Filter) -> frozenset[int]: ...
    def terms_like(self, space: Space, start: str, limit: int) -> list[str]:
        """Terms of the space that begin so, at most `limit` of them."""
        ...

    def postings(self, space: Space, bounds: Mapping[str, int], within: frozenset[int] | None) -> dict[str, Found]:
        """Where each of these terms occurs, at most its bound of the newest, within these numbers if any are named."""
        ...

    def sessions(self, space: Space, now: float) -> list[tuple[str, int]]: ...
    def receipt(self, owner: str, name: str, client_id: str) -> Receipt | None: ...
    def state(self, space: Space, key: str) -> StateValue | None: ...
    def state_keys(self, space: Space) -> list[str]: ...
    def vectors(self, space: Space, numbers: Sequence[int]) -> Mapping[int, bytes]: ...
    def without_vector(self, after: int, limit: int) -> list[tuple[int, str]]: ...


class Writer(Reader, Protocol):
    """A transaction that may change rows; until it ends, nobody else writes to the spaces it touched."""

    def open_space(self, owner: str, name: str, now: float) -> Space: ...
    def describe_space(self, space: Space, description: str | None, metadata: Mapping[str, JsonValue]) -> None: ...
    def drop_space(self, space: Space) -> None: ...
    def same_text(self, space: Space, session_id: str | None, content: str) -> Row | None: ...
    def insert(self, space: Space, row: Row) -> int: ...
    def revise(self, space: Space, old: Row, new: Row) -> None: ...
    def delete(self, space: Space, rows: Iterable[Row]) -> None: ...
    def clear(self, space: Space, session_id: str | None) -> None: ...
    def count_access(self, space: Space, numbers: Sequence[int]) -> None: ...
    def write_receipt(self, owner: str, name: str, client_id: str, receipt: Receipt, now: float) -> None: ...
    def sweep(self, now: float, receipts_before: float, bound: int) -> None: ...
    def set_state(self, space: Space, key: str, value: str, now: float) -> None: ...
    def delete_state(self, space: Space, key: str) -> bool: ...
    def set_vectors(self, vectors: Iterable[tuple[int, bytes]]) -> None: ...


class Store(Protocol):
    """Hands out transactions. `timeout` bounds the wait for a connection and for other writers."""

    def read(self, timeout: float) -> AbstractContextManager[Reader]: ...
    def write(self, timeout: float) -> AbstractContextManager[Writer]: ...

    def note(self) -> AbstractContextManager[Writer]:
        """A write that may be lost and never waits: `DeadlineError` when it would have to."""
        ...

    def close(self) -> None: ...
