"""Calls that end by their deadline, and the guard that logs an outage once."""

from __future__ import annotations

import logging
import threading
from contextvars import ContextVar

import anyio
import pytest

from kronmem import DeadlineError, TransportError
from kronmem.packs.bounded import MAX_HANGING, attempt, bounded, bounded_async
from kronmem.packs.log_once import LogOnce

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
    release = threading.Event()
    try:
        for _ in range(MAX_HANGING):
            with pytest.raises(DeadlineError, match=r"within 0\.001 s"):
                bounded(lambda: release.wait(60), 0.001)
        with pytest.raises(DeadlineError, match="hang already"):
            bounded(lambda: True, 30)
    finally:
        release.set()
    for thread in threading.enumerate():
        if thread.name == "kronmem-bounded":
            thread.join(60)
    assert bounded(lambda: True, 30)


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
