"""Group commit: what several threads of a process write at once shares a transaction, and so a flush to disk.

A thread that finds nobody writing writes at once. Those that come meanwhile wait in line; the first of them then writes
for all. Nothing depends on it: a thread whose turn does not come, or whose group fails, writes by itself.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar, cast

from kronmem import fork_safety
from kronmem.engine.sqlite.writing import SqliteWriter
from kronmem.errors import KronmemError

PATIENCE = 1.0
"""Seconds in line before a thread writes by itself; a transaction takes milliseconds, on a slow disk tens of them."""
SETTLED = 60.0
"""Seconds to wait for a transaction that is being committed: until then nobody knows whether it will be there."""
MOST = 64
"""Writes in one transaction: other processes wait no longer for it than for a batch."""

T = TypeVar("T")


class _Write:
    """One thread's write. Once `called`, it leads, has an outcome, or is on its own again."""

    def __init__(self, work: Callable[[SqliteWriter], object]) -> None:
        self.work = work
        self.called = threading.Event()
        self.results: list[object] = []
        self.error: KronmemError | None = None

    def attempt(self, rows: SqliteWriter) -> None:
        """Do it as a part of a transaction; refused, it leaves nothing behind."""
        try:
            with rows.savepoint():
                self.results.append(self.work(rows))
        except KronmemError as error:
            self.error = error

    def forget(self) -> None:
        """Drop the outcome: the transaction that it was a part of failed."""
        self.results.clear()
        self.error = None

    def has_outcome(self) -> bool:
        """Whether another thread has written it, or found that it cannot be."""
        return self.called.is_set() and bool(self.results or self.error)

    def outcome(self) -> object:
        """The result, or the error raised."""
        if self.error is not None:
            raise self.error
        return self.results[0]


class GroupCommit:
    """The line of writes to one file. `write` opens a transaction that is on disk when its block has ended."""

    def __init__(self, write: Callable[[float], AbstractContextManager[SqliteWriter]]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._line: deque[_Write] = deque()
        self._leader: _Write | None = None
        fork_safety.watch(self)

    def run(self, work: Callable[[SqliteWriter], T], timeout: float) -> T:
        """The result of `work` once it is on disk; its error, and nothing changed, if it raises one."""
        ends = time.monotonic() + timeout
        mine = _Write(work)
        try:
            if self._enter(mine) or not self._done_by_another(mine, ends):
                return cast("T", self._lead(mine, ends))
            return cast("T", mine.outcome())
        finally:
            self._leave(mine)

    def _enter(self, mine: _Write) -> bool:
        """Lead if nobody does, or stand in line."""
        with self._lock:
            if self._leader is None:
                self._leader = mine
                return True
            self._line.append(mine)
            return False

    def _done_by_another(self, mine: _Write, ends: float) -> bool:
        mine.called.wait(min(PATIENCE, max(ends - time.monotonic(), 0.0)))
        with self._lock:
            if waiting := mine in self._line:
                self._line.remove(mine)
        return not waiting and mine.called.wait(SETTLED) and mine.has_outcome()

    def _lead(self, mine: _Write, ends: float) -> object:
        """Write, together with those in line if it is this thread's turn to."""
        others: list[_Write] = []
        try:
            with self._write(max(ends - time.monotonic(), 0.0)) as rows:
                # Not before the file is locked: whoever's time runs out until then leaves the line with its own error.
                others = self._followers(mine)
                if not others:
                    return mine.work(rows)
                for one in (mine, *others):
                    one.attempt(rows)
        except BaseException:
            for one in others:
                one.forget()  # each tries by itself: it may have been the fault of one of them
            raise
        finally:
            for one in others:
                one.called.set()
        return mine.outcome()

    def _followers(self, mine: _Write) -> list[_Write]:
        with self._lock:
            if self._leader is not mine:
                return []
            return [self._line.popleft() for _ in range(min(len(self._line), MOST - 1))]

    def _leave(self, mine: _Write) -> None:
        """Call the next in line."""
        with self._lock:
            if self._leader is mine:
                self._leader = self._line.popleft() if self._line else None
                if self._leader is not None:
                    self._leader.called.set()
            elif mine in self._line:  # interrupted
                self._line.remove(mine)

    def before_fork(self) -> None:
        """Nothing to do: the file itself waits until its transactions have ended."""

    def after_fork(self, *, child: bool) -> None:
        """Begin with an empty line in the child, where no other thread is."""
        if child:
            self._lock, self._line, self._leader = threading.Lock(), deque(), None
