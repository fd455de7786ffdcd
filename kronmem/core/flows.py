"""Questions that take more than one call: listings page by page, and services that lack the short way.

Pure, like `exchange`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api.rules import PAGE_BYTES, RESERVED
from kronmem.core import calls, memory_json
from kronmem.core.exchange import Around, Flow, Link, exchange
from kronmem.core.policy import read
from kronmem.core.wire import Call
from kronmem.errors import ConfigError, FanOutError, KronmemError, NotFoundError, ReplyError, UnsupportedError
from kronmem.models import AgentInfo, Erasure, Memory

T = TypeVar("T")
M = TypeVar("M", calls.Draft, Memory)

BATCH = 100
"""Memories of one bulk import: the most that Kronvex takes."""


def remember_many(
    drafts: Sequence[calls.Draft], link: Link, timeout: float, stored: list[Memory]
) -> Flow[list[Memory]]:
    """Store many memories of one agent in order, in batches where the service has them, else one by one.

    Stored memories are in `stored` even when a later one fails.
    """
    start = 0
    for chunk in batches(drafts):
        try:
            many = yield from _batch(chunk, link, timeout)
        except KronmemError as error:
            if not stored:
                raise
            raise _half_way(stored, error) from error
        if many is None:
            yield from _one_by_one(drafts[start:], link, timeout, stored)
            break
        stored += many
        start += len(chunk)
    return stored


def batches(many: Sequence[M]) -> Iterator[Sequence[M]]:
    """The same in parts of a bounded number and size; a part of one may be larger."""
    start = size = 0
    for at, one in enumerate(many):
        # Every character in its largest form.
        length = 6 * len(one.content) + len(to_json(one.metadata))
        if at > start and (at - start == BATCH or size + length > PAGE_BYTES):
            yield many[start:at]
            start, size = at, 0
        size += length
    if start < len(many):
        yield many[start:]


def _batch(chunk: Sequence[calls.Draft], link: Link, timeout: float) -> Flow[list[Memory] | None]:
    if any(one.key is not None for one in chunk):
        return None  # a service without keys would ignore them in a batch
    try:
        return (yield from exchange(calls.remember_batch(chunk[0].agent_id, chunk), link, timeout))
    except UnsupportedError:
        return None


def _one_by_one(drafts: Sequence[calls.Draft], link: Link, timeout: float, stored: list[Memory]) -> Flow[None]:
    # One after the other, never side by side: the service lets a later text supersede an earlier one.
    for one in drafts:
        try:
            stored.append((yield from exchange(calls.remember(one), link, timeout)))
        except KronmemError as error:
            raise _half_way(stored, error) from error


def _half_way(stored: list[Memory], error: KronmemError) -> FanOutError:
    at = len(stored)
    message = f"{at} memories were stored, then one failed: {error}"
    return FanOutError(message, partial=dict(enumerate(stored)), causes={at: error})


def once(call: Call[T], timeout: float) -> Flow[T]:
    """Ask once, past breaker and retries: for a question about the service's health itself."""
    return read(call, (yield call.request(timeout)))


def get(agent_id: str, memory_id: str, link: Link, timeout: float) -> Flow[Memory]:
    """One memory."""
    around = Around(link, link.now() + timeout)
    try:
        return (yield from exchange(calls.get(agent_id, memory_id), link, timeout))
    except UnsupportedError:
        return (yield from link.service.vendor.get(agent_id, memory_id, around))


def update(agent_id: str, memory_id: str, link: Link, timeout: float, change: calls.MemoryChange) -> Flow[Memory]:
    """Change a memory in place; at the vendor's server its pin and type alone."""
    around, service = Around(link, link.now() + timeout), link.service
    if change.by_any_service:
        if service.version is None and service.has("get"):
            yield from get(agent_id, memory_id, link, timeout)  # the answer shows the kind of the service
        if service.is_vendor:
            return (yield from service.vendor.update(agent_id, memory_id, change, around))
    return (yield from exchange(calls.update(agent_id, memory_id, change), link, around.left()))


