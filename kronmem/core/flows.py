"""Questions that take more than one call, for services that lack the short way. Pure, like `exchange`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api.ids import RESERVED
from kronmem.api.limits import PAGE_BYTES
from kronmem.core import calls, memory_json
from kronmem.core.exchange import Around, Flow, Link, exchange
from kronmem.core.paging import REPEATED, Walk
from kronmem.core.status_errors import read
from kronmem.core.wire import Call
from kronmem.errors import FanOutError, KronmemError, NotFoundError, ReplyError, UnsupportedError
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
    found: dict[str, Memory] = {}
    after = None
    while True:
        page = yield from exchange(calls.history(agent_id, memory_id, after), link, ends - link.now())
        new = [memory_json.to_memory(wire, agent_id) for wire in page.memories if wire.id not in found]
        found |= {one.id: one for one in new}
        if page.next is None:
            return list(found.values())
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
    found: list[Memory] = []
    while not walk.done:
        found += walk.take((yield from exchange(walk.call(), link, ends - link.now())))
    deleted = 0
    for memory in found:
        # Plainly, without looking for duplicates of each: the walk gave every row there is.
        plainly = replace(calls.forget(agent_id, memory.id), vendor=None)
        try:
            yield from exchange(plainly, link, ends - link.now())
            deleted += 1
        except NotFoundError:
            continue
    return deleted
