"""The backlog behind capture: bounded, in order, and not stopped by a job that fails."""

from __future__ import annotations

import contextvars
import threading

from kronmem.packs.capture import Backlog


def test_a_backlog_is_bounded_and_outlives_a_job_that_fails() -> None:
    held, done = threading.Event(), list[int]()
    backlog = Backlog(max_jobs=3)
    jobs = [lambda: held.wait(60) and None, lambda: done.append(1), lambda: done.append(2), lambda: done.append(3)]
    assert [backlog.add(job) for job in jobs] == [1, 2, 3, None]
    assert not backlog.wait(1, 0.01)
    held.set()
    assert backlog.flush(30) == 0
    assert backlog.add(lambda: done.append(4)) == 4
    assert backlog.wait(4, 30)
    assert backlog.done(4)
    assert backlog.flush(30) == 0
    assert done == [1, 2, 4]


def test_a_job_runs_in_the_context_of_the_one_who_added_it() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")
    seen, backlog = list[str](), Backlog()
    for name in ("ada", "bob"):
        user.set(name)
        backlog.add(lambda: seen.append(user.get()))
    user.set("eve")
    assert backlog.flush(30) == 0
    assert seen == ["ada", "bob"]