def history(agent_id: str, memory_id: str, link: Link, timeout: float) -> Flow[list[Memory]]:
    """A memory and its former texts; a service that keeps none has only the memory."""
    ends = link.now() + timeout
    try:
        return (yield from _versions(agent_id, memory_id, link, ends))
    except UnsupportedError:
        return [(yield from get(agent_id, memory_id, link, ends - link.now()))]


def _versions(agent_id: str, memory_id: str, link: Link, ends: float) -> Flow[list[Memory]]:
    seen: dict[str, Memory] = {}
    after = None
    while True:
        page = yield from exchange(calls.history(agent_id, memory_id, after), link, ends - link.now())
        new = [memory_json.to_memory(wire, agent_id) for wire in page.memories if wire.id not in seen]
        seen |= {one.id: one for one in new}
        if page.next is None:
            return list(seen.values())
        if not new:
            raise ReplyError(REPEATED)
        after = page.next


def describe(agent_id: str, fields: dict[str, JsonValue], link: Link, timeout: float) -> Flow[AgentInfo]:
    """Describe an agent; the object that kronmem itself keeps in an agent's metadata stays there."""
    ends = link.now() + timeout
    if isinstance(metadata := fields.get("metadata"), dict):
        there = yield from exchange(calls.agent(agent_id), link, timeout)
        own = {name: value for name, value in (there.metadata if there else {}).items() if name == RESERVED}
        fields = {**fields, "metadata": {**metadata, **own}}
    kept = yield from exchange(calls.describe(agent_id, fields), link, ends - link.now())
    if missing := [name for name, value in fields.items() if getattr(kept, name) != value]:
        stored = "nothing else was sent" if len(missing) == len(fields) else "the metadata is stored"
        raise UnsupportedError(f"the service ignores the {' and the '.join(missing)} of an agent; {stored}")
    return kept


def erase(agent_id: str, link: Link, timeout: float) -> Flow[Erasure]:
    """Remove everything of an agent; where the service cannot erase, delete the agent, which is not complete."""
    ends = link.now() + timeout
    try:
        # The service stops waiting for readers of its files while there is time left to answer.
        return (yield from exchange(calls.erase(agent_id, timeout / 2), link, timeout))
    except UnsupportedError:
        pass
    deleted = yield from exchange(calls.clear(agent_id), link, ends - link.now())
    yield from exchange(calls.delete_agent(agent_id), link, ends - link.now())
    link.service.vendor.drop_agent(agent_id)
    return Erasure(memories=deleted, complete=False)


def clear(agent_id: str, session_id: str | None, before: datetime | None, link: Link, timeout: float) -> Flow[int]:
    """Delete an agent's memories, a session's, or old ones; where the service cannot, list them and delete each."""
    within = calls.MemoryFilter(session_id=session_id, until=before)
    ends = link.now() + timeout
    if not within.narrow:
        return (yield from exchange(calls.clear(agent_id), link, timeout))
    try:
        return (yield from exchange(_short_clear(agent_id, session_id, before), link, timeout))
    except UnsupportedError:
        return (yield from _clear_each(agent_id, within, link, ends))


def _short_clear(agent_id: str, session_id: str | None, before: datetime | None) -> Call[int]:
    if before is not None:
        return calls.clear_some(agent_id, session_id, before)
    return calls.clear_session(agent_id, session_id or "")


def _clear_each(agent_id: str, within: calls.MemoryFilter, link: Link, ends: float) -> Flow[int]:
    walk = Walk(agent_id, within, history=True)
    memories: list[Memory] = []
    while not walk.done:
        memories += walk.take((yield from exchange(walk.call(), link, ends - link.now())))
    deleted = 0
    for memory in memories:
        # Plainly, without looking for duplicates of each: the walk gave every row there is.
        plainly = replace(calls.forget(agent_id, memory.id), vendor=None)
        try:
            yield from exchange(plainly, link, ends - link.now())
            deleted += 1
        except NotFoundError:
            continue
    return deleted


