"""Questions that take more than one call, for services that lack the short way. Pure, like `exchange`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from kronmem.core import calls
from kronmem.core.exchange import Flow, Link, exchange
from kronmem.core.paging import Walk
from kronmem.core.wire import Call, read
from kronmem.errors import FanOutError, KronmemError, StatusError
from kronmem.models import Memory

T = TypeVar("T")

BATCH = 100


def remember_many(drafts: Sequence[calls.Draft], link: Link, timeout: float) -> Flow[list[Memory]]:
    """Store many memories of one agent in order, in batches where the service has them, else one by one."""
    stored: list[Memory] = []
    for start in range(0, len(drafts), BATCH):
        chunk = drafts[start : start + BATCH]
        many = yield from _batch(chunk, link, timeout)
        if many is None:
            return stored + (yield from _one_by_one(drafts[start:], link, timeout))
        stored += many
    return stored


def _batch(chunk: Sequence[calls.Draft], link: Link, timeout: float) -> Flow[list[Memory] | None]:
    if "batch" in link.lacks:
        return None
    try:
        return (yield from exchange(calls.remember_batch(chunk[0].agent_id, chunk), link, timeout))
    except StatusError as error:
        if error.status not in (404, 405):
            raise
        link.lacks.add("batch")
        return None


def _one_by_one(drafts: Sequence[calls.Draft], link: Link, timeout: float) -> Flow[list[Memory]]:
    # One after the other, never side by side: the service lets a later text supersede an earlier one.
    stored: dict[int, Memory] = {}
    for position, one in enumerate(drafts):
        try:
            stored[position] = yield from exchange(calls.remember(one), link, timeout)
        except KronmemError as error:
            message = f"{position} of {len(drafts)} memories were stored, then one failed: {error}"
            raise FanOutError(message, partial=stored, causes={position: error}) from error
    return list(stored.values())


def once(call: Call[T], timeout: float) -> Flow[T]:
    """Ask once, past breaker and retries: for a question about the service's health itself."""
    return read(call, (yield replace(call.request(), timeout=timeout)))


def clear_session(agent_id: str, session_id: str, link: Link, timeout: float) -> Flow[int]:
    """Delete a session's memories; where the service cannot, list them and delete each."""
    if "clear_session" not in link.lacks:
        try:
            return (yield from exchange(calls.clear_session(agent_id, session_id), link, timeout))
        except StatusError as error:
            if error.status not in (404, 405):
                raise
            link.lacks.add("clear_session")
    walk = Walk(agent_id, calls.Scope(session_id=session_id))
    found: list[Memory] = []
    while not walk.done:
        found += walk.take((yield from exchange(walk.call(), link, timeout)))
    for memory in found:
        yield from exchange(calls.forget(agent_id, memory.id), link, timeout)
    return len(found)
