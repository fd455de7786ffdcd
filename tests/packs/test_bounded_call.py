"""Calls that end by their deadline, and the guard that logs an outage once."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref
from contextlib import suppress
from contextvars import ContextVar

import anyio
import pytest

from kronmem import DeadlineError, TransportError
from kronmem.packs.deadlines import MAX_HANGING, LogOnce, attempt, bounded, bounded_async, bounded_thread

user: ContextVar[str] = ContextVar("user")
SECRET = "the door code is 4711"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "kronmem")
    return caplog


def test_a_bounded_call_answers_raises_and_sees_the_callers_context() -> None:
    token = user.set("ada")
    try:
        assert bounded(user.get, 30) == "ada"
    finally:
        user.reset(token)
    with pytest.raises(LookupError):
        bounded(user.get, 30)


def test_calls_that_hang_are_left_behind_and_bounded_in_number() -> None:
    release, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> bool:
        begun.release()
        return release.wait(60)

    try:
        for _ in range(MAX_HANGING):
            with pytest.raises(DeadlineError, match=r"within 0\.001 s"):
                bounded(hang, 0.001)
        assert all(begun.acquire(timeout=30) for _ in range(MAX_HANGING))  # their threads may begin late
        with pytest.raises(DeadlineError):
            bounded(lambda: True, 0.01)
    finally:
        release.set()
    assert bounded(lambda: True, 30)


def test_calls_wait_for_room_as_long_as_they_have_time() -> None:
    release, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> bool:
        begun.release()
        return release.wait(60)

    async def main() -> list[bool]:
        waiting = [asyncio.ensure_future(bounded_thread(hang, 60)) for _ in range(2 * MAX_HANGING)]
        while not all(begun.acquire(blocking=False) for _ in range(MAX_HANGING)):
            await asyncio.sleep(0.001)
        release.set()
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == [True] * 2 * MAX_HANGING


def test_a_call_in_a_thread_leaves_the_loop_at_its_deadline_and_when_it_is_cancelled() -> None:
    release = threading.Event()

    async def main() -> None:
        token = user.set("ada")
        assert await bounded_thread(user.get, 30) == "ada"
        user.reset(token)
        with pytest.raises(LookupError):
            await bounded_thread(user.get, 30)
        with pytest.raises(DeadlineError, match=r"within 0\.001 s"):
            await bounded_thread(lambda: release.wait(60), 0.001)
        task = asyncio.ensure_future(bounded_thread(lambda: release.wait(60), 60))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not release.is_set()

    asyncio.run(main())
    release.set()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_awaited_call_is_cancelled_at_its_deadline(backend: str) -> None:
    ended = list[bool]()

    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    async def main() -> None:
        with pytest.raises(DeadlineError, match=r"within 0\.001 s"):
            await bounded_async(hang, 0.001)

    anyio.run(main, backend=backend)
    assert ended == [True]


def test_an_outage_is_logged_once_and_its_end_once(lines: pytest.LogCaptureFixture) -> None:
    log = LogOnce("memory of 'ada'")
    log.succeeded()
    for _ in range(3):
        log.failed(TransportError("cannot connect to http://127.0.0.1:9"))
    log.succeeded()
    log.succeeded()
    assert lines.messages == [
        "memory of 'ada' is unavailable, going on without it (TransportError: cannot connect to http://127.0.0.1:9)",
        "memory of 'ada' is available again",
    ]


def test_an_attempt_never_raises_and_quotes_no_foreign_error(lines: pytest.LogCaptureFixture) -> None:
    def fail() -> str:
        raise KeyError(SECRET)

    log = LogOnce("memory of 'ada'")
    assert attempt(fail, 30, log, "nothing") == "nothing"
    assert attempt(lambda: "something", 30, log, "nothing") == "something"
    assert lines.messages[0].endswith("(KeyError)")
    assert SECRET not in lines.text


def test_cancellation_is_not_swallowed(lines: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyboardInterrupt):
        with LogOnce("memory").swallowing():
            raise KeyboardInterrupt
    assert lines.messages == []


class Failed(Exception):
    """An error that can be watched."""


def test_the_late_failure_of_a_cancelled_call_is_logged_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    begun, release, failures = threading.Event(), threading.Event(), list[weakref.ref[Failed]]()

    def fail() -> None:
        begun.set()
        release.wait(60)
        error = Failed(SECRET)
        failures.append(weakref.ref(error))
        raise error

    async def main() -> None:
        task = asyncio.ensure_future(bounded_thread(fail, 60))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        release.set()
        while not failures or failures[0]() is not None:  # asyncio complains when it is forgotten
            await asyncio.sleep(0.001)
            gc.collect()

    asyncio.run(main())
    assert SECRET not in caplog.text


def test_a_call_given_up_before_its_thread_begins_ends_no_thread() -> None:
    async def main() -> None:
        for _ in range(50):
            with suppress(DeadlineError):
                await bounded_thread(lambda: True, 0)
            task = asyncio.ensure_future(bounded_thread(lambda: True, 60))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await asyncio.gather(*[bounded_thread(lambda: True, 60) for _ in range(MAX_HANGING)])

    asyncio.run(main())  # a thread that dies of an exception fails this test by its warning
