"""Threads kept for further work: reused, bounded in number, holding nothing, and not missed after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from kronmem.packs.deadlines import MAX_IDLE, IdleThreads

Thread = threading.Thread


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def thread_of(threads: IdleThreads) -> Thread:
    """The thread of the next piece of work, when it is idle again."""
    found = list[Thread]()
    threads.run(lambda: found.append(threading.current_thread()))
    until(lambda: found and threads.idle)
    return found[0]


def test_work_after_work_runs_in_the_same_thread() -> None:
    threads = IdleThreads()
    first = thread_of(threads)
    assert [thread_of(threads) for _ in range(5)] == [first] * 5


def test_work_never_waits_for_other_work_and_few_threads_are_kept() -> None:
    threads, together = IdleThreads(), threading.Barrier(2 * MAX_IDLE)
    for _ in range(2 * MAX_IDLE):
        threads.run(lambda: together.wait(60) and None)
    until(lambda: threads.idle == MAX_IDLE)
    assert not together.broken


def test_an_idle_thread_ends_after_its_time_and_the_next_work_gets_another() -> None:
    threads = IdleThreads(idle_seconds=0.2)
    first = thread_of(threads)
    first.join(60)
    assert not first.is_alive()
    assert threads.idle == 0
    assert thread_of(threads) is not first


def test_an_idle_thread_holds_nothing_of_its_last_work() -> None:
    class Agent:
        pass

    threads, agent = IdleThreads(), Agent()
    gone = weakref.ref(agent)
    threads.run(lambda agent=agent: None)  # type: ignore[misc] # the default is what is held
    del agent
    until(lambda: gone() is None)
    until(lambda: threads.idle == 1)


FORKED = """
import os, sys, threading
from kronmem.packs.deadlines import bounded
from kronmem.packs.capture import Backlog
backlog, held, done = Backlog(), threading.Event(), []
assert bounded(lambda: 1, 30) == 1
backlog.add(lambda: held.wait(60) and None)
child = os.fork()
if child == 0:
    held.set()
    backlog.add(lambda: done.append(1))
    assert backlog.flush(30) == 0
    assert done == [1]
    os._exit(bounded(lambda: 7, 30))
held.set()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED], check=True, timeout=100)


HELD = """
import os, signal, threading
from kronmem.packs.deadlines import MAX_HANGING, bounded
release, begun = threading.Event(), threading.Semaphore(0)

def hang():
    begun.release()
    release.wait(100)

for _ in range(MAX_HANGING):
    threading.Thread(target=bounded, args=(hang, 100), daemon=True).start()
for _ in range(MAX_HANGING):
    begun.acquire()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(bounded(lambda: 7, 30))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
release.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_waits_for_no_calls_of_its_parent() -> None:
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", HELD], check=True, timeout=200)
