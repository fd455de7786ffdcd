"""A fork at any time: the child works by its deadline with the client it inherited and with a new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BeforeValidator

from kronmem import Client, DeadlineError
from kronmem.api.rules import Validator
from kronmem.sqlite_file import FileSchema, SqliteFile
from tests.outbox.services import keeping, texts
from tests.services import RawServer

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

LONGEST = 60.0
"""A child that hangs, hangs for ever; one that works takes milliseconds on an idle machine."""


def in_child(work: Callable[[], object]) -> int:
    """Do it in a forked child and answer its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 -- whatever it is, the parent hears of it by the status
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def ended_well(children: list[int]) -> None:
    """Wait for them, but not for ever."""
    ends = time.monotonic() + LONGEST
    left, failed = set(children), 0
    while left and time.monotonic() < ends:
        for child in list(left):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                left.remove(child)
                failed += os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.01)
    for child in left:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert not left, f"{len(left)} of {len(children)} children hang"
    assert not failed, f"{failed} of {len(children)} children failed: their tracebacks are above"


@contextmanager
def stopped(threads: list[threading.Thread], stop: threading.Event) -> Iterator[None]:
    """Stop the threads at the end, whatever happens."""
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.timeout(200)
def test_children_forked_while_the_outbox_delivers_work_and_nothing_arrives_twice(tmp_path: Path) -> None:
    stop = threading.Event()
    with RawServer([keeping]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:

        def busy(name: str) -> None:
            for number in range(10_000):
                if stop.wait(0.005):
                    return
                client.remember_later(name, f"{name} {number}")
                client.outbox.pending()

        threads = [threading.Thread(target=busy, args=(f"parent-{n}",)) for n in range(2)]
        for thread in threads:
            thread.start()

        def child(number: int) -> None:
            assert not client.remember(f"child-{number}", f"direct {number}").queued
            client.remember_later(f"child-{number}", f"inherited {number}")
            with Client(server.url, outbox=tmp_path / "o.db") as fresh:
                fresh.remember_later(f"child-{number}", f"fresh {number}")
            client.close()

        children = [in_child(lambda number=number: child(number)) for number in range(8)]  # type: ignore[misc]
        with stopped(threads, stop):
            ended_well(children)
        assert client.outbox.flush(60.0) == 0
        arrived = Counter(texts(server))
        assert {text: count for text, count in arrived.items() if count > 1} == {}
        for number in range(8):
            assert {f"direct {number}", f"inherited {number}", f"fresh {number}"} <= set(arrived)


MOMENTS = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008)
"""Seconds into the first use: a file is opened, its tables made, the first row written."""
Opening = Callable[[Path], Client]


