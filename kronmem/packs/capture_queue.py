"""The queue of captured messages: stored in order, by a thread of its own, and finished before the process ends."""

from __future__ import annotations

import atexit
import contextvars
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from kronmem.packs.idle_threads import idle_threads

MAX_JOBS = 1000
"""Messages of a long chat during an outage; beyond that, RAM is not the place to keep them."""
AT_EXIT = 5.0
"""Seconds that the end of a process may wait: two attempts at the default timeout of 2 s, and some room."""

_busy: set[Backlog] = set()


class Backlog:
    """A bounded queue, and a thread that works for it only while there is something in it."""

    def __init__(self, max_jobs: int = MAX_JOBS) -> None:
        self._max_jobs = max_jobs
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._working_in: int | None = None
        self._added = self._done = 0

    def add(self, job: Callable[[], None]) -> int | None:
        """Do this after the jobs added before; the answer is its ticket, None when too many wait already.

        The job must not raise. It runs in the caller's context, and so under the caller's span.
        """
        with self._changed:
            if len(self._jobs) >= self._max_jobs:
                return None
            self._jobs.append(partial(contextvars.copy_context().run, job))
            self._added += 1
            if self._working_in != os.getpid():  # the thread of another process was lost in a fork
                self._start()
            return self._added

    def done(self, ticket: int) -> bool:
        """Tell whether the job with this ticket, and all before it, are done."""
        return self._done >= ticket

    def wait(self, ticket: int, timeout: float) -> bool:
        """Wait until it is done, at most `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.done(ticket), timeout)

    def flush(self, timeout: float) -> int:
        """Wait until everything is done, at most `timeout` seconds; the answer is how much is left."""
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs, timeout)
            return len(self._jobs)

    def _start(self) -> None:
        _busy.add(self)
        idle_threads.run(self._work)
        self._working_in = os.getpid()

    def _work(self) -> None:
        while job := self._next():
            with suppress(BaseException):  # it may end itself, such as by sys.exit, and not the jobs after it
                job()
            del job  # with all that it refers to, before this thread waits for further work
            with self._changed:
                self._jobs.popleft()
                self._done += 1
                self._changed.notify_all()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            if self._jobs:
                return self._jobs[0]
            self._working_in = None
            _busy.discard(self)
            return None


@atexit.register
def _finish() -> None:
    """Give waiting jobs a last chance; a memory that hangs does not keep the process alive."""
    end = time.monotonic() + AT_EXIT
    for backlog in list(_busy):
        backlog.flush(max(0.0, end - time.monotonic()))
