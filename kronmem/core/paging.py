"""Walks a listing page by page without losing its place when memories come and go meanwhile. Pure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from kronmem.core import calls, memory_json
from kronmem.core.wire import Call
from kronmem.errors import ConfigError, ReplyError
from kronmem.models import Memory

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
        found = (memory_json.to_memory(wire, self.agent_id) for wire in fresh if self._shown(wire))
        held = [memory for memory in found if self.within.holds(memory)]
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
