"""A bounded number of threads inside, kept by thread, so that an interrupt at any step takes no slot for good."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

C = TypeVar("C", bound=sqlite3.Connection)

LOOK_AGAIN = 0.05
"""A wake-up that an interrupt swallowed costs a waiting thread at most this long."""
STALE = 1.0
"""A slot is left within microseconds of its end: after so many seconds an interrupt came in between."""


@dataclass(eq=False)
class Slot(Generic[C]):
    """One transaction of one thread and the connection it uses."""

    thread: int = field(default_factory=threading.get_ident)
    connection: C | None = None
    over: bool = False
    """Set without a call: an interrupt comes between two bytecodes only where one is."""
    noticed: float | None = None
    """When a waiting thread first saw it over and not left."""


class Slots(Generic[C]):
    """Counts the threads inside by their identity.

    A counter that an exception out of a signal handler skips is wrong for ever; here the same thread's next entry
    takes over the slot that its interrupted call left, and so does any other thread that waits for one.
    """

    def __init__(self, size: int, reclaim: Callable[[Slot[C]], None], stale: float = STALE) -> None:
        self._size, self._reclaim, self._stale = size, reclaim, stale
        self.lock = threading.Lock()  # only ever taken by `with`, which no interrupt can part from its release
        self._inside: dict[int, Slot[C]] = {}
        self._freed: SimpleQueue[None] = SimpleQueue()
        self._waiting = 0
        self.closed = False
        """Nobody enters: a fork waits for those inside, and a busy file is never empty by itself."""

    def enter(self, slot: Slot[C], ends: float) -> bool:
        """Go in when there is room, at the latest at `ends`; False when there was none."""
        while not self._entered(slot):
            left = ends - time.monotonic()
            if left <= 0:
                return False
            self._waiting += 1
            try:
                self._freed.get(timeout=min(left, LOOK_AGAIN))
            except Empty:
                self._drop_ended()
                self._take_stale()
            finally:
                self._waiting -= 1
        return True

    def _entered(self, slot: Slot[C]) -> bool:
        with self.lock:
            if not self.closed and (slot.thread in self._inside or len(self._inside) < self._size):
                self._inside[slot.thread] = slot
                return True
        return False

    def leave(self, slot: Slot[C]) -> None:
        """Go out; twice is once."""
        if self._inside.get(slot.thread) is slot:
            self._inside.pop(slot.thread, None)
        if self._waiting > 0:
            self._freed.put(None)

    def left_over(self) -> Slot[C] | None:
        """The calling thread's last slot, if an interrupt came before it was left."""
        return self._inside.get(threading.get_ident())

    def _take_stale(self) -> None:
        now = time.monotonic()
        for slot in [slot for slot in list(self._inside.values()) if slot.over]:
            slot.noticed = slot.noticed or now
            if now - slot.noticed > self._stale:
                self._reclaim(slot)

    def others(self) -> bool:
        """Is a thread inside besides the calling one?"""
        self._drop_ended()
        return any(thread != threading.get_ident() for thread in list(self._inside))

    def _drop_ended(self) -> None:
        alive = {thread.ident for thread in threading.enumerate()}
        for thread in list(self._inside):
            if thread not in alive:
                self._inside.pop(thread, None)