# Walks a listing page by page without losing its place when memories come and go meanwhile. Pure.

REPEATED = "the service repeats a page of its listing: is a cache in front of it?"


@dataclass
class Walk:
    """Ask `call()` for the next page, hand its answer to `take()`, until `done`."""

    agent_id: str
    within: calls.MemoryFilter
    history: bool = False
    """Give superseded memories too."""
    done: bool = False
    number: int = 1
    after: str | None = None
    total: int | None = None
    seen: set[str] = field(default_factory=lambda: set[str]())
    given: set[int] = field(default_factory=lambda: set[int]())
    last: list[str] = field(default_factory=lambda: list[str]())
    """The ids of the last page of a service that counts its pages."""
    found: int = 0
    """How many memories were given so far."""

    def call(self) -> Call[memory_json.WirePage]:
        """The call that fetches the next page."""
        return calls.page(self.agent_id, self.within, self.number, self.after, history=self.history)

    def take(self, page: memory_json.WirePage) -> list[Memory]:
        """The memories of this page that are in scope and were not given before."""
        if "next" in page.model_fields_set:
            self.after, self.done = page.next, page.next is None
            fresh = page.memories
            self._check_progress({page.next, *(wire.id for wire in fresh[:1])}, page.next is None or bool(fresh))
        else:
            fresh = [wire for wire in page.memories if wire.id not in self.seen]
            self.seen.update(wire.id for wire in fresh)
            self._turn(page)
        memories = (memory_json.to_memory(wire, self.agent_id) for wire in fresh if self._shown(wire))
        held = [memory for memory in memories if self.within.holds(memory)]
        self.found += len(held)
        return held

    def _check_progress(self, marks: set[str | None], progress: bool) -> None:
        """Keep the mark and the first id of each page: none of them comes twice."""
        if not (progress and self.seen.isdisjoint(marks)):
            raise ReplyError(REPEATED)
        self.seen.update(mark for mark in marks if mark is not None)

    def _shown(self, wire: memory_json.WireMemory) -> bool:
        """Is it alive, and no duplicate of one that was given already?"""
        if self.history:
            return True
        if wire.superseded:
            return False
        own = (wire.ours or {}).get("id")
        if own is None:  # our own service keeps one row per id
            return True
        mark = hash((str(own), wire.content))
        repeated = mark in self.given
        self.given.add(mark)
        return not repeated

    def _turn(self, page: memory_json.WirePage) -> None:
        shrunk = (self.total or 0) - (page.total or 0) if self.total and page.total is not None else 0
        ids = [wire.id for wire in page.memories]
        if ids == self.last and len(ids) >= calls.PER_PAGE and shrunk <= 0:
            raise ReplyError(REPEATED)
        self.total, self.last = page.total, ids
        if shrunk > 0 and page.memories:
            # Memories were deleted since the last page, so later ones moved up into pages already read.
            self.number = max(1, self.number - -(-shrunk // calls.PER_PAGE))
        elif len(page.memories) < calls.PER_PAGE:
            self.done = True
        else:
            self.number += 1


class Listing(AsyncIterator[Memory]):
    """The memories of `AsyncClient.memories`, a page at a time; a plain `for` or an `await` names the fix."""

    def __init__(self, walk: AsyncGenerator[Memory, None]) -> None:
        self._walk = walk

    def __anext__(self) -> Awaitable[Memory]:
        return self._walk.__anext__()

    async def aclose(self) -> None:
        """Stop walking."""
        await self._walk.aclose()

    if not TYPE_CHECKING:  # type checkers see that these do not work

        def __iter__(self) -> NoReturn:
            raise ConfigError("memories() of an AsyncClient needs `async for`, or Client where nothing is awaited")

        __await__ = __iter__
