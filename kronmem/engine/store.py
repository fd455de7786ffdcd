"""The rows that the engine keeps, and the interface of a store.

A store hands out transactions; inside one, the engine reads and writes rows. SQL stays in the store, decisions in the
engine, so that two stores cannot give two answers. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from pydantic import JsonValue

from kronmem.api.requests import Sort
from kronmem.errors import TransportError

T = TypeVar("T")


@dataclass(frozen=True)
class Space:
    """The memory space of one agent of one owner. `last` is the highest number ever given to a memory in it."""

    id: int
    name: str
    description: str | None
    metadata: dict[str, JsonValue]
    created_at: float
    count: int
    """Current memories, expired ones that are not yet swept included."""
    passages: int
    words: int
    """Passages and indexed terms of the current memories: their quotient is the average length of a passage."""
    last: int
    generation: int = 0
    """Raised by clear and erase: a write decided before must not reach rows that came after."""
    revised: int = 0
    """Raised when the text of a memory changes in place: codes that were read before no longer hold."""


@dataclass(frozen=True)
class NewRow:
    """A memory about to be written; `ttl` in seconds, `client_id` the id its sender gave it."""

    content: str
    memory_type: str = "fact"
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    ttl: int | None = None
    pinned: bool = False
    client_id: str | None = None
    role: str | None = None
    key: str | None = None
    supersedes: str | None = None
    said_at: float | None = None
    """When it was stated, if that was before it arrived: it waited in an outbox."""
    age: float | None = None
    """The same in seconds before it arrived, which counts where both are given: the sender's clock may be wrong."""


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
    said_at: float
    """When the present text was stated: decides which of two texts under one key is the newer."""
    updated_at: float | None = None
    role: str | None = None
    key: str | None = None
    superseded_by: str | None = None
    """The id of the memory that took its place; None for a current one."""
    passages: int = 0
    """How many passages are indexed; 0 for history."""


@dataclass(frozen=True)
class Filter:
    """Which memories of a space are meant. Every field that is set must hold; all `tags` must be there."""

    session_id: str | None = None
    memory_type: str | None = None
    tags: tuple[str, ...] = ()
    search: str | None = None
    pinned: bool = False
    since: float | None = None
    until: float | None = None
    """By `created_at`, from `since` on and before `until`."""
    history: bool = False
    """Superseded memories too."""


@dataclass(frozen=True)
class Page:
    """Which part of a list: past the first `offset`, or after the memory with this number and access count.

    A list with history goes by when memories were made and then stated, so that a memory comes before its former texts,
    which have higher numbers; `moment` is both times of the memory that the page comes after.
    """

    sort: Sort = "recent"
    limit: int = 20
    offset: int = 0
    after: tuple[int, int] | None = None
    moment: tuple[float, float] | None = None


TOO_OLD = (
    "was written by kronmem 0.1, which this version does not read: `kronmem export` it with 0.1, then `kronmem import`"
    " the export into a new database"
)
"""The message about a database of schema 1, after its name."""
PLACE_BITS = 12
"""A passage's place is `number of its memory << PLACE_BITS | passage << 2 | kind`: 1,024 passages of 60 words are more
than the longest text that is accepted, and four kinds hold the speaker and whether it asks."""

Embedding = tuple[int, bytes, bytes]
"""The key of a memory, the digest of its text, and the vector that a model gave it."""
Posting = tuple[int, int, int]
"""That in the passage at this place a term occurs so many times among so many terms."""


@dataclass(frozen=True)
class Found:
    """Where a term occurs: newest first, cut at a bound, and in about how many passages of the whole space."""

    postings: Sequence[Posting]
    spread: float
    cut: bool


@dataclass(frozen=True)
class Indexed:
    """The index of a memory: terms by passage, and the meaning of each passage."""

    terms: Mapping[str, Sequence[tuple[int, int]]]
    """By term: the passages it occurs in and how many times there."""
    lengths: tuple[int, ...]
    """How many terms each passage has."""
    kinds: tuple[int, ...]
    """Of each passage, the speaker and whether it asks."""
    labels: tuple[str, ...]
    codes: bytes
    vectors: bytes
    """Of each passage, in order: its kind in one byte and its code; and its vector."""


@dataclass(frozen=True)
class Receipt:
    """The outcome for a memory that came with a client's id."""

    memory_id: str
    body: bytes
    deduplicated: bool


@dataclass(frozen=True)
class StateValue:
    """One value of an agent's state, as JSON text."""

    value: str
    created_at: float
    updated_at: float


@dataclass(frozen=True)
class Totals:
    """Exact counts of the current memories of a space."""

    count: int
    types: Mapping[str, int]
    tags: Mapping[str, int]
    sessions: Mapping[str, int]
    days: Mapping[str, int]
    """By UTC day of `created_at`, as YYYY-MM-DD."""


@dataclass(frozen=True)
class Erased:
    """How many rows of each kind an erasure removed."""

    memories: int
    history: int
    state: int
    receipts: int