@pytest.fixture(params=["embedded", pytest.param("outbox", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest) -> Iterator[Opening]:
    """Make a client that keeps what it remembers later in that file, for ever or until it is delivered."""
    if request.param == "embedded":
        yield Client.local
    else:
        with RawServer([keeping]) as server:
            yield lambda path: Client(server.url, outbox=path)


@pytest.mark.timeout(200)
def test_children_forked_during_first_use_work(opened: Opening, tmp_path: Path) -> None:
    children: list[int] = []
    for number in range(12):
        paths = [tmp_path / f"{number}-{n}.db" for n in range(3)]
        clients = [opened(path) for path in paths]
        started = threading.Barrier(4)

        def first(client: Client, started: threading.Barrier = started) -> None:
            started.wait()
            client.remember_later("alice", "from the parent")

        threads = [threading.Thread(target=first, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        started.wait()
        time.sleep(MOMENTS[number % len(MOMENTS)])

        def child(clients: list[Client] = clients, paths: list[Path] = paths) -> None:
            for client, path in zip(clients, paths, strict=True):
                client.remember_later("bob", "from the child")
                with opened(path) as fresh:
                    fresh.remember_later("bob", "from the child's own")

        children.append(in_child(child))
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()
    ended_well(children)
    for path in tmp_path.glob("*.db"):
        with opened(path) as client:
            assert client.outbox.flush(60.0) == 0
            assert not client.in_process or len(list(client.memories("bob"))) == 2


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_children_forked_while_threads_write_work(opened: Opening, tmp_path: Path) -> None:
    """Only with a client of their own, whichever locks a thread of the parent held."""
    stop = threading.Event()
    with opened(tmp_path / "f.db") as client:

        def busy(name: str) -> None:
            while not stop.wait(0.001):
                client.remember_later(name, "from the parent")

        threads = [threading.Thread(target=busy, args=(f"parent-{n}",)) for n in range(3)]
        for thread in threads:
            thread.start()

        def child() -> None:
            with opened(tmp_path / "f.db") as fresh:
                fresh.remember_later("bob", "from the child's own")

        children: list[int] = []
        for number in range(36):
            time.sleep(MOMENTS[number % len(MOMENTS)])
            children.append(in_child(child))
        with stopped(threads, stop):
            ended_well(children)


PLAIN = FileSchema(application_id=1, version=1, create=("CREATE TABLE t(x)",))


def test_a_child_forked_while_another_thread_is_in_a_transaction_gets_the_lock_later(tmp_path: Path) -> None:
    file = SqliteFile(str(tmp_path / "f.db"), PLAIN)
    inside, forking = threading.Event(), threading.Event()

    def hold() -> None:
        with file.transaction("BEGIN IMMEDIATE", 5.0) as db:
            db.execute("INSERT INTO t VALUES('of the thread')")
            inside.set()
            forking.wait(0.2)  # never set: the fork has begun by then

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(20)

    def child() -> None:
        with file.transaction("BEGIN IMMEDIATE", 20.0) as db:
            db.execute("INSERT INTO t VALUES('of the child')")

    children = [in_child(child)]
    thread.join()
    ended_well(children)
    with file.transaction("BEGIN", 5.0) as db:
        assert db.execute("SELECT x FROM t").fetchall() == [("of the thread",), ("of the child",)]
    file.close()


def test_a_fork_inside_a_transaction_of_its_own_thread_does_not_hang(tmp_path: Path) -> None:
    file = SqliteFile(str(tmp_path / "f.db"), PLAIN)
    with file.transaction("BEGIN", 5.0) as db:
        db.execute("SELECT * FROM t").fetchall()
        ended_well([in_child(lambda: None)])
    with file.transaction("BEGIN IMMEDIATE", 5.0) as db:
        db.execute("INSERT INTO t VALUES(1)")
    file.close()


def test_a_fork_waits_for_a_validator_that_another_thread_builds() -> None:
    inside, forking, built = threading.Event(), threading.Event(), threading.Event()

    def slow(value: object) -> object:
        inside.set()
        forking.wait(0.2)  # never set: the fork has begun by then
        built.set()
        return value

    validator = Validator[int](Annotated[int, BeforeValidator(slow)])
    thread = threading.Thread(target=validator.python, args=(1,))
    thread.start()
    assert inside.wait(20)

    def child() -> None:
        assert built.is_set()
        assert validator.python(2) == 2

    children = [in_child(child)]
    thread.join()
    ended_well(children)


IN_A_FIRST_USE = """
import os, threading
from kronmem import fork_safety
import logging

began, forking, made = threading.Event(), threading.Event(), []

def first_use():
    with fork_safety.first_use.lock:
        began.set()
        forking.wait()
        threading.Event().wait(0.2)  # the other thread takes the locks that a fork waits for, in their order
        logging.getLogger("made by a module at its import")
        made.append(True)

thread = threading.Thread(target=first_use)
thread.start()
began.wait()
os.register_at_fork(before=forking.set)  # registered last, so called first
if (child := os.fork()) == 0:
    os._exit(0 if made else 1)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_waits_for_a_first_use_that_makes_a_logger() -> None:
    """The hook of logging, which takes its lock, must come after ours: else neither gets on."""
    ended = subprocess.run([sys.executable, "-c", IN_A_FIRST_USE], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("0\n", "")


@pytest.mark.slow
def test_a_child_forked_while_the_outbox_is_locked_returns_by_its_deadline(tmp_path: Path) -> None:
    import sqlite3

    with RawServer([keeping]) as server, Client(server.url, outbox=tmp_path / "o.db", timeout=2.0) as client:
        client.remember_later("alice", "first")
        assert client.outbox.flush(20.0) == 0
        other = sqlite3.connect(tmp_path / "o.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")

        def queue() -> None:
            with pytest.raises(DeadlineError):
                client.remember_later("alice", "waits")

        waiting = threading.Thread(target=queue)
        waiting.start()
        try:
            ended_well([in_child(lambda: client.recall("alice", "question")) for _ in range(3)])
        finally:
            waiting.join()
            other.close()
        client.remember_later("alice", "second")
        assert client.outbox.flush(20.0) == 0
