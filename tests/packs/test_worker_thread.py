"""The backlog behind capture: bounded, in order, and not stopped by a job that fails."""

from __future__ import annotations

import threading

from kronmem.packs.worker_thread import Backlog


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
