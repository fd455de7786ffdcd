"""The embedded memory: remember, recall, forget, list, state. No HTTP, no SQL.

Refusals are the errors a service would answer with (`NotFoundError`, `ConflictError`), so that embedded and served
memory say the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest

from pydantic import JsonValue

from kronmem.engine import asker, recall, remembering, succession, topics
from kronmem.engine.embedding import MADE_BY, Embed, Embedder
from kronmem.engine.postings import to_microseconds
from kronmem.engine.recall import FoundRow, Search, search
from kronmem.engine.remembering import (
    SWEPT,
    Kept,
    Place,
    RowChange,
    history,
    make_way,
    remember,
    resolve,
    restore,
    update,
)
from kronmem.engine.scan import CodeCache
from kronmem.engine.store import Erased, Filter, NewRow, Page, Reader, Row, Space, StateValue, Store, Totals, Writer
from kronmem.errors import ConflictError, NotFoundError, StoreError, TransportError

FORMER, MOST_FORMER = 20, 3
"""So many like memories are compared with a new one, and so many are named that it may replace."""
ANY_TIME = -1.0
"""Any earlier value."""
_TICK = 1e-6
"""The resolution of the API's timestamps."""


@dataclass(frozen=True)
class StoreSize:
    """Sizes of a store, and the work that this process did on it in passing."""

    agents: int
    memories: int
    backlog: int
    """Memories that wait for their vectors."""
    sweeps: int
    swept: int


