"""Writes of several threads share a transaction, and none depends on another."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kronmem import ConflictError
from kronmem.engine.sqlite import group_commit
from kronmem.engine.sqlite.group_commit import GroupCommit
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.engine.sqlite.writing import SqliteWriter
from kronmem.errors import DeadlineError, StoreError

WAIT = 60.0


class Line:
    """A file, the transactions that were opened on it, and threads that write to it."""

    def __init__(self, path: Path) -> None:
        self.path = path / "memory.db"
        self.store = SqliteStore(str(self.path))
        self.opened: list[int] = []
        self.on_open: Callable[[int], None] = lambda number: None
        self.group = GroupCommit(self.write)
        self.threads = ThreadPoolExecutor(16)

    @contextmanager
    def write(self, timeout: float) -> Generator[SqliteWriter]:
        self.opened.append(len(self.opened) + 1)
        self.on_open(self.opened[-1])
        with self.store.write(timeout) as rows:
            yield rows

    def put(self, name: str, timeout: float = WAIT) -> Future[str]:
        return self.threads.submit(self.group.run, lambda rows: rows.set_setting(name, name) or name, timeout)

    def refuse(self, name: str) -> Future[str]:
        def work(rows: SqliteWriter) -> str:
            rows.set_setting(name, name)
            raise ConflictError(name, status=409)

        return self.threads.submit(self.group.run, work, WAIT)

    def kept(self, *names: str) -> list[str]:
        with self.store.read(WAIT) as rows:
            return [name for name in names if rows.setting(name)]

    def wait_for(self, count: int) -> None:
        """Until so many stand in line."""
        while len(self.group._line) < count:
            threading.Event().wait(0.001)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    yield made
    made.threads.shutdown()
    made.store.close()


@contextmanager
def held(line: Line) -> Generator[None]:
    """One thread is writing."""
    inside, leave = threading.Event(), threading.Event()
    first = line.threads.submit(line.group.run, lambda rows: inside.set() or leave.wait(WAIT), WAIT)
    assert inside.wait(WAIT)
    try:
        yield
    finally:
        leave.set()
        first.result(WAIT)


def test_writes_that_come_while_another_is_under_way_share_one_transaction(line: Line) -> None:
    names = [f"n{at}" for at in range(8)]
    with held(line):
        futures = [line.put(name) for name in names]
        line.wait_for(8)
    assert [future.result(WAIT) for future in futures] == names
    assert line.kept(*names) == names
    assert len(line.opened) == 2


def test_a_refused_write_is_undone_alone_and_told_to_its_own_caller(line: Line) -> None:
    with held(line):
        good, bad, other = line.put("good"), line.refuse("bad"), line.put("other")
        line.wait_for(3)
    assert (good.result(WAIT), other.result(WAIT)) == ("good", "other")
    with pytest.raises(ConflictError):
        bad.result(WAIT)
    assert line.kept("good", "bad", "other") == ["good", "other"]
    assert len(line.opened) == 2


def test_when_a_shared_transaction_fails_each_writes_by_itself(line: Line) -> None:
    def fail_second(number: int) -> None:
        if number == 2:
            raise StoreError("the disk was full")

    line.on_open = fail_second
    with held(line):
        futures = [line.put(f"n{at}") for at in range(4)]
        line.wait_for(4)
    failed = [future for future in futures if future.exception(WAIT) is not None]
    assert len(failed) == 1
    assert len(line.kept(*(f"n{at}" for at in range(4)))) == 3


def test_nobody_waits_for_long_behind_one_who_does_not_come_to_an_end(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PATIENCE", 0.01)
    by_itself = threading.Event()
    line.on_open = lambda number: by_itself.set() if number == 2 else None
    with held(line):
        late = line.put("late")
        assert by_itself.wait(WAIT)
    assert late.result(WAIT) == "late"
    assert not line.group._line


@pytest.mark.slow  # a deadline passes
def test_whose_time_runs_out_while_the_leader_waits_for_another_process_fails_alone_and_is_not_written(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PATIENCE", WAIT)
    with closing(sqlite3.connect(line.path, isolation_level=None, check_same_thread=False)) as other:
        line.on_open = lambda number: other.execute("BEGIN IMMEDIATE") if number == 2 else None
        with held(line):
            leader = line.put("leader")
            line.wait_for(1)
            hasty, patient = line.put("hasty", 3.0), line.put("patient")
            line.wait_for(3)
        assert isinstance(hasty.exception(WAIT / 2), DeadlineError)  # by then nobody has let go of the file
        assert not leader.done()
        other.execute("ROLLBACK")
        assert (leader.result(WAIT), patient.result(WAIT)) == ("leader", "patient")
    assert line.kept("leader", "hasty", "patient") == ["leader", "patient"]
    assert len(line.opened) == 3, "the two that were left shared a transaction"


def test_one_thread_after_another_writes_at_once(line: Line) -> None:
    for at in range(3):
        assert line.group.run(lambda rows, at=at: rows.set_setting(f"n{at}", "x") or at, WAIT) == at
    assert len(line.opened) == 3
    assert line.group._leader is None


def test_the_child_of_a_fork_begins_with_an_empty_line(line: Line) -> None:
    with held(line):
        waiting = line.put("waiting")
        line.wait_for(1)
        child = GroupCommit(line.write)
        child._line, child._leader = line.group._line.copy(), line.group._leader
        child.after_fork(child=True)
        assert (len(child._line), child._leader) == (0, None)
        line.group.after_fork(child=False)
    assert waiting.result(WAIT) == "waiting"