class Reader(Protocol):
    """One consistent view of the store. `now` hides memories expired by then."""

    def find_space(self, owner: str, name: str) -> Space | None: ...
    def spaces(self, owner: str) -> list[Space]: ...
    def count(self, space: Space, now: float, only: Filter = ...) -> int: ...
    def totals(self, space: Space, now: float) -> Totals: ...
    def find(self, space: Space, memory_id: str, now: float) -> Row | None:
        """A memory by its id, current or superseded."""
        ...

    def former(self, space: Space, memory_id: str, now: float) -> list[Row]:
        """The memories that this one superseded, directly or through others, the latest statement first."""
        ...

    def numbers(self, space: Space, ids: Collection[str]) -> dict[str, int]:
        """The numbers of memories by id; unknown ids are left out."""
        ...

    def rows(self, space: Space, numbers: Sequence[int], now: float) -> dict[int, Row]:
        """Current memories by number."""
        ...

    def last_said(self, space: Space) -> tuple[str | None, float] | None: ...
    def page(self, space: Space, only: Filter, page: Page, now: float) -> list[Row]: ...
    def matching(self, space: Space, only: Filter) -> frozenset[int]: ...
    def terms_like(self, space: Space, start: str, limit: int) -> list[str]:
        """Terms of the space that begin so, at most `limit` of them."""
        ...

    def postings(self, space: Space, bounds: Mapping[str, int], within: frozenset[int] | None) -> dict[str, Found]:
        """Where each of these terms occurs, at most its bound of the newest, within these memories if any are named."""
        ...

    def codes(self, space: Space, after: int) -> Iterable[tuple[int, bytes]]:
        """The codes of the memories numbered higher than `after`, in order, packed as in `Indexed`."""
        ...

    def vectors(self, space: Space, numbers: Sequence[int], known: Collection[int]) -> Mapping[int, bytes | None]:
        """By memory that has any, one vector for each of its passages; None for those that the caller knows."""
        ...

    def sessions(self, space: Space, now: float) -> list[tuple[str, int]]: ...
    def receipt(self, owner: str, name: str, client_id: str) -> Receipt | None: ...
    def is_erased(self, owner: str, name: str, client_id: str) -> bool:
        """Did an erasure remove the memory with this id, not longer ago than receipts are kept?"""
        ...

    def state(self, space: Space, key: str) -> StateValue | None: ...
    def state_keys(self, space: Space, *, newest: bool = False) -> list[str]: ...
    def embeddings(self, space: Space, numbers: Sequence[int]) -> Mapping[int, bytes]: ...
    def without_embedding(self, after: int | None, limit: int) -> list[tuple[int, str]]: ...
    def count_embedded(self) -> int:
        """How many current memories have an embedding, over all owners."""
        ...

    def setting(self, name: str) -> str | None:
        """A fact about the whole database: which model its embeddings are of."""
        ...

    def size(self, now: float) -> tuple[int, int]:
        """How many spaces there are of all owners, and how many current memories in them."""
        ...


class Writer(Reader, Protocol):
    """A transaction that may change rows; until it ends, no other one writes to the spaces it touched."""

    def open_space(self, owner: str, name: str, now: float) -> Space: ...
    def describe_space(self, space: Space, description: str | None, metadata: Mapping[str, JsonValue]) -> None: ...
    def drop_space(self, space: Space) -> None: ...
    def same_text(self, space: Space, session_id: str | None, key: str | None, content: str) -> Row | None:
        """The current memory with this text in this session and under this key."""
        ...

    def keyed(self, space: Space, session_id: str | None, key: str) -> Row | None:
        """The current memory under this key in this session."""
        ...

    def insert(self, space: Space, row: Row, indexed: Indexed | None) -> int:
        """Add a memory; a superseded one comes without an index and is not counted. The answer is its key."""
        ...

    def revise(self, space: Space, old: Row, new: Row, indexed: Indexed | None = None) -> None:
        """Change a current memory in place; `indexed` comes along when its index entries have changed."""
        ...

    def supersede(self, space: Space, old: Row, successor: str) -> None:
        """Make a current memory history: it keeps its row and loses its index entries."""
        ...

    def delete(self, space: Space, rows: Iterable[Row]) -> None: ...
    def clear(self, space: Space, session_id: str | None, before: float | None) -> None:
        """Delete memories with their history: all, those of a session, those created before a time."""
        ...

    def erase(self, owner: str, name: str, now: float) -> Erased:
        """Remove everything of an agent; salted hashes of its ids stay for as long as receipts do."""
        ...

    def count_access(self, space: Space, numbers: Sequence[int]) -> None: ...
    def write_receipt(self, owner: str, name: str, client_id: str, receipt: Receipt, now: float) -> None: ...
    def sweep(self, now: float, receipts_before: float, bound: int) -> int:
        """Delete expired rows, at most `bound` of each kind, now or after the commit; how many were since the last."""
        ...

    def set_state(self, space: Space, key: str, value: str, now: float) -> None: ...
    def delete_state(self, space: Space, key: str) -> bool: ...
    def set_embeddings(self, embeddings: Sequence[Embedding]) -> Sequence[Embedding]:
        """Add vectors; a memory whose text has changed gets none.

        The answer is those of agents that another transaction is changing, for a transaction of their own.
        """
        ...

    def forget_embeddings(self) -> None:
        """Drop the embeddings of all memories: another model is going to make new ones."""
        ...

    def set_setting(self, name: str, value: str) -> None: ...
    def hold_setting(self, name: str) -> str | None:
        """A setting that no other transaction changes before this one has ended."""
        ...


class UndoneError(TransportError):
    """The store rolled the transaction back through no fault of the call: once more may well succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class Store(Protocol):
    """Hands out transactions. `timeout` bounds the wait for a connection and for other writers."""

    def read(self, timeout: float) -> AbstractContextManager[Reader]: ...
    def write(self, timeout: float) -> AbstractContextManager[Writer]: ...
    def commit(self, work: Callable[[Writer], T], timeout: float) -> T:
        """Do `work` in a write, and answer its result once that is durable."""
        ...

    def note(self, timeout: float = 0.0, *, most: float = ...) -> AbstractContextManager[Writer]:
        """A write that may be lost; waits for others no longer than that, and by default not at all.

        `most` is how many seconds it may take in all, where a store cannot tell waiting from working.
        """
        ...

    def scrub(self, timeout: float) -> bool:
        """See that no deleted text is left in the files; False when a reader kept it from being finished in time."""
        ...

    def close(self) -> None: ...
