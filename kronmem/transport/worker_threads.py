"""Worker threads for the blocking work of awaiting callers, in places of kronmem's own.

anyio's places are shared by all code of a process: a call would wait there past its deadline for other code's work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")

AT_ONCE = 40
"""Pieces of work on files at a time, as many as anyio's default; each of them ends by its call's deadline."""


class Places:
    """At most so many threads at a time for each event loop: a limiter belongs to one loop."""

    def __init__(self, name: str, most: int) -> None:
        self._limiters: RunVar[CapacityLimiter | None] = RunVar(name)
        self._most = most

    @property
    def limiter(self) -> CapacityLimiter:
        """The limiter of the running event loop."""
        if (limiter := self._limiters.get(None)) is None:
            limiter = CapacityLimiter(self._most)
            self._limiters.set(limiter)
        return limiter


_places = Places("kronmem_files", AT_ONCE)


async def aside(work: Callable[[], T]) -> T:
    """Do it in a thread, which a cancelled caller does not wait for."""
    return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=_places.limiter)


async def leave(close: Callable[[float], None], timeout: float) -> None:
    """Close an outbox in a thread: one that has begun goes on by itself; where none may begin, nothing is delivered."""
    begun: list[bool] = []

    def begin() -> None:
        begun.append(True)
        close(timeout)

    try:
        await aside(begin)
    finally:
        if not begun:
            with anyio.move_on_after(timeout, shield=True):
                await aside(lambda: close(0.0))
