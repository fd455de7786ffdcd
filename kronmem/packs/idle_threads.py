"""Threads that wait for further work: on a busy machine a new one begins milliseconds later than one that wakes up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from kronmem.fork_safety import watch

MAX_IDLE = 8
"""Threads kept for further work: a turn needs two, one that recalls and one that stores."""
IDLE_SECONDS = 30.0
"""A model may take as long to answer, and then the next turn asks again."""

Work = Callable[[], None]


class IdleThreads:
    """Runs each piece of work at once, in a thread of its own: one that is idle, or a new one."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._seconds, self._lock = idle_seconds, threading.Lock()
        self._idle: list[SimpleQueue[Work]] = []
        watch(self)

    def run(self, work: Work) -> None:
        """Begin this work, which must not raise."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue[Work]()
            threading.Thread(target=self._serve, args=(inbox,), name="kronmem-worker", daemon=True).start()
        inbox.put(work)

    @property
    def idle(self) -> int:
        """How many threads wait for work."""
        return len(self._idle)

    def _serve(self, inbox: SimpleQueue[Work]) -> None:
        inbox.get()()
        while self._rest(inbox):
            pass

    def _rest(self, inbox: SimpleQueue[Work]) -> bool:
        """Wait for work and do it; whatever it referred to is free when this thread waits again."""
        with self._lock:
            if len(self._idle) >= MAX_IDLE:
                return False
            self._idle.append(inbox)
        try:
            work = inbox.get(timeout=self._seconds)
        except Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    return False
            work = inbox.get()  # somebody has just chosen this thread
        work()
        return True

    def before_fork(self) -> None:
        """Nothing here has to come to rest."""

    def after_fork(self, *, child: bool) -> None:
        """The child has none of these threads."""
        if child:
            self._lock, self._idle = threading.Lock(), []


idle_threads = IdleThreads()