class Engine:
    """The embedded memory over one store."""

    def __init__(self, store: Store, *, embed: Embed | None = None, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = now
        self._embedder = Embedder(store, embed) if embed else None
        self._codes = CodeCache()
        self._tally = threading.Lock()
        self._sweeps = self._swept = 0

    def _now(self) -> float:
        return to_microseconds(self._clock())

    def close(self) -> None:
        """Stop background work and close the store."""
        if self._embedder:
            self._embedder.close()
        self._store.close()

    def size(self, timeout: float) -> StoreSize:
        """How large the store is, over all owners."""
        with self._store.read(timeout) as rows:
            agents, memories = rows.size(self._now())
        backlog = self._embedder.waiting if self._embedder else 0
        return StoreSize(agents, memories, backlog, self._sweeps, self._swept)

    # Memories

    def remember(self, place: Place, drafts: Sequence[NewRow]) -> tuple[list[Kept], int]:
        """Store all of `drafts` or none; tell also how many memories the agent now has.

        The same text in the same session is one memory, and so is the same id.
        """
        now = self._now()

        def work(rows: Writer) -> tuple[list[Kept], int, int, list[tuple[int, str]]]:
            new: list[tuple[int, str]] = []
            swept = rows.sweep(now, now - remembering.RECEIPTS_KEPT, SWEPT)
            kept = [remember(rows, place, draft, now, new) for draft in drafts]
            space = rows.find_space(place.owner, place.agent)
            return kept, rows.count(space, now) if space else 0, swept, new

        kept, count, swept, new = self._store.commit(work, place.timeout)
        with self._tally:
            self._sweeps, self._swept = self._sweeps + 1, self._swept + swept
        if self._embedder:
            self._embedder.add(new)
        return kept, count

    def recall(self, place: Place, asked: Search) -> list[FoundRow]:
        """Find the memories that answer `asked.query`, best first, and count them as accessed."""
        now, ends = self._now(), time.monotonic() + place.timeout
        with self._asked(place, asked, ends) as (rows, vector):
            space = rows.find_space(place.owner, place.agent)
            hits = self._answer(rows, space, asked, now, vector) if space else []
        return self._counted(space, hits, ends) if asked.count_access else hits

    def _answer(
        self, rows: Reader, space: Space, asked: Search, now: float, vector: Sequence[float] | None
    ) -> list[FoundRow]:
        """The hits that answer the question, and those to stand before or behind them."""
        if asker.is_meant(asked.query):
            return recall.profile(rows, space, asked, now, self._codes.of(rows, space))
        hits = self._of_topics(rows, space, asked, now) if vector is None else []
        if asked.query and not hits:
            hits = self._search(rows, space, asked, now, vector)
        if asked.told and asked.told.alone:
            hits = recall.told(rows, space, hits, asked, asked.told, now, self._codes.of(rows, space))
        if asked.fill:
            hits = recall.fill_context(rows, space, hits, asked, now, self._codes.of(rows, space))
        return hits

    @contextmanager
    def _asked(self, place: Place, asked: Search, ends: float) -> Generator[tuple[Reader, list[float] | None]]:
        """A view of the store, and the vector of the question, which may take half of the time."""
        vector = self._embedder.ask(asked.query, place.timeout / 2) if self._embedder and asked.query else None
        with self._store.read(max(ends - time.monotonic(), 0.0)) as rows:
            yield rows, vector

    def _search(
        self, rows: Reader, space: Space, asked: Search, now: float, vector: Sequence[float] | None
    ) -> list[FoundRow]:
        if self._embedder and vector is not None and self._embedder.has_been_replaced(rows.setting(MADE_BY)):
            vector = None  # the vectors there are not of the model that made this one
        return search(rows, space, asked, now, self._codes.of(rows, space), vector)

    def _of_topics(self, rows: Reader, space: Space, asked: Search, now: float) -> list[FoundRow]:
        """Something for each topic that the query lists, by turns, best first."""
        parts = topics.listed(asked.query)
        lists = [self._search(rows, space, replace(asked, query=part), now, None) for part in parts]
        by_turns: dict[int, FoundRow] = {}
        for turn in zip_longest(*lists):
            for hit in turn:
                if hit is not None:
                    by_turns.setdefault(hit.row.number, hit)
        return sorted(list(by_turns.values())[: asked.limit], key=lambda hit: -hit.similarity)

    def _counted(self, space: Space | None, hits: list[FoundRow], ends: float) -> list[FoundRow]:
        if space and hits and (left := ends - time.monotonic()) > 0:
            # A count is not worth an answer: it is left out when another transaction writes or none may.
            with suppress(TransportError, StoreError), self._store.note(most=left) as rows:
                rows.count_access(space, [hit.row.number for hit in hits])
        return hits

    def former(self, place: Place, memory_id: str) -> list[Row]:
        """The former statements that a memory may replace, the likeliest first."""
        now = self._now()
        with self._store.read(place.timeout) as rows:
            space, new = resolve(rows, place, memory_id, now)
            question = succession.question_for(new)
            asked = Search(question, FORMER, threshold=0.0, count_access=False)
            hits = search(rows, space, asked, now, self._codes.of(rows, space)) if question else []
        return [hit.row for hit in hits if succession.replaces(new, hit.row)][:MOST_FORMER]

    def memory(self, place: Place, memory_id: str) -> Row:
        """One memory by its id, or by the id its sender gave it."""
        with self._store.read(place.timeout) as rows:
            return resolve(rows, place, memory_id, self._now())[1]

    def history(self, place: Place, memory_id: str) -> list[Row]:
        """The current memory of a chain of changes and its former texts, the latest first."""
        now = self._now()
        with self._store.read(place.timeout) as rows:
            return history(rows, *resolve(rows, place, memory_id, now), now)

    def update(self, place: Place, memory_id: str, change: RowChange) -> Row:
        """Change a memory in place; its former text becomes history. A pinned one never expires."""
        now = self._now()
        with self._store.write(place.timeout) as rows:
            space, old = resolve(rows, place, memory_id, now)
            new = update(rows, space, old, change, now)
        if self._embedder and new.content != old.content:
            self._embedder.catch_up()
        return new

    def forget(self, place: Place, memory_id: str) -> None:
        """Delete one memory with its history, by its id or by the id its sender gave it."""
        with self._store.write(place.timeout) as rows:
            space, row = resolve(rows, place, memory_id, self._now())
            rows.delete(space, [row])

    def clear(self, place: Place, session_id: str | None = None, before: float | None = None) -> int:
        """Delete all memories of the agent, of one session, or from before a time; say how many were current."""
        with self._store.write(place.timeout) as rows:
            if (space := rows.find_space(place.owner, place.agent)) is None:
                return 0
            count = rows.count(space, self._now(), Filter(session_id=session_id, until=before))
            rows.clear(space, session_id, before)
            return count

    def erase(self, place: Place, wait: float | None = None) -> tuple[Erased, bool]:
        """Remove everything of an agent, from the files too; False when a reader kept the files from being cleaned.

        `wait` is how long it may take in all, where the client says so; the rows are gone even if it was too short.
        """
        ends = time.monotonic() + place.timeout
        until = min(ends, time.monotonic() + (place.timeout / 2 if wait is None else wait))
        with self._store.write(place.timeout) as rows:
            gone = rows.erase(place.owner, place.agent, self._now())
        try:
            return gone, self._store.scrub(max(until - time.monotonic(), 0.0))
        except (TransportError, StoreError):  # another writer, a full disk: the rows are gone, and the answer says so
            return gone, False

    def restore(self, place: Place, exported: Sequence[Row]) -> int:
        """Keep exported memories as they were; the answer is how many were not there already."""
        now = self._now()
        with self._store.write(place.timeout) as rows:
            make_way(rows, rows.open_space(place.owner, place.agent, now), exported, now)
            new = sum(restore(rows, rows.open_space(place.owner, place.agent, now), one, now) for one in exported)
        if self._embedder and new:
            self._embedder.catch_up()
        return new

    def totals(self, place: Place) -> Totals:
        """Exact counts of the agent's current memories."""
        with self._store.read(place.timeout) as rows:
            space = _known(rows.find_space(place.owner, place.agent))
            return rows.totals(space, self._now())

    def memories(self, place: Place, only: Filter, page: Page) -> tuple[list[Row], int]:
        """One page of the agent's memories, and how many there are on all pages."""
        now = self._now()
        with self._store.read(place.timeout) as rows:
            if (space := rows.find_space(place.owner, place.agent)) is None:
                return [], 0
            return rows.page(space, only, page, now), rows.count(space, now, only)

    def all_memories(self, place: Place) -> list[Row]:
        """Every memory of the agent, newest first, in one consistent view."""
        with self._store.read(place.timeout) as rows:
            space = rows.find_space(place.owner, place.agent)
            return rows.page(space, Filter(), Page(limit=-1), self._now()) if space else []

    def sessions(self, place: Place) -> list[tuple[str, int]]:
        """The agent's sessions and how many memories each has."""
        with self._store.read(place.timeout) as rows:
            space = rows.find_space(place.owner, place.agent)
            return rows.sessions(space, self._now()) if space else []

    # Agents

    def agents(self, place: Place) -> list[Space]:
        """All agents of the owner by name, `count` without expired memories."""
        with self._store.read(place.timeout) as rows:
            return [replace(space, count=rows.count(space, self._now())) for space in rows.spaces(place.owner)]

    def agent(self, place: Place) -> Space:
        """The agent itself."""
        with self._store.read(place.timeout) as rows:
            space = _known(rows.find_space(place.owner, place.agent))
            return replace(space, count=rows.count(space, self._now()))

    def describe_agent(
        self, place: Place, description: str | None, metadata: Mapping[str, JsonValue] | None, *, create: bool
    ) -> Space:
        """Describe an agent; `None` leaves a field as it is. `create` makes it if it is not there."""
        with self._store.write(place.timeout) as rows:
            space = rows.find_space(place.owner, place.agent)
            if space is None and create:
                space = rows.open_space(place.owner, place.agent, self._now())
            space = _known(space)
            data = space.metadata if metadata is None else dict(metadata)
            words = space.description if description is None else description
            rows.describe_space(space, words, data)
            return replace(space, description=words, metadata=data, count=rows.count(space, self._now()))

    def drop_agent(self, place: Place) -> None:
        """Delete the agent with its memories and its state."""
        with self._store.write(place.timeout) as rows:
            rows.drop_space(_known(rows.find_space(place.owner, place.agent)))

    # State

    def set_state(self, place: Place, key: str, value: str, expected: float | None = ANY_TIME) -> float:
        """Keep a JSON text under `key`; with `expected` only if the value there is of that time, None meaning no value.

        The answer is the time to expect next. `ConflictError` when another writer was faster.
        """
        with self._store.write(place.timeout) as rows:
            space = rows.open_space(place.owner, place.agent, self._now())
            old = rows.state(space, key)
            if expected != ANY_TIME and not _same_time(expected, old):
                raise ConflictError("The value has changed since it was read", status=409)
            # Strictly later than the value before, whatever the clock says: the time is what a writer compares.
            now = max(self._now(), old.updated_at + 2 * _TICK if old else 0.0)
            rows.set_state(space, key, value, now)
            return now

    def state(self, place: Place, key: str) -> StateValue:
        """The JSON text kept under `key`."""
        with self._store.read(place.timeout) as rows:
            space = rows.find_space(place.owner, place.agent)
            value = rows.state(space, key) if space else None
        if value is None:
            raise NotFoundError("State not found", status=404)
        return value

    def delete_state(self, place: Place, key: str, expected: float | None = ANY_TIME) -> None:
        """Drop the value under `key`; with `expected` only if it is of that time, else `ConflictError`."""
        with self._store.write(place.timeout) as rows:
            space = rows.find_space(place.owner, place.agent)
            if expected != ANY_TIME and not _same_time(expected, rows.state(space, key) if space else None):
                raise ConflictError("The value has changed since it was read", status=409)
            if space is None or not rows.delete_state(space, key):
                raise NotFoundError("State not found", status=404)

    def state_keys(self, place: Place, *, newest: bool = False) -> list[str]:
        """Every key of the agent's state, sorted by name or from the one last written."""
        with self._store.read(place.timeout) as rows:
            space = rows.find_space(place.owner, place.agent)
            return rows.state_keys(space, newest=newest) if space else []


def _same_time(expected: float | None, old: StateValue | None) -> bool:
    """Whether the value there is the one that was read: a time of the API has microseconds, a float has more."""
    if expected is None or old is None:
        return expected is None and old is None
    return abs(expected - old.updated_at) < _TICK


def _known(space: Space | None) -> Space:
    if space is None:
        raise NotFoundError("Agent not found", status=404)
    return space
